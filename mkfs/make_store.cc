#include "mkfs/make_store.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "engine/env/store_lock.h"
#include "mkfs/store_folder.h"

namespace kvsyncfs {
namespace {

constexpr std::uint64_t kMiB = 1u << 20;

/// The folder has what a try to make the same node of the same volume left, which goes on. Its
/// superblock is not there, or torn.
Result<bool> is_same_node_unfinished(Disk& disk, const MkfsOptions& options) {
  const auto superblock = Engine::superblock(disk, options.store);
  if (!options.cluster || superblock || superblock.error().code == Code::kNewerFormat) return false;
  KVSYNCFS_ASSIGN(const auto unfinished, unfinished_cluster_store(disk, options.store));
  const ClusterConfig& wanted = options.cluster->format.config;
  const bool torn = unfinished && unfinished->volume.empty();
  return torn ||
         (unfinished && unfinished->volume == wanted.volume && unfinished->node == wanted.node);
}

Status check_replaceable(Disk& disk, const Folder& folder, const MkfsOptions& options) {
  switch (folder.kind) {
    case FolderKind::kMissing:
    case FolderKind::kEmpty:
      return {};
    case FolderKind::kForeign:
      return Error(Code::kNotEmpty, fmt::format("{}: holds '{}', which is not part of a store",
                                                options.store, folder.foreign_name));
    case FolderKind::kStore:
    case FolderKind::kHalfStore:
      break;
  }
  if (options.force) return {};
  KVSYNCFS_ASSIGN(const bool same, is_same_node_unfinished(disk, options));
  if (same) return {};
  const char* what = folder.kind == FolderKind::kStore ? "is a kvsyncfs store"
                                                       : "holds a store that was not finished";
  return Error(Code::kExists, fmt::format("{}: {}; --force replaces it", options.store, what));
}

/// The greatest size below `wanted` that fits with its overhead.
std::uint64_t largest_size(std::uint64_t wanted, std::uint64_t free_bytes) {
  std::uint64_t size = wanted;
  while (size > 0 && size + overhead_bytes(size) > free_bytes) size -= size / 64 + 1;
  return size;
}

Result<std::uint64_t> choose_size(Disk& disk, const std::string& where, const Folder& folder,
                                  const MkfsOptions& options) {
  KVSYNCFS_ASSIGN(const DiskSpace space, disk.space(where));
  const std::uint64_t free_bytes = space.available_bytes + folder.store_bytes;
  std::uint64_t size = options.size.of(free_bytes);
  if (!options.size_given) size = largest_size(size, free_bytes);
  if (size < kStoreSizeMin) {
    const Code code = options.size.bytes != 0 ? Code::kInvalid : Code::kNoSpace;
    return Error(code, fmt::format("{}: a store of {} is too small, the least is {}", options.store,
                                   size_for_people(size), size_for_people(kStoreSizeMin)));
  }
  // In this order, since a size near 2^64 must not wrap around.
  if (size > free_bytes || size + overhead_bytes(size) > free_bytes)
    return Error(
        Code::kNoSpace,
        fmt::format("{}: {} and {} for log and catalog do not fit into the {} that are free",
                    options.store, size_for_people(size), size_for_people(overhead_bytes(size)),
                    size_for_people(free_bytes)));
  return size;
}

/// The store as a mount would find it.
Result<Superblock> verify(const Seams& seams, const std::string& store) {
  EngineOptions options;
  options.store = store;
  options.cache_size_bytes = kMiB;
  options.write_buffer_bytes = kMiB;
  options.read_only = true;
  KVSYNCFS_ASSIGN(const auto engine, Engine::open(seams.disk, seams.clock, seams.random, options));
  KVSYNCFS_ASSIGN(const Inode root, engine->attributes(kRootInode));
  if (!is_directory(root)) return Error(Code::kCorrupt, store + ": the root is not a directory");
  Superblock superblock = engine->superblock();
  KVSYNCFS_TRY(engine->close());
  return superblock;
}

bool is_empty(Disk& disk, const std::string& store) {
  const auto folder = look_at_folder(disk, store);
  return folder && folder->kind == FolderKind::kEmpty;
}

std::string parent_of(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

Result<Superblock> format_alone(const Seams& seams, const FormatOptions& format) {
  KVSYNCFS_TRY(Engine::format(seams.disk, seams.clock, format));
  return verify(seams, format.store);
}

/// Fills a folder that is locked. Where that fails nothing is left in it, save what a node that
/// etcd may know needs to go on; the old store is, if the cluster refuses the new one.
Result<Superblock> fill_locked(const Seams& seams, const MkfsOptions& options,
                               const FormatOptions& format) {
  const ClusterFormat* cluster = options.cluster ? &options.cluster->format : nullptr;
  if (cluster != nullptr)
    KVSYNCFS_TRY(check_cluster_format(seams.disk, seams.clock, format, *cluster));
  KVSYNCFS_TRY(empty_store_folder(seams.disk, format.store, cluster != nullptr && !options.force));
  Result<Superblock> made =
      cluster == nullptr
          ? format_alone(seams, format)
          : format_cluster_store(seams.disk, seams.clock, seams.random, format, *cluster);
  if (made) return made;
  // The first error is the one to tell.
  const auto unfinished = unfinished_cluster_store(seams.disk, format.store);
  static_cast<void>(
      empty_store_folder(seams.disk, format.store, !unfinished || unfinished->has_value()));
  return made;
}

}  // namespace

std::uint64_t overhead_bytes(std::uint64_t size_bytes) {
  const std::uint64_t log =
      std::min(size_bytes / 4, 256 * kMiB) + std::min(size_bytes / 16, 64 * kMiB);
  const std::uint64_t catalog = std::min(size_bytes / 32, 128 * kMiB);
  // As the engine makes it, from the sizes that it gives the log's files and the segments.
  const std::uint64_t ballast =
      std::min(size_bytes / 8, 128 * kMiB) + std::min(size_bytes / 32, 64 * kMiB);
  return log + catalog + ballast;
}

Result<Superblock> make_store(const Seams& seams, const MkfsOptions& options,
                              const std::function<void(std::uint64_t, std::uint64_t)>& progress) {
  KVSYNCFS_ASSIGN(const Folder before, look_at_folder(seams.disk, options.store));
  KVSYNCFS_TRY(check_replaceable(seams.disk, before, options));
  const bool missing = before.kind == FolderKind::kMissing;
  const std::string parent = parent_of(options.store);
  KVSYNCFS_ASSIGN(const bool has_parent, seams.disk.exists(parent));
  if (!has_parent) return Error(Code::kNotFound, parent);
  FormatOptions format;
  KVSYNCFS_ASSIGN(format.size_bytes,
                  choose_size(seams.disk, missing ? parent : options.store, before, options));
  format.store = options.store;
  format.label = options.label;
  format.uuid = options.uuid ? *options.uuid : draw_uuid(seams.random);
  format.uid = ::geteuid();
  format.gid = ::getegid();
  format.progress = progress;

  if (missing) {
    KVSYNCFS_TRY(seams.disk.make_directory(options.store));
    KVSYNCFS_TRY(seams.disk.sync_directory(parent));
  }
  KVSYNCFS_ASSIGN(const StoreLock lock, StoreLock::take(options.store));
  // Again, since somebody may have been at work until the lock was ours.
  KVSYNCFS_ASSIGN(const Folder now, look_at_folder(seams.disk, options.store));
  KVSYNCFS_TRY(check_replaceable(seams.disk, now, options));
  Result<Superblock> made = fill_locked(seams, options, format);
  if (!made && now.kind == FolderKind::kEmpty && is_empty(seams.disk, options.store)) {
    static_cast<void>(seams.disk.remove(options.store + "/lock"));
    if (missing) static_cast<void>(seams.disk.remove_directory(options.store));
  }
  return made;
}

}  // namespace kvsyncfs
