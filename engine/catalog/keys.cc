#include "engine/catalog/keys.h"

#include <boost/assert.hpp>
#include <cstring>

#include "engine/format/codec.h"

namespace kvsyncfs {

namespace {

constexpr std::uint8_t kValueVersion = 1;
constexpr std::uint8_t kCursorVersion = 2;  // the first one had no digest of the history

Error corrupt(const char* what) { return {Code::kCorrupt, what}; }

}  // namespace

Key& Key::name(std::string_view name) {
  BOOST_ASSERT(name.size() <= kNameSizeMax);
  std::memcpy(bytes_.data() + size_, name.data(), name.size());
  size_ += name.size();
  return *this;
}

std::uint64_t number_in_key(std::string_view key, std::size_t index) {
  std::size_t at = 1 + 8 * index;
  if (key.size() < at + 8) return 0;
  std::uint64_t v = 0;
  for (std::size_t i = at; i < at + 8; ++i) v = v << 8 | static_cast<unsigned char>(key[i]);
  return v;
}

std::string encode_dentry(const Dentry& dentry) {
  std::string out;
  Writer w(out);
  w.u8(kValueVersion);
  w.u64(dentry.inode.value);
  w.u32(dentry.type);
  w.u64(dentry.cookie);
  return out;
}

Result<Dentry> decode_dentry(std::string_view key, std::string_view value) {
  Reader r(value);
  bool known = r.u8() == kValueVersion;
  Dentry dentry;
  dentry.inode.value = r.u64();
  dentry.type = r.u32();
  dentry.cookie = r.u64();
  if (!known || !r.done()) return corrupt("directory entry: bad value");
  dentry.name = name_in_key(key);
  return dentry;
}

std::string encode_listing(const Dentry& dentry) {
  std::string out;
  Writer w(out);
  w.u8(kValueVersion);
  w.u64(dentry.inode.value);
  w.u32(dentry.type);
  w.raw(dentry.name);
  return out;
}

Result<Dentry> decode_listing(std::string_view key, std::string_view value) {
  Reader r(value);
  bool known = r.u8() == kValueVersion;
  Dentry dentry;
  dentry.inode.value = r.u64();
  dentry.type = r.u32();
  dentry.name = r.raw(r.left());
  dentry.cookie = number_in_key(key, 1);
  if (!known || !r.done() || dentry.name.empty() || dentry.name.size() > kNameSizeMax)
    return corrupt("directory listing: bad value");
  return dentry;
}

std::string encode_extent(const Extent& extent) {
  std::string out;
  out.reserve(25);
  Writer w(out);
  w.u8(kValueVersion);
  w.u64(extent.length);
  w.u64(extent.segment.value);
  w.u64(extent.segment_offset);
  return out;
}

Result<Extent> decode_extent(std::string_view key, std::string_view value) {
  Reader r(value);
  bool known = r.u8() == kValueVersion;
  Extent extent;
  extent.file_offset = number_in_key(key, 1);
  extent.length = r.u64();
  extent.segment.value = r.u64();
  extent.segment_offset = r.u64();
  if (!known || !r.done() || extent.length == 0 || extent.file_offset > kFileSizeMax ||
      extent.length > kFileSizeMax - extent.file_offset)
    return corrupt("extent: bad value");
  return extent;
}

std::string encode_length(std::uint64_t length) {
  std::string out;
  Writer w(out);
  w.u8(kValueVersion);
  w.u64(length);
  return out;
}

Result<std::uint64_t> decode_length(std::string_view value) {
  Reader r(value);
  bool known = r.u8() == kValueVersion;
  std::uint64_t length = r.u64();
  if (!known || !r.done()) return corrupt("reverse extent: bad value");
  return length;
}

std::string encode_xattr(std::string_view value) {
  std::string out;
  out.reserve(1 + value.size());
  Writer w(out);
  w.u8(kValueVersion);
  w.raw(value);
  return out;
}

Result<std::string_view> decode_xattr(std::string_view value) {
  if (value.empty() || static_cast<std::uint8_t>(value[0]) != kValueVersion ||
      value.size() > 1 + kXattrValueSizeMax)
    return corrupt("extended attribute: bad value");
  return value.substr(1);
}

std::string encode_locked() { return std::string(1, static_cast<char>(kValueVersion)); }

std::string encode_wait(InodeId inode) { return encode_length(inode.value); }

Result<InodeId> decode_wait(std::string_view value) {
  KVSYNCFS_ASSIGN(const std::uint64_t inode, decode_length(value));
  return InodeId{inode};
}

std::string encode_cursor(const Cursor& cursor) {
  std::string out;
  out.reserve(33);
  Writer w(out);
  w.u8(kCursorVersion);
  w.u64(cursor.applied.value);
  w.u32(cursor.next_command);
  w.u64(cursor.inodes);
  w.u64(cursor.reserved_bytes);
  w.u32(cursor.history);
  return out;
}

Result<Cursor> decode_cursor(std::string_view value) {
  Reader r(value);
  const std::uint8_t version = r.u8();
  Cursor cursor;
  cursor.applied.value = r.u64();
  cursor.next_command = r.u32();
  cursor.inodes = r.u64();
  cursor.reserved_bytes = r.u64();
  if (version == kCursorVersion) cursor.history = r.u32();
  const bool known = version == kCursorVersion || version == kValueVersion;
  if (!known || !r.done() || cursor.next_command >= kCommandsPerTransactionMax)
    return corrupt("catalog cursor: bad value");
  return cursor;
}

}  // namespace kvsyncfs
