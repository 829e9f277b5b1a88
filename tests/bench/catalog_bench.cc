// What the catalog's own part of an operation costs, on a real disk's file system in a temp folder.
#include <benchmark/benchmark.h>

#include <memory>
#include <string>

#include "engine/catalog/catalog.h"
#include "engine/env/real.h"
#include "tests/lib/temp_folder.h"

namespace kvsyncfs {
namespace {

class Bench {
 public:
  Bench() {
    CatalogOptions options;
    options.directory = folder_.path() + "/catalog";
    Catalog::format(*disk_, options, 0, 0, {1, 0}).value();
    catalog_ = std::move(*Catalog::open(*disk_, options));
  }
  CommandResult run(Command command) {
    Transaction t;
    t.commands.push_back(std::move(command));
    auto results = catalog_->apply({catalog_->applied().value + 1}, t);
    // The engine's checkpoint, where it would come.
    if (catalog_->memtable_bytes() > (64u << 20)) {
      catalog_->begin_checkpoint().value();
      catalog_->finish_checkpoint().value();
    }
    return std::move(results->at(0));
  }
  InodeId create(std::uint64_t n) {
    CreateCommand c;
    c.parent = kRootInode;
    c.name = "file-" + std::to_string(n);
    c.mode = 0100644;
    c.time = {static_cast<std::int64_t>(n), 0};
    return run(std::move(c)).inode;
  }
  WriteExtentsCommand write(InodeId inode, std::uint64_t page) {
    WriteExtentsCommand c;
    c.inode = inode;
    c.extents = {{page * kPageSize, kPageSize, segment_, next_ += kPageSize}};
    c.mtime = c.time = {5, 0};
    return c;
  }
  Catalog& catalog() { return *catalog_; }
  void open_segment() { segment_ = run(OpenSegmentCommand{}).segment; }

 private:
  TempFolder folder_;
  std::unique_ptr<Disk> disk_ = make_real_disk();
  std::unique_ptr<Catalog> catalog_;
  SegmentId segment_;
  std::uint64_t next_ = 0;
};

void create(benchmark::State& state) {
  Bench bench;
  std::uint64_t n = 0;
  for (auto _ : state) bench.create(n++);
}
BENCHMARK(create)->Iterations(200000);

void unlink(benchmark::State& state) {
  Bench bench;
  constexpr std::uint64_t kFiles = 100000;
  for (std::uint64_t n = 0; n < kFiles; ++n) bench.create(n);
  std::uint64_t n = 0;
  for (auto _ : state) {
    InodeId id =
        bench.run(UnlinkCommand{kRootInode, "file-" + std::to_string(n++), false, {}}).inode;
    bench.run(ReclaimCommand{id});
  }
}
BENCHMARK(unlink)->Iterations(100000);

void append_extent(benchmark::State& state) {
  Bench bench;
  bench.open_segment();
  InodeId file = bench.create(0);
  std::uint64_t page = 0;
  for (auto _ : state) bench.run(bench.write(file, page++));
}
BENCHMARK(append_extent)->Iterations(200000);

void first_extent(benchmark::State& state) {
  Bench bench;
  bench.open_segment();
  std::uint64_t n = 0;
  for (auto _ : state) {
    state.PauseTiming();
    InodeId file = bench.create(n++);
    state.ResumeTiming();
    bench.run(bench.write(file, 0));
  }
}
BENCHMARK(first_extent)->Iterations(100000);

void overwrite_extent(benchmark::State& state) {
  Bench bench;
  bench.open_segment();
  InodeId file = bench.create(0);
  constexpr std::uint64_t kPages = 32768;
  for (std::uint64_t page = 0; page < kPages; ++page) bench.run(bench.write(file, page));
  std::uint64_t x = 1;
  for (auto _ : state) {
    x = x * 6364136223846793005ull + 1442695040888963407ull;
    bench.run(bench.write(file, (x >> 33) % kPages));
  }
}
BENCHMARK(overwrite_extent)->Iterations(200000);

void read_inode(benchmark::State& state) {
  Bench bench;
  const auto files = static_cast<std::uint64_t>(state.range(0));
  std::vector<InodeId> ids;
  for (std::uint64_t n = 0; n < files; ++n) ids.push_back(bench.create(n));
  std::uint64_t x = 1;
  for (auto _ : state) {
    x = x * 6364136223846793005ull + 1442695040888963407ull;
    benchmark::DoNotOptimize(bench.catalog().inode(ids[(x >> 33) % files]));
  }
}
BENCHMARK(read_inode)->Arg(1000)->Arg(100000);

void lookup(benchmark::State& state) {
  Bench bench;
  constexpr std::uint64_t kFiles = 10000;
  for (std::uint64_t n = 0; n < kFiles; ++n) bench.create(n);
  std::uint64_t n = 0;
  for (auto _ : state)
    benchmark::DoNotOptimize(
        bench.catalog().lookup(kRootInode, "file-" + std::to_string(n++ % kFiles)));
}
BENCHMARK(lookup);

void list_all(benchmark::State& state) {
  Bench bench;
  constexpr std::uint64_t kFiles = 10000;
  for (std::uint64_t n = 0; n < kFiles; ++n) bench.create(n);
  for (auto _ : state) {
    std::uint64_t after = 0;
    for (;;) {
      auto entries = bench.catalog().list(kRootInode, after, 100).value();
      if (entries.empty()) break;
      after = entries.back().cookie;
    }
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations()) * kFiles);
}
BENCHMARK(list_all);

void read_extents(benchmark::State& state) {
  Bench bench;
  bench.open_segment();
  InodeId file = bench.create(0);
  for (std::uint64_t page = 0; page < 10000; ++page) bench.run(bench.write(file, page));
  std::uint64_t x = 1;
  for (auto _ : state) {
    x = x * 6364136223846793005ull + 1442695040888963407ull;
    benchmark::DoNotOptimize(
        bench.catalog().extents(file, (x >> 33) % 10000 * kPageSize, kPageSize, 16));
  }
}
BENCHMARK(read_extents);

}  // namespace
}  // namespace kvsyncfs

BENCHMARK_MAIN();
