#include "engine/catalog/flush_watch.h"

#include <chrono>
#include <utility>

#include "engine/catalog/rocks_env.h"

namespace kvsyncfs {

namespace {

bool flushed(rocksdb::DB& db) {
  std::uint64_t waiting = 0;
  db.GetIntProperty(rocksdb::DB::Properties::kNumImmutableMemTable, &waiting);
  return waiting == 0;
}

}  // namespace

void FlushWatch::OnFlushCompleted(rocksdb::DB*, const rocksdb::FlushJobInfo&) {
  std::lock_guard lock(mutex_);
  changed_.notify_all();
}

void FlushWatch::OnBackgroundError(rocksdb::BackgroundErrorReason, rocksdb::Status* error) {
  std::lock_guard lock(mutex_);
  if (!error_) error_ = from_rocks(*error);
  changed_.notify_all();
}

std::optional<Error> FlushWatch::take_error() {
  std::lock_guard lock(mutex_);
  return std::exchange(error_, std::nullopt);
}

Status FlushWatch::wait(rocksdb::DB& db, const std::function<bool()>& gives_up) {
  // The listener may be called a moment before the memtable counts as written, so look again now
  // and then.
  constexpr auto kLookAgain = std::chrono::milliseconds(20);
  while (!flushed(db)) {
    std::unique_lock lock(mutex_);
    if (error_) return *error_;
    if (gives_up()) return Error{Code::kTimeout, "catalog: a flush does not end"};
    changed_.wait_for(lock, kLookAgain);
  }
  return {};
}

}  // namespace kvsyncfs
