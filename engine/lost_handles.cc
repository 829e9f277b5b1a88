#include "engine/lost_handles.h"

namespace kvsyncfs {

std::uint64_t LostHandles::next_handle() {
  std::lock_guard lock(mutex_);
  return ++last_;
}

LostHandles::Lost& LostHandles::lost_of(InodeId file) {
  is_any_ = true;
  return lost_[file];
}

void LostHandles::lock_lost(InodeId file) {
  std::lock_guard lock(mutex_);
  lost_of(file).lock_up_to = last_;
}

void LostHandles::bytes_lost(InodeId file) {
  std::lock_guard lock(mutex_);
  Lost& lost = lost_of(file);
  lost.bytes_up_to = last_;
  lost.told.clear();
}

void LostHandles::file_lost(InodeId file) {
  std::lock_guard lock(mutex_);
  lost_of(file).file_up_to = last_;
}

Status LostHandles::check(const Lost& lost, std::uint64_t handle) {
  if (handle <= lost.file_up_to)
    return Error(Code::kStale, "the file was removed while this node had no session");
  if (handle <= lost.lock_up_to)
    return Error(Code::kIo, "the session that had a lock of the file has ended");
  return {};
}

Status LostHandles::check(InodeId file, std::uint64_t handle) const {
  if (!is_any_) return {};
  std::lock_guard lock(mutex_);
  const auto found = handle == 0 ? lost_.end() : lost_.find(file);
  return found == lost_.end() ? Status{} : check(found->second, handle);
}

Status LostHandles::check_bytes(InodeId file, std::uint64_t handle) {
  if (!is_any_) return {};
  std::lock_guard lock(mutex_);
  const auto found = handle == 0 ? lost_.end() : lost_.find(file);
  if (found == lost_.end()) return {};
  Lost& lost = found->second;
  KVSYNCFS_TRY(check(lost, handle));
  if (handle > lost.bytes_up_to || !lost.told.insert(handle).second) return {};
  return Error(Code::kIo, "bytes were lost with the session that had them");
}

void LostHandles::closed(InodeId file) {
  if (!is_any_) return;
  std::lock_guard lock(mutex_);
  lost_.erase(file);
  is_any_ = !lost_.empty();
}

}  // namespace kvsyncfs
