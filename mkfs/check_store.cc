#include "mkfs/check_store.h"

#include <fmt/format.h>

#include "engine/env/store_lock.h"

namespace kvsyncfs {
namespace {

constexpr std::uint64_t kMiB = 1u << 20;

Result<std::unique_ptr<Engine>> open_engine(const Seams& seams, const FsckOptions& options,
                                            bool read_only) {
  EngineOptions engine;
  engine.store = options.store;
  engine.cache_size_bytes = 64 * kMiB;
  engine.write_buffer_bytes = 64 * kMiB;
  engine.read_only = read_only;
  return Engine::open(seams.disk, seams.clock, seams.random, std::move(engine));
}

/// Counts the copies of the superblock that are not what the good one is, and rewrites them on
/// `repair`.
Result<std::uint64_t> check_superblock(Disk& disk, const FsckOptions& options,
                                       const Superblock& good, bool repair,
                                       const FsckObserver& observer) {
  const std::string path = options.store + "/superblock";
  const std::string copy = encode(good);
  KVSYNCFS_ASSIGN(const auto file,
                  disk.open(path, repair ? OpenMode::kReadWrite : OpenMode::kRead, false));
  std::uint64_t bad = 0;
  for (const std::uint64_t at : {std::uint64_t{0}, std::uint64_t{kSuperblockSize}}) {
    std::string found(kSuperblockSize, '\0');
    KVSYNCFS_ASSIGN(const std::size_t size,
                    file->read_at(at, {reinterpret_cast<std::byte*>(found.data()), found.size()}));
    if (size == copy.size() && found == copy) continue;
    ++bad;
    observer.report(fmt::format("{}: copy {} is damaged", path, at == 0 ? 1 : 2));
    if (repair) KVSYNCFS_TRY(file->write_at(at, as_bytes(copy)));
  }
  if (repair && bad > 0) KVSYNCFS_TRY(file->sync());
  return bad;
}

Result<Engine::CheckReport> check_once(const Seams& seams, const FsckOptions& options,
                                       const FsckObserver& observer) {
  KVSYNCFS_ASSIGN(const auto engine, open_engine(seams, options, true));
  Engine::CheckOptions check;
  check.scrub = options.scrub;
  check.report = observer.report;
  check.progress = observer.progress;
  KVSYNCFS_ASSIGN(const Engine::CheckReport report, engine->check(check));
  KVSYNCFS_TRY(engine->close());
  return report;
}

/// Recovery is the repair: the log is replayed, its torn tail dropped, open segments end where
/// their valid batches do, files that nothing refers to go, inodes without a name are freed, and
/// all that is durable.
Status recover(const Seams& seams, const FsckOptions& options) {
  KVSYNCFS_ASSIGN(const auto engine, open_engine(seams, options, false));
  return engine->close();
}

}  // namespace

Result<FsckResult> check_store(const Seams& seams, const FsckOptions& options,
                               const FsckObserver& observer) {
  KVSYNCFS_ASSIGN(const bool exists, seams.disk.exists(options.store));
  if (!exists) return Error(Code::kNotFound, options.store);
  KVSYNCFS_ASSIGN(const Superblock superblock, Engine::superblock(seams.disk, options.store));
  KVSYNCFS_ASSIGN(const StoreLock lock, StoreLock::take(options.store));
  KVSYNCFS_ASSIGN(const std::uint64_t copies,
                  check_superblock(seams.disk, options, superblock, options.repair, observer));
  KVSYNCFS_ASSIGN(Engine::CheckReport report, check_once(seams, options, observer));
  FsckResult result;
  result.problems = copies + report.problems;
  if (options.repair) {
    KVSYNCFS_TRY(recover(seams, options));
    if (report.problems > 0) {
      FsckObserver second = observer;
      second.report = [&](std::string_view problem) {
        observer.report(fmt::format("left: {}", problem));
      };
      KVSYNCFS_ASSIGN(report, check_once(seams, options, second));
    }
    result.left = report.problems;
  } else {
    result.left = result.problems;
  }
  result.pages_checked = report.pages_checked;
  result.bad_pages = report.bad_pages;
  return result;
}

}  // namespace kvsyncfs
