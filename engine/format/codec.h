// Little-endian encoding and bounded decoding of every layout on disk and on the wire.
//
// A Reader never reads past its end: after the first short or bad field every further field is zero
// or empty and ok() is false; decoders check ok() once at the end. Thread: one.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "engine/base/bytes.h"

namespace kvsyncfs {

class Writer {
 public:
  explicit Writer(std::string& out) : out_(out) {}
  void u8(std::uint8_t v) { out_.push_back(static_cast<char>(v)); }
  void u16(std::uint16_t v) { fixed(v); }
  void u32(std::uint32_t v) { fixed(v); }
  void u64(std::uint64_t v) { fixed(v); }
  void i64(std::int64_t v) { fixed(static_cast<std::uint64_t>(v)); }
  /// u32 length, then the bytes.
  void blob(std::string_view s) {
    u32(static_cast<std::uint32_t>(s.size()));
    out_.append(s);
  }
  void raw(std::string_view s) { out_.append(s); }

 private:
  template <typename T>
  void fixed(T v) {
    char bytes[sizeof v];
    for (std::size_t i = 0; i < sizeof v; ++i) bytes[i] = static_cast<char>(v >> (8 * i));
    out_.append(bytes, sizeof v);
  }
  std::string& out_;
};

class Reader {
 public:
  explicit Reader(std::string_view in) : in_(in) {}
  std::uint8_t u8() { return static_cast<std::uint8_t>(fixed(1)); }
  std::uint16_t u16() { return static_cast<std::uint16_t>(fixed(2)); }
  std::uint32_t u32() { return static_cast<std::uint32_t>(fixed(4)); }
  std::uint64_t u64() { return fixed(8); }
  std::int64_t i64() { return static_cast<std::int64_t>(fixed(8)); }
  /// Borrowed from the input.
  std::string_view blob() { return raw(u32()); }
  std::string_view raw(std::size_t size) {
    if (size > in_.size()) return fail(), std::string_view{};
    std::string_view s = in_.substr(0, size);
    in_.remove_prefix(size);
    return s;
  }
  void fail() {
    ok_ = false;
    in_ = {};
  }
  bool ok() const { return ok_; }
  /// All read and nothing left over.
  bool done() const { return ok_ && in_.empty(); }
  std::size_t left() const { return in_.size(); }

 private:
  std::uint64_t fixed(std::size_t size) {
    std::string_view s = raw(size);
    std::uint64_t v = 0;
    for (std::size_t i = 0; i < s.size(); ++i)
      v |= static_cast<std::uint64_t>(static_cast<unsigned char>(s[i])) << (8 * i);
    return v;
  }
  std::string_view in_;
  bool ok_ = true;
};

}  // namespace kvsyncfs
