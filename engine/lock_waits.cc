#include "engine/lock_waits.h"

#include <algorithm>
#include <utility>

namespace kvsyncfs {

namespace {

bool releases(const Command& command, InodeId inode, LockKind kind, std::uint64_t owner) {
  const auto* c = std::get_if<ReleaseLockCommand>(&command);
  return c != nullptr && c->inode == inode && c->kind == kind && c->owner == owner;
}

}  // namespace

std::uint64_t LockWaits::begin(LockDone done) {
  std::lock_guard lock(mutex_);
  requests_[++last_].done = std::move(done);
  return last_;
}

bool LockWaits::send(std::uint64_t request, const AcquireLockCommand& command) {
  std::lock_guard lock(mutex_);
  const auto it = requests_.find(request);
  if (it == requests_.end()) return false;
  it->second.command = command;
  if (it->second.is_cancelled) {
    end(it, {}, true);
    return false;
  }
  it->second.state = State::kSent;
  return true;
}

void LockWaits::numbered(std::uint64_t request, std::uint64_t number) {
  std::lock_guard lock(mutex_);
  if (const auto it = requests_.find(request); it != requests_.end()) it->second.number = number;
}

void LockWaits::returned(std::uint64_t request, const Status& status) {
  std::lock_guard lock(mutex_);
  const auto it = requests_.find(request);
  if (it == requests_.end() || it->second.state == State::kWaiting) return;
  Request& r = it->second;
  // What only misses an acknowledgement is decided all the same.
  if (r.state == State::kDecided) return end(it, r.verdict, false);
  if (r.number == 0) return end(it, status, false);  // the log never got it
  ended_.push_back({std::exchange(r.done, {}), r.command.inode, status, false});
  r.is_cancelled = true;
  ended_changed_.notify_one();
}

void LockWaits::cancel(std::uint64_t request) {
  std::lock_guard lock(mutex_);
  const auto it = requests_.find(request);
  if (it == requests_.end() || std::exchange(it->second.is_cancelled, true)) return;
  const Request& r = it->second;
  if (r.state == State::kWaiting)
    push_owed(CancelLockCommand{r.command.inode, r.command.kind, r.wait});
}

bool LockWaits::is_on_its_way(InodeId inode, LockKind kind, std::uint64_t owner) const {
  std::lock_guard lock(mutex_);
  return std::any_of(requests_.begin(), requests_.end(), [&](const auto& request) {
    const Request& r = request.second;
    return r.state == State::kSent && r.command.inode == inode && r.command.kind == kind &&
           r.command.owner == owner;
  });
}

void LockWaits::fail_all(const Error& error) {
  std::lock_guard lock(mutex_);
  owed_.clear();
  while (!requests_.empty()) end(requests_.begin(), error, false);
}

void LockWaits::session_ended() {
  std::lock_guard lock(mutex_);
  owed_.clear();
  for (auto it = requests_.begin(); it != requests_.end();) {
    const auto request = it++;
    if (request->second.state == State::kBegun) continue;
    end(request, Error(Code::kIo, "the session that asked for the lock has ended"), false);
  }
}

bool LockWaits::owes(InodeId inode, LockKind kind, std::uint64_t owner) const {
  std::lock_guard lock(mutex_);
  const auto is_it = [&](const Command& c) { return releases(c, inode, kind, owner); };
  return (paying_ && is_it(*paying_)) || std::any_of(owed_.begin(), owed_.end(), is_it);
}

void LockWaits::passed(std::uint64_t number) {
  std::lock_guard lock(mutex_);
  std::erase_if(requests_, [number](const auto& request) {
    const Request& r = request.second;
    return r.state == State::kSent && !r.done && r.number != 0 && r.number < number;
  });
}

void LockWaits::applied(std::uint64_t number, const CommandResult& result) {
  std::lock_guard lock(mutex_);
  const auto it = std::find_if(requests_.begin(), requests_.end(), [&](const auto& request) {
    return request.second.state == State::kSent && request.second.number == number;
  });
  if (it == requests_.end()) return;
  Request& r = it->second;
  if (!result.status || result.wait == 0) {
    if (!r.done) {
      if (result.status) give_back(r.command);
      requests_.erase(it);
      return;
    }
    r.state = State::kDecided;
    r.verdict = result.status;
    return;
  }
  r.state = State::kWaiting;
  r.wait = result.wait;
  if (r.is_cancelled) push_owed(CancelLockCommand{r.command.inode, r.command.kind, r.wait});
}

void LockWaits::granted(std::uint64_t wait) {
  std::lock_guard lock(mutex_);
  const auto it = waiting(wait);
  if (it == requests_.end()) return;
  if (!it->second.done) give_back(it->second.command);
  end(it, {}, false);
}

void LockWaits::cancelled(std::uint64_t wait) {
  std::lock_guard lock(mutex_);
  if (const auto it = waiting(wait); it != requests_.end()) end(it, {}, true);
}

std::optional<LockWaits::Ended> LockWaits::take_ended(std::chrono::nanoseconds time) {
  std::unique_lock lock(mutex_);
  if (!ended_changed_.wait_for(lock, time, [this] { return !ended_.empty(); })) return {};
  std::optional ended(std::move(ended_.front()));
  ended_.pop_front();
  return ended;
}

std::optional<Command> LockWaits::take_owed(std::chrono::nanoseconds time) {
  std::unique_lock lock(mutex_);
  if (!owed_changed_.wait_for(lock, time, [this] { return !owed_.empty(); })) return {};
  paying_ = std::move(owed_.front());
  owed_.pop_front();
  return paying_;
}

void LockWaits::paid() {
  std::lock_guard lock(mutex_);
  paying_.reset();
}

void LockWaits::owe(Command command) {
  std::lock_guard lock(mutex_);
  push_owed(std::move(command));
}

LockWaits::Requests::iterator LockWaits::waiting(std::uint64_t wait) {
  return std::find_if(requests_.begin(), requests_.end(), [&](const auto& request) {
    return request.second.state == State::kWaiting && request.second.wait == wait;
  });
}

void LockWaits::end(Requests::iterator request, Status status, bool interrupted) {
  Request& r = request->second;
  if (r.done) {
    ended_.push_back({std::move(r.done), r.command.inode, std::move(status), interrupted});
    ended_changed_.notify_one();
  }
  requests_.erase(request);
}

void LockWaits::give_back(const AcquireLockCommand& command) {
  push_owed(
      ReleaseLockCommand{command.inode, command.kind, command.owner, command.start, command.end});
}

void LockWaits::push_owed(Command command) {
  owed_.push_back(std::move(command));
  owed_changed_.notify_one();
}

}  // namespace kvsyncfs
