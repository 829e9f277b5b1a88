// Engine::format and Engine::superblock: how a store is made, and how it is recognised.
#include "engine/engine_format.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "engine/engine_impl.h"

namespace kvsyncfs {

namespace {

constexpr std::uint64_t kMiB = 1u << 20;

std::string superblock_path(const std::string& store) { return store + "/superblock"; }

/// Largest power of two that is at most size / parts, between 1 MiB and `max`.
std::uint64_t share(std::uint64_t size, std::uint64_t parts, std::uint64_t max) {
  return std::clamp(std::bit_floor(size / parts), kMiB, max);
}

/// Two copies, so that one bad sector does not lose a store.
Status write_superblock(Disk& disk, const std::string& store, const Superblock& superblock) {
  const std::string bytes = encode_superblock_file(superblock);
  KVSYNCFS_ASSIGN(auto file, disk.open(superblock_path(store), OpenMode::kCreateNew));
  KVSYNCFS_TRY(file->write_at(0, as_bytes(bytes)));
  KVSYNCFS_TRY(file->sync());
  return disk.sync_directory(store);
}

}  // namespace

Result<Superblock> Engine::superblock(Disk& disk, const std::string& store) {
  auto file = disk.open(superblock_path(store), OpenMode::kRead);
  if (!file) {
    if (file.error().code != Code::kNotFound) return file.error();
    return Error(Code::kNotFormatted, store + ": no superblock, not a kvsyncfs store");
  }
  std::string bytes(2 * kSuperblockSize, '\0');
  KVSYNCFS_ASSIGN(const std::size_t size,
                  (*file)->read_at(0, {reinterpret_cast<std::byte*>(bytes.data()), bytes.size()}));
  bytes.resize(size);
  auto superblock = decode_superblock_file(bytes);
  if (superblock || superblock.error().code == Code::kNewerFormat) return superblock;
  return Error(superblock.error().code, superblock_path(store) + ": " + superblock.error().detail);
}

Status check_folder_is_free(Disk& disk, const std::string& store,
                            std::span<const std::string_view> allowed) {
  KVSYNCFS_ASSIGN(const auto present, disk.list(store));
  for (const std::string& name : present)
    if (name != "lock" && name != "lost+found" &&
        std::find(allowed.begin(), allowed.end(), name) == allowed.end())
      return Error(Code::kExists, store + "/" + name + ": the folder is not empty");
  return {};
}

Result<Superblock> plan_store(const FormatOptions& options, const Timestamp& created) {
  if (options.size_bytes < kStoreSizeMin)
    return Error(Code::kInvalid, fmt::format("size {} is below the least size {}",
                                             options.size_bytes, kStoreSizeMin));
  Superblock superblock;
  superblock.uuid = options.uuid;
  superblock.label = options.label;
  superblock.size_bytes = options.size_bytes / kPageSize * kPageSize;
  superblock.segment_size_bytes = share(options.size_bytes, 64, 64 * kMiB);
  superblock.log_file_size_bytes = share(options.size_bytes, 32, 32 * kMiB);
  superblock.log_file_count_max = 8;
  superblock.created_seconds = created.seconds;
  return superblock;
}

Status lay_out_store(Disk& disk, const FormatOptions& options, const Superblock& superblock,
                     const Timestamp& created) {
  options.progress(0, kFormatSteps);
  if ((superblock.incompatible & kIncompatibleCluster) == 0) {
    KVSYNCFS_TRY(disk.make_directory(options.store + "/log"));
    KVSYNCFS_TRY(format_local_log(disk, log_options(options.store, superblock)));
  }
  options.progress(1, kFormatSteps);
  KVSYNCFS_TRY(disk.make_directory(options.store + "/catalog"));
  KVSYNCFS_TRY(
      Catalog::format(disk, catalog_options(options.store, 0), options.uid, options.gid, created));
  options.progress(2, kFormatSteps);
  KVSYNCFS_TRY(SegmentStore::format(disk, store_options(options.store, superblock)));
  KVSYNCFS_TRY(Ballast(disk, options.store, ballast_bytes(superblock)).make());
  options.progress(3, kFormatSteps);
  return disk.sync_directory(options.store);
}

Status finish_store(Disk& disk, const FormatOptions& options, const Superblock& superblock) {
  KVSYNCFS_TRY(write_superblock(disk, options.store, superblock));
  options.progress(4, kFormatSteps);
  KVSYNCFS_ASSIGN(const Superblock written, Engine::superblock(disk, options.store));
  if (encode(written) != encode(superblock))
    return Error(Code::kCorrupt, superblock_path(options.store) + ": reads back differently");
  options.progress(kFormatSteps, kFormatSteps);
  return {};
}

Status Engine::format(Disk& disk, Clock& clock, const FormatOptions& options) {
  const Timestamp created = clock.now();
  KVSYNCFS_ASSIGN(const Superblock superblock, plan_store(options, created));
  KVSYNCFS_TRY(check_folder_is_free(disk, options.store));
  KVSYNCFS_TRY(lay_out_store(disk, options, superblock, created));
  return finish_store(disk, options, superblock);
}

}  // namespace kvsyncfs
