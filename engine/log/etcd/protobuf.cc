#include "engine/log/etcd/protobuf.h"

namespace kvsyncfs::etcd {
namespace {

enum WireType : std::uint64_t { kVarint = 0, kFixed64 = 1, kLength = 2, kFixed32 = 5 };
constexpr std::uint64_t kFieldMax = (1u << 29) - 1;

}  // namespace

void ProtoWriter::varint(std::uint64_t value) {
  for (; value > 0x7f; value >>= 7) out_.push_back(static_cast<char>((value & 0x7f) | 0x80));
  out_.push_back(static_cast<char>(value));
}

void ProtoWriter::always_number(std::uint32_t field, std::int64_t value) {
  varint(std::uint64_t{field} << 3 | kVarint);
  varint(static_cast<std::uint64_t>(value));
}

void ProtoWriter::always_bytes(std::uint32_t field, std::string_view value) {
  varint(std::uint64_t{field} << 3 | kLength);
  varint(value.size());
  out_.append(value);
}

bool ProtoReader::varint(std::uint64_t* value) {
  *value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    if (rest_.empty()) return ok_ = false;
    const auto byte = static_cast<std::uint8_t>(rest_.front());
    rest_.remove_prefix(1);
    *value |= std::uint64_t{byte & 0x7fu} << shift;
    if ((byte & 0x80) == 0) return true;
  }
  return ok_ = false;
}

bool ProtoReader::skip(std::uint64_t size) {
  if (size > rest_.size()) return ok_ = false;
  bytes_ = rest_.substr(0, size);
  rest_.remove_prefix(size);
  return true;
}

bool ProtoReader::next() {
  std::uint64_t key = 0, size = 0;
  if (!ok_ || rest_.empty() || !varint(&key)) return false;
  if (key >> 3 == 0 || key >> 3 > kFieldMax) return ok_ = false;
  field_ = static_cast<std::uint32_t>(key >> 3);
  kind_ = Kind::kOther;
  switch (key & 7) {
    case kVarint:
      kind_ = Kind::kNumber;
      return varint(&number_);
    case kLength:
      kind_ = Kind::kBytes;
      return varint(&size) && skip(size);
    case kFixed64:
      return skip(8);
    case kFixed32:
      return skip(4);
    default:
      return ok_ = false;
  }
}

std::int64_t ProtoReader::number() {
  if (kind_ == Kind::kNumber) return static_cast<std::int64_t>(number_);
  ok_ = false;
  return 0;
}

std::string_view ProtoReader::bytes() {
  if (kind_ == Kind::kBytes) return bytes_;
  ok_ = false;
  return {};
}

}  // namespace kvsyncfs::etcd
