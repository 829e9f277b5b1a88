#include "fs/running_requests.h"

#include <linux/fuse.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstring>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>

#include "engine/env/caller.h"
#include "fs/quiet_thread.h"

namespace kvsyncfs {
namespace {

using SteadyClock = std::chrono::steady_clock;
constexpr std::chrono::seconds kPatience{1};
// The kernel says INTERRUPT once, and may be heard before the request: another thread has read it.
constexpr std::chrono::milliseconds kLook{50};
constexpr std::chrono::milliseconds kEarlyMax{500};
constexpr std::chrono::seconds kCloseLook{1};
constexpr std::size_t kSignalledMax = 1024;

enum class Kind {
  kOther,   // is not answered early
  kLooks,   // changes nothing; POSIX knows no EINTR
  kWaits,   // changes nothing that anybody sees; may be interrupted
  kWrites,  // changes bytes; may be interrupted before
  kChanges
};

Kind kind_of(std::uint32_t opcode) {
  switch (opcode) {
    case FUSE_READ:
    case FUSE_FSYNC:
    case FUSE_FSYNCDIR:
    case FUSE_FLUSH:
      return Kind::kWaits;
    case FUSE_WRITE:
      return Kind::kWrites;
    case FUSE_LOOKUP:
    case FUSE_GETATTR:
    case FUSE_READLINK:
    case FUSE_OPEN:
    case FUSE_OPENDIR:
    case FUSE_READDIR:
    case FUSE_READDIRPLUS:
    case FUSE_STATFS:
    case FUSE_GETXATTR:
    case FUSE_LISTXATTR:
    case FUSE_LSEEK:
      return Kind::kLooks;
    case FUSE_SETATTR:
    case FUSE_SYMLINK:
    case FUSE_MKNOD:
    case FUSE_MKDIR:
    case FUSE_UNLINK:
    case FUSE_RMDIR:
    case FUSE_RENAME:
    case FUSE_RENAME2:
    case FUSE_LINK:
    case FUSE_SETXATTR:
    case FUSE_REMOVEXATTR:
    case FUSE_CREATE:
    case FUSE_FALLOCATE:
    case FUSE_COPY_FILE_RANGE:
      return Kind::kChanges;
    default:
      return Kind::kOther;
  }
}

std::string text_of(std::uint32_t thread_id, const char* file) {
  std::ifstream in("/proc/" + std::to_string(thread_id) + "/" + file);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// At the begin of the text; 0 if there is none.
std::uint64_t number_of(std::string_view text, int base) {
  std::uint64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number, base);
  return number;
}

}  // namespace

/// The request that a thread runs.
class RunningRequests::Running final : public Caller {
 public:
  void begin(int fd, const fuse_in_header& header) {
    std::lock_guard lock(mutex_);
    kind_ = kind_of(header.opcode);
    unique_ = kind_ == Kind::kOther ? 0 : header.unique;
    is_close_ = header.opcode == FUSE_FLUSH;
    fd_ = fd;
    thread_id_ = header.pid;
    has_begun_ = was_answered_ = false;
  }

  bool begin_change() override {
    std::lock_guard lock(mutex_);
    if (unique_ == 0 || (kind_ != Kind::kWrites && kind_ != Kind::kChanges)) return true;
    has_begun_ = true;
    return !was_answered_;
  }

  bool end(std::uint64_t unique) {
    std::lock_guard lock(mutex_);
    if (unique == 0 || unique_ != unique) return true;  // 0: a notification
    unique_ = 0;
    return !was_answered_;
  }

  std::uint64_t unique_of_close() {
    std::lock_guard lock(mutex_);
    return is_close_ && !was_answered_ ? unique_ : 0;
  }

  /// Whether it runs `unique`, not answered, and for which thread.
  std::pair<bool, std::uint32_t> runs(std::uint64_t unique) {
    std::lock_guard lock(mutex_);
    return {unique_ == unique && !was_answered_, thread_id_};
  }

  /// The handler has not replied, so the thread's `fd` is open.
  void answer(std::uint64_t unique, bool caller_is_killed, bool also_begun) {
    std::lock_guard lock(mutex_);
    const bool fits = !has_begun_ || (caller_is_killed && also_begun);
    const bool may_be = caller_is_killed || kind_ == Kind::kWaits || kind_ == Kind::kWrites;
    if (unique_ != unique || was_answered_ || !fits || !may_be) return;
    const fuse_out_header out{sizeof out, -EINTR, unique};
    was_answered_ = ::write(fd_, &out, sizeof out) == static_cast<ssize_t>(sizeof out);
  }

