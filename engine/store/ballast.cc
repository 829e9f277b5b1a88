#include "engine/store/ballast.h"

namespace kvsyncfs {

Ballast::Ballast(Disk& disk, const std::string& store, std::uint64_t size_bytes)
    : disk_(disk),
      store_(store),
      path_(store + "/ballast"),
      size_bytes_(size_bytes),
      guarded_(make_guarded_disk(disk, *this)) {}

Ballast::~Ballast() = default;

Status Ballast::make() {
  std::lock_guard lock(mutex_);
  KVSYNCFS_TRY(make_locked(size_bytes_));
  is_there_.store(true, std::memory_order_release);
  return {};
}

/// Its bytes are never read and never written: to have them allocated is enough.
Status Ballast::make_locked(std::uint64_t size_bytes) {
  KVSYNCFS_ASSIGN(auto file, disk_.open(path_, OpenMode::kCreateOrOpen));
  if (Status allocated = file->allocate(size_bytes); !allocated) {
    file.reset();
    // What it got of a full disk goes back; that this may fail too changes nothing for the caller.
    static_cast<void>(disk_.remove(path_));
    return allocated;
  }
  return {};
}

Status Ballast::open() {
  std::lock_guard lock(mutex_);
  KVSYNCFS_ASSIGN(const bool exists, disk_.exists(path_));
  if (!exists) return {};
  KVSYNCFS_ASSIGN(const std::uint64_t bytes, disk_.size_of(path_));
  is_there_.store(bytes >= size_bytes_, std::memory_order_release);
  return is_there() ? Status{} : disk_.remove(path_);  // half made
}

Status Ballast::restore(std::uint64_t spare_bytes) {
  if (is_there()) return {};
  std::lock_guard lock(mutex_);
  if (is_there()) return {};
  KVSYNCFS_ASSIGN(const DiskSpace space, disk_.space(store_));
  if (space.available_bytes < size_bytes_ + spare_bytes) return {};
  const Status made = make_locked(size_bytes_);
  if (made) is_there_.store(true, std::memory_order_release);
  // Somebody else was faster.
  return made || made.error().code != Code::kNoSpace ? made : Status{};
}

Status Ballast::probe(std::uint64_t bytes) {
  std::lock_guard lock(mutex_);
  if (is_there()) return {};
  KVSYNCFS_TRY(make_locked(bytes));
  return disk_.remove(path_);
}

bool Ballast::make_room(std::uint64_t mark) {
  std::lock_guard lock(mutex_);
  if (mark != this->mark()) return true;
  if (!is_there()) return false;
  if (!disk_.remove(path_)) return false;
  is_there_.store(false, std::memory_order_release);
  count_.fetch_add(1, std::memory_order_release);
  return true;
}

}  // namespace kvsyncfs
