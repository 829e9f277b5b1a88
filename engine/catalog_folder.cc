#include "engine/catalog_folder.h"

#include "engine/cluster_store.h"

namespace kvsyncfs {
namespace {

std::string mark(const std::string& store) { return store + "/" + std::string(kSecondCatalogMark); }
std::string doubt(const std::string& store) {
  return store + "/" + std::string(kDoubtedCatalogMark);
}
std::string path(const std::string& store, bool is_second) {
  return store + "/" + std::string(is_second ? kSecondCatalogFolder : "catalog");
}

}  // namespace

Result<std::string> catalog_folder(Disk& disk, const std::string& store) {
  KVSYNCFS_ASSIGN(const bool is_second, disk.exists(mark(store)));
  return path(store, is_second);
}

Result<std::string> spare_catalog_folder(Disk& disk, const std::string& store) {
  KVSYNCFS_ASSIGN(const bool is_second, disk.exists(mark(store)));
  return path(store, !is_second);
}

Result<std::uint32_t> spare_catalog_number(Disk& disk, const std::string& store) {
  KVSYNCFS_ASSIGN(const bool is_second, disk.exists(mark(store)));
  return is_second ? 1 : 2;
}

Status use_catalog_folder(Disk& disk, const std::string& store, std::uint32_t number) {
  KVSYNCFS_ASSIGN(const std::uint32_t spare, spare_catalog_number(disk, store));
  return spare == number ? swap_catalog_folders(disk, store) : Status{};
}

/// The folders' own names are durable first.
Status swap_catalog_folders(Disk& disk, const std::string& store) {
  KVSYNCFS_TRY(disk.sync_directory(store));
  KVSYNCFS_ASSIGN(const bool is_second, disk.exists(mark(store)));
  if (is_second) {
    KVSYNCFS_TRY(disk.remove(mark(store)));
  } else {
    KVSYNCFS_ASSIGN(const auto file, disk.open(mark(store), OpenMode::kCreateNew));
    KVSYNCFS_TRY(file->sync());
  }
  return disk.sync_directory(store);
}

Status doubt_catalog_folder(Disk& disk, const std::string& store) {
  {
    KVSYNCFS_ASSIGN(const auto file, disk.open(doubt(store), OpenMode::kCreateOrOpen));
    KVSYNCFS_TRY(file->sync());
  }
  return disk.sync_directory(store);
}

Result<bool> is_catalog_doubted(Disk& disk, const std::string& store) {
  return disk.exists(doubt(store));
}

Status trust_catalog_folder(Disk& disk, const std::string& store) {
  KVSYNCFS_ASSIGN(const bool doubted, is_catalog_doubted(disk, store));
  if (!doubted) return {};
  KVSYNCFS_TRY(disk.remove(doubt(store)));
  return disk.sync_directory(store);
}

}  // namespace kvsyncfs
