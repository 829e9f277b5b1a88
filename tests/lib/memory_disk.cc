#include "tests/lib/memory_disk.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "engine/base/ids.h"

namespace kvsyncfs {
namespace {

constexpr std::size_t kSectorSize = 512;

std::string parent_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? "" : path.substr(0, slash);
}

bool misaligned(std::uint64_t n) { return n % kPageSize != 0; }
bool misaligned(const std::byte* p) { return misaligned(reinterpret_cast<std::uintptr_t>(p)); }

}  // namespace

class MemoryFile final : public File {
 public:
  MemoryFile(MemoryDisk& disk, MemoryDisk::NodePtr node, std::string path, bool direct,
             bool writable)
      : disk_(disk),
        node_(std::move(node)),
        path_(std::move(path)),
        direct_(direct),
        writable_(writable) {}

  Result<std::size_t> read_at(std::uint64_t offset, MutableBytes out) override {
    if (direct_ && (misaligned(offset) || misaligned(out.size()) || misaligned(out.data())))
      return Error(Code::kIo, path_ + ": misaligned read");
    DiskRequest request{DiskOperation::kRead, path_, offset, out.size()};
    KVSYNCFS_TRY(disk_.begin(request));
    std::lock_guard lock(disk_.mutex_);
    if (offset >= node_->bytes.size()) return std::size_t{0};
    const std::size_t size = std::min<std::size_t>(out.size(), node_->bytes.size() - offset);
    std::memcpy(out.data(), node_->bytes.data() + offset, size);
    return size;
  }

  using File::write_at;
  Status write_at(std::uint64_t offset, std::span<const Bytes> pieces) override {
    if (!writable_) return Error(Code::kIo, path_ + ": opened for reading");
    std::uint64_t size = 0;
    for (const Bytes& piece : pieces) {
      size += piece.size();
      if (direct_ && (misaligned(piece.size()) || misaligned(piece.data())))
        return Error(Code::kIo, path_ + ": misaligned piece");
    }
    if (direct_ && misaligned(offset)) return Error(Code::kIo, path_ + ": misaligned write");
    std::uint64_t written = 0;
    DiskRequest request{DiskOperation::kWrite, path_, offset, size, &written};
    const Status allowed = disk_.begin(request);
    std::lock_guard lock(disk_.mutex_);
    KVSYNCFS_TRY(disk_.write(*node_, offset, pieces, allowed ? size : written));
    return allowed;
  }

  Status sync() override {
    DiskRequest request{DiskOperation::kSync, path_};
    KVSYNCFS_TRY(disk_.begin(request));
    std::lock_guard lock(disk_.mutex_);
    node_->safe = node_->bytes;
    node_->unsynced.clear();
    return {};
  }

  Status allocate(std::uint64_t size) override {
    DiskRequest request{DiskOperation::kAllocate, path_, 0, size};
    KVSYNCFS_TRY(disk_.begin(request));
    std::lock_guard lock(disk_.mutex_);
    return size > node_->bytes.size() ? disk_.resize(*node_, size) : Status{};
  }

  Status truncate(std::uint64_t size) override {
    DiskRequest request{DiskOperation::kTruncate, path_, 0, size};
    KVSYNCFS_TRY(disk_.begin(request));
    std::lock_guard lock(disk_.mutex_);
    return disk_.resize(*node_, size);
  }

  Result<std::uint64_t> size() override {
    std::lock_guard lock(disk_.mutex_);
    return std::uint64_t{node_->bytes.size()};
  }

 private:
  MemoryDisk& disk_;
  const MemoryDisk::NodePtr node_;
  const std::string path_;
  const bool direct_, writable_;
};

MemoryDisk::MemoryDisk(std::uint64_t size_bytes) : size_bytes_(size_bytes) {}

Status MemoryDisk::begin(DiskRequest& request) {
  {
    std::lock_guard lock(mutex_);
    ++counts_[request.operation];
  }
  return hook_ ? hook_(request) : Status{};
}

bool MemoryDisk::has_parent(const std::string& path) const {
  const std::string parent = parent_of(path);
  if (parent.empty()) return true;
  const auto found = names_.find(parent);
  return found != names_.end() && found->second == nullptr;
}

