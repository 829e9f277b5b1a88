#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <optional>

#include "engine/env/real.h"
#include "engine/env/real_file.h"

namespace kvsyncfs {
namespace {

// A store holds the bytes of all users of the mount, who must not get at them around it.
constexpr mode_t kFileMode = 0600;
constexpr mode_t kDirectoryMode = 0700;

int open_flags(OpenMode mode) {
  switch (mode) {
    case OpenMode::kRead:
      return O_RDONLY;
    case OpenMode::kReadWrite:
      return O_RDWR;
    case OpenMode::kCreateNew:
      return O_RDWR | O_CREAT | O_EXCL;
    case OpenMode::kCreateOrOpen:
      return O_RDWR | O_CREAT;
  }
  return O_RDONLY;
}

int open_retrying(const std::string& path, int flags) {
  for (;;) {
    const int fd = ::open(path.c_str(), flags | O_CLOEXEC, kFileMode);
    if (fd >= 0 || errno != EINTR) return fd;
  }
}

/// Asks for I/O past the page cache; false where the file system has none. Not by a flag of
/// open(2): that creates the file first and refuses then, and a retry would find it existing.
bool set_direct(int fd) {
  const int flags = ::fcntl(fd, F_GETFL);
  return flags >= 0 && ::fcntl(fd, F_SETFL, flags | O_DIRECT) == 0;
}

/// Empty if nothing is there.
Result<std::optional<struct stat>> stat_of(const std::string& path) {
  struct stat st {};
  if (::stat(path.c_str(), &st) == 0) return std::optional(st);
  if (errno == ENOENT || errno == ENOTDIR) return std::optional<struct stat>();
  return system_error("stat", path, errno);
}

class RealDisk final : public Disk {
 public:
  Result<std::unique_ptr<File>> open(const std::string& path, OpenMode mode, bool direct) override {
    const int fd = open_retrying(path, open_flags(mode));
    if (fd < 0) return system_error("open", path, errno);
    return make_real_file(fd, path, direct && set_direct(fd));
  }

  Status remove(const std::string& path) override {
    if (::unlink(path.c_str()) != 0) return system_error("unlink", path, errno);
    return {};
  }

  Status rename(const std::string& from, const std::string& to) override {
    if (::rename(from.c_str(), to.c_str()) != 0) return system_error("rename", from, errno);
    return {};
  }

  Status make_directory(const std::string& path) override {
    if (::mkdir(path.c_str(), kDirectoryMode) != 0) return system_error("mkdir", path, errno);
    return {};
  }

  Status remove_directory(const std::string& path) override {
    if (::rmdir(path.c_str()) != 0) return system_error("rmdir", path, errno);
    return {};
  }

  Result<std::vector<std::string>> list(const std::string& directory) override {
    const std::unique_ptr<DIR, int (*)(DIR*)> stream(::opendir(directory.c_str()), &::closedir);
    if (!stream) return system_error("opendir", directory, errno);
    std::vector<std::string> names;
    for (;;) {
      errno = 0;  // readdir says "end" and "error" with the same null
      const dirent* entry = ::readdir(stream.get());
      if (entry == nullptr) break;
      const std::string_view name(entry->d_name);
      if (name != "." && name != "..") names.emplace_back(name);
    }
    if (errno != 0) return system_error("readdir", directory, errno);
    std::sort(names.begin(), names.end());
    return names;
  }

  Status sync_directory(const std::string& directory) override {
    const int fd = open_retrying(directory, O_RDONLY | O_DIRECTORY);
    if (fd < 0) return system_error("open", directory, errno);
    const int error = ::fsync(fd) == 0 ? 0 : errno;
    ::close(fd);
    if (error != 0) return system_error(Code::kIo, "fsync", directory, error);
    return {};
  }

  Result<bool> exists(const std::string& path) override {
    KVSYNCFS_ASSIGN(const auto st, stat_of(path));
    return st.has_value();
  }

  Result<bool> is_directory(const std::string& path) override {
    KVSYNCFS_ASSIGN(const auto st, stat_of(path));
    return st.has_value() && S_ISDIR(st->st_mode);
  }

  Result<std::uint64_t> size_of(const std::string& path) override {
    KVSYNCFS_ASSIGN(const auto st, stat_of(path));
    if (!st) return system_error("stat", path, ENOENT);
    return static_cast<std::uint64_t>(st->st_size);
  }

  Result<DiskSpace> space(const std::string& path) override {
    struct statvfs fs {};
    if (::statvfs(path.c_str(), &fs) != 0) return system_error("statvfs", path, errno);
    return DiskSpace{.total_bytes = fs.f_blocks * fs.f_frsize,
                     .available_bytes = fs.f_bavail * fs.f_frsize,
                     .available_inodes = fs.f_favail,
                     .total_inodes = fs.f_files};
  }
};

}  // namespace

std::unique_ptr<Disk> make_real_disk() { return std::make_unique<RealDisk>(); }

}  // namespace kvsyncfs
