#include "tests/sim/volume_model.h"

#include <algorithm>

namespace kvsyncfs {
namespace {

bool same_names(const VolumeModel::Names& expected, const VolumeModel::Names& found) {
  return std::equal(expected.begin(), expected.end(), found.begin(), found.end(),
                    [](const auto& a, const auto& b) {
                      return a.first == b.first &&
                             (a.second == VolumeModel::kUnknown || a.second == b.second);
                    });
}

Xattrs xattrs_of(const std::map<InodeId, Xattrs>& all, InodeId inode) {
  const auto found = all.find(inode);
  return found == all.end() ? Xattrs{} : found->second;
}

constexpr std::size_t kNoVersion = ~std::size_t{0};

/// Past the end a file has zeros, which show when it grows.
char byte_at(const std::string& bytes, std::size_t offset) {
  return offset < bytes.size() ? bytes[offset] : '\0';
}

}  // namespace

VolumeModel::VolumeModel(const VolumeContents& contents) {
  states_.push_back({contents.names, contents.xattrs, std::nullopt, 0});
  for (const auto& [inode, bytes] : contents.files) files_[inode].versions.push_back(bytes);
}

void VolumeModel::begin_names(Names names, std::optional<InodeId> whole) {
  pending_.reset();
  const std::size_t version = whole ? files_.at(*whole).versions.size() - 1 : 0;
  states_.push_back({std::move(names), states_.back().xattrs, whole, version});
}

Xattrs VolumeModel::xattrs(InodeId inode) const { return xattrs_of(states_.back().xattrs, inode); }

void VolumeModel::begin_xattrs(InodeId inode, Xattrs xattrs) {
  begin_names(names());
  states_.back().xattrs[inode] = std::move(xattrs);
}

void VolumeModel::begin_size(InodeId file, std::uint64_t size) {
  File& f = files_.at(file);
  f.sizes.emplace_back(f.versions.size() - 1, size);
}

void VolumeModel::begin_bytes(InodeId file, std::string bytes) {
  files_.at(file).versions.push_back(std::move(bytes));
}

void VolumeModel::begin_value(const std::string& path, std::string value) {
  Names next = names();
  const auto slash = path.rfind('/');
  if (slash != std::string::npos && next.emplace(path.substr(0, slash), kUnknown).second)
    begin_names(next);
  next[path] = kUnknown;
  begin_names(std::move(next));
  pending_ = std::move(value);
}

void VolumeModel::created(const std::string& path, InodeId inode, bool folder,
                          std::optional<std::string> value) {
  states_.back().names[path] = inode;
  pending_.reset();
  if (folder) return;
  File& file = files_[inode];
  file.versions.push_back(value ? std::move(*value) : std::string());
  committed(inode);
}

void VolumeModel::committed(InodeId inode) {
  File& file = files_.at(inode);
  file.committed = file.cut = file.versions.size() - 1;
}

void VolumeModel::cut(InodeId inode) {
  File& file = files_.at(inode);
  file.cut = file.versions.size() - 1;
}

void VolumeModel::synced() {
  floor_ = (doubtful_ ? marked_ : states_.size()) - 1;
  for (auto& [inode, file] : files_) {
    // A file that was made by the call in doubt had no version before it.
    const std::size_t certain =
        (doubtful_ ? std::max<std::size_t>(file.marked, 1) : kNoVersion) - 1;
    file.floor = std::max(file.floor, std::min(file.committed, certain));
    file.size_floor =
        std::max(file.size_floor, std::min(std::max(file.committed, file.cut), certain));
  }
}

void VolumeModel::mark() {
  if (doubtful_) return;
  marked_ = states_.size();
  for (auto& [inode, file] : files_) file.marked = file.versions.size();
}

void VolumeModel::doubt() { doubtful_ = true; }

std::string VolumeModel::check_doubtful(InodeId inode, const std::string& bytes) const {
  const File& file = files_.at(inode);
  const auto first = file.versions.begin() +
                     static_cast<std::ptrdiff_t>(std::max<std::size_t>(file.marked, 1) - 1);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (std::none_of(first, file.versions.end(),
                     [&](const std::string& v) { return byte_at(v, i) == bytes[i]; }))
      return "byte " + std::to_string(i) + " was never written";
  }
  return "";
}

void VolumeModel::synced(InodeId file) {
  committed(file);
  synced();
}

void VolumeModel::synced_all() {
  for (auto& [inode, file] : files_) committed(inode);
  synced();
}

std::optional<std::size_t> VolumeModel::find_state(const VolumeContents& found) const {
  const auto same_xattrs = [&](const State& state) {
    return std::all_of(found.names.begin(), found.names.end(), [&](const auto& name) {
      return xattrs_of(state.xattrs, name.second) == xattrs_of(found.xattrs, name.second);
    });
  };
  for (std::size_t i = floor_; i < states_.size(); ++i)
    if (same_names(states_[i].names, found.names) && same_xattrs(states_[i])) return i;
  return std::nullopt;
}

std::string VolumeModel::check_file(const File& file, std::size_t floor,
                                    const std::string& bytes) const {
  const auto first = file.versions.begin() + static_cast<std::ptrdiff_t>(floor);
  if (file.whole) {
    const bool known = std::find(first, file.versions.end(), bytes) != file.versions.end();
    return known ? "" : "a value is not whole";
  }
  const auto sized =
      file.versions.begin() + static_cast<std::ptrdiff_t>(std::max(floor, file.size_floor));
  const bool was_between = std::any_of(file.sizes.begin(), file.sizes.end(), [&](const auto& s) {
    return s.first >= std::max(floor, file.size_floor) && s.second == bytes.size();
  });
  if (!was_between && std::none_of(sized, file.versions.end(),
                                   [&](const std::string& v) { return v.size() == bytes.size(); }))
    return "size " + std::to_string(bytes.size()) + " is none since the last sync";
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (std::none_of(first, file.versions.end(),
                     [&](const std::string& v) { return byte_at(v, i) == bytes[i]; }))
      return "byte " + std::to_string(i) + " is none since the last sync" +
             (bytes[i] == '\0' ? " but zero" : "");
  }
  return "";
}

std::string VolumeModel::check(const VolumeContents& found) const {
  const auto state = find_state(found);
  if (!state) {
    std::string text = "names and attributes of no moment since the last sync:";
    for (const auto& [path, inode] : found.names) {
      text += " " + path;
      for (const auto& [name, value] : xattrs_of(found.xattrs, inode)) text += "+" + name;
    }
    return text;
  }
  for (const auto& [path, inode] : found.names) {
    const auto bytes = found.files.find(inode);
    if (bytes == found.files.end()) continue;  // a folder
    const auto known = files_.find(inode);
    std::string broken;
    if (known == files_.end()) {
      if (bytes->second != pending_.value_or("")) broken = "not the bytes of a new file";
    } else {
      std::size_t floor = known->second.floor;
      for (std::size_t i = floor_; i <= *state; ++i)
        if (states_[i].whole == inode) floor = std::max(floor, states_[i].version);
      broken = check_file(known->second, floor, bytes->second);
    }
    if (!broken.empty()) return path + " (inode " + std::to_string(inode.value) + "): " + broken;
  }
  return "";
}

}  // namespace kvsyncfs
