// RocksDB iterators that are kept between uses: refreshing one costs a tenth of making one.
//
// They are bound to the first kKeyPrefixSize bytes of the key they seek, so a scan never walks over
// the deleted records of a neighbour. An idle one pins the memtable it last saw: drop_idle() after
// a flush. Thread: any; a Lease belongs to one.
#pragma once

#include <rocksdb/db.h>

#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

#include "engine/base/error.h"

namespace kvsyncfs {

class IteratorPool {
 public:
  class Lease {
   public:
    Lease(IteratorPool& pool, std::unique_ptr<rocksdb::Iterator> it)
        : pool_(&pool), it_(std::move(it)) {}
    Lease(Lease&&) = default;
    ~Lease() {
      if (it_) pool_->give_back(std::move(it_));
    }
    rocksdb::Iterator* operator->() { return it_.get(); }
    std::string_view key() const { return it_->key().ToStringView(); }
    std::string_view value() const { return it_->value().ToStringView(); }

   private:
    IteratorPool* pool_;
    std::unique_ptr<rocksdb::Iterator> it_;
  };

  explicit IteratorPool(rocksdb::DB& db) : db_(db) {}

  /// Sees everything that was committed before the call. Errors: kIo.
  Result<Lease> take();
  void drop_idle();

 private:
  static constexpr std::size_t kIdleMax = 8;

  void give_back(std::unique_ptr<rocksdb::Iterator> it);

  rocksdb::DB& db_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<rocksdb::Iterator>> idle_;
};

}  // namespace kvsyncfs
