#include "engine/env/real_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <cstring>
#include <vector>

#include "engine/base/ids.h"

namespace kvsyncfs {
namespace {

constexpr std::size_t kPieceCountMax = 1024;  // IOV_MAX of Linux

/// Drops the first `count` bytes from the pieces that `*first` and its followers name.
void advance(std::vector<iovec>& pieces, std::size_t& first, std::size_t count) {
  while (first < pieces.size() && count >= pieces[first].iov_len) {
    count -= pieces[first].iov_len;
    ++first;
  }
  if (count == 0) return;
  pieces[first].iov_base = static_cast<std::byte*>(pieces[first].iov_base) + count;
  pieces[first].iov_len -= count;
}

class RealFile final : public File {
 public:
  RealFile(int fd, std::string path, bool direct)
      : fd_(fd), path_(std::move(path)), direct_(direct) {}
  RealFile(const RealFile&) = delete;
  RealFile& operator=(const RealFile&) = delete;
  // The result of close(2) says nothing that sync() did not: whoever needs the bytes has synced.
  ~RealFile() override { ::close(fd_); }

  Result<std::size_t> read_at(std::uint64_t offset, MutableBytes out) override {
    std::size_t done = 0;
    while (done < out.size()) {
      const ssize_t count =
          ::pread(fd_, out.data() + done, out.size() - done, static_cast<off_t>(offset + done));
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) return io_error("read", errno);
      if (count == 0) break;
      done += static_cast<std::size_t>(count);
      // A direct read that is not whole pages met the end; to go on would be a misaligned read.
      if (direct_ && done % kPageSize != 0) break;
    }
    return done;
  }

  Status write_at(std::uint64_t offset, std::span<const Bytes> bytes) override {
    assert(bytes.size() <= kPieceCountMax);
    std::vector<iovec> pieces;
    pieces.reserve(bytes.size());
    for (const Bytes& piece : bytes) {
      pieces.push_back({const_cast<std::byte*>(piece.data()), piece.size()});
    }
    std::size_t first = 0;
    advance(pieces, first, 0);  // leading empty pieces
    while (first < pieces.size()) {
      const ssize_t count =
          ::pwritev(fd_, pieces.data() + first, static_cast<int>(pieces.size() - first),
                    static_cast<off_t>(offset));
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) return io_error("write", errno);
      if (count == 0) return io_error("write", EIO);  // no progress and no reason: do not spin
      offset += static_cast<std::uint64_t>(count);
      advance(pieces, first, static_cast<std::size_t>(count));
    }
    return {};
  }

  Status sync() override {
    // Not retried after EINTR or anything else: the kernel may have dropped the dirty pages.
    if (::fdatasync(fd_) != 0) return system_error(Code::kIo, "fdatasync", path_, errno);
    return {};
  }

  Status allocate(std::uint64_t size) override {
    if (size == 0) return {};
    for (;;) {
      if (::fallocate(fd_, 0, 0, static_cast<off_t>(size)) == 0) return {};
      if (errno == EINTR) continue;
      if (errno != EOPNOTSUPP) return io_error("fallocate", errno);
      return write_zeros_up_to(size);
    }
  }

  Status truncate(std::uint64_t size) override {
    for (;;) {
      if (::ftruncate(fd_, static_cast<off_t>(size)) == 0) return {};
      if (errno != EINTR) return io_error("truncate", errno);
    }
  }

  Result<std::uint64_t> size() override {
    struct stat st {};
    if (::fstat(fd_, &st) != 0) return io_error("stat", errno);
    return static_cast<std::uint64_t>(st.st_size);
  }

 private:
  /// The closed list of File: a full disk, or a disk that refuses.
  Error io_error(const char* call, int error) const {
    const bool full = from_errno(error) == Code::kNoSpace;
    return system_error(full ? Code::kNoSpace : Code::kIo, call, path_, error);
  }

  /// Reserves by writing, where the file system cannot: all that lies past the present end. (The C
  /// library's emulation writes single bytes, which a direct file refuses.)
  Status write_zeros_up_to(std::uint64_t size) {
    KVSYNCFS_ASSIGN(const std::uint64_t old_size, this->size());
    if (size <= old_size) return {};
    constexpr std::size_t kStep = std::size_t{1} << 20;
    AlignedBuffer zeros(kStep);
    std::memset(zeros.data(), 0, zeros.size());
    for (std::uint64_t at = round_up(old_size, kPageSize); at < size; at += kStep) {
      const std::uint64_t length = std::min<std::uint64_t>(kStep, round_up(size - at, kPageSize));
      KVSYNCFS_TRY(File::write_at(at, zeros.bytes().first(length)));
    }
    return truncate(size);
  }

  const int fd_;
  const std::string path_;
  const bool direct_;
};

}  // namespace

std::unique_ptr<File> make_real_file(int fd, std::string path, bool direct) {
  return std::make_unique<RealFile>(fd, std::move(path), direct);
}

Error system_error(Code code, const char* call, const std::string& path, int error) {
  char buffer[128];
  std::string detail(call);
  detail.append(" ").append(path).append(": ").append(::strerror_r(error, buffer, sizeof buffer));
  return {code, std::move(detail)};
}

}  // namespace kvsyncfs
