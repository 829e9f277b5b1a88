// What the engine itself costs of an operation, without the kernel and FUSE: create, write, read of
// memory. Its background work runs beside, as in the daemon, on a real disk: in /var/tmp unless
// KVSYNCFS_BENCH_FOLDER says otherwise.
#include <benchmark/benchmark.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "engine/env/real.h"
#include "engine/workers.h"
#include "tests/lib/temp_folder.h"

namespace kvsyncfs {
namespace {

constexpr std::uint64_t kFileBytes = 64u << 20;
constexpr std::uint64_t kFilePages = kFileBytes / kPageSize;

std::string folder() {
  const char* chosen = std::getenv("KVSYNCFS_BENCH_FOLDER");
  return chosen != nullptr ? chosen : "/var/tmp";
}

class BenchEngine {
 public:
  BenchEngine() {
    FormatOptions format;
    format.store = folder_.path() + "/store";
    format.uuid[0] = 1;
    format.size_bytes = std::uint64_t{4} << 30;
    disk_->make_directory(format.store).value();
    Engine::format(*disk_, *clock_, format).value();
    EngineOptions options;
    options.store = format.store;
    engine_ = std::move(Engine::open(*disk_, *clock_, *random_, options)).value();
    workers_ = std::make_unique<Workers>(*engine_, *clock_);
  }
  ~BenchEngine() {
    workers_.reset();
    engine_->close().value();
  }

  Engine& operator*() { return *engine_; }
  InodeId create(const std::string& name) {
    NewNode node;
    node.mode = 0100644;
    return engine_->create(kRootInode, name, node).value().inode;
  }
  void write_page(InodeId file, std::uint64_t page) {
    engine_->write(file, page * kPageSize, page_).value();
  }

 private:
  TempFolder folder_{folder()};
  std::unique_ptr<Disk> disk_ = make_real_disk();
  std::unique_ptr<Clock> clock_ = make_real_clock();
  std::unique_ptr<Random> random_ = make_real_random();
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<Workers> workers_;
  std::string bytes_ = std::string(kPageSize, 'k');
  Bytes page_ = as_bytes(bytes_);
};

void create(benchmark::State& state) {
  BenchEngine engine;
  std::uint64_t n = 0;
  for (auto _ : state) engine.create("file-" + std::to_string(n++));
}
BENCHMARK(create)->Iterations(200'000);

/// Pages of one file in random order, over and over.
void write_4_kib(benchmark::State& state) {
  BenchEngine engine;
  const InodeId file = engine.create("file");
  std::uint64_t x = 1;
  for (auto _ : state) {
    x = x * 6364136223846793005ull + 1442695040888963407ull;
    engine.write_page(file, (x >> 33) % kFilePages);
  }
}
BENCHMARK(write_4_kib)->Iterations(200'000);

void read_hot_4_kib(benchmark::State& state) {
  BenchEngine engine;
  const InodeId file = engine.create("file");
  for (std::uint64_t page = 0; page < kFilePages; ++page) engine.write_page(file, page);
  (*engine).sync_all().value();
  std::vector<std::byte> out(kPageSize);
  const auto read = [&](std::uint64_t page) {
    benchmark::DoNotOptimize((*engine).read(file, page * kPageSize, out).value());
  };
  for (std::uint64_t page = 0; page < kFilePages; ++page) read(page);
  std::uint64_t x = 1;
  for (auto _ : state) {
    x = x * 6364136223846793005ull + 1442695040888963407ull;
    read((x >> 33) % kFilePages);
  }
}
BENCHMARK(read_hot_4_kib);

}  // namespace
}  // namespace kvsyncfs

BENCHMARK_MAIN();
