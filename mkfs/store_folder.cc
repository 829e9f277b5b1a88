#include "mkfs/store_folder.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>

#include "engine/cluster_store.h"
#include "engine/engine.h"
#include "engine/format/log_generation.h"
#include "engine/format/log_mark.h"

namespace kvsyncfs {
namespace {

namespace stdfs = std::filesystem;

constexpr std::string_view kSuperblockName = "superblock";
constexpr std::string_view kLockName = "lock";
constexpr std::array<std::string_view, 20> kParts = {"catalog",
                                                     "log",
                                                     "segments",
                                                     "ballast",
                                                     "spare",
                                                     kClusterFile,
                                                     kSecretFile,
                                                     kNextSecretFile,
                                                     kUnfinishedFile,
                                                     kLogMarkFile,
                                                     kNextLogMarkFile,
                                                     kGenerationFile,
                                                     "generation.new",
                                                     "scrub-mark",
                                                     "scrub-mark.new",
                                                     "volume",
                                                     "volume.new",
                                                     kSecondCatalogFolder,
                                                     kSecondCatalogMark,
                                                     kDoubtedCatalogMark};
/// mke2fs(8) makes it in the root of a file system; it is nobody's data while it is empty.
constexpr std::string_view kLostAndFound = "lost+found";

std::string join(const std::string& path, std::string_view name) {
  return path + "/" + std::string(name);
}

bool is_store_name(std::string_view name) {
  return name == kSuperblockName || std::find(kParts.begin(), kParts.end(), name) != kParts.end();
}

Error to_error(const std::string& path, const std::error_code& error) {
  return Error(from_errno(error.value()), path + ": " + error.message());
}

std::uint64_t bytes_below(const std::string& path) {
  std::uint64_t bytes = 0;
  std::error_code error;
  for (const auto& entry : stdfs::recursive_directory_iterator(path, error)) {
    std::error_code vanished;
    if (entry.is_regular_file(vanished)) bytes += entry.file_size(vanished);
  }
  return bytes;
}

bool has_superblock(Disk& disk, const std::string& path) {
  const auto superblock = Engine::superblock(disk, path);
  return superblock || superblock.error().code != Code::kNotFormatted;
}

}  // namespace

Result<Folder> look_at_folder(Disk& disk, const std::string& path) {
  Folder folder;
  KVSYNCFS_ASSIGN(const bool exists, disk.exists(path));
  if (!exists) return folder;
  KVSYNCFS_ASSIGN(const bool is_directory, disk.is_directory(path));
  if (!is_directory) return Error(Code::kNotDirectory, path);
  KVSYNCFS_ASSIGN(const std::vector<std::string> names, disk.list(path));

  bool locked_once = false, has_parts = false;
  for (const std::string& name : names) {
    std::error_code ignored;
    if (name == kLockName) {
      locked_once = true;
    } else if (is_store_name(name)) {
      has_parts = true;
    } else if (name != kLostAndFound || !stdfs::is_empty(join(path, name), ignored)) {
      folder.foreign_name = name;
    }
  }
  if (!folder.foreign_name.empty()) {
    folder.kind = FolderKind::kForeign;
    return folder;
  }
  if (!has_parts) {
    folder.kind = FolderKind::kEmpty;
    return folder;
  }
  folder.store_bytes = bytes_below(path);
  if (has_superblock(disk, path)) {
    folder.kind = FolderKind::kStore;
  } else if (locked_once) {
    // mkfs locks before it writes; without the lock, "log" may be anybody's.
    folder.kind = FolderKind::kHalfStore;
  } else {
    folder.kind = FolderKind::kForeign;
    folder.foreign_name = *std::find_if(names.begin(), names.end(), is_store_name);
  }
  return folder;
}

Status empty_store_folder(Disk& disk, const std::string& path, bool keep_unfinished_node) {
  std::error_code error;
  const std::string superblock = join(path, kSuperblockName);
  stdfs::remove(superblock, error);
  if (error) return to_error(superblock, error);
  KVSYNCFS_TRY(disk.sync_directory(path));
  for (const std::string_view name : kParts) {
    if (keep_unfinished_node && (name == kSecretFile || name == kUnfinishedFile)) continue;
    stdfs::remove_all(join(path, name), error);
    if (error) return to_error(join(path, name), error);
  }
  return disk.sync_directory(path);
}

}  // namespace kvsyncfs
