#include "engine/catalog/paths.h"

#include <fmt/format.h>

namespace kvsyncfs {

namespace {
constexpr std::uint32_t kDirectoryType = 0040000;
constexpr int kDepthMax = 4096;  // a longer chain is a cycle, or no path that anybody can use
}  // namespace

std::string printable(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f || c == '\\') {
      out += fmt::format("\\x{:02x}", byte);
    } else {
      out += c;
    }
  }
  return out;
}

Result<CatalogPaths> CatalogPaths::load(const Tables& tables,
                                        const std::unordered_set<InodeId>& wanted) {
  CatalogPaths paths;
  if (wanted.empty()) return paths;
  KVSYNCFS_TRY(tables.scan("d", "e", [&](std::string_view key, std::string_view value) {
    const auto dentry = decode_dentry(key, value);
    if (dentry && (dentry->type == kDirectoryType || wanted.contains(dentry->inode)))
      paths.names_.try_emplace(dentry->inode, Name{{number_in_key(key, 0)}, dentry->name});
    return Status{};
  }));
  return paths;
}

std::string CatalogPaths::of(InodeId id) const {
  if (id == kRootInode) return names_.empty() ? "" : "/";
  std::string path;
  for (int depth = 0; id != kRootInode; ++depth) {
    const auto found = names_.find(id);
    if (found == names_.end() || depth == kDepthMax) return "";
    path = "/" + printable(found->second.name) + path;
    id = found->second.parent;
  }
  return path;
}

}  // namespace kvsyncfs
