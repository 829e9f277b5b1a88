#include "tools/stat_target.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <climits>
#include <deque>

#include "engine/base/split.h"
#include "engine/engine.h"
#include "engine/env/daemon_client.h"
#include "engine/env/real.h"
#include "engine/open_store.h"

namespace kvsyncfs {
namespace {

constexpr int kLinksMax = 40;  // as the kernel

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

Result<ResolvedPath> resolve(std::string_view path, std::string_view working,
                             const std::vector<MountEntry>& mounts, const ReadLink& link) {
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
    if (auto mount = mount_at(mounts, next); mount && mount->type == kMountType) {
      std::erase(ahead, ".");
      return ResolvedPath{next, std::move(mount), fmt::format("{}", fmt::join(ahead, "/"))};
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

Result<ResolvedPath> resolve(std::string_view path) {
  KVSYNCFS_ASSIGN(const auto mounts, read_mount_table());
  return resolve(path, working_folder(), mounts, read_link);
}

Result<Target> find_target(std::string_view path) {
  KVSYNCFS_ASSIGN(const auto mounts, read_mount_table());
  KVSYNCFS_ASSIGN(const ResolvedPath found, resolve(path, working_folder(), mounts, read_link));
  if (found.mount)
    return Target{fmt::format("{}/{}", kRunFolder, socket_name(found.mount->device)),
                  "mount " + found.mount->mountpoint, ""};
  const auto disk = make_real_disk();
  KVSYNCFS_ASSIGN(const bool exists, disk->exists(found.path));
  if (!exists) return Error(Code::kNotFound, std::string(path));
  const auto superblock = Engine::superblock(*disk, found.path);
  if (!superblock && superblock.error().code == Code::kNotFormatted) {
    return Error(Code::kNotFormatted, fmt::format("{}: not a kvsyncfs mount", path));
  }
  if (!superblock) return superblock.error();
  KVSYNCFS_ASSIGN(const std::string socket, store_uuid(*disk, found.path));
  return Target{fmt::format("{}/{}.sock", kRunFolder, socket), "store " + found.path,
                superblock->uuid_text()};
}

}  // namespace kvsyncfs
