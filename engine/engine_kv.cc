// The key-value face: keys are paths, values are files.
#include <algorithm>

#include "engine/engine_impl.h"
#include "engine/key_list.h"

namespace kvsyncfs {

namespace {

constexpr std::uint32_t kFileMode = 0100644, kDirectoryMode = 0040755;
constexpr std::size_t kListChunk = 1024;
/// Others make, replace or remove a key while a call looks at it: look again.
constexpr int kAttemptsMax = 64;

/// Cuts the first name off `key`. An empty name (leading, doubled or trailing slash) is the
/// caller's error.
std::string_view cut_name(std::string_view& key) {
  const std::size_t slash = key.find('/');
  const std::string_view name = key.substr(0, slash);
  key.remove_prefix(slash == std::string_view::npos ? key.size() : slash + 1);
  return name;
}

bool valid_key(std::string_view key) {
  if (key.empty() || key.back() == '/') return false;
  for (std::string_view rest = key; !rest.empty();) {
    const std::string_view name = cut_name(rest);
    if (name.empty() || name == "." || name == ".." || name.find('\0') != std::string_view::npos)
      return false;
  }
  return true;
}

std::vector<Extent> extents_at(const std::vector<Placed>& placed) {
  std::vector<Extent> extents;
  for (const Placed& p : placed)
    extents.push_back({p.run_offset, p.length, p.segment, p.segment_offset});
  return extents;
}

Transaction whole_value(InodeId inode, const std::vector<Placed>& placed, Timestamp now) {
  SetAttrCommand cut;
  cut.inode = inode;
  cut.size = 0;
  cut.mtime = cut.time = now;
  WriteExtentsCommand fill;
  fill.inode = inode;
  fill.mtime = fill.time = now;
  fill.extents = extents_at(placed);
  return Transaction{{std::move(cut), std::move(fill)}};
}

/// What a call finds that looked a name up and lost its inode, or its place, to another one.
bool lost_race(const Status& status) {
  if (status) return false;
  const Code code = status.error().code;
  return code == Code::kExists || code == Code::kNotFound || code == Code::kStale;
}

}  // namespace

Result<InodeId> EngineImpl::resolve(std::string_view key) {
  if (!valid_key(key)) return Error(Code::kInvalid, std::string(key) + ": not a key");
  InodeId at = kRootInode;
  while (!key.empty()) {
    KVSYNCFS_ASSIGN(const Entry entry, lookup(at, cut_name(key)));
    at = entry.inode;
  }
  return at;
}

Result<InodeId> EngineImpl::make_parents(std::string_view key, std::string_view* name) {
  if (!valid_key(key)) return Error(Code::kInvalid, std::string(key) + ": not a key");
  InodeId at = kRootInode;
  for (;;) {
    *name = cut_name(key);
    if (key.empty()) return at;
    auto entry = lookup(at, *name);
    if (!entry && entry.error().code == Code::kNotFound) {
      NewNode directory;
      directory.mode = kDirectoryMode;
      entry = create(at, *name, directory);
      if (!entry && entry.error().code == Code::kExists) entry = lookup(at, *name);
    }
    if (!entry) return entry.error();
    at = entry->inode;
  }
}

Status EngineImpl::put(std::string_view key, Bytes value) {
  for (int attempt = 1;; ++attempt) {
    std::string_view name;
    KVSYNCFS_ASSIGN(const InodeId parent, make_parents(key, &name));
    const auto entry = lookup(parent, name);
    const bool is_new = !entry && entry.error().code == Code::kNotFound;
    if (!entry && !is_new) return entry.error();
    KVSYNCFS_TRY(is_new ? admit_growth() : admit_change());
    const std::uint64_t space = round_up(value.size(), kPageSize);
    KVSYNCFS_TRY(reserve_space(space, value.size(),
                               is_new ? Replaced{} : Replaced{entry->inode, 0, kFileSizeMax}));
    Status done = is_new ? create_value(parent, name, value, space)
                         : replace_value(entry->inode, value, space);
    if (!lost_race(done) || attempt == kAttemptsMax) return done;
  }
}

Result<std::vector<Placed>> EngineImpl::place_value(Bytes value, std::uint64_t space) {
  auto placed = value.empty() ? Result<std::vector<Placed>>(std::vector<Placed>{})
                              : store_->append(Stream::kUser, {&value, 1});
  store_->unreserve(space);
  if (!placed) return append_failed(placed.error()).error();
  return placed;
}

/// The name comes with its bytes, so that nobody finds it empty.
Status EngineImpl::create_value(InodeId parent, std::string_view name, Bytes value,
                                std::uint64_t space) {
  const UnreferencedAppends::Hold unreferenced(unreferenced_);
  KVSYNCFS_ASSIGN(const auto placed, place_value(value, space));
  CreateFilledCommand create;
  create.parent = parent;
  create.name = name;
  create.mode = kFileMode;
  create.time = clock_.now();
  create.extents = extents_at(placed);
  KVSYNCFS_TRY(commit_one(std::move(create)));
  return {};
}

/// The cut and the new bytes are one transaction, so that a crash keeps both or neither; the
/// inode's lock keeps readers out between them.
Status EngineImpl::replace_value(InodeId inode, Bytes value, std::uint64_t space) {
  const LiveUse live(live_, inode);
  const auto no_flush = lock_flush(live.pointer());
  if (!no_flush) {
    store_->unreserve(space);
    return no_flush.error();
  }
  const UnreferencedAppends::Hold unreferenced(unreferenced_);
  KVSYNCFS_ASSIGN(const auto placed, place_value(value, space));
  std::unique_lock lock(live->mutex);
  KVSYNCFS_TRY(load_size(*live));
  KVSYNCFS_ASSIGN(const auto results, commit(whole_value(inode, placed, clock_.now())));
  for (const CommandResult& result : results) KVSYNCFS_TRY(result.status);
  live->dirty.clear();
  live->mtime.reset();
  live->size = value.size();
  settle(*live);
  return {};
}

Result<std::string> EngineImpl::get(std::string_view key) {
  for (int attempt = 1;; ++attempt) {
    KVSYNCFS_ASSIGN(const InodeId inode, resolve(key));
    // Once it changed while it was read: keep writers out.
    std::optional<LiveUse> live;
    std::unique_lock<std::timed_mutex> no_change;
    if (attempt > 1) {
      KVSYNCFS_ASSIGN(no_change, lock_flush(live.emplace(live_, inode).pointer()));
    }
    auto value = read_value(inode);
    if (value || !lost_race(value.error()) || attempt == kAttemptsMax) return value;
  }
}

Result<std::uint64_t> EngineImpl::settled_change(InodeId inode) const {
  std::lock_guard whole(whole_mutex_);
  KVSYNCFS_ASSIGN(const Inode record, catalog_->inode(inode));
  return record.change;
}

/// Errors: also kStale (it changed between the look at its size and the last byte). The inode's
/// lock keeps this node's own writers out of the middle of their transactions, not the others'.
Result<std::string> EngineImpl::read_value(InodeId inode) {
  KVSYNCFS_ASSIGN(const std::uint64_t before, settled_change(inode));
  KVSYNCFS_ASSIGN(const Inode file, attributes(inode));
  if (is_directory(file)) return Code::kIsDirectory;
  std::string value(file.size, '\0');
  KVSYNCFS_ASSIGN(const std::size_t size,
                  read(inode, 0, {reinterpret_cast<std::byte*>(value.data()), value.size()}));
  KVSYNCFS_ASSIGN(const Inode after, attributes(inode));
  KVSYNCFS_ASSIGN(const std::uint64_t settled, settled_change(inode));
  if (after.change != file.change || settled != before) return Code::kStale;
  value.resize(size);
  return value;
}

Result<std::string> EngineImpl::hybrid_get(std::string_view key, Tier* tier) {
  const std::uint64_t misses = counts_.page_misses.load(std::memory_order_relaxed);
  auto value = get(key);
  // Concurrent readers' misses count as this one's: the tier is a hint for a person, not an
  // account.
  if (tier)
    *tier =
        counts_.page_misses.load(std::memory_order_relaxed) == misses ? Tier::kHot : Tier::kCold;
  return value;
}

Status EngineImpl::remove(std::string_view key) {
  if (!valid_key(key)) return Error(Code::kInvalid, std::string(key) + ": not a key");
  const std::size_t slash = key.rfind('/');
  InodeId parent = kRootInode;
  if (slash != std::string_view::npos) {
    KVSYNCFS_ASSIGN(parent, resolve(key.substr(0, slash)));
  }
  return unlink(parent, slash == std::string_view::npos ? key : key.substr(slash + 1));
}

Result<std::vector<std::string>> EngineImpl::list_keys(std::string_view prefix,
                                                       std::size_t count_max,
                                                       std::string_view after) {
  KeyList keys(prefix, count_max, after);
  KVSYNCFS_TRY(list_below(kRootInode, "", keys));
  return keys.take();
}

Status EngineImpl::list_below(InodeId directory, const std::string& path, KeyList& keys) {
  std::uint64_t cookie = 0;
  for (;;) {
    KVSYNCFS_ASSIGN(const auto entries, catalog_->list(directory, cookie, kListChunk));
    if (entries.empty()) return {};
    for (const Dentry& dentry : entries) {
      cookie = dentry.cookie;
      std::string key = path + dentry.name;
      if (dentry.type != 0040000)
        keys.add(std::move(key));
      else if (const std::string below = key + "/"; keys.wants_below(below))
        KVSYNCFS_TRY(list_below(dentry.inode, below, keys));
    }
  }
}

}  // namespace kvsyncfs
