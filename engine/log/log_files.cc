#include "engine/log/log_files.h"

#include <algorithm>
#include <cassert>
#include <cstring>

namespace kvsyncfs {
namespace {

constexpr std::size_t kFillStep = 256u << 10;  ///< bytes of zeros in one write
constexpr std::size_t kHurryStep = 1u << 20;  ///< bytes of zeros that a writer may have to wait for

}  // namespace

LogFiles::LogFiles(Disk& disk, const LocalLogOptions& options)
    : disk_(disk), options_(options), zeros_(kFillStep) {
  std::memset(zeros_.data(), 0, zeros_.size());
}

std::string LogFiles::path(std::uint64_t generation) const {
  return log_file_path(options_.directory, generation);
}

std::string LogFiles::next_path() const { return options_.directory + "/next"; }

std::uint64_t LogFiles::room() const {
  return active_ ? options_.file_size_bytes - active_->used_bytes : 0;
}

/// What a checkpoint at half of the capacity releases at once, and what is made meanwhile: so a
/// busy log comes to a rest where it makes no files.
std::size_t LogFiles::spares_max() const { return options_.file_count_max / 2 + 2; }

Status LogFiles::format() {
  KVSYNCFS_ASSIGN(const LogScan scan, scan_log(disk_, options_, {}));
  if (!scan.files.empty()) return Error(Code::kExists, options_.directory);
  KVSYNCFS_TRY(start_next_file());
  KVSYNCFS_TRY(fill_next_file(options_.file_size_bytes));
  KVSYNCFS_TRY(disk_.open(newest_note_path(options_.directory, 0), OpenMode::kCreateNew));
  return finish_next_file();
}

Status LogFiles::adopt(const LogScan& scan, Position applied) {
  // Half-made by a former life; its blocks may be missing.
  KVSYNCFS_ASSIGN(const bool half_made, disk_.exists(next_path()));
  if (half_made) KVSYNCFS_TRY(disk_.remove(next_path()));

  newest_ = scan.newest;
  // A store of an older version has no note, and a full disk has no room for one.
  if (!newest_ && disk_.open(newest_note_path(options_.directory, 0), OpenMode::kCreateNew))
    newest_ = 0;

  std::uint64_t highest = 0;
  for (const ScannedFile& file : scan.files) highest = std::max(highest, file.generation);
  next_generation_ = highest + 1;
  bool renamed = half_made;
  for (const ScannedFile& file : scan.files) {
    if (file.used_bytes > 0 && scan.report.last >= applied) {
      closed_.push_back({file.generation, file.size, file.last});
      continue;
    }
    // A file without a batch gets a new name: what a tear left in it must not come to life.
    KVSYNCFS_TRY(release({file.generation, file.size, file.last}));
    if (file.used_bytes > 0) KVSYNCFS_TRY(disk_.sync_directory(options_.directory));  // see trim()
    renamed = true;
  }
  if (renamed) KVSYNCFS_TRY(disk_.sync_directory(options_.directory));
  update_held();
  return sync_closed();
}

/// A killed process may have left batches written and not synced. They were replayed, so they count
/// as durable from now on.
Status LogFiles::sync_closed() {
  for (const ClosedFile& closed : closed_) {
    KVSYNCFS_ASSIGN(const auto file,
                    disk_.open(path(closed.generation), OpenMode::kReadWrite, true));
    KVSYNCFS_TRY(file->sync());
  }
  return {};
}

Status LogFiles::ensure_room(std::uint64_t size) {
  if (room() >= size || !spares_.empty()) return {};
  if (!next_) KVSYNCFS_TRY(start_next_file());
  // Filling much now would stop every writer for its time; a little slower syncs hurt less.
  if (next_->written_bytes + kHurryStep >= options_.file_size_bytes)
    KVSYNCFS_TRY(fill_next_file(options_.file_size_bytes));
  return finish_next_file();
}

Result<LogFiles::Place> LogFiles::place(std::uint64_t size) {
  const bool full = room() < size;
  if (full) KVSYNCFS_TRY(rotate());
  return Place{active_->generation, active_->used_bytes, full};
}

Status LogFiles::rotate() {
  assert(!spares_.empty());
  KVSYNCFS_TRY(sync());
  KVSYNCFS_TRY(note_newest(spares_.front()));
  if (active_) {
    const ClosedFile full{active_->generation, options_.file_size_bytes, active_->last};
    const bool needed = !active_->untrimmed.empty();
    active_.reset();
    if (needed) {
      closed_.push_back(full);
    } else {
      KVSYNCFS_TRY(release(full));
      KVSYNCFS_TRY(disk_.sync_directory(options_.directory));
    }
  }
  ActiveFile active;
  active.generation = spares_.front();
  KVSYNCFS_ASSIGN(active.file, disk_.open(path(active.generation), OpenMode::kReadWrite, true));
  spares_.pop_front();
  active_.emplace(std::move(active));
  update_held();
  return {};
}

Status LogFiles::write(Bytes bytes, Position last) {
  KVSYNCFS_TRY(active_->file->write_at(active_->used_bytes, bytes));
  active_->unsynced = true;
  active_->used_bytes += bytes.size();
  active_->untrimmed.push_back({last, active_->used_bytes});
  active_->last = last;
  update_held();
  return {};
}

Status LogFiles::sync() {
  if (!active_ || !active_->unsynced) return {};
  KVSYNCFS_TRY(active_->file->sync());
  active_->unsynced = false;
  return {};
}

void LogFiles::prepare() {
  if (!active_ || !spares_.empty() || prepare_failed_) return;
  // Ready when the active file is half full.
  const std::uint64_t target = std::min(2 * active_->used_bytes, options_.file_size_bytes);
  const auto work = [&]() -> Status {
    if (!next_) KVSYNCFS_TRY(start_next_file());
    KVSYNCFS_TRY(fill_next_file(target));
    return next_->written_bytes == options_.file_size_bytes ? finish_next_file() : Status{};
  };
  if (work()) return;
  // Not tried again before it is needed, so that a full disk does not slow every batch.
  prepare_failed_ = true;
}

Status LogFiles::start_next_file() {
  KVSYNCFS_ASSIGN(auto file, disk_.open(next_path(), OpenMode::kCreateOrOpen, true));
  if (Status status = file->allocate(options_.file_size_bytes); !status) {
    file.reset();
    // A full disk gets its blocks back; that this may fail too changes nothing for the caller.
    static_cast<void>(disk_.remove(next_path()));
    return status;
  }
  next_ = NextFile{std::move(file), 0};
  return {};
}

Status LogFiles::fill_next_file(std::uint64_t up_to) {
  while (next_->written_bytes < up_to) {
    const std::uint64_t step =
        std::min<std::uint64_t>(kFillStep, options_.file_size_bytes - next_->written_bytes);
    KVSYNCFS_TRY(next_->file->write_at(next_->written_bytes, zeros_.bytes().first(step)));
    next_->written_bytes += step;
  }
  return {};
}

Status LogFiles::finish_next_file() {
  KVSYNCFS_TRY(next_->file->sync());
  const std::uint64_t generation = next_generation_;
  KVSYNCFS_TRY(disk_.rename(next_path(), path(generation)));
  KVSYNCFS_TRY(disk_.sync_directory(options_.directory));
  next_.reset();
  ++next_generation_;
  spares_.push_back(generation);
  prepare_failed_ = false;
  return {};
}

Status LogFiles::trim(Position position) {
  while (!closed_.empty() && closed_.front().last <= position) {
    KVSYNCFS_TRY(release(closed_.front()));
    // One by one: a crash that keeps an older file and loses a younger one would leave a gap.
    KVSYNCFS_TRY(disk_.sync_directory(options_.directory));
    closed_.pop_front();
  }
  if (active_) {
    auto& batches = active_->untrimmed;
    while (!batches.empty() && batches.front().last <= position) {
      active_->trimmed_bytes = batches.front().end;
      batches.pop_front();
    }
  }
  update_held();
  return {};
}

/// A file that is not needed becomes a spare of a new generation, or goes. The caller syncs the
/// directory.
Status LogFiles::release(const ClosedFile& file) {
  if (newest_ == file.generation) KVSYNCFS_TRY(note_newest(0));
  if (spares_.size() >= spares_max() || file.size != options_.file_size_bytes)
    return disk_.remove(path(file.generation));
  KVSYNCFS_TRY(disk_.rename(path(file.generation), path(next_generation_)));
  spares_.push_back(next_generation_++);
  return {};
}

/// Durable when it returns. One rename, because it needs no block of a full disk.
Status LogFiles::note_newest(std::uint64_t generation) {
  if (!newest_ || *newest_ == generation) return {};
  KVSYNCFS_TRY(disk_.rename(newest_note_path(options_.directory, *newest_),
                            newest_note_path(options_.directory, generation)));
  newest_ = generation;
  return disk_.sync_directory(options_.directory);
}

void LogFiles::update_held() {
  std::uint64_t held = 0;
  for (const ClosedFile& file : closed_) held += file.size;
  if (active_) held += active_->used_bytes - active_->trimmed_bytes;
  held_bytes_.store(held, std::memory_order_relaxed);
}

}  // namespace kvsyncfs
