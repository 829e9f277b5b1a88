// The calls of a history that change or ask for names and attributes.
#include <algorithm>

#include "tests/sim/engine_world.h"
#include "tests/sim/engine_world_words.h"

namespace kvsyncfs {
namespace {

constexpr std::uint32_t kFileMode = 0100644, kFolderMode = 0040755;

/// Every path below `from` and itself, below `to` instead.
VolumeModel::Names moved(const VolumeModel::Names& names, const std::string& from,
                         const std::string& to) {
  VolumeModel::Names next;
  for (const auto& [path, inode] : names) {
    const bool moves = path == from || path.starts_with(from + "/");
    next[moves ? to + path.substr(from.size()) : path] = inode;
  }
  return next;
}

bool has_children(const VolumeModel::Names& names, const std::string& folder) {
  const auto child = names.lower_bound(folder + "/");
  return child != names.end() && child->first.starts_with(folder + "/");
}

}  // namespace

bool EngineWorld::create(bool folder) {
  const std::string path = folder ? pick(random_, kFolders) : pick_path();
  if (model_.names().contains(path)) return true;
  VolumeModel::Names next = model_.names();
  next[path] = VolumeModel::kUnknown;
  const InodeId parent = folder_of(path);
  model_.begin_names(std::move(next));
  NewNode node;
  node.mode = folder ? kFolderMode : kFileMode;
  const auto entry = engine_->create(parent, last_name(path), node);
  if (!did("create", entry)) return goes_on();
  model_.created(path, entry->inode, folder);
  return true;
}

bool EngineWorld::rename() {
  const std::string from = pick_file(), to = pick_path();
  if (from.empty()) return true;
  VolumeModel::Names next = model_.names();
  const InodeId file = next.at(from);
  const auto old = next.find(to);
  const bool replaces = old != next.end();
  if (replaces && old->second == file) return true;
  next.erase(from);
  next[to] = file;
  const InodeId from_folder = folder_of(from), to_folder = folder_of(to);
  model_.begin_names(std::move(next), replaces ? std::optional(file) : std::nullopt);
  if (!did("rename", engine_->rename(from_folder, last_name(from), to_folder, last_name(to),
                                     RenameMode::kReplace)))
    return goes_on();
  if (replaces) model_.committed(file);
  return true;
}

/// Two files, or two folders with all that is in them.
bool EngineWorld::exchange() {
  const bool folders = random_.one_in(3);
  const std::string from = folders ? kFolders[0] : pick_file();
  const std::string to = folders ? kFolders[1] : pick_file();
  VolumeModel::Names next = model_.names();
  if (from == to || !next.contains(from) || !next.contains(to)) return true;
  const InodeId from_folder = folder_of(from), to_folder = folder_of(to);
  if (folders) {
    next = moved(moved(moved(next, from, "-"), to, from), "-", to);
  } else {
    std::swap(next.at(from), next.at(to));
  }
  model_.begin_names(std::move(next));
  return did("exchange", engine_->rename(from_folder, last_name(from), to_folder, last_name(to),
                                         RenameMode::kExchange)) ||
         goes_on();
}

bool EngineWorld::move_folder() {
  const std::string from = pick(random_, kFolders), to = pick(random_, kFolders);
  const auto& names = model_.names();
  if (from == to || !names.contains(from) || has_children(names, to)) return true;
  VolumeModel::Names next = names;
  next.erase(to);
  model_.begin_names(moved(next, from, to));
  return did("rename of a folder",
             engine_->rename(kRootInode, from, kRootInode, to, RenameMode::kReplace)) ||
         goes_on();
}

bool EngineWorld::remove_folder() {
  const std::string path = pick(random_, kFolders);
  if (!model_.names().contains(path)) return true;
  if (has_children(model_.names(), path)) {
    const Status removed = engine_->remove_directory(kRootInode, path);
    if (removed && problem_.empty()) problem_ = "rmdir of a folder that is not empty";
    return (!removed && removed.error().code == Code::kNotEmpty) || did("rmdir", removed) ||
           goes_on();
  }
  VolumeModel::Names next = model_.names();
  next.erase(path);
  model_.begin_names(std::move(next));
  return did("rmdir", engine_->remove_directory(kRootInode, path)) || goes_on();
}

bool EngineWorld::link() {
  const std::string from = pick_file(), to = pick_path();
  if (from.empty() || model_.names().contains(to)) return true;
  VolumeModel::Names next = model_.names();
  const InodeId file = next[to] = next.at(from);
  const InodeId folder = folder_of(to);
  model_.begin_names(std::move(next));
  return did("link", engine_->link(file, folder, last_name(to))) || goes_on();
}

bool EngineWorld::unlink() {
  const std::string path = pick_file();
  if (path.empty()) return true;
  VolumeModel::Names next = model_.names();
  next.erase(path);
  const InodeId folder = folder_of(path);
  model_.begin_names(std::move(next));
  if (workload_ == Workload::kWide && random_.one_in(3))
    return did("remove", engine_->remove(path)) || goes_on();
  return did("unlink", engine_->unlink(folder, last_name(path))) || goes_on();
}

bool EngineWorld::set_xattr() {
  const auto inode = pick_inode();
  if (!inode) return true;
  const std::string name = pick(random_, kXattrs);
  Xattrs next = model_.xattrs(*inode);
  const auto mode = static_cast<XattrMode>(random_.below(3));
  const std::string value = fresh_bytes(random_.below(random_.one_in(4) ? 5000 : 20));
  const bool fits = mode == XattrMode::kSet || (mode == XattrMode::kReplace) == next.contains(name);
  if (!fits) {
    const Status set = engine_->set_xattr(*inode, name, value, mode);
    const Code wanted = mode == XattrMode::kCreate ? Code::kExists : Code::kNoData;
    if (set && problem_.empty()) problem_ = "set_xattr against its mode";
    return (!set && set.error().code == wanted) || did("set_xattr", set) || goes_on();
  }
  next[name] = value;
  model_.begin_xattrs(*inode, std::move(next));
  return did("set_xattr", engine_->set_xattr(*inode, name, value, mode)) || goes_on();
}

bool EngineWorld::remove_xattr() {
  const auto inode = pick_inode();
  if (!inode) return true;
  Xattrs next = model_.xattrs(*inode);
  if (next.empty()) return true;
  const std::string name = next.begin()->first;
  next.erase(name);
  model_.begin_xattrs(*inode, std::move(next));
  return did("remove_xattr", engine_->remove_xattr(*inode, name)) || goes_on();
}

/// A program opens a file.
bool EngineWorld::hold() {
  const std::string path = pick_file();
  if (path.empty()) return true;
  const InodeId file = model_.names().at(path);
  if (held_.insert(file).second) engine_->retain(file, 1);
  return true;
}

bool EngineWorld::let_go() {
  if (held_.empty()) return true;
  const auto file =
      std::next(held_.begin(), static_cast<std::ptrdiff_t>(random_.below(held_.size())));
  const InodeId inode = *file;
  held_.erase(file);
  engine_->release(inode, 1);
  if (has_name(inode) || failed_) return true;
  const auto gone = engine_->attributes(inode);
  if (gone && problem_.empty() && faults_ == Faults::kNone && !disk_->stopped())
    problem_ = "an unlinked file stays after its last release";
  return problem_.empty();
}

bool EngineWorld::check_attributes() {
  const auto inode = pick_inode();
  if (!inode) return true;
  const auto found = engine_->attributes(*inode);
  if (!did("attributes", found)) return goes_on();
  const auto& names = model_.names();
  const auto links = std::count_if(names.begin(), names.end(),
                                   [&](const auto& name) { return name.second == *inode; });
  if (found->link_count != links) problem_ = "attributes: wrong link count";
  if (found->size != model_.bytes(*inode).size()) problem_ = "attributes: wrong size";
  VolumeContents contents;
  if (!load_xattrs(*inode, contents)) return goes_on();
  if (contents.xattrs[*inode] != model_.xattrs(*inode)) problem_ = "xattrs: not what was set";
  return problem_.empty();
}

bool EngineWorld::check_keys() {
  const std::string prefix = random_.one_in(2) ? "" : pick(random_, kFolders);
  const std::size_t count_max = random_.one_in(2) ? 1000 : 1 + random_.below(3);
  const auto keys = engine_->list_keys(prefix, count_max);
  if (!did("list_keys", keys)) return goes_on();
  std::vector<std::string> expected;
  for (const auto& [path, inode] : model_.names())
    if (!is_folder(path) && path.starts_with(prefix) && expected.size() < count_max)
      expected.push_back(path);
  if (*keys != expected) problem_ = "list_keys: not the keys that are there";
  return problem_.empty();
}

bool EngineWorld::check_value() {
  const std::string key = random_.one_in(3) ? pick(random_, kKeys) : pick_file();
  if (key.empty()) return true;
  const auto value = engine_->get(key);
  const auto known = model_.names().find(key);
  if (known == model_.names().end()) {
    if (value && problem_.empty()) problem_ = "get: a value without a key";
    return (!value && value.error().code == Code::kNotFound) || did("get", value) || goes_on();
  }
  if (!did("get", value)) return goes_on();
  if (*value != model_.bytes(known->second)) problem_ = "get: not what was put to " + key;
  return problem_.empty();
}

}  // namespace kvsyncfs
