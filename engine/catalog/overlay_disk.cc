#include "engine/catalog/overlay_disk.h"

#include <algorithm>
#include <cstring>

namespace kvsyncfs {

namespace {

class MemoryFile final : public File {
 public:
  explicit MemoryFile(std::shared_ptr<OverlayDisk::Content> content)
      : content_(std::move(content)) {}

  Result<std::size_t> read_at(std::uint64_t offset, MutableBytes out) override {
    std::lock_guard lock(content_->mutex);
    const std::string& bytes = content_->bytes;
    if (offset >= bytes.size()) return std::size_t{0};
    std::size_t count = std::min<std::size_t>(out.size(), bytes.size() - offset);
    std::memcpy(out.data(), bytes.data() + offset, count);
    return count;
  }
  Status write_at(std::uint64_t offset, std::span<const Bytes> pieces) override {
    std::lock_guard lock(content_->mutex);
    for (Bytes piece : pieces) {
      if (content_->bytes.size() < offset + piece.size())
        content_->bytes.resize(offset + piece.size());
      std::memcpy(content_->bytes.data() + offset, piece.data(), piece.size());
      offset += piece.size();
    }
    return {};
  }
  Status sync() override { return {}; }
  Status allocate(std::uint64_t size) override { return truncate(size); }
  Status truncate(std::uint64_t size) override {
    std::lock_guard lock(content_->mutex);
    content_->bytes.resize(size);
    return {};
  }
  Result<std::uint64_t> size() override {
    std::lock_guard lock(content_->mutex);
    return std::uint64_t{content_->bytes.size()};
  }

 private:
  std::shared_ptr<OverlayDisk::Content>
      content_;  ///< shared with the directory: either may go first
};

Result<std::string> read_whole(File& file) {
  KVSYNCFS_ASSIGN(std::uint64_t size, file.size());
  std::string bytes(size, '\0');
  auto* data = reinterpret_cast<std::byte*>(bytes.data());
  KVSYNCFS_ASSIGN(std::size_t count, file.read_at(0, {data, bytes.size()}));
  bytes.resize(count);
  return bytes;
}

}  // namespace

Result<std::shared_ptr<OverlayDisk::Content>> OverlayDisk::raise_locked(const std::string& path,
                                                                        OpenMode mode) {
  if (auto it = files_.find(path); it != files_.end()) {
    if (mode == OpenMode::kCreateNew) return Code::kExists;
    return it->second;
  }
  auto content = std::make_shared<Content>();
  auto below = removed_.contains(path) ? Result<std::unique_ptr<File>>(Code::kNotFound)
                                       : lower_.open(path, OpenMode::kRead);
  if (below) {
    if (mode == OpenMode::kCreateNew) return Code::kExists;
    KVSYNCFS_ASSIGN(content->bytes, read_whole(**below));
  } else if (below.error().code != Code::kNotFound || mode == OpenMode::kReadWrite) {
    return below.error();
  }
  files_[path] = content;
  return content;
}

Result<std::unique_ptr<File>> OverlayDisk::open(const std::string& path, OpenMode mode,
                                                bool direct) {
  std::lock_guard lock(mutex_);
  if (mode == OpenMode::kRead && !files_.contains(path)) {
    if (removed_.contains(path)) return Code::kNotFound;
    return lower_.open(path, mode, direct);
  }
  KVSYNCFS_ASSIGN(auto content, raise_locked(path, mode));
  return std::unique_ptr<File>(std::make_unique<MemoryFile>(std::move(content)));
}

Status OverlayDisk::remove(const std::string& path) {
  std::lock_guard lock(mutex_);
  const bool above = files_.erase(path) != 0;
  if (!above) {
    if (removed_.contains(path)) return Code::kNotFound;
    KVSYNCFS_ASSIGN(bool below, lower_.exists(path));
    if (!below) return Code::kNotFound;
  }
  removed_.insert(path);
  return {};
}

Status OverlayDisk::rename(const std::string& from, const std::string& to) {
  std::lock_guard lock(mutex_);
  KVSYNCFS_ASSIGN(auto content, raise_locked(from, OpenMode::kReadWrite));
  files_.erase(from);
  removed_.insert(from);
  files_[to] = std::move(content);
  return {};
}

Status OverlayDisk::make_directory(const std::string& path) {
  KVSYNCFS_ASSIGN(bool there, lower_.exists(path));
  return there ? Status(Code::kExists) : Status(Code::kReadOnly);
}

Status OverlayDisk::remove_directory(const std::string&) { return Code::kReadOnly; }

Result<std::vector<std::string>> OverlayDisk::list(const std::string& directory) {
  std::lock_guard lock(mutex_);
  KVSYNCFS_ASSIGN(auto below, lower_.list(directory));
  std::set<std::string> names;
  for (auto& name : below)
    if (!removed_.contains(directory + "/" + name)) names.insert(std::move(name));
  for (const auto& [path, content] : files_)
    if (path.starts_with(directory + "/")) names.insert(path.substr(directory.size() + 1));
  return std::vector<std::string>(names.begin(), names.end());
}

Result<bool> OverlayDisk::exists(const std::string& path) {
  std::lock_guard lock(mutex_);
  if (files_.contains(path)) return true;
  if (removed_.contains(path)) return false;
  return lower_.exists(path);
}

Result<std::uint64_t> OverlayDisk::size_of(const std::string& path) {
  std::lock_guard lock(mutex_);
  if (auto it = files_.find(path); it != files_.end()) {
    std::lock_guard content_lock(it->second->mutex);
    return std::uint64_t{it->second->bytes.size()};
  }
  if (removed_.contains(path)) return Code::kNotFound;
  return lower_.size_of(path);
}

}  // namespace kvsyncfs
