#include "tests/sim/engine_world.h"

#include <algorithm>
#include <stdexcept>

#include "tests/sim/engine_world_words.h"

namespace kvsyncfs {

MutableBytes bytes_of(std::string& s) { return {reinterpret_cast<std::byte*>(s.data()), s.size()}; }

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

std::unique_ptr<SimDisk> EngineWorld::new_store() {
  static const auto made = [] {
    auto disk = std::make_unique<SimDisk>();
    const Status formatted = format(*disk);
    if (!formatted) throw std::runtime_error(describe(formatted.error()));
    return disk;
  }();
  return made->after_crash(0);
}

EngineWorld::EngineWorld(std::unique_ptr<SimDisk> disk, std::uint64_t seed, Workload workload)
    : workload_(workload),
      disk_(std::move(disk)),
      random_(seed),
      source_(seed),
      model_(VolumeContents{}),
      before_(model_) {
  options_.store = kStore;
  options_.cache_size_bytes = 1 << 20;
  options_.write_buffer_bytes = random_.one_in(2) ? 64 << 10 : 1 << 20;
  options_.warn = [this](std::string_view text) {
    const bool torn = lost_power_ && text.find("no sync had confirmed") != text.npos;
    const bool expected = torn || disk_->stopped() || faults_ != Faults::kNone;
    if (!expected && problem_.empty()) problem_ = "warning: " + std::string(text);
  };
}

EngineWorld::~EngineWorld() {
  options_.warn = [](auto) {};
  disk_->stop_at(disk_->changes() + 1);
}

namespace {

/// Calls that need space of their own, if only in the log, so that they may be refused on a full
/// disk.
bool needs_space(std::string_view call) {
  constexpr std::string_view kCalls[] = {"write",       "put",  "create",   "allocate",
                                         "clone_range", "link", "rename",   "exchange",
                                         "set_xattr",   "sync", "sync_all", "close"};
  return std::find(std::begin(kCalls), std::end(kCalls), call) != std::end(kCalls);
}

}  // namespace

EngineWorld::Outcome EngineWorld::outcome(const char* call, const Status& status) {
  refused_ = false;
  if (!problem_.empty()) return Outcome::kStop;
  if (status) return Outcome::kDone;
  if (disk_->stopped()) return Outcome::kStop;
  const Code code = status.error().code;
  if (faults_ == Faults::kIo && (code == Code::kIo || code == Code::kCorrupt)) {
    failed_ = refused_ = true;
    model_.doubt();
    return Outcome::kRefused;
  }
  if (faults_ == Faults::kNoSpace && code == Code::kNoSpace && needs_space(call)) {
    refused_ = true;
    model_ = before_;
    return Outcome::kRefused;
  }
  problem_ = std::string(call) + ": " + describe(status.error());
  return Outcome::kStop;
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
    if (!load_xattrs(inode, contents)) return false;
    if (is_directory(entry.attributes)) {
      if (!load(inode, path + "/", contents)) return false;
    } else if (!read(inode, entry.attributes.size, contents.files[inode])) {
      return false;
    }
  }
  return true;
}

bool EngineWorld::load_xattrs(InodeId inode, VolumeContents& contents) {
  const auto names = engine_->xattr_names(inode);
  if (!did("xattr_names", names)) return false;
  for (const std::string& name : *names) {
    const auto value = engine_->xattr(inode, name);
    if (!did("xattr", value)) return false;
    contents.xattrs[inode][name] = *value;
  }
  return true;
}

/// Nothing is held yet, so only what has a name is there and takes space.
void EngineWorld::check_accounts(const VolumeContents& contents) {
  std::set<InodeId> inodes{kRootInode};
  std::uint64_t size = 0;
  for (const auto& [path, inode] : contents.names) inodes.insert(inode);
  for (const auto& [inode, bytes] : contents.files) size += bytes.size();
  const EngineCounters counters = engine_->counters();
  if (counters.orphans != 0) problem_ = "an orphan stays after the opening";
  if (counters.inodes != inodes.size()) problem_ = "inodes without names stay after the opening";
  if (counters.live_bytes > size) problem_ = "bytes of no file stay after the opening";
}

bool EngineWorld::open() {
  failed_ = false;
  held_.clear();
  auto opened = Engine::open(*disk_, clock_, source_, options_);
  if (!did("open", opened)) return false;
  lost_power_ = false;
  engine_ = std::move(*opened);
  VolumeContents found;
  if (!load(kRootInode, "", found)) return false;
  problem_ = model_.check(found);
  model_ = VolumeModel(found);
  if (problem_.empty()) check_accounts(found);
  return problem_.empty();
}

