#include "tools/stat_target.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <climits>
#include <deque>
#include <fstream>
#include <sstream>

#include "engine/engine.h"
#include "engine/env/real.h"

namespace kvsyncfs {
namespace {

constexpr int kLinksMax = 40;  // as the kernel

/// proc(5): space, tab, newline and backslash are octal escapes.
std::string unescape(std::string_view text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    unsigned code = 0;
    const char* first = text.data() + i + 1;
    if (text[i] == '\\' && i + 3 < text.size() &&
        std::from_chars(first, first + 3, code, 8).ptr == first + 3 && code <= UCHAR_MAX) {
      plain += static_cast<char>(code);
      i += 3;
    } else {
      plain += text[i];
    }
  }
  return plain;
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(separator), text.size());
    if (end > 0) parts.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

bool parse_number(std::string_view text, unsigned& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

std::optional<Mount> parse_line(std::string_view line) {
  // 36 35 98:0 /root /mount/point options [optional fields] - type source super-options
  const auto fields = split(line, ' ');
  if (fields.size() < 9) return std::nullopt;
  std::size_t dash = 6;
  while (dash < fields.size() && fields[dash] != "-") ++dash;
  const auto device = split(fields[2], ':');
  Mount mount;
  if (dash + 1 >= fields.size() || device.size() != 2 || !parse_number(device[0], mount.major) ||
      !parse_number(device[1], mount.minor)) {
    return std::nullopt;
  }
  mount.mountpoint = unescape(fields[4]);
  mount.type = unescape(fields[dash + 1]);
  return mount;
}

/// The topmost mount on `path`: the last one in the table hides the others.
std::optional<std::size_t> mount_at(const std::vector<Mount>& mounts, const std::string& path) {
  for (std::size_t i = mounts.size(); i > 0; --i) {
    if (mounts[i - 1].mountpoint == path) return i - 1;
  }
  return std::nullopt;
}

bool is_volume(const std::vector<Mount>& mounts, std::optional<std::size_t> mount) {
  return mount && mounts[*mount].type == kMountType;
}

std::optional<std::string> read_link(const std::string& path) {
  std::array<char, PATH_MAX> target{};
  const ssize_t size = ::readlink(path.c_str(), target.data(), target.size());
  if (size < 0) return std::nullopt;
  return std::string(target.data(), static_cast<std::size_t>(size));
}

std::string working_folder() {
  std::array<char, PATH_MAX> path{};
  return ::getcwd(path.data(), path.size()) != nullptr ? path.data() : "/";
}

}  // namespace

std::vector<Mount> parse_mountinfo(std::string_view text) {
  std::vector<Mount> mounts;
  for (const std::string_view line : split(text, '\n')) {
    if (auto mount = parse_line(line)) mounts.push_back(std::move(*mount));
  }
  return mounts;
}

Result<ResolvedPath> resolve(std::string_view path, std::string_view working,
                             const std::vector<Mount>& mounts, const ReadLink& link) {
  std::deque<std::string> ahead;
  const auto put_ahead = [&ahead](std::string_view text) {
    const auto parts = split(text, '/');
    ahead.insert(ahead.begin(), parts.begin(), parts.end());
  };
  put_ahead(path);
  if (!path.starts_with('/')) put_ahead(working);
  std::string here;  // "" is the root
  int links = 0;
  while (!ahead.empty()) {
    const std::string part = ahead.front();
    ahead.pop_front();
    if (part == ".") continue;
    if (part == "..") {
      here.resize(here.empty() ? 0 : here.rfind('/'));
      continue;
    }
    const std::string next = here + "/" + part;
    if (const auto mount = mount_at(mounts, next); is_volume(mounts, mount)) {
      return ResolvedPath{next, mount};
    }
    const auto target = link(next);
    if (!target) {
      here = next;
      continue;
    }
    if (++links > kLinksMax) {
      return Error(Code::kInvalid, fmt::format("{}: too many symbolic links", path));
    }
    put_ahead(*target);
    if (target->starts_with('/')) here.clear();
  }
  return ResolvedPath{here.empty() ? "/" : here, std::nullopt};
}

Result<Target> find_target(std::string_view path) {
  std::ostringstream table;
  table << std::ifstream("/proc/self/mountinfo").rdbuf();
  const auto mounts = parse_mountinfo(table.str());
  KVSYNCFS_ASSIGN(const ResolvedPath found, resolve(path, working_folder(), mounts, read_link));
  if (found.mount) {
    const Mount& mount = mounts[*found.mount];
    return Target{fmt::format("{}/{}-{}.sock", kRunFolder, mount.major, mount.minor),
                  "mount " + mount.mountpoint, ""};
  }
  const auto disk = make_real_disk();
  KVSYNCFS_ASSIGN(const bool exists, disk->exists(found.path));
  if (!exists) return Error(Code::kNotFound, std::string(path));
  const auto superblock = Engine::superblock(*disk, found.path);
  if (!superblock && superblock.error().code == Code::kNotFormatted) {
    return Error(Code::kNotFormatted, fmt::format("{}: not a kvsyncfs mount", path));
  }
  if (!superblock) return superblock.error();
  const std::string uuid = superblock->uuid_text();
  return Target{fmt::format("{}/{}.sock", kRunFolder, uuid), "store " + found.path, uuid};
}

}  // namespace kvsyncfs