Result<std::unique_ptr<File>> MemoryDisk::open(const std::string& path, OpenMode mode,
                                               bool direct) {
  DiskRequest request{DiskOperation::kOpen, path};
  KVSYNCFS_TRY(begin(request));
  std::lock_guard lock(mutex_);
  auto found = names_.find(path);
  const bool creates = mode == OpenMode::kCreateNew || mode == OpenMode::kCreateOrOpen;
  if (found == names_.end()) {
    if (!creates || !has_parent(path)) return Error(Code::kNotFound, path);
    found = names_.emplace(path, std::make_shared<Node>()).first;
  } else if (mode == OpenMode::kCreateNew) {
    return Error(Code::kExists, path);
  }
  if (found->second == nullptr) return Error(Code::kIsDirectory, path);
  return std::unique_ptr<File>(
      std::make_unique<MemoryFile>(*this, found->second, path, direct, mode != OpenMode::kRead));
}

Status MemoryDisk::write(Node& node, std::uint64_t offset, std::span<const Bytes> pieces,
                         std::uint64_t limit) {
  std::string bytes;
  for (const Bytes& piece : pieces) bytes += as_string(piece);
  bytes.resize(limit);
  if (bytes.empty()) return {};
  if (offset + bytes.size() > node.bytes.size()) {
    KVSYNCFS_TRY(reserve(node, offset + bytes.size()));
    node.bytes.resize(offset + bytes.size());
  }
  node.bytes.replace(offset, bytes.size(), bytes);
  node.unsynced.push_back({offset, std::move(bytes)});
  return {};
}

/// A new size reaches the disk with a sync only; here, as a crash may bring it, it is there at
/// once.
Status MemoryDisk::resize(Node& node, std::uint64_t size) {
  KVSYNCFS_TRY(reserve(node, size));
  node.bytes.resize(size);
  return {};
}

Status MemoryDisk::reserve(Node& node, std::uint64_t size) {
  std::uint64_t others = 0;
  for (const auto& [path, other] : names_)
    if (other != nullptr && other.get() != &node) others += other->reserved;
  if (others + size > size_bytes_) return Error(Code::kNoSpace, "memory disk");
  node.reserved = size;
  return {};
}

Status MemoryDisk::remove(const std::string& path) {
  DiskRequest request{DiskOperation::kRemove, path};
  KVSYNCFS_TRY(begin(request));
  std::lock_guard lock(mutex_);
  const auto found = names_.find(path);
  if (found == names_.end()) return Error(Code::kNotFound, path);
  if (found->second == nullptr) return Error(Code::kIsDirectory, path);
  names_.erase(found);
  return {};
}

Status MemoryDisk::rename(const std::string& from, const std::string& to) {
  DiskRequest request{DiskOperation::kRename, from};
  KVSYNCFS_TRY(begin(request));
  std::lock_guard lock(mutex_);
  auto node = names_.extract(from);
  if (node.empty()) return Error(Code::kNotFound, from);
  names_.erase(to);
  node.key() = to;
  names_.insert(std::move(node));
  return {};
}

Status MemoryDisk::make_directory(const std::string& path) {
  DiskRequest request{DiskOperation::kMakeDirectory, path};
  KVSYNCFS_TRY(begin(request));
  std::lock_guard lock(mutex_);
  if (!has_parent(path)) return Error(Code::kNotFound, path);
  if (!names_.emplace(path, nullptr).second) return Error(Code::kExists, path);
  return {};
}

Status MemoryDisk::remove_directory(const std::string& path) {
  DiskRequest request{DiskOperation::kRemoveDirectory, path};
  KVSYNCFS_TRY(begin(request));
  std::lock_guard lock(mutex_);
  const auto found = names_.find(path);
  if (found == names_.end()) return Error(Code::kNotFound, path);
  const auto below = names_.lower_bound(path + "/");
  if (below != names_.end() && below->first.starts_with(path + "/"))
    return Error(Code::kNotEmpty, path);
  names_.erase(found);
  return {};
}

