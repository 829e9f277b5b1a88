// The store alone: appends, reads from the disk and from the arena. On a real disk: in /var/tmp
// unless KVSYNCFS_BENCH_FOLDER says otherwise.
#include <benchmark/benchmark.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <vector>

#include "engine/env/real.h"
#include "engine/store/segment_store.h"
#include "engine/tier/page_cache.h"
#include "tests/lib/temp_folder.h"

namespace kvsyncfs {
namespace {

std::string folder() {
  const char* chosen = std::getenv("KVSYNCFS_BENCH_FOLDER");
  return chosen != nullptr ? chosen : "/var/tmp";
}

/// A store that forgets its oldest segment when it holds more than a few.
class BenchStore {
 public:
  BenchStore() {
    StoreOptions options;
    options.directory = folder_.path() + "/segments";
    options.size_bytes = std::uint64_t{4} << 30;
    options.open_segment = [this]() -> Result<SegmentId> { return SegmentId{++last_id_}; };
    options.seal_segment = [](SegmentId, std::uint64_t) -> Status { return {}; };
    SegmentStore::format(*disk_, options).value();
    store_ = std::move(SegmentStore::open(*disk_, options)).value();
  }

  Placed append(Stream stream, std::span<const Bytes> runs) {
    auto placed = store_->append(stream, runs).value();
    if (last_id_ > first_id_ + 8) store_->remove(SegmentId{first_id_++}).value();
    return placed.back();
  }
  SegmentStore& store() { return *store_; }

 private:
  TempFolder folder_{folder()};
  std::unique_ptr<Disk> disk_ = make_real_disk();
  std::uint64_t last_id_ = 0, first_id_ = 1;
  std::unique_ptr<SegmentStore> store_;
};

AlignedBuffer random_pages(std::size_t count) {
  AlignedBuffer buffer(count * kPageSize);
  std::mt19937_64 random(1);
  for (std::size_t i = 0; i < buffer.size(); i += 8) {
    const std::uint64_t word = random();
    std::memcpy(buffer.data() + i, &word, 8);
  }
  return buffer;
}

void append_1_mib(benchmark::State& state) {
  BenchStore store;
  const AlignedBuffer pages = random_pages(256);
  const Bytes run = pages.bytes();
  for (auto _ : state) store.append(Stream::kUser, {&run, 1});
  store.store().sync().value();
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(run.size()));
}
BENCHMARK(append_1_mib);

void append_64_pages(benchmark::State& state) {
  BenchStore store;
  const AlignedBuffer pages = random_pages(128);
  std::vector<Bytes> runs;  // scattered frames
  for (std::size_t i = 0; i < 64; ++i)
    runs.push_back(pages.bytes().subspan(2 * i * kPageSize, kPageSize));
  for (auto _ : state) store.append(Stream::kUser, runs);
  store.store().sync().value();
  state.SetBytesProcessed(state.iterations() * 64 * static_cast<std::int64_t>(kPageSize));
}
BENCHMARK(append_64_pages);

void append_64_pages_and_sync(benchmark::State& state) {
  BenchStore store;
  const AlignedBuffer pages = random_pages(64);
  const Bytes run = pages.bytes();
  for (auto _ : state) {
    store.append(Stream::kUser, {&run, 1});
    store.store().sync().value();
  }
}
BENCHMARK(append_64_pages_and_sync);

void read_from_disk(benchmark::State& state) {
  BenchStore store;
  const AlignedBuffer pages = random_pages(1000);
  const Bytes run = pages.bytes();
  std::vector<Placed> placed;
  for (int i = 0; i < 64; ++i) placed.push_back(store.append(Stream::kUser, {&run, 1}));
  const auto size = static_cast<std::size_t>(state.range(0));
  AlignedBuffer out(size);
  std::mt19937_64 random(2);
  for (auto _ : state) {
    const Placed& at = placed[random() % placed.size()];
    const std::uint64_t page = random() % (at.length / kPageSize - size / kPageSize + 1);
    store.store().read(at.segment, at.segment_offset + page * kPageSize, out.bytes()).value();
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(size));
}
BENCHMARK(read_from_disk)->Arg(4096)->Arg(128 << 10)->Arg(1 << 20);

void read_from_arena(benchmark::State& state) {
  PageCache cache(64 << 20);
  const AlignedBuffer pages = random_pages(1);
  for (std::uint64_t p = 0; p < 8192; ++p) cache.insert({SegmentId{1}, p}, pages.bytes());
  AlignedBuffer out(kPageSize);
  std::mt19937_64 random(3);
  for (auto _ : state)
    benchmark::DoNotOptimize(cache.read({SegmentId{1}, random() % 8192}, 0, out.bytes()));
}
BENCHMARK(read_from_arena);

void insert_into_full_arena(benchmark::State& state) {
  PageCache cache(16 << 20);
  const AlignedBuffer pages = random_pages(1);
  std::uint64_t p = 0;
  for (auto _ : state) cache.insert({SegmentId{1}, p++}, pages.bytes());
}
BENCHMARK(insert_into_full_arena);

}  // namespace
}  // namespace kvsyncfs

BENCHMARK_MAIN();
