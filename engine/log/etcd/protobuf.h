// The wire format of Protocol Buffers, as much of it as etcd's messages need.
//
// A field that is zero or empty is left out, as in proto3; fields of a oneof are written in any
// case. A reader takes what comes in any order, passes over fields that it does not know, and is
// not ok() from the first byte on that does not fit. Pure. Thread: one at a time.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace kvsyncfs::etcd {

class ProtoWriter {
 public:
  void number(std::uint32_t field, std::int64_t value) {
    if (value != 0) always_number(field, value);
  }
  void always_number(std::uint32_t field, std::int64_t value);
  void bytes(std::uint32_t field, std::string_view value) {
    if (!value.empty()) always_bytes(field, value);
  }
  /// Also a message within this one.
  void always_bytes(std::uint32_t field, std::string_view value);
  const std::string& text() const { return out_; }

 private:
  void varint(std::uint64_t value);
  std::string out_;
};

class ProtoReader {
 public:
  /// The text is borrowed.
  explicit ProtoReader(std::string_view text) : rest_(text) {}
  /// Goes to the next field; false at the end, or where nothing fits.
  bool next();
  bool ok() const { return ok_; }
  std::uint32_t field() const { return field_; }
  /// Of the present field. Where it is of the other kind, what it gives is empty and ok() false.
  std::int64_t number();
  std::string_view bytes();
  bool flag() { return number() != 0; }

 private:
  enum class Kind : std::uint8_t { kNumber, kBytes, kOther };
  bool varint(std::uint64_t* value);
  bool skip(std::uint64_t size);

  std::string_view rest_, bytes_;
  std::uint64_t number_ = 0;
  std::uint32_t field_ = 0;
  Kind kind_ = Kind::kOther;
  bool ok_ = true;
};

}  // namespace kvsyncfs::etcd