 private:
  std::mutex mutex_;          // a leaf; guards the rest
  std::uint64_t unique_ = 0;  // 0: none that may be answered early
  Kind kind_ = Kind::kOther;
  bool is_close_ = false, has_begun_ = false, was_answered_ = false;
  int fd_ = -1;
  std::uint32_t thread_id_ = 0;
};

RunningRequests::RunningRequests(bool clustered, IsKilled is_killed)
    : clustered_(clustered), is_killed_(std::move(is_killed)) {}

RunningRequests::~RunningRequests() { stop(); }

Status RunningRequests::start() {
  return start_quiet_thread(thread_, [this] { run(); });
}

void RunningRequests::stop() {
  {
    std::lock_guard lock(mutex_);
    is_stopped_ = true;
  }
  changed_.notify_one();
  if (thread_.joinable()) thread_.join();
}

RunningRequests::Running& RunningRequests::of_this_thread() {
  thread_local std::pair<const RunningRequests*, std::shared_ptr<Running>> own;
  if (own.first == this && own.second.use_count() > 1) return *own.second;
  own = {this, std::make_shared<Running>()};
  Caller::set_current(own.second.get());
  std::lock_guard lock(mutex_);
  std::erase_if(running_, [](const auto& of_thread) { return of_thread.use_count() == 1; });
  running_.push_back(own.second);
  return *own.second;
}

void RunningRequests::began(int fd, const void* request, std::size_t size) {
  fuse_in_header header{};
  if (size < sizeof header) return;
  std::memcpy(&header, request, sizeof header);
  of_this_thread().begin(fd, header);
  if (header.opcode != FUSE_INTERRUPT || size < sizeof header + sizeof(fuse_interrupt_in)) return;
  fuse_interrupt_in interrupt{};
  std::memcpy(&interrupt, static_cast<const char*>(request) + sizeof header, sizeof interrupt);
  note(interrupt.unique, true);
}

bool RunningRequests::may_reply(std::uint64_t unique) { return of_this_thread().end(unique); }

void RunningRequests::note(std::uint64_t unique, bool was_told) {
  {
    std::lock_guard lock(mutex_);
    if (signalled_.size() == kSignalledMax) return;
    const auto same = std::find_if(signalled_.begin(), signalled_.end(),
                                   [unique](const Signalled& s) { return s.unique == unique; });
    if (same != signalled_.end()) return;
    signalled_.push_back({unique, SteadyClock::now(), was_told});
  }
  changed_.notify_one();
}

void RunningRequests::run() {
  auto next_closes = SteadyClock::now() + kCloseLook;
  std::unique_lock lock(mutex_);
  while (!is_stopped_) {
    std::erase_if(signalled_, [this](const Signalled& signalled) { return is_over(signalled); });
    if (clustered_ && SteadyClock::now() >= next_closes) {
      lock.unlock();
      look_at_closes();
      lock.lock();
      next_closes = SteadyClock::now() + kCloseLook;
    }
    const auto is_new = [this, size = signalled_.size()] {
      return is_stopped_ || signalled_.size() != size;
    };
    if (!signalled_.empty())
      changed_.wait_for(lock, kLook, is_new);
    else if (clustered_)
      changed_.wait_until(lock, next_closes, is_new);
    else
      changed_.wait(lock, is_new);
  }
}

void RunningRequests::look_at_closes() {
  std::vector<std::uint64_t> closes;
  {
    std::lock_guard lock(mutex_);
    for (const auto& running : running_)
      if (const std::uint64_t unique = running->unique_of_close(); unique != 0)
        closes.push_back(unique);
  }
  for (const std::uint64_t unique : closes) note(unique, false);
}

/// mutex_ is held.
bool RunningRequests::is_over(const Signalled& signalled) {
  const auto age = SteadyClock::now() - signalled.since;
  for (const auto& running : running_) {
    const auto [runs, thread_id] = running->runs(signalled.unique);
    if (!runs) continue;
    const bool killed = is_killed_(thread_id);
    if (killed || (signalled.was_told && age >= kPatience))
      running->answer(signalled.unique, killed, clustered_);
    return !running->runs(signalled.unique).first;
  }
  return age >= kEarlyMax;
}

bool is_killed(std::uint32_t thread_id) {
  if (thread_id == 0) return false;
  const std::string status = text_of(thread_id, "status");
  const auto pending = status.find("\nSigPnd:");
  if (pending == std::string::npos) return true;  // nobody is there any more
  const auto first = std::min(status.find_first_not_of(" \t", pending + 8), status.size());
  const std::uint64_t signals = number_of(std::string_view(status).substr(first), 16);
  if ((signals >> (SIGKILL - 1) & 1) != 0) return true;
  // Fields of proc(5)'s stat behind the name, which may hold anything.
  const std::string stat = text_of(thread_id, "stat");
  std::istringstream fields(stat.substr(std::min(stat.rfind(')') + 1, stat.size())));
  const std::vector<std::string> words{std::istream_iterator<std::string>(fields), {}};
  constexpr std::size_t kFlags = 6, kExitCode = 49;
  constexpr std::uint64_t kExiting = 4;  // the kernel's PF_EXITING
  if (words.size() <= kExitCode || (number_of(words[kFlags], 10) & kExiting) == 0) return false;
  return (number_of(words[kExitCode], 10) & 0x7f) != 0;
}

}  // namespace kvsyncfs
