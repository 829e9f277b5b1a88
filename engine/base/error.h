// The closed list of error codes and the one Result type of the project.
//
// Layers pass errors up unchanged; only fs and the command line tools turn a code into
// an errno. What a disk, a peer or a user says is a code, never an assert. Thread: values, any.
#pragma once

#include <boost/system/result.hpp>
#include <string>
#include <string_view>

namespace kvsyncfs {

/// Meaning · errno · retry (N never, S with the same request id, R after a refresh).
/// The numbers travel between nodes: a new code goes to the end and none is given again.
enum class Code : unsigned char {
  kNotFound = 1,  ///< name, inode, key or segment does not exist · ENOENT · N
  kExists,        ///< name exists · EEXIST · N
  kNotDirectory,  ///< a directory was needed · ENOTDIR · N
  kIsDirectory,   ///< a non-directory was needed · EISDIR · N
  kNotEmpty,      ///< directory has entries · ENOTEMPTY · N
  kInvalid,       ///< argument outside its contract · EINVAL · N
  kNameTooLong,   ///< name longer than 255 bytes · ENAMETOOLONG · N
  kTooManyLinks,  ///< link count would pass its limit · EMLINK · N
  kNoSpace,       ///< the store is full · ENOSPC · R
  kReadOnly,      ///< read-only mount or store · EROFS · N
  kIo,            ///< the disk refused · EIO · N
  kCorrupt,       ///< checksum, magic or structure is wrong · EIO · N
  kNotPermitted,  ///< operation not permitted · EPERM · N
  kAccess,        ///< permission denied · EACCES · N
  kNoData,        ///< no such attribute · ENODATA · N
  kRange,         ///< the caller's buffer is too small · ERANGE · N
  kTooBig,        ///< attribute value or list beyond its limit · E2BIG · N
  kFileTooBig,    ///< offset beyond the largest file size · EFBIG · N
  kUnsupported,   ///< not offered · EOPNOTSUPP · N
  kNoSuchRange,   ///< no data or hole at or after the offset · ENXIO · N
  kStale,         ///< refers to something that is gone · ESTALE · R
  kBusy,          ///< in use by somebody else · EBUSY · R
  kTimeout,       ///< the deadline passed; a change may have happened · ETIMEDOUT · S
  kNoMemory,      ///< memory or descriptors exhausted · ENOMEM · R
  kNotFormatted,  ///< no superblock here · EINVAL · N
  kNewerFormat,   ///< incompatible feature of a newer version · EPROTONOSUPPORT · N
  kFenced,        ///< this node's session has ended, it may not write · EIO · R
  kShutdown,      ///< engine, transport or client is stopping · ESHUTDOWN · N
  kUnreachable,   ///< no connection to the peer; nothing was sent · EHOSTUNREACH · R
  kDisconnected,  ///< the peer's connection broke; a change may have happened · ECONNRESET · S
  kWouldBlock,    ///< somebody else has a lock there · EAGAIN · R
  kDeadlock,      ///< waiting for the lock would close a cycle · EDEADLK · N
  kNoLocks,       ///< a file has no room for more locks · ENOLCK · R
};
inline constexpr Code kLastCode = Code::kNoLocks;

/// An error: a code, and in `detail` the object it is about ("segment 12 page 7: bad checksum").
/// `detail` stays empty on hot paths (a lookup that misses allocates nothing).
struct Error {
  Code code = Code::kIo;
  std::string detail;

  Error() = default;          // Result wants one; no code path shows it
  Error(Code c) : code(c) {}  // NOLINT(google-explicit-constructor): `return Code::kNotFound;`
  Error(Code c, std::string d) : code(c), detail(std::move(d)) {}
};

/// Short English name of a code ("not found"). Never empty.
std::string_view to_string(Code code);

/// errno value of a code (see the table above). Never 0.
int to_errno(Code code);

/// Code for an errno of a system call; what has no place in the list becomes kIo.
Code from_errno(int error);

/// "detail: name (ERRNO)" for a message to a person.
std::string describe(const Error& error);

template <typename T>
using Result = boost::system::result<T, Error>;
using Status = Result<void>;

[[noreturn]] void throw_exception_from_error(const Error& error, const boost::source_location& loc);

}  // namespace kvsyncfs

/// Evaluates `expr` (a Result); returns its error from the enclosing function if it has one.
#define KVSYNCFS_TRY(expr)                                                \
  do {                                                                    \
    if (auto kvsyncfs_r = (expr); !kvsyncfs_r) return kvsyncfs_r.error(); \
  } while (false)

#define KVSYNCFS_CONCAT_(a, b) a##b
#define KVSYNCFS_CONCAT(a, b) KVSYNCFS_CONCAT_(a, b)
/// `KVSYNCFS_ASSIGN(auto x, f());` declares x from the value of f() or returns its error.
#define KVSYNCFS_ASSIGN(decl, expr) \
  KVSYNCFS_ASSIGN_(KVSYNCFS_CONCAT(kvsyncfs_r, __LINE__), decl, expr)
#define KVSYNCFS_ASSIGN_(tmp, decl, expr) \
  auto tmp = (expr);                      \
  if (!tmp) return tmp.error();           \
  decl = std::move(*tmp)
