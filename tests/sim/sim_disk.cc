#include "tests/sim/sim_disk.h"

#include <algorithm>

namespace kvsyncfs {
namespace {

/// A file's unsynced writes beyond this go to stable storage by themselves, as a kernel does it.
constexpr std::uint64_t kPendingBytesMax = 16u << 20;

}  // namespace

class SimDisk::OpenFile final : public File {
 public:
  OpenFile(SimDisk& disk, NodePtr node, std::string path, bool direct, bool writable)
      : disk_(disk),
        node_(std::move(node)),
        path_(std::move(path)),
        direct_(direct),
        writable_(writable),
        generation_(disk.generation_) {}

  Result<std::size_t> read_at(std::uint64_t offset, MutableBytes out) override {
    std::lock_guard lock(disk_.mutex_);
    KVSYNCFS_TRY(check(offset, out));
    return disk_.read_node(*node_, offset, out, generation_);
  }
  Status write_at(std::uint64_t offset, std::span<const Bytes> pieces) override {
    std::lock_guard lock(disk_.mutex_);
    SimChange change{SimChange::Kind::kWrite, offset, {}, 0};
    for (const Bytes& piece : pieces) {
      KVSYNCFS_TRY(check(offset, piece));
      change.bytes.append(as_string(piece));
    }
    if (pieces.size() > 1024) return Error(Code::kIo, path_ + ": too many pieces");
    return this->change(std::move(change));
  }
  Status sync() override {
    std::lock_guard lock(disk_.mutex_);
    return disk_.sync_node(*node_, generation_);
  }
  Status allocate(std::uint64_t size) override {
    std::lock_guard lock(disk_.mutex_);
    return change({SimChange::Kind::kGrow, 0, {}, size});
  }
  Status truncate(std::uint64_t size) override {
    std::lock_guard lock(disk_.mutex_);
    return change({SimChange::Kind::kTruncate, 0, {}, size});
  }
  Result<std::uint64_t> size() override {
    std::lock_guard lock(disk_.mutex_);
    KVSYNCFS_TRY(disk_.check_alive(generation_));
    return node_->current.size();
  }

 private:
  /// A direct file takes whole pages only.
  Status check(std::uint64_t offset, Bytes bytes) const {
    const auto address = reinterpret_cast<std::uintptr_t>(bytes.data());
    if (direct_ &&
        (offset % kPageSize != 0 || bytes.size() % kPageSize != 0 || address % kPageSize != 0))
      return Error(Code::kIo, path_ + ": misaligned direct I/O");
    return {};
  }
  Status change(SimChange change) {
    if (!writable_) return Error(Code::kIo, path_ + ": opened for reading");
    return disk_.change_bytes(*node_, std::move(change), generation_);
  }

