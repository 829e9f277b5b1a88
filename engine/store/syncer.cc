#include "engine/store/syncer.h"

#include <algorithm>
#include <utility>

namespace kvsyncfs {

void Syncer::wrote(const SegmentPtr& segment) {
  std::lock_guard lock(mutex_);
  ++told_;
  auto& segments = pending_.segments;
  if (std::find(segments.begin(), segments.end(), segment) == segments.end())
    segments.push_back(segment);
}

void Syncer::changed_directory() {
  std::lock_guard lock(mutex_);
  ++told_;
  pending_.directory = true;
}

std::size_t Syncer::pending_count() const {
  std::lock_guard lock(mutex_);
  return pending_.segments.size();
}

Status Syncer::sync() {
  std::unique_lock lock(mutex_);
  const std::uint64_t target = told_;
  for (;;) {
    if (failure_) return *failure_;
    if (synced_ >= target) return {};
    if (!running_) break;
    done_.wait(lock);
  }
  running_ = true;
  const std::uint64_t covered = told_;
  const Work work = std::exchange(pending_, {});
  lock.unlock();
  Status status = run(work);
  lock.lock();
  running_ = false;
  if (status) {
    synced_ = covered;
  } else {
    failure_ = Error(Code::kIo, status.error().detail);
    status = *failure_;
  }
  done_.notify_all();
  return status;
}

Status Syncer::run(const Work& work) {
  for (const SegmentPtr& segment : work.segments) {
    const std::uint64_t pages = segment->end_pages();
    KVSYNCFS_TRY(segment->file().sync());
    segment->set_synced_pages(pages);
  }
  return work.directory ? disk_.sync_directory(directory_) : Status{};
}

}  // namespace kvsyncfs
