#include "engine/catalog/iterator_pool.h"

#include "engine/catalog/rocks_env.h"

namespace kvsyncfs {

Result<IteratorPool::Lease> IteratorPool::take() {
  std::unique_ptr<rocksdb::Iterator> it;
  {
    std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      it = std::move(idle_.back());
      idle_.pop_back();
    }
  }
  if (it) {
    rocksdb::Status refreshed = it->Refresh();
    if (!refreshed.ok()) return from_rocks(refreshed);
    return Lease(*this, std::move(it));
  }
  rocksdb::ReadOptions options;
  options.prefix_same_as_start = true;
  options.ignore_range_deletions = true;  // none are ever written
  return Lease(*this, std::unique_ptr<rocksdb::Iterator>(db_.NewIterator(options)));
}

void IteratorPool::give_back(std::unique_ptr<rocksdb::Iterator> it) {
  std::lock_guard lock(mutex_);
  if (idle_.size() < kIdleMax && it->status().ok()) idle_.push_back(std::move(it));
}

void IteratorPool::drop_idle() {
  std::vector<std::unique_ptr<rocksdb::Iterator>> dropped;
  std::lock_guard lock(mutex_);
  dropped.swap(idle_);
}

}  // namespace kvsyncfs
