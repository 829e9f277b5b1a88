#include "engine/store/ballast.h"

namespace kvsyncfs {

Ballast::Ballast(Disk& disk, const std::string& store, std::uint64_t size_bytes)
    : disk_(disk),
      store_(store),
      path_(store + "/ballast"),
      spares_path_(store + "/spare"),
      size_bytes_(size_bytes),
      guarded_(make_guarded_disk(disk, *this)) {}

Ballast::~Ballast() = default;

Status Ballast::make() {
  std::lock_guard lock(mutex_);
  KVSYNCFS_TRY(make_locked(size_bytes_));
  has_bytes_.store(true, std::memory_order_release);
  return make_spares_locked();
}

std::string Ballast::spare_path(std::size_t index) const {
  return spares_path_ + "/" + std::to_string(index);
}

Status Ballast::make_spares_locked() {
  const Status made = disk_.make_directory(spares_path_);
  if (!made && made.error().code != Code::kExists) return made;
  for (std::size_t i = spares_; i < kSpareFiles; ++i) {
    KVSYNCFS_TRY(disk_.open(spare_path(i), OpenMode::kCreateOrOpen));
    spares_.store(i + 1, std::memory_order_release);
  }
  return disk_.sync_directory(spares_path_);
}

bool Ballast::give_spare_locked() {
  const std::size_t left = spares_;
  if (left == 0 || !disk_.remove(spare_path(left - 1))) return false;
  spares_.store(left - 1, std::memory_order_release);
  return true;
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
  for (std::size_t i = 0; i < kSpareFiles; ++i) {
    KVSYNCFS_ASSIGN(const bool is_left, disk_.exists(spare_path(i)));
    if (!is_left) break;
    spares_.store(i + 1, std::memory_order_release);
  }
  KVSYNCFS_ASSIGN(const bool exists, disk_.exists(path_));
  if (!exists) return {};
  KVSYNCFS_ASSIGN(const std::uint64_t bytes, disk_.size_of(path_));
  has_bytes_.store(bytes >= size_bytes_, std::memory_order_release);
  return has_bytes() ? Status{} : disk_.remove(path_);  // half made
}

Status Ballast::restore(std::uint64_t spare_bytes) {
  if (is_there()) return {};
  std::lock_guard lock(mutex_);
  if (is_there()) return {};
  KVSYNCFS_ASSIGN(const DiskSpace space, disk_.space(store_));
  Status made{};
  if (!has_bytes() && space.available_bytes >= size_bytes_ + spare_bytes) {
    made = make_locked(size_bytes_);
    if (made) has_bytes_.store(true, std::memory_order_release);
  }
  if (made && !has_inodes() && inodes_left(space) >= kSpareFiles + kInodesKept)
    made = make_spares_locked();
  // Somebody else was faster.
  return made || made.error().code != Code::kNoSpace ? made : Status{};
}

Status Ballast::probe(std::uint64_t bytes) {
  std::lock_guard lock(mutex_);
  constexpr std::uint64_t kInodes = 4;
  if (!has_inodes() && spares_ < kInodes) {
    KVSYNCFS_ASSIGN(const DiskSpace space, disk_.space(store_));
    if (inodes_left(space) < kInodes)
      return Error(Code::kNoSpace, store_ + ": the disk has no free inodes");
  }
  if (has_bytes()) return {};
  KVSYNCFS_TRY(make_locked(bytes));
  return disk_.remove(path_);
}

bool Ballast::make_room(std::uint64_t mark) {
  std::lock_guard lock(mutex_);
  if (mark != this->mark()) return true;
  const auto space = disk_.space(store_);
  const bool lacks_inodes = space && inodes_left(*space) == 0;
  if (!(lacks_inodes && give_spare_locked())) {
    if (!has_bytes() || !disk_.remove(path_)) return false;
    has_bytes_.store(false, std::memory_order_release);
  }
  count_.fetch_add(1, std::memory_order_release);
  return true;
}

}  // namespace kvsyncfs
