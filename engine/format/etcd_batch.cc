#include "engine/format/etcd_batch.h"

#include "engine/base/checksum.h"
#include "engine/format/codec.h"

namespace kvsyncfs {
namespace {

constexpr std::uint32_t kMagic = 0x4245564b;  // "KVEB"
constexpr std::uint16_t kVersion = 1;
constexpr std::size_t kChecksumSize = 4;

}  // namespace

std::string encode_etcd_batch(const std::vector<std::string_view>& entries) {
  std::size_t size = kEtcdBatchOverhead;
  for (const std::string_view entry : entries) size += kEtcdEntryOverhead + entry.size();
  std::string value;
  value.reserve(size);
  Writer out(value);
  out.u32(kMagic);
  out.u16(kVersion);
  out.u16(0);
  out.u32(static_cast<std::uint32_t>(entries.size()));
  for (const std::string_view entry : entries) out.blob(entry);
  out.u32(crc32c(as_bytes(value)));
  return value;
}

Result<std::vector<std::string_view>> decode_etcd_batch(std::string_view value) {
  if (value.size() < kEtcdBatchOverhead) return Error(Code::kCorrupt, "log batch: too short");
  Reader in(value);
  if (in.u32() != kMagic) return Error(Code::kCorrupt, "log batch: bad magic");
  if (in.u16() != kVersion) return Error(Code::kNewerFormat, "log batch");
  const std::string_view covered = value.substr(0, value.size() - kChecksumSize);
  Reader checksum(value.substr(covered.size()));
  if (checksum.u32() != crc32c(as_bytes(covered)))
    return Error(Code::kCorrupt, "log batch: bad checksum");
  in.u16();
  const std::uint32_t count = in.u32();
  if (count == 0 || count > kEtcdBatchEntriesMax)
    return Error(Code::kCorrupt, "log batch: bad entry count");
  std::vector<std::string_view> entries;
  entries.reserve(count);
  for (std::uint32_t i = 0; i < count && in.ok(); ++i) entries.push_back(in.blob());
  if (!in.ok() || in.left() != kChecksumSize)
    return Error(Code::kCorrupt, "log batch: bad entry sizes");
  return entries;
}

}  // namespace kvsyncfs
