// Byte strings: views and the aligned buffer that direct I/O and, later, a NIC need. Thread:
// values.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace kvsyncfs {

using Bytes = std::span<const std::byte>;
using MutableBytes = std::span<std::byte>;

inline Bytes as_bytes(std::string_view s) {
  return {reinterpret_cast<const std::byte*>(s.data()), s.size()};
}
inline std::string_view as_string(Bytes b) {
  return {reinterpret_cast<const char*>(b.data()), b.size()};
}

inline constexpr std::size_t kHugePageSize = 2u << 20;  ///< bytes, of x86-64 and arm64

/// Asks for huge pages under [memory, memory + size), both multiples of kHugePageSize.
/// ARCHITECTURE, "Large buffers lie in huge pages".
void advise_huge_pages(void* memory, std::size_t size);

/// `size` bytes at a 4096-byte boundary, not zeroed; from 1 MiB on in huge pages. Throws
/// std::bad_alloc.
class AlignedBuffer {
 public:
  AlignedBuffer() = default;
  explicit AlignedBuffer(std::size_t size);

  std::byte* data() { return data_.get(); }
  const std::byte* data() const { return data_.get(); }
  std::size_t size() const { return size_; }
  MutableBytes bytes() { return {data(), size_}; }
  Bytes bytes() const { return {data(), size_}; }

 private:
  struct Free {
    void operator()(std::byte* p) const { std::free(p); }
  };
  std::unique_ptr<std::byte, Free> data_;
  std::size_t size_ = 0;
};

}  // namespace kvsyncfs
