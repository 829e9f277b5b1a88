#include "fs/session.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/fuse.h>
#include <signal.h>
#include <spdlog/spdlog.h>
#include <sys/mount.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <thread>

#include "engine/env/mount_table.h"
#include "fs/helper_entry.h"
#include "fs/request_flags.h"
#include "fs/statx_request.h"

namespace kvsyncfs {

namespace {

// An fsync holds a thread while the disk works; more callers wait in the
// kernel.
constexpr unsigned kThreadsMax = 16;
constexpr unsigned kRequestSizeMax = kReadSizeMax;  // bytes of one read or write
// Requests in the background (readahead, direct I/O) at a time; the kernel's
// default of 12 leaves a direct reader of depth 16 waiting. Measured with
// tests/bench/max_background (ARCHITECTURE.md, "Measured").
constexpr unsigned kBackgroundMax = 64;

void init(void* user_data, fuse_conn_info* conn) {
  conn->max_write = kRequestSizeMax;
  conn->max_readahead = kRequestSizeMax;
  conn->max_background = kBackgroundMax;
  conn->congestion_threshold = kBackgroundMax * 3 / 4;
  conn->time_gran = 1;
  // Left out on purpose: splice (the bytes come from memory, not from a file),
  // the writeback cache (the kernel would own size and mtime), ATOMIC_O_TRUNC (there is no open
  // that could truncate).
  constexpr unsigned kWanted = FUSE_CAP_ASYNC_READ | FUSE_CAP_ASYNC_DIO | FUSE_CAP_EXPORT_SUPPORT |
                               FUSE_CAP_DONT_MASK | FUSE_CAP_READDIRPLUS |
                               FUSE_CAP_READDIRPLUS_AUTO | FUSE_CAP_PARALLEL_DIROPS |
                               FUSE_CAP_POSIX_ACL | FUSE_CAP_CACHE_SYMLINKS | FUSE_CAP_IOCTL_DIR;
  // On a lone node nothing changes behind the kernel. In a cluster it drops a file's pages when it
  // sees another time or size, so that a handle that stays open never shows zeros for new bytes.
  const bool clustered = static_cast<const Face*>(user_data)->clustered;
  const unsigned pages = clustered ? FUSE_CAP_AUTO_INVAL_DATA : FUSE_CAP_EXPLICIT_INVAL_DATA;
  // File locks the kernel keeps by itself on a lone node.
  const unsigned locks = clustered ? FUSE_CAP_POSIX_LOCKS | FUSE_CAP_FLOCK_LOCKS : 0;
  conn->want = conn->capable & (kWanted | pages | locks);
}

/// Commas and backslashes of a value are escaped for libfuse's list of options.
std::string escape(const std::string& value) {
  std::string text;
  for (const char c : value) {
    if (c == ',' || c == '\\') text.push_back('\\');
    text.push_back(c);
  }
  return text;
}

/// libfuse starts from nodev and nosuid; only root mounts this, so that mount(8)'s rule holds.
std::string fuse_options(const MountOptions& options) {
  std::string list = "fsname=" + escape(options.fsname.empty() ? options.store : options.fsname) +
                     ",subtype=kvsyncfs,allow_other,default_permissions,dev,suid";
  if (options.read_only) list += ",ro";
  if (!options.atime) list += ",noatime";
  for (const std::string& word : options.kernel_options) list += "," + word;
  return list;
}

__attribute__((format(printf, 2, 0))) void log_of_libfuse(fuse_log_level level, const char* format,
                                                          va_list arguments) {
  char line[1024];
  std::vsnprintf(line, sizeof line, format, arguments);
  line[std::strcspn(line, "\n")] = '\0';
  if (level == FUSE_LOG_DEBUG)
    spdlog::debug("{}", line);
  else
    spdlog::warn("{}", line);
}

void ignore_signal(int) {}

std::optional<MountEntry> find_mount(const std::string& mountpoint) {
  const auto table = read_mount_table();
  return table ? mount_at(*table, mountpoint) : std::nullopt;
}

/// Work that the kernel may only answer through this process: runs in a thread
/// of its own.
void write_back_and_unmount(const std::string& mountpoint) {
  const int root = ::open(mountpoint.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (root >= 0) {
    ::syncfs(root);
    ::close(root);
  }
  ::umount2(mountpoint.c_str(), MNT_DETACH);
}

}  // namespace

ssize_t Session::read_request(int fd, void* buffer, std::size_t size, void* user_data) {
  Face& face = *static_cast<Face*>(user_data);
  for (;;) {
    const ssize_t got = ::read(fd, buffer, size);
    if (got <= 0) return got;
    if (answer_statx(face, fd, buffer, static_cast<std::size_t>(got))) continue;
    note_request(buffer, static_cast<std::size_t>(got));
    face.session->running_.began(fd, buffer, static_cast<std::size_t>(got));
    return got;
  }
}

/// libfuse 3.14 has no name for FUSE_HANDLE_KILLPRIV_V2: without it the kernel
/// asks for security.capability before every write. The flag goes into the
/// answer to INIT, which is the first reply of a session; the daemon clears the
/// bits when a request says so. Nor for FUSE_DIRECT_IO_ALLOW_MMAP. Of a request that was answered
/// already the kernel knows nothing.
ssize_t Session::write_reply(int fd, iovec* pieces, int count, void* user_data) {
  Face& face = *static_cast<Face*>(user_data);
  Session& self = *face.session;
  if (!self.running_.may_reply(static_cast<const fuse_out_header*>(pieces[0].iov_base)->unique)) {
    errno = ENOENT;
    return -1;
  }
  if (!self.init_answered_.load(std::memory_order_relaxed) && count >= 2 &&
      pieces[1].iov_len >= offsetof(fuse_init_out, max_background)) {
    self.init_answered_ = true;
    auto& answer = *static_cast<fuse_init_out*>(pieces[1].iov_base);
    answer.flags |= FUSE_HANDLE_KILLPRIV_V2;
    if (face.clustered && request_offers_direct_mappings() && pieces[1].iov_len >= sizeof answer) {
      answer.flags |= FUSE_INIT_EXT;
      answer.flags2 |= kDirectMappings2;
      face.maps_direct_files = true;
    }
  }
  return ::writev(fd, pieces, count);
}

Result<std::unique_ptr<Session>> Session::mount(Face& face, const MountOptions& options) {
  fuse_lowlevel_ops ops{};
  ops.init = init;
  add_lookup_ops(ops);
  add_name_ops(ops);
  add_attr_ops(ops);
  add_dir_ops(ops);
  add_data_ops(ops);
  add_lock_ops(ops);
  add_space_ops(ops);
  add_xattr_ops(ops);
  add_ioctl_ops(ops);

  fuse_set_log_func(log_of_libfuse);
  fuse_args args = FUSE_ARGS_INIT(0, nullptr);
  fuse_opt_add_arg(&args, "kvsyncfs");
  fuse_opt_add_arg(&args, "-o");
  fuse_opt_add_arg(&args, fuse_options(options).c_str());
  if (options.debug) fuse_opt_add_arg(&args, "-d");
  std::unique_ptr<Session> session(new Session(face.clustered));
  session->timeout_ = std::chrono::seconds(options.timeout_s);
  face.session = session.get();
  session->late_replies_ = face.late_replies;
  face.engine.set_forget_pages([session = session.get(), gate = face.late_replies](InodeId inode) {
    gate->enter([&] { session->forget_pages(inode); });
  });
  session->session_ = fuse_session_new(&args, &ops, sizeof ops, &face);
  fuse_opt_free_args(&args);
  if (!session->session_)
    return Error(Code::kInvalid, options.mountpoint + ": libfuse refuses the options");
  errno = 0;
  if (fuse_session_mount(session->session_, options.mountpoint.c_str()) != 0) {
    const int error = errno;
    return Error(error != 0 ? from_errno(error) : Code::kIo,
                 options.mountpoint + ": cannot mount: " + std::strerror(error));
  }
  session->mountpoint_ = options.mountpoint;
  if (const auto entry = find_mount(options.mountpoint)) {
    session->device_ = entry->device;
    if (const Status added = add_helper_entry(entry->source, entry->mountpoint); !added)
      spdlog::warn("umount(8) will not wait for the daemon: {}", describe(added.error()));
  }
  const fuse_custom_io io{write_reply, read_request, nullptr, nullptr};
  if (const int error =
          fuse_session_custom_io(session->session_, &io, fuse_session_fd(session->session_));
      error != 0)
    return Error(from_errno(-error), options.mountpoint + ": cannot set up the connection");
  KVSYNCFS_TRY(session->running_.start());
  session->tune_readahead();
  return session;
}

Session::~Session() {
  if (!session_) return;
  const auto entry = find_mount(mountpoint_);
  // Somebody else's newer mount on the same place stays.
  const bool is_mounted = entry && entry->device == device_;
  const bool is_aborted = ended_ && !stopped_;
  if (is_mounted && is_aborted)
    spdlog::error("{}: the connection was aborted; the mount is dead until umount", mountpoint_);
  else if (is_mounted)
    ::umount2(mountpoint_.c_str(), MNT_DETACH);
  if (!find_mount(mountpoint_))
    if (const Status dropped = drop_helper_entry(mountpoint_); !dropped)
      spdlog::debug("{}", describe(dropped.error()));
  late_replies_->close();
  running_.stop();
  fuse_session_destroy(session_);  // closes the device: who still waits for an answer gets an error
}

void Session::tune_readahead() const {
  // The kernel caps readahead of a new mount at 128 KiB, whatever INIT
  // negotiates.
  std::ofstream file(
      fmt::format("/sys/class/bdi/{}:{}/read_ahead_kb", major(device_), minor(device_)));
  file << kRequestSizeMax / 1024;
}

Status Session::serve() {
  struct sigaction kick {};
  kick.sa_handler = ignore_signal;  // without SA_RESTART: it ends the loop's wait
  ::sigaction(SIGUSR1, &kick, nullptr);
  {
    std::lock_guard lock(mutex_);
    loop_thread_ = ::pthread_self();
  }
  fuse_loop_config* config = fuse_loop_cfg_create();
  fuse_loop_cfg_set_clone_fd(config, 1);
  fuse_loop_cfg_set_max_threads(config, kThreadsMax);
  fuse_loop_cfg_set_idle_threads(config, kThreadsMax);
  const int result = fuse_session_loop_mt(session_, config);
  fuse_loop_cfg_destroy(config);
  {
    std::lock_guard lock(mutex_);
    ended_ = true;
    loop_thread_.reset();
  }
  ended_changed_.notify_all();
  if (result < 0) return Error(from_errno(-result), mountpoint_ + ": the FUSE connection failed");
  return {};
}

bool Session::wait_for_end(std::chrono::nanoseconds time) {
  std::unique_lock lock(mutex_);
  return ended_changed_.wait_for(lock, time, [this] { return ended_; });
}

/// The loop ends with the requests under way. Each of them ends by the time-out, or by the disk's
/// own time: a process whose thread waits for the disk in the kernel could not end before that
/// either.
void Session::leave_loop() {
  using std::chrono::milliseconds;
  const auto late = std::chrono::steady_clock::now() + timeout_;
  bool told = false;
  do {
    if (!told && std::chrono::steady_clock::now() > late) {
      spdlog::warn("{}: a request waits for the disk; the daemon ends after it", mountpoint_);
      told = true;
    }
    fuse_session_exit(session_);
    // The loop may be just about to wait: the signal is repeated until it was
    // seen.
    std::lock_guard lock(mutex_);
    if (loop_thread_) ::pthread_kill(*loop_thread_, SIGUSR1);
  } while (!wait_for_end(milliseconds(20)));
}

void Session::stop() {
  using std::chrono::milliseconds;
  {
    std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  // Its own thread, and left alone where it does not come back: only the end of
  // this process or of the connection may free it.
  const auto unmounted = std::make_shared<std::atomic<bool>>(false);
  std::thread([unmounted, mountpoint = mountpoint_] {
    write_back_and_unmount(mountpoint);
    *unmounted = true;
  }).detach();
  const auto deadline = std::chrono::steady_clock::now() + timeout_;
  while (!*unmounted && std::chrono::steady_clock::now() < deadline)
    if (wait_for_end(milliseconds(10))) return;
  // A mount that nobody uses is gone now, and with it the loop; a busy one
  // would keep it.
  if (!wait_for_end(milliseconds(200))) leave_loop();
}

}  // namespace kvsyncfs
