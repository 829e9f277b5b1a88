#include "mkfs/check_store.h"

#include <fmt/format.h>

#include <optional>

#include "engine/cluster_store.h"
#include "engine/env/store_lock.h"

namespace kvsyncfs {
namespace {

constexpr std::uint64_t kMiB = 1u << 20;

EngineOptions engine_options(const FsckOptions& options) {
  EngineOptions engine;
  engine.store = options.store;
  engine.cache_size_bytes = 64 * kMiB;
  engine.write_buffer_bytes = 64 * kMiB;
  return engine;
}

/// Tells each problem with a word of what became of it in front.
FsckObserver with_prefix(const FsckObserver& observer, std::string prefix) {
  FsckObserver second = observer;
  second.report = [&observer, prefix = std::move(prefix)](std::string_view problem) {
    observer.report(prefix + std::string(problem));
  };
  return second;
}

Engine::CheckOptions check_options(const FsckOptions& options, const FsckObserver& observer) {
  Engine::CheckOptions check;
  check.scrub = options.scrub;
  check.report = observer.report;
  check.progress = observer.progress;
  return check;
}

/// Nothing at all is changed in a store that a newer version alone may write.
Status check_features(const FsckOptions& options, const Superblock& superblock) {
  if (!options.repair || (superblock.read_only_compatible & ~kKnownReadOnlyCompatible) == 0)
    return {};
  return Error(Code::kNewerFormat,
               options.store + ": a feature of a newer version allows reading only");
}

/// Who looks takes the lock where there is one: a store without it was never in use.
Result<std::optional<StoreLock>> take_lock(const FsckOptions& options) {
  auto lock = StoreLock::take(options.store,
                              options.repair ? StoreLock::Mode::kChange : StoreLock::Mode::kLook);
  if (!lock && lock.error().code == Code::kNotFound && !options.repair)
    return std::optional<StoreLock>();
  if (!lock) return lock.error();
  return std::optional<StoreLock>(std::move(*lock));
}

/// Counts the copies of the superblock that are not what the good one is, and rewrites them on
/// --repair.
Result<std::uint64_t> check_superblock(Disk& disk, const FsckOptions& options,
                                       const Superblock& good, const FsckObserver& observer) {
  const std::string path = options.store + "/superblock";
  const std::string copy = encode(good);
  KVSYNCFS_ASSIGN(const auto file,
                  disk.open(path, options.repair ? OpenMode::kReadWrite : OpenMode::kRead, false));
  std::uint64_t bad = 0;
  for (const std::uint64_t at : {std::uint64_t{0}, std::uint64_t{kSuperblockSize}}) {
    std::string found(kSuperblockSize, '\0');
    KVSYNCFS_ASSIGN(const std::size_t size,
                    file->read_at(at, {reinterpret_cast<std::byte*>(found.data()), found.size()}));
    if (size == copy.size() && found == copy) continue;
    ++bad;
    if (options.repair) {
      KVSYNCFS_TRY(file->write_at(at, as_bytes(copy)));
      KVSYNCFS_TRY(file->sync());
    }
    observer.report(fmt::format("{}: copy {} is damaged", path, at == 0 ? 1 : 2));
  }
  return bad;
}

/// What a node of a cluster needs to find its volume. Nothing of it can be mended from here.
/// `self` is 0 where the store does not say which node it is.
std::uint64_t check_node(Disk& disk, const std::string& store, const FsckObserver& observer,
                         NodeId& self) {
  std::uint64_t problems = 0;
  const auto tell = [&](const Error& error) {
    observer.report(describe(error));
    ++problems;
  };
  const auto config = read_cluster_config(disk, store);
  config ? void(self = config->id) : tell(config.error());
  const auto secret = read_volume_secret(disk, store + "/" + std::string(kSecretFile));
  if (!secret) tell(secret.error());
  return problems;
}

Result<Engine::CheckReport> check_once(const Seams& seams, const FsckOptions& options,
                                       const FsckObserver& observer, NodeId node = {}) {
  EngineOptions reader = engine_options(options);
  reader.check_node = node;
  reader.read_only = reader.for_check = true;
  KVSYNCFS_ASSIGN(const auto engine,
                  Engine::open(seams.disk, seams.clock, seams.random, std::move(reader)));
  KVSYNCFS_ASSIGN(const Engine::CheckReport report,
                  engine->check(check_options(options, observer)));
  KVSYNCFS_TRY(engine->close());
  return report;
}

}  // namespace

Result<FsckResult> check_store(const Seams& seams, const FsckOptions& options,
                               const FsckObserver& observer) {
  KVSYNCFS_ASSIGN(const bool exists, seams.disk.exists(options.store));
  if (!exists) return Error(Code::kNotFound, options.store);
  KVSYNCFS_ASSIGN(const Superblock superblock, Engine::superblock(seams.disk, options.store));
  KVSYNCFS_TRY(check_features(options, superblock));
  KVSYNCFS_ASSIGN(const auto lock, take_lock(options));
  const FsckObserver mended = with_prefix(observer, options.repair ? "mended: " : "");
  const FsckObserver left = with_prefix(observer, options.repair ? "left: " : "");
  FsckResult result;
  KVSYNCFS_ASSIGN(result.problems, check_superblock(seams.disk, options, superblock, mended));
  if ((superblock.incompatible & kIncompatibleCluster) != 0) {
    result.is_node = true;
    NodeId self;
    const std::uint64_t lasting = check_node(seams.disk, options.store, left, self);
    result.problems += lasting;
    result.left = options.repair ? lasting : result.problems;
    if (self.value == 0) return result;
    KVSYNCFS_ASSIGN(const Engine::CheckReport report, check_once(seams, options, left, self));
    result.problems += report.problems;
    result.left += report.problems;
    result.pages_checked = report.pages_checked;
    result.bad_pages = report.bad_pages;
    return result;
  }
  if (options.repair) {
    KVSYNCFS_ASSIGN(const Engine::CheckReport report,
                    Engine::repair(seams.disk, seams.clock, seams.random, engine_options(options),
                                   check_options(options, mended)));
    result.problems += report.repaired;
  }
  KVSYNCFS_ASSIGN(const Engine::CheckReport report, check_once(seams, options, left));
  result.problems += report.problems;
  result.left = options.repair ? report.problems : result.problems;
  result.pages_checked = report.pages_checked;
  result.bad_pages = report.bad_pages;
  return result;
}

}  // namespace kvsyncfs
