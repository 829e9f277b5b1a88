// What clients wrote to files and read of them, and whether it can have happened: close-to-open
// (P2), and that what an fsync or a close confirmed stays (P3, P4).
//
// A file of cells is written in runs of cells, each filled with the write's own number; cells are
// also made zeros (truncated, punched) or copied from another file. A read of a cell may see any
// such change that had begun, unless another one was confirmed before the read began and had begun
// after that one was confirmed or seen on another node, since it lands once; a copy may show what
// could be seen of its source meanwhile. A file of appends is a list of records: each that was
// confirmed is there once and for all who read it later, and all readers see one order. Pure.
// Thread: values.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace kvsyncfs {

inline constexpr std::size_t kCells = 8, kCellSize = 1000;  ///< bytes
inline constexpr std::size_t kRecordSize = 24;              ///< bytes

struct FileHistory;

/// Puts its number into cells; unless `is_zeros`, or it copies cells of `source`.
struct ByteWrite {
  unsigned node = 0;
  std::size_t first = 0, count = 0;  ///< cells
  std::uint64_t begin_ns = 0;
  std::uint64_t confirmed_ns = ~std::uint64_t{0};  ///< by a close or fsync, if it was
  bool is_zeros = false;
  const FileHistory* source = nullptr;
  std::size_t source_first = 0;  ///< cell
};
struct ByteRead {
  unsigned node = 0;
  std::uint64_t begin_ns = 0, end_ns = 0;
  std::string bytes;
};

struct FileHistory {
  using Item = std::pair<const std::uint64_t, ByteWrite>;
  std::map<std::uint64_t, ByteWrite> writes;  ///< by number
  std::vector<ByteRead> reads;
};

std::string cells_of(std::uint64_t number, std::size_t count);
/// Of all cells, and written at once.
bool is_one_value(const std::string& bytes);
std::string record_of(std::uint64_t number);

/// Empty, or what cannot be.
std::string check_cells(const std::string& file, const FileHistory& history);
std::string check_appends(const std::string& file, const FileHistory& history);

}  // namespace kvsyncfs
