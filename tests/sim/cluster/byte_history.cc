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
  return fmt::format("{} {} of cells {}+{} (n{}, begun {:.6f}, confirmed {})",
                     write.is_zeros ? "zeros"
                     : write.source ? "copy"
                                    : "write",
                     number, write.first, write.count, write.node, seconds(write.begin_ns),
                     confirmed);
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

bool covers(const ByteWrite& write, std::size_t cell) {
  return cell >= write.first && cell < write.first + write.count;
}

/// When writes had come to the log for sure, by number: nodes saw them that had not written them.
using Landings = std::map<std::uint64_t, std::uint64_t>;

Landings landings_of(const FileHistory& history) {
  Landings landings;
  for (const ByteRead& read : history.reads)
    for (std::size_t cell = 0; cell < kCells; ++cell) {
      std::uint64_t number = 0;
      const auto at = std::min(cell * kCellSize, read.bytes.size());
      if (!number_of(std::string_view(read.bytes).substr(at, kCellSize), &number)) continue;
      const auto write = history.writes.find(number);
      if (write == history.writes.end() || write->second.node == read.node ||
          write->second.source != nullptr || !covers(write->second, cell))
        continue;
      auto& at_ns = landings.try_emplace(number, read.end_ns).first->second;
      at_ns = std::min(at_ns, read.end_ns);
    }
  return landings;
}

/// Of the changes that were confirmed before `begin_ns` the one that began last: it hides those
/// that were confirmed before it began. Null: none.
const FileHistory::Item* hiding(const FileHistory& history, std::size_t cell,
                                std::uint64_t begin_ns) {
  const FileHistory::Item* last = nullptr;
  for (const auto& item : history.writes)
    if (covers(item.second, cell) && item.second.confirmed_ns < begin_ns &&
        (last == nullptr || last->second.begin_ns < item.second.begin_ns))
      last = &item;
  return last;
}

/// Whether the cell may show this number to who looks between the two times. Copies of copies are
/// followed so far, and what lies behind may be anything.
bool may_show(const FileHistory& history, std::size_t cell, std::uint64_t number,
              std::uint64_t begin_ns, std::uint64_t end_ns, int copies, const Landings& landings) {
  if (copies == 0) return true;
  const FileHistory::Item* last = hiding(history, cell, begin_ns);
  if (number == 0 && last == nullptr) return true;
  return std::any_of(history.writes.begin(), history.writes.end(), [&](const auto& item) {
    const ByteWrite& write = item.second;
    if (!covers(write, cell) || write.begin_ns > end_ns) return false;
    const auto landed = landings.find(item.first);
    const std::uint64_t there_ns = landed == landings.end()
                                       ? write.confirmed_ns
                                       : std::min(write.confirmed_ns, landed->second);
    if (last != nullptr && there_ns < last->second.begin_ns) return false;
    if (write.is_zeros) return number == 0;
    if (write.source == nullptr) return number == item.first;
    return may_show(*write.source, cell - write.first + write.source_first, number, write.begin_ns,
                    std::min(write.confirmed_ns, end_ns), copies - 1, {});
  });
}

std::string check_cell(const FileHistory& history, const Landings& landings, const ByteRead& read,
                       std::size_t cell) {
  constexpr int kCopiesMax = 4;
  const auto at = std::min(cell * kCellSize, read.bytes.size());
  std::uint64_t number = 0;
  if (!number_of(std::string_view(read.bytes).substr(at, kCellSize), &number))
    return fmt::format("cell {} holds what nobody wrote", cell);
  if (may_show(history, cell, number, read.begin_ns, read.end_ns, kCopiesMax, landings)) return {};
  const auto seen = history.writes.find(number);
  const FileHistory::Item* last = hiding(history, cell, read.begin_ns);
  return fmt::format("cell {} shows {} and not {}", cell,
                     seen == history.writes.end() ? number == 0 ? "nothing" : std::to_string(number)
                                                  : to_text(number, seen->second),
                     last == nullptr ? "what was there" : to_text(last->first, last->second));
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
  const Landings landings = landings_of(history);
  for (const ByteRead& read : history.reads)
    for (std::size_t cell = 0; cell < kCells; ++cell)
      if (const std::string why = check_cell(history, landings, read, cell); !why.empty())
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
