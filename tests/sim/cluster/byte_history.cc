#include "tests/sim/cluster/byte_history.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace kvsyncfs {
namespace {

double seconds(std::uint64_t ns) { return static_cast<double>(ns) / 1e9; }

std::string to_text(const ByteRead& read) {
  return fmt::format("read {:.6f}-{:.6f} on n{}", seconds(read.begin_ns), seconds(read.end_ns),
                     read.node);
}
std::string to_text(std::uint64_t number, const ByteWrite& write) {
  const auto confirmed = write.confirmed_ns == ~std::uint64_t{0}
                             ? std::string("never")
                             : fmt::format("{:.6f}", seconds(write.confirmed_ns));
  return fmt::format("write {} (n{}, begun {:.6f}, confirmed {})", number, write.node,
                     seconds(write.begin_ns), confirmed);
}

/// The number that the whole cell shows; 0: nothing was written there. False: no such cell.
bool number_of(std::string_view cell, std::uint64_t* number) {
  *number = 0;
  if (cell.empty()) return true;
  const auto padded = std::string(cell) + std::string(kCellSize - cell.size(), '\0');
  if (padded.find_first_not_of('\0') == std::string::npos) return true;
  *number = std::strtoull(padded.c_str(), nullptr, 10);
  return padded == cells_of(*number, 1);
}

std::string check_cell(const FileHistory& history, const ByteRead& read, std::size_t cell) {
  const auto at = std::min(cell * kCellSize, read.bytes.size());
  std::uint64_t number = 0;
  const bool is_whole = number_of(std::string_view(read.bytes).substr(at, kCellSize), &number);
  const auto seen = history.writes.find(number);
  if (!is_whole || (number != 0 && seen == history.writes.end()))
    return fmt::format("cell {} holds what nobody wrote", cell);
  std::uint64_t confirmed_ns = 0;
  if (number != 0) {
    const ByteWrite& write = seen->second;
    if (cell < write.first || cell >= write.first + write.count || write.begin_ns > read.end_ns)
      return fmt::format("cell {} has bytes of {}", cell, to_text(number, write));
    confirmed_ns = write.confirmed_ns;
  }
  for (const auto& [later, write] : history.writes)
    if (cell >= write.first && cell < write.first + write.count &&
        write.confirmed_ns < read.begin_ns && confirmed_ns < write.begin_ns)
      return fmt::format("cell {} shows {} and not {}", cell,
                         number == 0 ? "nothing" : to_text(number, seen->second),
                         to_text(later, write));
  return {};
}

}  // namespace

std::string cells_of(std::uint64_t number, std::size_t count) {
  std::string text;
  while (text.size() < kCellSize) text += fmt::format("{} ", number);
  text.resize(kCellSize);
  std::string all;
  for (std::size_t i = 0; i < count; ++i) all += text;
  return all;
}

bool is_one_value(const std::string& bytes) {
  return bytes == cells_of(std::strtoull(bytes.c_str(), nullptr, 10), kCells);
}

std::string record_of(std::uint64_t number) {
  return fmt::format("{:>{}}\n", number, kRecordSize - 1);
}

std::string check_cells(const std::string& file, const FileHistory& history) {
  for (const ByteRead& read : history.reads)
    for (std::size_t cell = 0; cell < kCells; ++cell)
      if (const std::string why = check_cell(history, read, cell); !why.empty())
        return fmt::format("{}: {}: {}", file, to_text(read), why);
  return {};
}

std::string check_appends(const std::string& file, const FileHistory& history) {
  const std::string* longest = nullptr;
  for (const ByteRead& read : history.reads) {
    const auto fail = [&](const std::string& why) {
      return fmt::format("{}: {}: {}", file, to_text(read), why);
    };
    if (read.bytes.size() % kRecordSize != 0) return fail("a part of a record");
    if (longest == nullptr || read.bytes.size() > longest->size()) longest = &read.bytes;
    std::set<std::uint64_t> there;
    for (std::size_t at = 0; at < read.bytes.size(); at += kRecordSize) {
      const std::uint64_t number = std::strtoull(read.bytes.c_str() + at, nullptr, 10);
      const auto write = history.writes.find(number);
      if (write == history.writes.end() || read.bytes.substr(at, kRecordSize) != record_of(number))
        return fail(fmt::format("a record at {} that nobody wrote", at));
      if (!there.insert(number).second) return fail(to_text(number, write->second) + " twice");
    }
    for (const auto& [number, write] : history.writes)
      if (write.confirmed_ns < read.begin_ns && !there.contains(number))
        return fail(to_text(number, write) + " is not there");
  }
  for (const ByteRead& read : history.reads)
    if (longest->compare(0, read.bytes.size(), read.bytes) != 0)
      return fmt::format("{}: {}: another order than others saw", file, to_text(read));
  return {};
}

}  // namespace kvsyncfs