  SimDisk& disk_;
  const NodePtr node_;
  const std::string path_;
  const bool direct_, writable_;
  const std::uint64_t generation_;
};

SimDisk::SimDisk(std::uint64_t capacity_bytes) : capacity_(capacity_bytes) {}

std::string SimDisk::normal(const std::string& path) {
  std::string out;
  for (const char c : path) {
    if (c != '/' || out.empty() || out.back() != '/') out.push_back(c);
  }
  if (out.size() > 1 && out.back() == '/') out.pop_back();
  return out;
}

std::string SimDisk::parent(const std::string& path) {
  const auto slash = path.rfind('/');
  return slash == std::string::npos ? "" : slash == 0 ? "/" : path.substr(0, slash);
}

bool SimDisk::has_directory(const Names& names, const std::string& path) {
  if (path.empty() || path == "/" || path == ".") return true;
  const auto found = names.find(path);
  return found != names.end() && found->second->directory;
}

Status SimDisk::check_running() const {
  return stopped_ ? Status(Error(Code::kIo, "the disk has stopped")) : Status{};
}

Status SimDisk::check_alive(std::uint64_t generation) const {
  KVSYNCFS_TRY(check_running());
  if (generation != generation_) return Error(Code::kIo, "file of a former life");
  return {};
}

Result<SimDisk::Verdict> SimDisk::begin_change() {
  KVSYNCFS_TRY(check_running());
  ++changes_;
  if (const auto failing = failing_changes_.find(changes_); failing != failing_changes_.end()) {
    const Code code = failing->second;
    failing_changes_.erase(failing);
    return Error(code, "simulated");
  }
  if (!stop_at_ || changes_ < *stop_at_) return Verdict::kGoOn;
  stopped_ = true;
  return Verdict::kStopsHere;
}

Status SimDisk::end_change(Verdict verdict) const {
  return verdict == Verdict::kGoOn ? Status{} : check_running();
}

Result<SimDisk::NodePtr> SimDisk::find(const std::string& path) const {
  KVSYNCFS_TRY(check_running());
  const auto found = names_.find(normal(path));
  if (found == names_.end()) return Error(Code::kNotFound, path);
  return found->second;
}

std::uint64_t SimDisk::used_bytes() const {
  std::uint64_t sum = 0;
  for (const auto& [path, node] : names_) sum += round_up(node->current.size(), kPageSize);
  return sum;
}

// Bytes.

Status SimDisk::change_bytes(Node& node, SimChange change, std::uint64_t generation) {
  KVSYNCFS_TRY(check_alive(generation));
  const std::uint64_t old_size = node.current.size();
  const std::uint64_t end = std::max(change.size, change.offset + change.bytes.size());
  if (end > old_size &&
      used_bytes() + round_up(end, kPageSize) - round_up(old_size, kPageSize) > capacity_)
    return Error(Code::kNoSpace, "simulated disk");
  KVSYNCFS_ASSIGN(const Verdict verdict, begin_change());
  apply(node.current, change);
  node.pending_bytes += change.bytes.size();
  node.pending.push_back(std::move(change));
  if (node.pending_bytes > kPendingBytesMax) write_back(node);
  return end_change(verdict);
}

void SimDisk::write_back(Node& node) {
  for (const SimChange& change : node.pending) apply(node.durable, change);
  node.pending.clear();
  node.pending_bytes = 0;
}

Status SimDisk::sync_node(Node& node, std::uint64_t generation) {
  KVSYNCFS_TRY(check_alive(generation));
  const auto verdict = begin_change();
  if (!verdict) {
    // As Linux does it: the pages count as clean now, and no later sync writes them.
    node.pending.clear();
    node.pending_bytes = 0;
    return verdict.error();
  }
  if (*verdict == Verdict::kGoOn) write_back(node);
  return end_change(*verdict);
}

Result<std::size_t> SimDisk::read_node(const Node& node, std::uint64_t offset, MutableBytes out,
                                       std::uint64_t generation) {
  KVSYNCFS_TRY(check_alive(generation));
  if (fail_read_ && --*fail_read_ == 0) {
    fail_read_.reset();
    return Error(Code::kIo, "simulated");
  }
  const std::uint64_t size = node.current.size();
  const auto count = offset < size ? std::min<std::uint64_t>(out.size(), size - offset) : 0;
  if (count > 0) node.current.read(offset, out.first(count));
  return static_cast<std::size_t>(count);
}

// Names.

void SimDisk::apply_name(Names& names, const NameChange& change) {
  switch (change.kind) {
    case NameChange::Kind::kAdd:
      names[change.path] = change.node;
      break;
    case NameChange::Kind::kRemove:
      // Not the one that a lost removal or rename left there.
      if (const auto found = names.find(change.path);
          found != names.end() && found->second == change.node)
        names.erase(found);
      break;
    case NameChange::Kind::kRename:
      // A file never has two names, whatever happened to the renames before.
      std::erase_if(names, [&](const auto& entry) { return entry.second == change.node; });
      names[change.path] = change.node;
      break;
  }
}

Status SimDisk::change_name(NameChange change) {
  KVSYNCFS_ASSIGN(const Verdict verdict, begin_change());
  apply_name(names_, change);
  pending_names_.push_back(std::move(change));
  return end_change(verdict);
}

Result<std::unique_ptr<File>> SimDisk::open(const std::string& raw, OpenMode mode, bool direct) {
  std::lock_guard lock(mutex_);
  KVSYNCFS_TRY(check_running());
  const std::string path = normal(raw);
  auto found = find(path);
  if (found && mode == OpenMode::kCreateNew) return Error(Code::kExists, path);
  if (found && (*found)->directory) return Error(Code::kIsDirectory, path);
  if (!found) {
    if (mode == OpenMode::kRead || mode == OpenMode::kReadWrite) return found.error();
    if (!has_directory(names_, parent(path))) return Error(Code::kNotFound, path);
    found = std::make_shared<Node>();
    KVSYNCFS_TRY(change_name({NameChange::Kind::kAdd, path, {}, *found}));
  }
  return std::unique_ptr<File>(
      std::make_unique<OpenFile>(*this, *found, path, direct, mode != OpenMode::kRead));
}

Status SimDisk::remove(const std::string& path) {
  std::lock_guard lock(mutex_);
  KVSYNCFS_ASSIGN(const NodePtr node, find(path));
  if (node->directory) return Error(Code::kIsDirectory, path);
  return change_name({NameChange::Kind::kRemove, normal(path), {}, node});
}

Status SimDisk::rename(const std::string& from, const std::string& to) {
  std::lock_guard lock(mutex_);
  KVSYNCFS_ASSIGN(const NodePtr node, find(from));
  const auto old = find(to);
  if (node->directory || (old && (*old)->directory)) return Error(Code::kUnsupported, from);
  if (!has_directory(names_, parent(normal(to)))) return Error(Code::kNotFound, to);
  return change_name({NameChange::Kind::kRename, normal(to), normal(from), node});
}

Status SimDisk::make_directory(const std::string& raw) {
  std::lock_guard lock(mutex_);
  KVSYNCFS_TRY(check_running());
  const std::string path = normal(raw);
  if (names_.contains(path)) return Error(Code::kExists, path);
  if (!has_directory(names_, parent(path))) return Error(Code::kNotFound, path);
  auto node = std::make_shared<Node>();
  node->directory = true;
  return change_name({NameChange::Kind::kAdd, path, {}, std::move(node)});
}

Status SimDisk::remove_directory(const std::string& raw) {
  std::lock_guard lock(mutex_);
  const std::string path = normal(raw);
  KVSYNCFS_ASSIGN(const NodePtr node, find(path));
  if (!node->directory) return Error(Code::kNotDirectory, path);
  const auto child = names_.lower_bound(path + "/");
  if (child != names_.end() && child->first.starts_with(path + "/"))
    return Error(Code::kNotEmpty, path);
  return change_name({NameChange::Kind::kRemove, path, {}, node});
}

Result<std::vector<std::string>> SimDisk::list(const std::string& raw) {
  std::lock_guard lock(mutex_);
  KVSYNCFS_TRY(check_running());
  const std::string directory = normal(raw);
  if (!has_directory(names_, directory)) return Error(Code::kNotFound, directory);
  std::vector<std::string> found;
  for (const auto& [path, node] : names_) {
    if (parent(path) == directory) found.push_back(path.substr(path.rfind('/') + 1));
  }
  std::sort(found.begin(), found.end());
  return found;
}

Status SimDisk::sync_directory(const std::string& raw) {
  std::lock_guard lock(mutex_);
  KVSYNCFS_TRY(check_running());
  const std::string directory = normal(raw);
  if (!has_directory(names_, directory)) return Error(Code::kNotFound, directory);
  KVSYNCFS_ASSIGN(const Verdict verdict, begin_change());
  if (verdict == Verdict::kStopsHere) return end_change(verdict);
  std::vector<NameChange> others;
  for (NameChange& change : pending_names_) {
    const bool here =
        parent(change.path) == directory ||
        (change.kind == NameChange::Kind::kRename && parent(change.from) == directory);
    if (here)
      apply_name(durable_names_, change);
    else
      others.push_back(std::move(change));
  }
  pending_names_ = std::move(others);
  return {};
}

Result<bool> SimDisk::exists(const std::string& path) {
  std::lock_guard lock(mutex_);
  KVSYNCFS_TRY(check_running());
  return names_.contains(normal(path)) || has_directory(names_, normal(path));
}

Result<bool> SimDisk::is_directory(const std::string& path) {
  std::lock_guard lock(mutex_);
  KVSYNCFS_TRY(check_running());
  return has_directory(names_, normal(path));
}

Result<std::uint64_t> SimDisk::size_of(const std::string& path) {
  std::lock_guard lock(mutex_);
  KVSYNCFS_ASSIGN(const NodePtr node, find(path));
  return node->current.size();
}

Result<DiskSpace> SimDisk::space(const std::string&) {
  std::lock_guard lock(mutex_);
  KVSYNCFS_TRY(check_running());
  constexpr std::uint64_t kInodes = 1'000'000;
  return DiskSpace{capacity_, capacity_ - std::min(capacity_, used_bytes()),
                   kInodes - names_.size(), kInodes};
}

}  // namespace kvsyncfs
