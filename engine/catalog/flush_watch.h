// Waits for the flush of RocksDB's immutable memtables. Thread: any.
#pragma once

#include <rocksdb/db.h>
#include <rocksdb/listener.h>

#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>

#include "engine/base/error.h"

namespace kvsyncfs {

class FlushWatch final : public rocksdb::EventListener {
 public:
  void OnFlushCompleted(rocksdb::DB*, const rocksdb::FlushJobInfo&) override;
  void OnBackgroundError(rocksdb::BackgroundErrorReason, rocksdb::Status* error) override;
  /// RocksDB would go on by itself when there is space again, and flush what it likes: only a
  /// checkpoint may do that.
  void OnErrorRecoveryBegin(rocksdb::BackgroundErrorReason, rocksdb::Status,
                            bool* recovers) override {
    *recovers = false;
  }

  /// The first error since the last call.
  std::optional<Error> take_error();
  /// Until `db` has no immutable memtable left to write. Errors: kIo, kNoSpace; kTimeout as soon as
  /// `gives_up` says so, while RocksDB goes on.
  Status wait(rocksdb::DB& db, const std::function<bool()>& gives_up);

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<Error> error_;
};

}  // namespace kvsyncfs
