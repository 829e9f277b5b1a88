// The mark of a node of a cluster: a batch of the log in etcd that its catalog has. The next life
// must find it in the log again, or etcd was put back. File STORE/log-mark, kvsyncfs-format(5).
// Pure. Thread: any.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "engine/base/error.h"

namespace kvsyncfs {

inline constexpr std::string_view kLogMarkFile = "log-mark";
inline constexpr std::string_view kNextLogMarkFile = "log-mark.new";  ///< until it is whole
inline constexpr std::size_t kLogMarkHeaderSize = 40;                 ///< bytes; the key follows
inline constexpr std::size_t kLogMarkKeySizeMax = 512;                ///< bytes
inline constexpr std::size_t kLogMarkSizeMax = kLogMarkHeaderSize + kLogMarkKeySizeMax;

struct LogMark {
  std::uint64_t volume_tag = 0;
  std::uint64_t index = 0;    ///< of the batch, from 1
  std::int64_t revision = 0;  ///< of etcd when the batch was put, from 1
  std::string key;            ///< of the batch, 1 to kLogMarkKeySizeMax bytes
  bool operator==(const LogMark&) const = default;
};

std::string encode(const LogMark& mark);
/// Takes the whole of `bytes`. Errors: kCorrupt (magic, size, checksum, a field out of its range),
/// kNewerFormat.
Result<LogMark> decode_log_mark(std::string_view bytes);

}  // namespace kvsyncfs
