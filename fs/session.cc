#include "fs/session.h"

#include <fmt/format.h>
#include <linux/fuse.h>
#include <sys/mount.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <fstream>
#include <optional>
#include <sstream>

namespace kvsyncfs {

namespace {

constexpr unsigned kThreadsMax =
    16;  // an fsync holds one while the disk works; more callers wait in the kernel
constexpr unsigned kRequestSizeMax = 1u << 20;  // bytes of one read or write
// Requests in the background (readahead, direct I/O) at a time; the kernel's default of 12 leaves a
// direct reader of depth 16 waiting.
constexpr unsigned kBackgroundMax = 64;

void init(void*, fuse_conn_info* conn) {
  conn->max_write = kRequestSizeMax;
  conn->max_readahead = kRequestSizeMax;
  conn->max_background = kBackgroundMax;
  conn->congestion_threshold = kBackgroundMax * 3 / 4;
  conn->time_gran = 1;
  const unsigned wanted = FUSE_CAP_ASYNC_READ | FUSE_CAP_ASYNC_DIO | FUSE_CAP_ATOMIC_O_TRUNC |
                          FUSE_CAP_EXPORT_SUPPORT | FUSE_CAP_DONT_MASK | FUSE_CAP_READDIRPLUS |
                          FUSE_CAP_READDIRPLUS_AUTO | FUSE_CAP_PARALLEL_DIROPS |
                          FUSE_CAP_POSIX_ACL | FUSE_CAP_CACHE_SYMLINKS |
                          FUSE_CAP_EXPLICIT_INVAL_DATA;
  conn->want = conn->capable & wanted;
}

/// libfuse 3.14 has no name for FUSE_HANDLE_KILLPRIV_V2: without it the kernel asks for
/// security.capability before every write. The flag goes into the reply to INIT, which is the first
/// reply of a session. The daemon keeps its part: it clears the set-user-ID bits itself.
ssize_t write_reply(int fd, iovec* iov, int count, void*) {
  if (count >= 2 && iov[1].iov_len >= 24 && iov[0].iov_len == sizeof(fuse_out_header)) {
    static std::atomic<bool> init_done = false;
    if (!init_done.exchange(true)) {
      auto* reply = static_cast<fuse_init_out*>(iov[1].iov_base);
      if (reply->major == FUSE_KERNEL_VERSION) reply->flags |= FUSE_HANDLE_KILLPRIV_V2;
    }
  }
  return ::writev(fd, iov, count);
}

ssize_t read_request(int fd, void* buffer, std::size_t size, void*) {
  return ::read(fd, buffer, size);
}

std::string fuse_options(const MountOptions& options) {
  std::string list = "fsname=" + options.store + ",subtype=kvsyncfs,default_permissions";
  if (options.allow_other) list += ",allow_other";
  if (options.read_only) list += ",ro";
  for (const std::string& word : options.kernel_options) list += "," + word;
  return list;
}

/// mountinfo writes space, tab, newline and backslash as \ooo.
std::string unescape(const std::string& field) {
  std::string text;
  for (std::size_t i = 0; i < field.size(); ++i) {
    if (field[i] == '\\' && i + 3 < field.size()) {
      text.push_back(static_cast<char>(std::stoi(field.substr(i + 1, 3), nullptr, 8)));
      i += 3;
    } else {
      text.push_back(field[i]);
    }
  }
  return text;
}

}  // namespace

Result<std::uint64_t> mounted_device(const std::string& path) {
  std::ifstream mounts("/proc/self/mountinfo");
  std::optional<std::uint64_t> found;
  for (std::string line; std::getline(mounts, line);) {
    std::istringstream fields(line);
    std::string mount_id, parent_id, device, root, mountpoint;
    fields >> mount_id >> parent_id >> device >> root >> mountpoint;
    const std::size_t colon = device.find(':');
    if (colon == std::string::npos || unescape(mountpoint) != path) continue;
    found = makedev(static_cast<unsigned>(std::stoul(device.substr(0, colon))),
                    static_cast<unsigned>(std::stoul(device.substr(colon + 1))));
  }
  if (!found) return Error(Code::kNotFound, path + ": not mounted");
  return *found;
}

Result<std::unique_ptr<Session>> Session::mount(Face& face, const MountOptions& options) {
  fuse_lowlevel_ops ops{};
  ops.init = init;
  add_lookup_ops(ops);
  add_name_ops(ops);
  add_attr_ops(ops);
  add_dir_ops(ops);
  add_data_ops(ops);
  add_space_ops(ops);
  add_xattr_ops(ops);

  fuse_args args = FUSE_ARGS_INIT(0, nullptr);
  fuse_opt_add_arg(&args, "kvsyncfs");
  fuse_opt_add_arg(&args, "-o");
  fuse_opt_add_arg(&args, fuse_options(options).c_str());
  if (options.debug) fuse_opt_add_arg(&args, "-d");
  std::unique_ptr<Session> session(new Session);
  session->session_ = fuse_session_new(&args, &ops, sizeof ops, &face);
  fuse_opt_free_args(&args);
  if (!session->session_)
    return Error(Code::kInvalid, options.mountpoint + ": libfuse refuses the options");
  errno = 0;
  if (fuse_session_mount(session->session_, options.mountpoint.c_str()) != 0)
    return Error(
        errno ? from_errno(errno) : Code::kIo,
        options.mountpoint + ": cannot mount: " + (errno ? std::strerror(errno) : "see above"));
  session->mountpoint_ = options.mountpoint;
  const fuse_custom_io io{write_reply, read_request, nullptr, nullptr};
  if (const int error =
          fuse_session_custom_io(session->session_, &io, fuse_session_fd(session->session_));
      error != 0)
    return Error(from_errno(-error), options.mountpoint + ": cannot set up the connection");
  KVSYNCFS_ASSIGN(session->device_, mounted_device(options.mountpoint));
  session->tune_readahead();
  return session;
}

Session::~Session() {
  if (!session_) return;
  if (handlers_set_) fuse_remove_signal_handlers(session_);
  if (!mountpoint_.empty()) {
    // The kernel has unmounted already, or a signal came: a busy mount is detached, its users get
    // ENOTCONN.
    if (!fuse_session_exited(session_) || mounted_device(mountpoint_))
      ::umount2(mountpoint_.c_str(), MNT_DETACH);
  }
  fuse_session_destroy(session_);
}

void Session::tune_readahead() const {
  // The kernel caps readahead of a new mount at 128 KiB, whatever INIT negotiates.
  std::ofstream file(
      fmt::format("/sys/class/bdi/{}:{}/read_ahead_kb", major(device_), minor(device_)));
  file << kRequestSizeMax / 1024;
}

Status Session::serve() {
  if (fuse_set_signal_handlers(session_) != 0)
    return Error(Code::kIo, "cannot set signal handlers");
  handlers_set_ = true;
  fuse_loop_config* config = fuse_loop_cfg_create();
  fuse_loop_cfg_set_clone_fd(config, 1);
  fuse_loop_cfg_set_max_threads(config, kThreadsMax);
  fuse_loop_cfg_set_idle_threads(config, kThreadsMax);
  const int result = fuse_session_loop_mt(session_, config);
  fuse_loop_cfg_destroy(config);
  // A positive result is the signal that ended the loop.
  if (result < 0) return Error(from_errno(-result), mountpoint_ + ": the FUSE connection failed");
  return {};
}

}  // namespace kvsyncfs
