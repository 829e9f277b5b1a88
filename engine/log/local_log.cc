#include "engine/log/local_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cassert>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <new>
#include <optional>

#include "engine/env/deadline.h"
#include "engine/format/log_layout.h"
#include "engine/log/log_files.h"
#include "engine/log/log_reader.h"

namespace kvsyncfs {
namespace {

/// Entries that queue for one write, laid out as the batch they become.
struct Group {
  explicit Group(std::size_t size) : buffer(size) {}

  AlignedBuffer buffer;
  std::size_t payload_bytes = 0;
  std::uint32_t entry_count = 0;
  Position first;

  bool empty() const { return entry_count == 0; }
  bool fits(std::string_view entry) const {
    return kBatchHeaderSize + payload_bytes + kEntryHeaderSize + entry.size() <= buffer.size();
  }
  void add(Position position, std::string_view entry) {
    if (empty()) first = position;
    put_entry(buffer.data() + kBatchHeaderSize + payload_bytes, entry);
    payload_bytes += kEntryHeaderSize + entry.size();
    ++entry_count;
  }
  void clear() {
    payload_bytes = 0;
    entry_count = 0;
  }
};

class LocalLog final : public SharedLog {
 public:
  LocalLog(Disk& disk, LocalLogOptions options, LogScan scan)
      : disk_(disk),
        options_(std::move(options)),
        files_(disk_, options_),
        scan_(std::move(scan)),
        gathering_(batch_size()),
        writing_(batch_size()) {}

  Status start(Position applied, Applier applier) override;
  Result<Position> append(std::string_view entry) override;
  Status sync(Position position) override;
  Status freeze(const std::function<void(Position)>& while_frozen) override;
  Position last() const override { return {last_.load(std::memory_order_acquire)}; }
  Position durable() const override { return {durable_.load(std::memory_order_acquire)}; }
  Status trim(Position position) override;
  std::uint64_t held_bytes() const override {
    return files_.held_bytes() + gathered_bytes_.load(std::memory_order_relaxed);
  }
  std::uint64_t capacity_bytes() const override {
    return options_.file_size_bytes * options_.file_count_max;
  }

 private:
  std::size_t batch_size() const {
    const std::uint64_t size = std::min(options_.batch_size_max, options_.file_size_bytes);
    return std::max<std::uint64_t>(size / kBatchUnit, 1) * kBatchUnit;
  }
  Status check_appendable(std::string_view entry) const;
  Error failure() const;
  Error fail(const Error& error);
  std::optional<Deadline> deadline() const;
  Status lock_appends(std::unique_lock<std::timed_mutex>& lock) const;
  template <typename Predicate>
  Status wait_led(const std::optional<Deadline>& deadline, std::unique_lock<std::mutex>& lock,
                  Predicate done);
  template <typename Work>
  Status lead(Work work);
  Status make_room();
  Status take_gathered(const Status& room);
  Status write_gathered(bool sync);
  Status write_group(bool sync);
  Status write_batch();
  void publish_durable();

  Disk& disk_;
  const LocalLogOptions options_;
  LogFiles files_;  ///< the leader's
  LogScan scan_;
  Applier applier_;

  std::timed_mutex append_mutex_;  ///< order of appends; guards gathering_ and calls of the applier
  Group gathering_;
  std::atomic<std::uint64_t> gathered_bytes_{0};
  std::atomic<std::uint64_t> last_{0};

  mutable std::mutex sync_mutex_;  ///< after append_mutex_; guards leading_ and failure_
  std::condition_variable led_;    ///< leading_ became false
  bool leading_ = false;
  std::optional<Error> failure_;  ///< a write or sync failed: nothing can be promised any more
  std::atomic<bool> failed_{false};

