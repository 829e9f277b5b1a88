#include "tests/sim/engine_world.h"

#include <algorithm>

namespace kvsyncfs {
namespace {

constexpr const char* kNames[] = {"a", "b", "c", "d"};
constexpr const char* kFolders[] = {"x", "y"};
constexpr const char* kKeys[] = {"k", "l", "x/k", "y/l"};
constexpr std::uint64_t kWriteSizeMax = 20'000, kOffsetMax = 30'000;
constexpr std::uint32_t kFileMode = 0100644, kFolderMode = 0040755;

template <std::size_t kCount>
std::string pick(SimRandom& random, const char* const (&words)[kCount]) {
  return words[random.below(kCount)];
}

std::string last_name(const std::string& path) { return path.substr(path.rfind('/') + 1); }

MutableBytes bytes_of(std::string& s) { return {reinterpret_cast<std::byte*>(s.data()), s.size()}; }

}  // namespace

Status EngineWorld::format(SimDisk& disk) {
  KVSYNCFS_TRY(disk.make_directory(kStore));
  KVSYNCFS_TRY(disk.sync_directory("/"));
  SimClock clock;
  FormatOptions options;
  options.store = kStore;
  options.uuid[0] = 7;
  options.size_bytes = kStoreSizeMin;
  return Engine::format(disk, clock, options);
}

EngineWorld::EngineWorld(std::unique_ptr<SimDisk> disk, std::uint64_t seed)
    : disk_(std::move(disk)), random_(seed), source_(seed), model_(VolumeContents{}) {
  options_.store = kStore;
  options_.cache_size_bytes = 1 << 20;
  options_.write_buffer_bytes = random_.one_in(2) ? 64 << 10 : 1 << 20;
  options_.warn = [this](std::string_view text) {
    if (!disk_->stopped() && problem_.empty()) problem_ = "warning: " + std::string(text);
  };
}

EngineWorld::~EngineWorld() {
  options_.warn = [](auto) {};
  disk_->stop_at(disk_->changes() + 1);
}

bool EngineWorld::did(const char* call, const Status& status) {
  if (status && problem_.empty()) return true;
  if (!disk_->stopped() && problem_.empty())
    problem_ = std::string(call) + ": " + describe(status.error());
  return false;
}

bool EngineWorld::read(InodeId file, std::uint64_t size, std::string& out) {
  out.assign(size, '?');
  const auto count = engine_->read(file, 0, bytes_of(out));
  if (!did("read", count)) return false;
  if (*count != size) problem_ = "read: short";
  return problem_.empty();
}

bool EngineWorld::load(InodeId folder, const std::string& prefix, VolumeContents& contents) {
  const auto entries = engine_->list(folder, 0, 1000, true);
  if (!did("list", entries)) return false;
  for (const ListEntry& entry : *entries) {
    const InodeId inode = entry.dentry.inode;
    const std::string path = prefix + entry.dentry.name;
    contents.names[path] = inode;
    if (is_directory(entry.attributes)) {
      if (!load(inode, path + "/", contents)) return false;
    } else if (!read(inode, entry.attributes.size, contents.files[inode])) {
      return false;
    }
  }
  return true;
}

bool EngineWorld::open() {
  auto opened = Engine::open(*disk_, clock_, source_, options_);
  if (!did("open", opened)) return false;
  engine_ = std::move(*opened);
  VolumeContents found;
  if (!load(kRootInode, "", found)) return false;
  problem_ = model_.check(found);
  model_ = VolumeModel(found);
  return problem_.empty();
}

void EngineWorld::crash(std::uint64_t seed) {
  auto left = disk_->after_crash(seed);
  kill();
  disk_ = std::move(left);
}

void EngineWorld::kill() {
  if (!disk_->stopped()) disk_->stop_at(disk_->changes() + 1);
  engine_.reset();
  disk_->kill();
}

void EngineWorld::close() {
  if (!did("close", engine_->close())) return;
  model_.synced_all();
  engine_.reset();
}

void EngineWorld::probe() {
  if (!problem_.empty()) return;
  Engine::CheckOptions options;
  options.scrub = true;
  std::string text;
  options.report = [&](const std::string& line) { text += line + "; "; };
  const auto report = engine_->check(options);
  if (!did("check", report)) return;
  if (report->problems != 0) problem_ = "check: " + text;
  const std::string value = fresh_bytes(5000);
  model_.begin_value("probe", value);
  if (!did("put", engine_->put("probe", as_bytes(value))) || !sync_all()) return;
  const auto back = engine_->get("probe");
  if (did("get", back) && *back != value) problem_ = "probe reads back wrong";
  model_ = VolumeModel(VolumeContents{});
}

void EngineWorld::run(int steps) {
  for (int i = 0; i < steps && problem_.empty() && step(); ++i) {
  }
}

bool EngineWorld::step() {
  clock_.advance(1'000'000);
  switch (random_.below(20)) {
    case 0:
    case 1:
      return create(random_.one_in(4));
    case 2:
      return truncate();
    case 3:
    case 4:
      return put();
    case 5:
    case 6:
      return rename();
    case 7:
      return link();
    case 8:
      return unlink();
    case 9:
    case 10:
    case 11:
      return sync_one();
    case 12:
      return random_.one_in(3) ? sync_all() : read_back();
    case 13:
    case 14:
      return background();
    default:
      return write();
  }
}

std::string EngineWorld::pick_path() {
  const std::string folder = pick(random_, kFolders);
  const bool below = random_.one_in(3) && model_.names().contains(folder);
  return (below ? folder + "/" : "") + pick(random_, kNames);
}

std::string EngineWorld::pick_file() {
  std::vector<std::string> files;
  for (const auto& [path, inode] : model_.names())
    if (path != kFolders[0] && path != kFolders[1]) files.push_back(path);
  return files.empty() ? "" : files[random_.below(files.size())];
}

/// No zeros, and different for each call and place.
std::string EngineWorld::fresh_bytes(std::size_t size) {
  std::string bytes(size, '\0');
  ++fills_;
  for (std::size_t i = 0; i < size; ++i)
    bytes[i] = static_cast<char>(1 + ((fills_ * 7919 + i) * 0x9E3779B97F4A7C15ull >> 32) % 255);
  return bytes;
}

InodeId EngineWorld::folder_of(const std::string& path) const {
  const auto slash = path.rfind('/');
  return slash == std::string::npos ? kRootInode : model_.names().at(path.substr(0, slash));
}

bool EngineWorld::create(bool folder) {
  const std::string path = folder ? pick(random_, kFolders) : pick_path();
  if (model_.names().contains(path)) return true;
  VolumeModel::Names next = model_.names();
  next[path] = VolumeModel::kUnknown;
  model_.begin_names(std::move(next));
  NewNode node;
  node.mode = folder ? kFolderMode : kFileMode;
  const auto entry = engine_->create(folder_of(path), last_name(path), node);
  if (!did("create", entry)) return false;
  model_.created(path, entry->inode, folder);
  return true;
}

bool EngineWorld::write() {
  const std::string path = pick_file();
  if (path.empty()) return create(false);
  const InodeId file = model_.names().at(path);
  const std::uint64_t size = 1 + random_.below(random_.one_in(2) ? 300 : kWriteSizeMax);
  std::string next = model_.bytes(file);
  WriteOptions options;
  options.append = random_.one_in(4) && next.size() < kOffsetMax;
  const std::uint64_t offset = options.append ? next.size() : random_.below(kOffsetMax);
  const std::string bytes = fresh_bytes(size);
  if (next.size() < offset + size) next.resize(offset + size);
  next.replace(offset, size, bytes);
  model_.written_in_parts(file);
  model_.begin_bytes(file, std::move(next));
  return did("write", engine_->write(file, options.append ? 0 : offset, as_bytes(bytes), options));
}

bool EngineWorld::truncate() {
  const std::string path = pick_file();
  if (path.empty()) return true;
  const InodeId file = model_.names().at(path);
  std::string next = model_.bytes(file);
  next.resize(random_.one_in(3) ? 0 : random_.below(kOffsetMax));
  AttributeChange change;
  change.size = next.size();
  model_.written_in_parts(file);
  model_.begin_bytes(file, std::move(next));
  if (!did("truncate", engine_->set_attributes(file, change))) return false;
  model_.cut(file);
  return true;
}

bool EngineWorld::put() {
  const std::string path = pick(random_, kKeys);
  const std::string value = fresh_bytes(random_.one_in(8) ? 0 : 1 + random_.below(kWriteSizeMax));
  const auto old = model_.names().find(path);
  if (old != model_.names().end()) {
    const InodeId file = old->second;
    model_.begin_bytes(file, value);
    if (!did("put", engine_->put(path, as_bytes(value)))) return false;
    model_.committed(file);
    return true;
  }
  const auto slash = path.find('/');
  const std::string folder = slash == std::string::npos ? "" : path.substr(0, slash);
  const bool makes_folder = !folder.empty() && !model_.names().contains(folder);
  model_.begin_value(path, value);
  if (!did("put", engine_->put(path, as_bytes(value)))) return false;
  if (makes_folder) {
    const auto made = engine_->lookup(kRootInode, folder);
    if (!did("lookup", made)) return false;
    model_.created(folder, made->inode, true);
  }
  const auto entry = engine_->lookup(folder_of(path), last_name(path));
  if (!did("lookup", entry)) return false;
  model_.created(path, entry->inode, false, value);
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
    return false;
  if (replaces) model_.committed(file);
  return true;
}

bool EngineWorld::link() {
  const std::string from = pick_file(), to = pick_path();
  if (from.empty() || model_.names().contains(to)) return true;
  VolumeModel::Names next = model_.names();
  const InodeId file = next[to] = next.at(from);
  model_.begin_names(std::move(next));
  return did("link", engine_->link(file, folder_of(to), last_name(to)));
}

bool EngineWorld::unlink() {
  const std::string path = pick_file();
  if (path.empty()) return true;
  VolumeModel::Names next = model_.names();
  next.erase(path);
  model_.begin_names(std::move(next));
  return did("unlink", engine_->unlink(folder_of(path), last_name(path)));
}

bool EngineWorld::sync_one() {
  const std::string path = pick_file();
  if (path.empty()) return true;
  const InodeId file = model_.names().at(path);
  if (!did("sync", engine_->sync(file))) return false;
  model_.synced(file);
  return true;
}

bool EngineWorld::sync_all() {
  if (!did("sync_all", engine_->sync_all())) return false;
  model_.synced_all();
  return true;
}

bool EngineWorld::background() {
  // Now and then long enough for a checkpoint.
  clock_.advance(random_.one_in(4) ? 61'000'000'000 : 300'000'000 * random_.below(6));
  engine_->run_background();
  return problem_.empty() && !disk_->stopped();
}

bool EngineWorld::read_back() {
  const std::string path = pick_file();
  if (path.empty()) return true;
  const InodeId file = model_.names().at(path);
  const std::string& expected = model_.bytes(file);
  std::string found;
  if (!read(file, expected.size(), found)) return false;
  if (found != expected) problem_ = "read: not what was written to " + path;
  return problem_.empty();
}

}  // namespace kvsyncfs
