#include "engine/env/mount_table.h"

#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <climits>
#include <cstdlib>
#include <fstream>
#include <iterator>

#include "engine/base/split.h"

namespace kvsyncfs {
namespace {

constexpr int kLinksMax = 40;  // as the kernel

/// Space, tab, newline and backslash are written as \ooo.
std::string unescape(std::string_view field) {
  std::string text;
  for (std::size_t i = 0; i < field.size(); ++i) {
    unsigned code = 0;
    const char* digits = field.data() + i + 1;
    if (field[i] == '\\' && field.size() - i > 3 &&
        std::from_chars(digits, digits + 3, code, 8).ptr == digits + 3 && code <= UCHAR_MAX) {
      text.push_back(static_cast<char>(code));
      i += 3;
    } else {
      text.push_back(field[i]);
    }
  }
  return text;
}

std::optional<std::uint64_t> parse_device(std::string_view text) {
  unsigned numbers[2] = {};
  const char* const end = text.data() + text.size();
  const auto first = std::from_chars(text.data(), end, numbers[0]);
  if (first.ec != std::errc{} || first.ptr == end || *first.ptr != ':') return std::nullopt;
  const auto second = std::from_chars(first.ptr + 1, end, numbers[1]);
  if (second.ec != std::errc{} || second.ptr != end) return std::nullopt;
  return makedev(numbers[0], numbers[1]);
}

/// 36 35 98:0 /root /mount/point options [optional fields] - type source super-options
std::optional<MountEntry> parse_line(std::string_view line) {
  const auto fields = split(line, ' ');
  const auto dash = std::find(fields.begin(), fields.end(), "-");
  if (dash - fields.begin() < 6 || fields.end() - dash < 3) return std::nullopt;
  const auto device = parse_device(fields[2]);
  if (!device) return std::nullopt;
  return MountEntry{*device, unescape(fields[4]), unescape(dash[1]), unescape(dash[2])};
}

std::string real_path(const std::string& path) {
  std::array<char, PATH_MAX> resolved{};
  return ::realpath(path.c_str(), resolved.data()) != nullptr ? resolved.data() : path;
}

std::optional<std::string> read_link(const std::string& path) {
  std::array<char, PATH_MAX> target{};
  const ssize_t size = ::readlink(path.c_str(), target.data(), target.size());
  if (size < 0) return std::nullopt;
  return std::string(target.data(), static_cast<std::size_t>(size));
}

}  // namespace

std::vector<MountEntry> parse_mount_table(std::string_view text) {
  std::vector<MountEntry> table;
  for (const std::string_view line : split(text, '\n')) {
    if (auto entry = parse_line(line)) table.push_back(std::move(*entry));
  }
  return table;
}

Result<std::vector<MountEntry>> read_mount_table() {
  std::ifstream file("/proc/self/mountinfo");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  if (text.empty()) return Error(Code::kIo, "/proc/self/mountinfo cannot be read");
  return parse_mount_table(text);
}

std::optional<MountEntry> mount_at(const std::vector<MountEntry>& table, std::string_view path) {
  const auto found = std::find_if(table.rbegin(), table.rend(), [&](const MountEntry& entry) {
    return entry.mountpoint == path;
  });
  if (found == table.rend()) return std::nullopt;
  return *found;
}

std::string mount_path(const std::string& path, const std::vector<MountEntry>& table) {
  std::string here = path;
  for (int links = 0; links < kLinksMax; ++links) {
    while (here.size() > 1 && here.ends_with('/')) here.pop_back();
    if (mount_at(table, here)) return here;
    const std::size_t slash = here.rfind('/');
    const std::string name = slash == std::string::npos ? here : here.substr(slash + 1);
    // What ends in a dot has no last name to keep: such a path is looked at as a whole.
    if (name.empty() || name == "." || name == "..") return real_path(here);
    const std::string above =
        real_path(slash == std::string::npos ? "." : here.substr(0, slash + 1));
    here = (above == "/" ? "" : above) + "/" + name;
    if (mount_at(table, here)) return here;
    const auto target = read_link(here);
    if (!target) return here;
    here = target->starts_with('/') ? *target : above + "/" + *target;
  }
  return here;
}

}  // namespace kvsyncfs