void EngineWorld::crash(std::uint64_t seed) {
  auto left = disk_->after_crash(seed);
  kill();
  disk_ = std::move(left);
  lost_power_ = true;
}

void EngineWorld::kill() {
  if (!disk_->stopped()) disk_->stop_at(disk_->changes() + 1);
  engine_.reset();
  disk_->kill();
}

bool EngineWorld::close() {
  if (failed_ || !did("close", engine_->close())) return false;
  model_.synced_all();
  engine_.reset();
  return true;
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
  if (!problem_.empty()) return;
  for (const InodeId inode : std::exchange(held_, {})) engine_->release(inode, 1);
  if (!remove_all(kRootInode) || !sync_all()) return;
  const EngineCounters counters = engine_->counters();
  const auto space = engine_->space();
  if (counters.live_bytes != 0 || counters.inodes != 1 || !space ||
      space->free_bytes != space->total_bytes)
    problem_ = "an empty volume does not have all its space back";
  model_ = VolumeModel(VolumeContents{});
}

bool EngineWorld::remove_all(InodeId folder) {
  const auto entries = engine_->list(folder, 0, 1000, true);
  if (!did("list", entries)) return false;
  for (const ListEntry& entry : *entries) {
    const std::string& name = entry.dentry.name;
    const bool below = is_directory(entry.attributes);
    if (below && !remove_all(entry.dentry.inode)) return false;
    if (!did("removal",
             below ? engine_->remove_directory(folder, name) : engine_->unlink(folder, name)))
      return false;
  }
  return true;
}

void EngineWorld::run(int steps) {
  for (int i = 0; i < steps && problem_.empty() && step(); ++i) {
  }
}

bool EngineWorld::step() {
  clock_.advance(1'000'000);
  model_.mark();
  if (failed_) return step_after_failure();
  if (faults_ == Faults::kNoSpace) before_ = model_;
  return workload_ == Workload::kWide ? wide_step() : common_step();
}

bool EngineWorld::common_step() {
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

bool EngineWorld::wide_step() {
  using Call = bool (EngineWorld::*)();
  static constexpr Call kCalls[] = {&EngineWorld::exchange,      &EngineWorld::move_folder,
                                    &EngineWorld::remove_folder, &EngineWorld::set_xattr,
                                    &EngineWorld::set_xattr,     &EngineWorld::remove_xattr,
                                    &EngineWorld::hold,          &EngineWorld::hold,
                                    &EngineWorld::let_go,        &EngineWorld::check_attributes,
                                    &EngineWorld::check_keys,    &EngineWorld::check_value,
                                    &EngineWorld::allocate,      &EngineWorld::allocate,
                                    &EngineWorld::allocate,      &EngineWorld::clone,
                                    &EngineWorld::clone,         &EngineWorld::clone,
                                    &EngineWorld::truncate,      &EngineWorld::unlink,
                                    &EngineWorld::check_holes,   &EngineWorld::read_back};
  return random_.one_in(2) ? common_step() : (this->*kCalls[random_.below(std::size(kCalls))])();
}

/// What was confirmed before stays, what is confirmed now holds, and reads go on.
bool EngineWorld::step_after_failure() {
  switch (random_.below(6)) {
    case 0:
      return sync_one();
    case 1:
      return sync_all();
    case 2:
      return background();
    default:
      return read_back();
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
    if (!is_folder(path) && inode != VolumeModel::kUnknown) files.push_back(path);
  return files.empty() ? "" : files[random_.below(files.size())];
}

std::optional<InodeId> EngineWorld::pick_inode() {
  if (workload_ == Workload::kWide && !held_.empty() && random_.one_in(4))
    return *std::next(held_.begin(), static_cast<std::ptrdiff_t>(random_.below(held_.size())));
  const std::string path = pick_file();
  return path.empty() ? std::nullopt : std::optional(model_.names().at(path));
}

/// No zeros, and different for each call and place.
std::string EngineWorld::fresh_bytes(std::size_t size) {
  std::string bytes(size, '\0');
  ++fills_;
  for (std::size_t i = 0; i < size; ++i)
    bytes[i] = static_cast<char>(1 + ((fills_ * 7919 + i) * 0x9E3779B97F4A7C15ull >> 32) % 255);
  return bytes;
}

bool EngineWorld::has_name(InodeId inode) const {
  const auto& names = model_.names();
  return std::any_of(names.begin(), names.end(),
                     [&](const auto& name) { return name.second == inode; });
}

InodeId EngineWorld::folder_of(const std::string& path) const {
  const auto slash = path.rfind('/');
  return slash == std::string::npos ? kRootInode : model_.names().at(path.substr(0, slash));
}

}  // namespace kvsyncfs