Result<std::vector<std::string>> MemoryDisk::list(const std::string& directory) {
  std::lock_guard lock(mutex_);
  if (!names_.contains(directory)) return Error(Code::kNotFound, directory);
  std::vector<std::string> found;
  for (const auto& [path, node] : names_)
    if (parent_of(path) == directory) found.push_back(path.substr(directory.size() + 1));
  std::sort(found.begin(), found.end());
  return found;
}

Status MemoryDisk::sync_directory(const std::string& directory) {
  DiskRequest request{DiskOperation::kSyncDirectory, directory};
  KVSYNCFS_TRY(begin(request));
  std::lock_guard lock(mutex_);
  const auto inside = [&](const auto& name) { return parent_of(name.first) == directory; };
  std::erase_if(safe_names_, inside);
  for (const auto& name : names_)
    if (inside(name)) safe_names_.insert(name);
  return {};
}

Result<bool> MemoryDisk::exists(const std::string& path) {
  std::lock_guard lock(mutex_);
  return names_.contains(path);
}

Result<bool> MemoryDisk::is_directory(const std::string& path) {
  std::lock_guard lock(mutex_);
  const auto found = names_.find(path);
  return found != names_.end() && found->second == nullptr;
}

Result<std::uint64_t> MemoryDisk::size_of(const std::string& path) {
  std::lock_guard lock(mutex_);
  const auto found = names_.find(path);
  if (found == names_.end() || found->second == nullptr) return Error(Code::kNotFound, path);
  return std::uint64_t{found->second->bytes.size()};
}

Result<DiskSpace> MemoryDisk::space(const std::string&) {
  DiskSpace space;
  space.total_bytes = size_bytes_;
  space.available_bytes = size_bytes_ - used_bytes();
  space.total_inodes = space.available_inodes = 1u << 20;
  return space;
}

void MemoryDisk::crash(const Chooser& keeps) {
  std::lock_guard lock(mutex_);
  std::size_t index = 0;
  Names after;
  for (const auto& [path, node] : safe_names_) {
    if (node == nullptr) {
      after.emplace(path, nullptr);
      continue;
    }
    const auto left = std::make_shared<Node>();
    left->bytes = node->safe;
    left->bytes.resize(node->bytes.size());
    left->reserved = node->reserved;
    for (const Node::Write& write : node->unsynced) {
      for (std::size_t at = 0; at < write.bytes.size(); at += kSectorSize) {
        const std::string sector = write.bytes.substr(at, kSectorSize);
        if (!keeps(index++) || write.offset + at >= left->bytes.size()) continue;
        left->bytes.replace(write.offset + at, sector.size(), sector);
      }
    }
    left->safe = left->bytes;
    after.emplace(path, left);
  }
  names_ = after;
  safe_names_ = std::move(after);
}

std::string MemoryDisk::contents(const std::string& path) {
  std::lock_guard lock(mutex_);
  const auto found = names_.find(path);
  if (found == names_.end() || found->second == nullptr) {
    ADD_FAILURE() << path << " is missing";
    return {};
  }
  return found->second->bytes;
}

void MemoryDisk::set_contents(const std::string& path, std::string bytes) {
  std::lock_guard lock(mutex_);
  const auto node = std::make_shared<Node>();
  node->reserved = bytes.size();
  node->bytes = node->safe = std::move(bytes);
  names_[path] = node;
  safe_names_[path] = node;
}

std::uint64_t MemoryDisk::count(DiskOperation operation) {
  std::lock_guard lock(mutex_);
  return counts_[operation];
}

std::uint64_t MemoryDisk::used_bytes() {
  std::lock_guard lock(mutex_);
  std::uint64_t used = 0;
  for (const auto& [path, node] : names_)
    if (node != nullptr) used += node->reserved;
  return used;
}

MemoryDisk::Hook fail_from(DiskOperation operation, std::string part, std::uint64_t nth,
                           Code code) {
  auto seen = std::make_shared<std::atomic<std::uint64_t>>(0);  // the hook is copied
  return [=](DiskRequest& request) -> Status {
    if (request.operation != operation || request.path.find(part) == std::string::npos) return {};
    if (++*seen < nth) return {};
    return Error(code, request.path + ": made to fail");
  };
}

}  // namespace kvsyncfs
