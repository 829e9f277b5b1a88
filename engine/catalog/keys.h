// Keys of the catalog's records, and the small values that are not in format/records.h.
//
// Numbers in keys are big-endian so that byte order is number order. kvsyncfs-format(5), "Catalog".
// Thread: values, any.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "engine/base/error.h"
#include "engine/base/ids.h"
#include "engine/format/lock_table.h"
#include "engine/format/records.h"

namespace kvsyncfs {

inline constexpr std::size_t kKeyPrefixSize = 9;  ///< tag and first id: what range scans share
inline constexpr std::string_view kCursorKey = "m:cursor";

/// A key under construction, on the stack. Holds at most a tag, an id and a name.
class Key {
 public:
  explicit Key(char tag) { bytes_[size_++] = tag; }
  Key& number(std::uint64_t v) {
    for (int shift = 56; shift >= 0; shift -= 8) bytes_[size_++] = static_cast<char>(v >> shift);
    return *this;
  }
  /// Requires: name.size() <= kNameSizeMax.
  Key& name(std::string_view name);
  std::string_view view() const { return {bytes_.data(), size_}; }

 private:
  std::array<char, 1 + 8 + kNameSizeMax + 24> bytes_;
  std::size_t size_ = 0;
};

inline Key inode_key(InodeId id) { return Key('i').number(id.value); }
inline Key orphan_key(InodeId id) { return Key('o').number(id.value); }
inline Key segment_key(SegmentId id) { return Key('s').number(id.value); }
inline Key session_key(NodeId node) { return Key('n').number(node.value); }
inline Key hold_key(std::string_view name) { return Key('h').name(name); }
inline Key lock_key(InodeId id, LockKind kind) {
  return Key('l').number(id.value).number(static_cast<std::uint64_t>(kind));
}
/// Tables in which a session has something.
inline Key locked_key(SessionId session, InodeId id, LockKind kind) {
  return Key('k').number(session.value).number(id.value).number(static_cast<std::uint64_t>(kind));
}
/// Waits of an owner for POSIX locks.
inline Key wait_key(const LockOwner& owner, std::uint64_t wait) {
  return Key('w').number(owner.session.value).number(owner.number).number(wait);
}
inline Key dentry_key(InodeId parent, std::string_view name) {
  return Key('d').number(parent.value).name(name);
}
inline Key cookie_key(InodeId parent, std::uint64_t cookie) {
  return Key('c').number(parent.value).number(cookie);
}
inline Key xattr_key(InodeId id, std::string_view name) {
  return Key('x').number(id.value).name(name);
}
inline Key extent_key(InodeId id, std::uint64_t file_offset) {
  return Key('e').number(id.value).number(file_offset);
}
inline Key reverse_key(InodeId id, const Extent& e) {
  return Key('r')
      .number(e.segment.value)
      .number(e.segment_offset)
      .number(id.value)
      .number(e.file_offset);
}

/// Big-endian number `index` (0: the first id) of a key; 0 where the key is too short.
std::uint64_t number_in_key(std::string_view key, std::size_t index);
/// What follows the first id: a name.
inline std::string_view name_in_key(std::string_view key) {
  return key.size() < kKeyPrefixSize ? std::string_view{} : key.substr(kKeyPrefixSize);
}

// Values. Each starts with a version byte. Decoding errors: kCorrupt.
std::string encode_dentry(const Dentry& dentry);   ///< d: inode, type, cookie
std::string encode_listing(const Dentry& dentry);  ///< c: inode, type, name
std::string encode_extent(const Extent& extent);   ///< e: length, segment, segment offset
std::string encode_length(std::uint64_t length);   ///< r
std::string encode_xattr(std::string_view value);  ///< x
std::string encode_locked();                       ///< k
std::string encode_wait(InodeId inode);            ///< w
Result<Dentry> decode_dentry(std::string_view key, std::string_view value);
Result<Dentry> decode_listing(std::string_view key, std::string_view value);
Result<Extent> decode_extent(std::string_view key, std::string_view value);
Result<std::uint64_t> decode_length(std::string_view value);
Result<std::string_view> decode_xattr(std::string_view value);
Result<InodeId> decode_wait(std::string_view value);

/// m:cursor: what has been applied, and the totals that only a full scan could find again.
struct Cursor {
  Position applied;                ///< all commands up to it
  std::uint32_t next_command = 0;  ///< commands of the position after it that are in already
  std::uint64_t inodes = 0;
  std::uint64_t reserved_bytes = 0;
  std::uint32_t history = 0;  ///< digest of all that the commands so far have written; 0: not kept
};
std::string encode_cursor(const Cursor& cursor);
Result<Cursor> decode_cursor(std::string_view value);

}  // namespace kvsyncfs
