// The calls of a history that change, move, sync or read bytes.
#include <algorithm>

#include "tests/sim/engine_world.h"
#include "tests/sim/engine_world_words.h"

namespace kvsyncfs {

bool EngineWorld::write() {
  if (workload_ == Workload::kWide) {
    const auto inode = pick_inode();
    return inode ? write_file(*inode) : create(false);
  }
  const std::string path = pick_file();
  return path.empty() ? create(false) : write_file(model_.names().at(path));
}

bool EngineWorld::write_file(InodeId file) {
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
  return did("write",
             engine_->write(file, options.append ? 0 : offset, as_bytes(bytes), options)) ||
         goes_on();
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
  if (!did("truncate", engine_->set_attributes(file, change))) return goes_on();
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
    if (!did("put", engine_->put(path, as_bytes(value)))) return goes_on();
    model_.committed(file);
    return true;
  }
  const auto slash = path.find('/');
  const std::string folder = slash == std::string::npos ? "" : path.substr(0, slash);
  const bool makes_folder = !folder.empty() && !model_.names().contains(folder);
  model_.begin_value(path, value);
  const Outcome done = outcome("put", engine_->put(path, as_bytes(value)));
  if (done == Outcome::kStop || failed_) return goes_on();
  if (makes_folder) {
    const auto made = engine_->lookup(kRootInode, folder);
    if (done == Outcome::kRefused && !made && made.error().code == Code::kNotFound) return true;
    if (!did("lookup", made)) return goes_on();
    if (done == Outcome::kRefused) {
      VolumeModel::Names next = model_.names();
      next[folder] = made->inode;
      model_.begin_names(std::move(next));
    }
    model_.created(folder, made->inode, true);
  }
  if (done == Outcome::kRefused) return true;
  const auto entry = engine_->lookup(folder_of(path), last_name(path));
  if (!did("lookup", entry)) return goes_on();
  model_.created(path, entry->inode, false, value);
  return true;
}

bool EngineWorld::allocate() {
  const auto inode = pick_inode();
  if (!inode) return true;
  const auto mode = static_cast<AllocateMode>(random_.below(5));
  const std::uint64_t offset = random_.below(kOffsetMax), size = 1 + random_.below(kOffsetMax);
  const bool zeros = mode != AllocateMode::kReserve && mode != AllocateMode::kReserveKeepSize;
  const bool grows = mode == AllocateMode::kReserve || mode == AllocateMode::kZeroRange;
  std::string next = model_.bytes(*inode);
  const std::uint64_t old_size = next.size();
  if (grows && offset + size > old_size) next.resize(offset + size);
  if (zeros && offset < next.size())
    std::fill(next.begin() + static_cast<std::ptrdiff_t>(offset),
              next.begin() + static_cast<std::ptrdiff_t>(std::min(offset + size, next.size())),
              '\0');
  model_.written_in_parts(*inode);
  const bool changes = next != model_.bytes(*inode);
  if (changes) model_.begin_bytes(*inode, std::move(next));
  // The size goes into the log at once, the bytes beyond it perhaps never.
  if (grows && offset + size < old_size) model_.begin_size(*inode, offset + size);
  if (!did("allocate", engine_->allocate(*inode, offset, size, mode))) return goes_on();
  if (zeros) model_.committed(*inode);
  if (grows && offset + size > old_size) model_.cut(*inode);
  return true;
}

bool EngineWorld::clone() {
  const auto source = pick_inode(), target = pick_inode();
  if (!source || !target) return true;
  const std::string& from = model_.bytes(*source);
  const std::uint64_t source_offset = random_.below(kOffsetMax);
  const std::uint64_t target_offset = random_.below(kOffsetMax);
  const std::uint64_t asked = 1 + random_.below(kOffsetMax);
  const std::uint64_t size =
      source_offset < from.size() ? std::min<std::uint64_t>(asked, from.size() - source_offset) : 0;
  const bool overlaps = *source == *target && source_offset < target_offset + size &&
                        target_offset < source_offset + size;
  std::string next = model_.bytes(*target);
  model_.written_in_parts(*target);
  if (size > 0 && !overlaps) {
    if (next.size() < target_offset + size) next.resize(target_offset + size);
    next.replace(target_offset, size, from, source_offset, size);
    model_.begin_bytes(*target, std::move(next));
  }
  const auto cloned = engine_->clone_range(*source, source_offset, *target, target_offset, asked);
  if (overlaps && !cloned && cloned.error().code == Code::kInvalid) return true;
  if (!did("clone_range", cloned)) return goes_on();
  if (overlaps || *cloned != size) problem_ = "clone_range: not the length that is there";
  model_.committed(*source);
  model_.committed(*target);
  return problem_.empty();
}

bool EngineWorld::sync_one() {
  const auto inode = pick_inode();
  if (!inode) return true;
  if (!did("sync", engine_->sync(*inode))) return goes_on();
  model_.synced(*inode);
  return true;
}

bool EngineWorld::sync_all() {
  if (!did("sync_all", engine_->sync_all())) return goes_on();
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
  const auto inode = pick_inode();
  if (!inode) return true;
  const std::string& expected = model_.bytes(*inode);
  std::string found;
  if (failed_) {
    // What was refused may have been to grow or to cut the file.
    found.assign(kOffsetMax + kWriteSizeMax, '?');
    const auto count = engine_->read(*inode, 0, bytes_of(found));
    if (!did("read", count)) return goes_on();
    found.resize(*count);
    if (const std::string wrong = model_.check_doubtful(*inode, found); !wrong.empty())
      problem_ = "read after a fault: " + wrong;
    return problem_.empty();
  }
  if (!read(*inode, expected.size(), found)) return goes_on();
  if (found != expected) problem_ = "read: not what was written";
  return problem_.empty();
}

/// What seek() calls a hole has zeros only.
bool EngineWorld::check_holes() {
  const auto inode = pick_inode();
  if (!inode) return true;
  const std::string& bytes = model_.bytes(*inode);
  for (std::uint64_t at = 0; at < bytes.size();) {
    const auto data = engine_->seek(*inode, at, SeekKind::kData);
    const bool none = !data && data.error().code == Code::kNoSuchRange;
    if (!none && !did("seek", data)) return goes_on();
    const std::uint64_t begin = none ? bytes.size() : *data;
    if (std::any_of(bytes.begin() + static_cast<std::ptrdiff_t>(at),
                    bytes.begin() + static_cast<std::ptrdiff_t>(begin),
                    [](char c) { return c != '\0'; }))
      problem_ = "seek: data in a hole";
    if (none || !problem_.empty()) break;
    const auto hole = engine_->seek(*inode, begin, SeekKind::kHole);
    if (!did("seek", hole)) return goes_on();
    if (*hole <= begin || *hole > bytes.size()) problem_ = "seek: a hole before its data";
    if (!problem_.empty()) break;
    at = *hole;
  }
  return problem_.empty();
}

}  // namespace kvsyncfs
