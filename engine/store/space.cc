#include "engine/store/space.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/store/ballast.h"

namespace kvsyncfs {
namespace {

constexpr std::string_view kSparePrefix = "spare-";
constexpr std::int64_t kCleanerSegments = 2;

/// Data pages that fit in so many pages of a file, in batches as large as they may be.
std::int64_t usable(std::int64_t pages) {
  constexpr std::int64_t kBatchPages = kPagesPerBatchMax + 1;
  const std::int64_t rest = pages % kBatchPages;
  return pages / kBatchPages * kPagesPerBatchMax + std::max<std::int64_t>(rest - 1, 0);
}

}  // namespace

Space::Space(Disk& disk, const StoreOptions& options)
    : disk_(disk),
      directory_(options.directory),
      keep_free_bytes_(options.keep_free_bytes),
      size_(options.size_bytes),
      segment_size_(options.segment_size_bytes),
      segment_pages_(static_cast<Pages>(segment_size_ / kPageSize)),
      segment_usable_(usable(segment_pages_)) {}

bool Space::is_spare_name(const std::string& name) {
  return name.size() > kSparePrefix.size() && name.starts_with(kSparePrefix) &&
         name.find_first_not_of("0123456789", kSparePrefix.size()) == std::string::npos;
}

void Space::resize_segment(std::uint64_t from_bytes, std::uint64_t to_bytes) {
  std::lock_guard lock(mutex_);
  segment_bytes_ += to_bytes - from_bytes;
}

Space::Pages Space::needed(std::uint64_t reserved_bytes) const {
  const auto pages = static_cast<Pages>(round_up(reserved_bytes, kPageSize) / kPageSize);
  return pages + std::min(pages, segment_pages_);
}

Space::Pages Space::backed() const {
  const Pages cleaner = std::max(segment_usable_, kCleanerSegments * segment_usable_ -
                                                      left_[static_cast<int>(Stream::kCleaner)]);
  return left_[static_cast<int>(Stream::kUser)] +
         static_cast<Pages>(spares_.size()) * segment_usable_ - cleaner;
}

std::size_t Space::wanted_spares() const {
  const Pages missing = needed(reserved_) - backed();
  const Pages more = missing > 0 ? (missing + segment_usable_ - 1) / segment_usable_
                                 : -(-missing / segment_usable_);
  // One more than needed, so that the next reserve() has not to wait for it.
  return static_cast<std::size_t>(
      std::max<Pages>(static_cast<Pages>(spares_.size()) + more + 1, 1));
}

Status Space::reserve(std::uint64_t bytes) {
  const auto granted = [&] {  // under mutex_
    if (needed(reserved_ + bytes) > backed()) return false;
    reserved_ += bytes;
    return true;
  };
  {
    std::lock_guard lock(mutex_);
    if (granted()) return {};
  }
  std::lock_guard making(making_mutex_);
  for (;;) {
    const std::uint64_t on_disk = room_on_disk();
    {
      std::lock_guard lock(mutex_);
      if (granted()) return {};
      // Do not take the last files for what cannot be granted in the end.
      const std::uint64_t room = std::min(size_ - std::min(size_, files_bytes_locked()), on_disk);
      const auto creatable = static_cast<Pages>(room / segment_size_);
      if (needed(reserved_ + bytes) > backed() + creatable * segment_usable_)
        return Error(Code::kNoSpace, directory_);
    }
    KVSYNCFS_TRY(make_spare());
  }
}

void Space::unreserve(std::uint64_t bytes) {
  std::lock_guard lock(mutex_);
  reserved_ -= std::min(reserved_, bytes);
}

/// A disk that does not tell is found full by who makes a file.
std::uint64_t Space::room_on_disk() const {
  const auto space = disk_.space(directory_);
  if (!space) return ~std::uint64_t{0};
  const std::uint64_t kept = keep_free_bytes_();
  if (kept > 0 && inodes_left(*space) <= kInodesKept) return 0;
  return space->available_bytes - std::min(kept, space->available_bytes);
}

std::uint64_t Space::free_bytes() const {
  const std::uint64_t on_disk = room_on_disk();
  std::lock_guard lock(mutex_);
  const std::uint64_t room = std::min(size_ - std::min(size_, files_bytes_locked()), on_disk);
  const Pages pages = backed() + static_cast<Pages>(room / segment_size_) * segment_usable_;
  // The inverse of needed().
  const Pages reservable = pages >= 2 * segment_pages_ ? pages - segment_pages_ : pages / 2;
  const Pages taken = static_cast<Pages>(round_up(reserved_, kPageSize) / kPageSize);
  return static_cast<std::uint64_t>(std::max<Pages>(reservable - taken, 0)) * kPageSize;
}

Result<std::string> Space::take_spare(Stream stream) {
  const auto take = [&]() -> std::string {  // under mutex_
    // The cleaner leaves what users were promised. A user's append takes what there is: it was
    // promised.
    const bool promised = stream == Stream::kCleaner &&
                          left_[static_cast<int>(Stream::kUser)] +
                                  (static_cast<Pages>(spares_.size()) - 1) * segment_usable_ <
                              needed(reserved_);
    if (spares_.empty() || promised) return {};
    std::string path = std::move(spares_.back());
    spares_.pop_back();
    segment_bytes_ += segment_size_;
    return path;
  };
  {
    std::lock_guard lock(mutex_);
    if (std::string path = take(); !path.empty()) return path;
  }
  std::lock_guard making(making_mutex_);
  for (;;) {
    {
      std::lock_guard lock(mutex_);
      if (std::string path = take(); !path.empty()) return path;
      if (!may_create()) return Error(Code::kNoSpace, directory_);
    }
    KVSYNCFS_TRY(make_spare());
  }
}

void Space::return_spare(const std::string& path) {
  std::lock_guard lock(mutex_);
  segment_bytes_ -= segment_size_;
  spares_.push_back(path);
}

void Space::set_left(Stream stream, std::uint64_t pages) {
  std::lock_guard lock(mutex_);
  left_[static_cast<int>(stream)] = usable(static_cast<Pages>(pages));
}

std::string Space::next_spare_path() {
  std::lock_guard lock(mutex_);
  return fmt::format("{}/{}{}", directory_, kSparePrefix, next_spare_++);
}

Status Space::make_spare() {
  const std::string path = next_spare_path();
  KVSYNCFS_TRY(preallocate(path));
  std::lock_guard lock(mutex_);
  spares_.push_back(path);
  return {};
}

Status Space::preallocate(const std::string& path) {
  KVSYNCFS_ASSIGN(auto file, disk_.open(path, OpenMode::kCreateNew));
  if (auto allocated = file->allocate(segment_size_); !allocated) {
    file.reset();
    (void)disk_.remove(path);  // the error to tell is the first one
    return allocated;
  }
  return {};
}

Status Space::make_file(const std::string& path) {
  std::lock_guard making(making_mutex_);
  const std::uint64_t on_disk = room_on_disk();
  {
    std::lock_guard lock(mutex_);
    // The two that the cleaner needs are of the spares or still to be made.
    const std::uint64_t kept = backed() >= needed(reserved_) ? 0 : kCleanerSegments * segment_size_;
    if (files_bytes_locked() + segment_size_ + kept > size_ || on_disk < segment_size_)
      return Error(Code::kNoSpace, directory_);
    segment_bytes_ += segment_size_;
  }
  Status made = preallocate(path);
  std::lock_guard lock(mutex_);
  if (!made) segment_bytes_ -= segment_size_;
  return made;
}

Status Space::retire(const std::string& path, std::uint64_t file_bytes, bool unused) {
  std::lock_guard making(making_mutex_);
  bool keep = false;
  {
    std::lock_guard lock(mutex_);
    segment_bytes_ -= file_bytes;
    keep = unused && spares_.size() < wanted_spares() && may_create();
  }
  if (keep) KVSYNCFS_TRY(recycle(path));
  if (!keep) {
    if (auto removed = disk_.remove(path); !removed && removed.error().code != Code::kNotFound)
      return removed;
  }
  drop_surplus();
  return {};
}

/// The old blocks are written already, which makes them cheaper than fresh ones. Old batches name
/// another segment, so nobody takes them for valid ones.
Status Space::recycle(const std::string& path) {
  const std::string spare = next_spare_path();
  if (auto renamed = disk_.rename(path, spare); !renamed)
    return renamed.error().code == Code::kNotFound ? Status{} : renamed;
  auto file = disk_.open(spare, OpenMode::kReadWrite);
  if (!file || !(*file)->allocate(segment_size_)) return disk_.remove(spare);
  std::lock_guard lock(mutex_);
  spares_.push_back(spare);
  return {};
}

/// A large reservation that was given back leaves spares; each removal takes one away.
void Space::drop_surplus() {
  std::string path;
  {
    std::lock_guard lock(mutex_);
    if (spares_.size() <= wanted_spares() + 1) return;
    path = std::move(spares_.back());
    spares_.pop_back();
  }
  (void)disk_.remove(path);  // what stays is found and counted at the next start
}

std::uint64_t Space::files_bytes() const {
  std::lock_guard lock(mutex_);
  return files_bytes_locked();
}

}  // namespace kvsyncfs