  Group writing_;     ///< the leader's
  Position written_;  ///< the leader's
  std::atomic<std::uint64_t> durable_{0};
};

Status LocalLog::start(Position applied, Applier applier) {
  assert(!applier_);
  const LogReport& found = scan_.report;
  if (found.first.value > applied.value + 1)
    return Error(Code::kCorrupt,
                 fmt::format("{}: log starts at position {}, but {} is needed", options_.directory,
                             found.first.value, applied.value + 1));
  if (found.torn_bytes != 0)
    options_.warn(fmt::format("{}: {} bytes at its end that no sync had confirmed are dropped",
                              options_.directory, found.torn_bytes));
  applier_ = std::move(applier);
  // The verdict is known since opening, so nothing that is applied here turns out to be damaged.
  // What the catalog has already comes too, and no file is let go: bytes that only the log holds
  // may be in it until trim() says otherwise.
  if (found.last >= applied) KVSYNCFS_TRY(scan_log(disk_, options_, applier_));
  if (!options_.read_only) KVSYNCFS_TRY(files_.adopt(scan_, applied));
  written_ = std::max(applied, found.last);
  last_.store(written_.value, std::memory_order_release);
  durable_.store(written_.value, std::memory_order_release);
  scan_ = {};
  return {};
}

Status LocalLog::check_appendable(std::string_view entry) const {
  if (options_.read_only) return Error(Code::kReadOnly, options_.directory);
  if (failed_.load(std::memory_order_acquire)) return failure();
  const std::uint64_t size = kEntryHeaderSize + entry.size();
  if (kBatchHeaderSize + size > batch_size())
    return Error(Code::kTooBig, fmt::format("log entry of {} bytes", entry.size()));
  if (held_bytes() + size > capacity_bytes()) return Error(Code::kNoSpace, options_.directory);
  return {};
}

Result<Position> LocalLog::append(std::string_view entry) {
  for (;;) {
    {
      std::unique_lock lock(append_mutex_, std::defer_lock);
      KVSYNCFS_TRY(lock_appends(lock));
      KVSYNCFS_TRY(check_appendable(entry));
      if (gathering_.fits(entry)) {
        const Position position{last_.load(std::memory_order_relaxed) + 1};
        gathering_.add(position, entry);
        gathered_bytes_.fetch_add(kEntryHeaderSize + entry.size(), std::memory_order_relaxed);
        last_.store(position.value, std::memory_order_release);
        applier_(position, entry);
        return position;
      }
    }
    KVSYNCFS_TRY(lead([&] { return write_gathered(false); }));
  }
}

Status LocalLog::sync(Position position) {
  const std::uint64_t target = std::min(position, last()).value;
  const auto is_durable = [&] { return durable_.load(std::memory_order_acquire) >= target; };
  std::optional<Deadline> until;
  std::unique_lock lock(sync_mutex_);
  while (!is_durable()) {
    if (failure_) return *failure_;
    if (leading_) {
      if (!until) until = deadline();
      KVSYNCFS_TRY(wait_led(until, lock, [&] { return !leading_ || is_durable(); }));
      continue;
    }
    lock.unlock();
    const Status status =
        lead([&] { return durable().value < target ? write_gathered(true) : Status{}; });
    lock.lock();
    if (!status && !is_durable()) return status;
  }
  return {};
}

Status LocalLog::freeze(const std::function<void(Position)>& while_frozen) {
  KVSYNCFS_TRY(sync(last()));  // most of the writing, while appends still go on
  return lead([&]() -> Status {
    const Status room = make_room();
    if (!room && room.error().code != Code::kNoSpace) return room;
    std::lock_guard lock(append_mutex_);
    KVSYNCFS_TRY(take_gathered(room));
    KVSYNCFS_TRY(write_group(true));
    while_frozen(last());
    return {};
  });
}

Status LocalLog::trim(Position position) {
  if (options_.read_only) return Error(Code::kReadOnly, options_.directory);
  return lead([&]() -> Status {
    if (Status status = files_.trim(std::min(position, durable())); !status)
      return fail(status.error());
    return {};
  });
}

std::optional<Deadline> LocalLog::deadline() const {
  if (!options_.clock) return std::nullopt;
  return Deadline(*options_.clock, options_.timeout_ns);
}

/// A freeze holds it for as long as its work takes.
Status LocalLog::lock_appends(std::unique_lock<std::timed_mutex>& lock) const {
  if (lock.try_lock()) return {};
  if (const auto until = deadline(); !until)
    lock.lock();
  else if (!until->lock(lock))
    return Error(Code::kTimeout, options_.directory + ": a checkpoint does not begin");
  return {};
}

template <typename Predicate>
Status LocalLog::wait_led(const std::optional<Deadline>& deadline,
                          std::unique_lock<std::mutex>& lock, Predicate done) {
  if (!deadline) {
    led_.wait(lock, done);
  } else if (!deadline->wait(led_, lock, done)) {
    return Error(Code::kTimeout, options_.directory + ": a write does not end");
  }
  return {};
}

/// Runs `work` as the only leader.
template <typename Work>
Status LocalLog::lead(Work work) {
  {
    std::unique_lock lock(sync_mutex_);
    if (leading_) KVSYNCFS_TRY(wait_led(deadline(), lock, [&] { return !leading_; }));
    if (failure_) return *failure_;
    leading_ = true;
  }
  Status status = work();
  {
    std::lock_guard lock(sync_mutex_);
    leading_ = false;
  }
  led_.notify_all();
  return status;
}

/// Room for one batch, before entries leave the queue: a full disk must not cost them, and passes;
/// any other trouble fails the log. Errors: kNoSpace, kIo.
Status LocalLog::make_room() {
  if (options_.read_only) return {};
  Status room = files_.ensure_room(batch_size());
  if (!room && room.error().code != Code::kNoSpace) return fail(room.error());
  return room;
}

/// Requires append_mutex_. Errors: that of `room`, if entries wait and there is none.
Status LocalLog::take_gathered(const Status& room) {
  if (gathering_.empty()) return {};
  if (!room) return room;
  std::swap(gathering_, writing_);
  gathered_bytes_.store(0, std::memory_order_relaxed);
  return {};
}

Status LocalLog::write_gathered(bool sync) {
  const Status room = make_room();
  if (!room && room.error().code != Code::kNoSpace) return room;
  Status taken;
  {
    std::lock_guard lock(append_mutex_);
    taken = take_gathered(room);
  }
  KVSYNCFS_TRY(write_group(sync));
  files_.prepare();
  return taken;
}

/// Writes what was taken and, if asked, makes everything written durable.
Status LocalLog::write_group(bool sync) {
  const auto work = [&]() -> Status {
    if (!writing_.empty()) {
      KVSYNCFS_TRY(options_.before_write());
      KVSYNCFS_TRY(write_batch());
    }
    if (sync) KVSYNCFS_TRY(files_.sync());
    return {};
  };
  if (Status status = work(); !status) return fail(status.error());
  if (sync) publish_durable();
  return {};
}

Status LocalLog::write_batch() {
  const std::size_t size = kBatchHeaderSize + writing_.payload_bytes;
  const std::size_t stored = round_up(size, kBatchUnit);
  KVSYNCFS_ASSIGN(const LogFiles::Place place, files_.place(stored));
  if (place.started_file) publish_durable();

  BatchHeader header;
  header.volume_tag = options_.volume_tag;
  header.generation = place.generation;
  header.file_offset = place.file_offset;
  header.first = writing_.first;
  header.entry_count = writing_.entry_count;
  header.payload_bytes = writing_.payload_bytes;
  header.durable = durable();
  const MutableBytes batch = writing_.buffer.bytes().first(stored);
  std::memset(batch.data() + size, 0, stored - size);
  seal_batch(header, batch.first(size));
  KVSYNCFS_TRY(files_.write(batch, header.last()));
  written_ = header.last();
  writing_.clear();
  return {};
}

/// What was written is durable; lets go who waited for it.
void LocalLog::publish_durable() {
  {
    std::lock_guard lock(sync_mutex_);
    durable_.store(written_.value, std::memory_order_release);
  }
  led_.notify_all();
}

/// The log ends here for good: after a failed write or sync nobody knows what the disk holds.
Error LocalLog::fail(const Error& error) {
  std::lock_guard lock(sync_mutex_);
  const std::string cause = error.code == Code::kIo ? error.detail : describe(error);
  if (!failure_) failure_.emplace(Code::kIo, "log failed: " + cause);
  failed_.store(true, std::memory_order_release);
  return *failure_;
}

Error LocalLog::failure() const {
  std::lock_guard lock(sync_mutex_);
  return *failure_;
}

}  // namespace

Status format_local_log(Disk& disk, const LocalLogOptions& options) {
  KVSYNCFS_ASSIGN(const bool exists, disk.exists(options.directory));
  if (!exists) KVSYNCFS_TRY(disk.make_directory(options.directory));
  return LogFiles(disk, options).format();
}

Result<std::unique_ptr<SharedLog>> open_local_log(Disk& disk, LocalLogOptions options) try {
  KVSYNCFS_ASSIGN(LogScan scan, scan_log(disk, options, {}));
  return std::unique_ptr<SharedLog>(
      std::make_unique<LocalLog>(disk, std::move(options), std::move(scan)));
} catch (const std::bad_alloc&) {
  return Error(Code::kNoMemory, "log buffers");
}

}  // namespace kvsyncfs
