#include "engine/base/error.h"

#include <array>
#include <boost/throw_exception.hpp>
#include <cerrno>
#include <stdexcept>

namespace kvsyncfs {
namespace {

struct CodeInfo {
  Code code;
  std::string_view name;
  int error;
  std::string_view error_name;
};

constexpr std::array kCodes = {
    CodeInfo{Code::kNotFound, "not found", ENOENT, "ENOENT"},
    CodeInfo{Code::kExists, "already exists", EEXIST, "EEXIST"},
    CodeInfo{Code::kNotDirectory, "not a directory", ENOTDIR, "ENOTDIR"},
    CodeInfo{Code::kIsDirectory, "is a directory", EISDIR, "EISDIR"},
    CodeInfo{Code::kNotEmpty, "directory not empty", ENOTEMPTY, "ENOTEMPTY"},
    CodeInfo{Code::kInvalid, "invalid argument", EINVAL, "EINVAL"},
    CodeInfo{Code::kNameTooLong, "name too long", ENAMETOOLONG, "ENAMETOOLONG"},
    CodeInfo{Code::kTooManyLinks, "too many links", EMLINK, "EMLINK"},
    CodeInfo{Code::kNoSpace, "no space left", ENOSPC, "ENOSPC"},
    CodeInfo{Code::kReadOnly, "read-only", EROFS, "EROFS"},
    CodeInfo{Code::kIo, "input/output error", EIO, "EIO"},
    CodeInfo{Code::kCorrupt, "corrupt data", EIO, "EIO"},
    CodeInfo{Code::kNotPermitted, "operation not permitted", EPERM, "EPERM"},
    CodeInfo{Code::kAccess, "permission denied", EACCES, "EACCES"},
    CodeInfo{Code::kNoData, "no such attribute", ENODATA, "ENODATA"},
    CodeInfo{Code::kRange, "buffer too small", ERANGE, "ERANGE"},
    CodeInfo{Code::kTooBig, "value too big", E2BIG, "E2BIG"},
    CodeInfo{Code::kFileTooBig, "file too big", EFBIG, "EFBIG"},
    CodeInfo{Code::kUnsupported, "not supported", EOPNOTSUPP, "EOPNOTSUPP"},
    CodeInfo{Code::kNoSuchRange, "no data or hole there", ENXIO, "ENXIO"},
    CodeInfo{Code::kStale, "stale reference", ESTALE, "ESTALE"},
    CodeInfo{Code::kBusy, "in use", EBUSY, "EBUSY"},
    CodeInfo{Code::kTimeout, "timed out", ETIMEDOUT, "ETIMEDOUT"},
    CodeInfo{Code::kNoMemory, "out of memory or descriptors", ENOMEM, "ENOMEM"},
    CodeInfo{Code::kNotFormatted, "not a kvsyncfs store", EINVAL, "EINVAL"},
    CodeInfo{Code::kNewerFormat, "format of a newer version", EPROTONOSUPPORT, "EPROTONOSUPPORT"},
    CodeInfo{Code::kFenced, "session has ended", EIO, "EIO"},
    CodeInfo{Code::kShutdown, "shut down", ESHUTDOWN, "ESHUTDOWN"},
    CodeInfo{Code::kUnreachable, "peer unreachable", EHOSTUNREACH, "EHOSTUNREACH"},
    CodeInfo{Code::kDisconnected, "connection lost", ECONNRESET, "ECONNRESET"},
    CodeInfo{Code::kWouldBlock, "locked by somebody else", EAGAIN, "EAGAIN"},
    CodeInfo{Code::kDeadlock, "deadlock avoided", EDEADLK, "EDEADLK"},
    CodeInfo{Code::kNoLocks, "no locks available", ENOLCK, "ENOLCK"},
};

constexpr bool in_order_of_codes() {
  for (std::size_t i = 0; i < kCodes.size(); ++i) {
    if (static_cast<std::size_t>(kCodes[i].code) != i + 1) return false;
  }
  return kCodes.size() == static_cast<std::size_t>(kLastCode);
}
static_assert(in_order_of_codes(), "kCodes is indexed by code - 1");

const CodeInfo& info(Code code) {
  const auto index = static_cast<std::size_t>(code) - 1;  // 0 wraps around and is out of bounds
  static constexpr CodeInfo kUnknown{Code::kIo, "unknown error", EIO, "EIO"};
  return index < kCodes.size() ? kCodes[index] : kUnknown;
}

}  // namespace

std::string_view to_string(Code code) { return info(code).name; }

int to_errno(Code code) { return info(code).error; }

Code from_errno(int error) {
  switch (error) {
    case EDQUOT:
      return Code::kNoSpace;
    case EMFILE:
    case ENFILE:
      return Code::kNoMemory;
    case ETXTBSY:
      return Code::kBusy;
    case ENOSYS:
      return Code::kUnsupported;
    default:
      break;
  }
  for (const CodeInfo& known : kCodes) {  // the first of several codes with one errno is its own
    if (known.error == error) return known.code;
  }
  return Code::kIo;
}

std::string describe(const Error& error) {
  const CodeInfo& known = info(error.code);
  std::string text;
  if (!error.detail.empty()) text.append(error.detail).append(": ");
  text.append(known.name).append(" (").append(known.error_name).append(")");
  return text;
}

void throw_exception_from_error(const Error& error, const boost::source_location& loc) {
  boost::throw_exception(std::runtime_error(describe(error)), loc);
}

}  // namespace kvsyncfs
