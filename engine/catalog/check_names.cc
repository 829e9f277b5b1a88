// fsck of entries, listings and the tree that they make.
#include <fmt/format.h>

#include <algorithm>

#include "engine/catalog/apply.h"
#include "engine/catalog/check.h"
#include "engine/catalog/paths.h"

namespace kvsyncfs {

namespace {

constexpr std::uint32_t kDirectoryType = 0040000, kLostAndFoundMode = 0040700;
constexpr std::string_view kLostAndFound = "lost+found";

}  // namespace

Status CatalogCheck::visit_dentry(std::string_view key, std::string_view value) {
  const InodeId parent{number_in_key(key, 0)};
  const std::string_view name = name_in_key(key);
  auto dentry = decode_dentry(key, value);
  if (!dentry || !check_name(name)) {
    problem(Mends::kYes, Of::kDirectory, parent.value, "the entry '{}' does not decode",
            printable(name));
    mending_.erase(key);
    return {};
  }
  ++inodes_[parent].entries;
  KVSYNCFS_TRY(check_listing(parent, *dentry));
  if (find(parent) == nullptr || find(dentry->inode) == nullptr) {
    inodes_[dentry->inode];
    undecided_.push_back({parent, *dentry});
  } else {
    settle_entry(parent, *dentry);
  }
  return {};
}

/// Where listing and entry differ the entry is right. Two entries with one cookie: one gets
/// another.
Status CatalogCheck::check_listing(InodeId parent, Dentry& dentry) {
  KVSYNCFS_ASSIGN(const auto listing, tables_.get(cookie_key(parent, dentry.cookie).view()));
  bool free = dentry.cookie >= kCookieMin;
  if (free && listing && *listing == encode_listing(dentry)) return {};
  problem(Mends::kYes, Of::kDirectory, parent.value, "entry '{}' is not listed",
          printable(dentry.name));
  if (free && listing) {
    const Key key = cookie_key(parent, dentry.cookie);
    const auto other = decode_listing(key.view(), *listing);
    if (other && other->name != dentry.name) {
      const auto owner = tables_.dentry(parent, other->name);
      free = !(owner && *owner && (*owner)->cookie == dentry.cookie);
    }
  }
  if (!free) {
    const std::uint64_t highest =
        dentry.cookie < kCookieMin ? dentry.inode.value + kCookieMin : dentry.cookie - 1;
    KVSYNCFS_ASSIGN(dentry.cookie, mending_.free_cookie(parent, highest));
  }
  mending_.put_entry(parent, dentry);
  return {};
}

Status CatalogCheck::visit_listing(std::string_view key, std::string_view value) {
  const InodeId parent{number_in_key(key, 0)};
  const auto listing = decode_listing(key, value);
  if (!listing || key.size() != cookie_key(parent, 0).view().size() || !check_name(listing->name)) {
    problem(Mends::kYes, Of::kDirectory, parent.value, "a listing does not decode");
    mending_.erase(key);
    return {};
  }
  const Key entry_key = dentry_key(parent, listing->name);
  KVSYNCFS_ASSIGN(const auto value_of_entry, tables_.get(entry_key.view()));
  const auto dentry = value_of_entry ? decode_dentry(entry_key.view(), *value_of_entry)
                                     : Result<Dentry>(Code::kNotFound);
  if (!dentry) {
    lone_listings_.push_back({parent, *listing});
  } else if (dentry->cookie != listing->cookie) {
    problem(Mends::kYes, Of::kDirectory, parent.value, "lists '{}', which is no entry",
            printable(listing->name));
    mending_.erase(key);
  }
  return {};
}

/// Counts one entry, whose listing is in order; or drops it.
void CatalogCheck::settle_entry(InodeId parent, const Dentry& dentry) {
  Found* directory = find(parent);
  Found* child = find(dentry.inode);
  const auto drop = [&](std::string_view why) {
    problem(Mends::kYes, Of::kDirectory, parent.value, "entry '{}' {}", printable(dentry.name),
            why);
    drop_entry(parent, dentry);
  };
  if (directory == nullptr || !is_directory(*directory)) return drop("is in no directory");
  if (child == nullptr)
    return drop(fmt::format("names inode {} that does not exist", dentry.inode.value));
  if (dentry.inode == kRootInode) return drop("names the root");
  Dentry right = dentry;
  right.type = child->mode & kTypeMask;
  if (right.type != dentry.type) {
    problem(Mends::kYes, Of::kDirectory, parent.value, "entry '{}' has another type than inode {}",
            printable(dentry.name), dentry.inode.value);
    mending_.put_entry(parent, right);
  }
  if (!is_directory(*child)) {
    ++child->names;
    return;
  }
  if (child->made && child->names == 0) child->parent = parent;
  if (child->parent != parent || child->names > 0) {
    second_names_.push_back({parent, right});
    return;
  }
  child->names = 1;
  ++directory->subdirectories;
}

void CatalogCheck::drop_entry(InodeId parent, const Dentry& dentry) {
  mending_.erase_entry(parent, dentry);
  --inodes_[parent].entries;
}

/// A directory has one name: that in its parent, or else the first one found.
void CatalogCheck::settle_second_names() {
  for (const auto& [parent, dentry] : second_names_) {
    Found& child = inodes_[dentry.inode];
    if (child.names > 0) {
      problem(Mends::kYes, Of::kInode, dentry.inode.value,
              "directory with another name, '{}' in directory {}", printable(dentry.name),
              parent.value);
      drop_entry(parent, dentry);
      continue;
    }
    problem(Mends::kYes, Of::kInode, dentry.inode.value, "says its parent is {}, but {} names it",
            child.parent.value, parent.value);
    child.parent = parent;
    child.changed = true;
    child.names = 1;
    ++inodes_[parent].subdirectories;
  }
  second_names_.clear();
}

/// A listing without an entry is one again where its inode misses a name, and else nothing.
void CatalogCheck::settle_listings() {
  std::set<std::pair<InodeId, std::string>> taken;
  for (const auto& [parent, listing] : lone_listings_) {
    Found* directory = find(parent);
    Found* child = find(listing.inode);
    bool restores = directory != nullptr && is_directory(*directory) && child != nullptr &&
                    listing.inode != kRootInode && !child->orphan && listing.cookie >= kCookieMin;
    if (restores) {
      restores = is_directory(*child) ? child->names == 0 : child->names < child->link_count;
      restores = restores && taken.emplace(parent, listing.name).second;
    }
    problem(Mends::kYes, Of::kDirectory, parent.value, "lists '{}', which is no entry{}",
            printable(listing.name), restores ? ", but was one" : "");
    if (restores) {
      mending_.put_entry(parent, listing);
      ++directory->entries;
      settle_entry(parent, listing);
      settle_second_names();
    } else {
      mending_.erase(cookie_key(parent, listing.cookie).view());
    }
  }
}

/// Directories that hold each other lose one name, and with it become what has no name.
Status CatalogCheck::settle_cycles() {
  std::vector<InodeId> directories;
  for (const auto& [id, found] : inodes_)
    if (found.exists && is_directory(found) && found.names > 0) directories.push_back(id);
  std::sort(directories.begin(), directories.end());
  for (const InodeId id : directories) {
    InodeId cut;
    if (reaches_root(id, &cut)) continue;
    Found& found = inodes_[cut];
    const InodeId parent = found.parent;
    problem(Mends::kYes, Of::kInode, cut.value, "directory cannot be reached from the root");
    const std::string begin(Key('d').number(parent.value).view());
    const std::string end(Key('d').number(parent.value + 1).view());
    KVSYNCFS_TRY(tables_.scan(begin, end, [&](std::string_view key, std::string_view value) {
      const auto dentry = decode_dentry(key, value);
      if (dentry && dentry->inode == cut) drop_entry(parent, *dentry);
      return Status{};
    }));
    found.names = 0;
    --inodes_[parent].subdirectories;
  }
  return {};
}

/// Follows parents; what was reached before is known, so all walks together visit each directory
/// once. What has no name is going to get one.
bool CatalogCheck::reaches_root(InodeId id, InodeId* on_cycle) {
  std::vector<Found*> path;
  bool reached = true;
  for (InodeId at = id; at != kRootInode; at = path.back()->parent) {
    Found& found = inodes_[at];
    if (found.walk == Walk::kReached || found.names == 0) break;
    if (found.walk == Walk::kOnPath) {
      *on_cycle = at;
      reached = false;
      break;
    }
    found.walk = Walk::kOnPath;
    path.push_back(&found);
  }
  for (Found* found : path) found->walk = Walk::kReached;
  return reached;
}

Status CatalogCheck::settle_nameless() {
  std::vector<InodeId> nameless;
  for (const auto& [id, found] : inodes_)
    if (found.exists && id != kRootInode && found.names == 0 && !is_true_orphan(found))
      nameless.push_back(id);
  std::sort(nameless.begin(), nameless.end());
  for (const InodeId id : nameless) {
    Found& found = inodes_[id];
    if (!found.made)
      problem(Mends::kYes, Of::kInode, id.value, "{}",
              found.orphan ? "is an orphan with links or entries" : "has no name and is no orphan");
    KVSYNCFS_TRY(give_name(id, found));
  }
  return {};
}

/// The directory of that name in the root; made if there is none.
Result<InodeId> CatalogCheck::lost_and_found() {
  if (lost_and_found_ != InodeId{}) return lost_and_found_;
  Found& root = inodes_[kRootInode];
  const auto entry = tables_.dentry(kRootInode, kLostAndFound);
  if (!entry && entry.error().code == Code::kIo) return entry.error();
  if (entry && *entry) {
    const Found* there = find((*entry)->inode);
    if (there != nullptr && is_directory(*there) && there->names > 0 && there->parent == kRootInode)
      return lost_and_found_ = (*entry)->inode;
  }
  const bool is_free = entry && !*entry;
  std::string name(kLostAndFound);
  if (!is_free) name += fmt::format(".{}", spare_id_.value);
  mending_.put_entry(kRootInode, {spare_id_, kDirectoryType, spare_id_.value + kCookieMin, name});
  ++root.entries;
  ++root.subdirectories;
  ++root.link_count;
  root.changed = true;
  Found& made = inodes_[spare_id_];
  made.exists = made.made = made.changed = true;
  made.mode = kLostAndFoundMode;
  made.parent = kRootInode;
  made.names = 1;
  return lost_and_found_ = spare_id_;
}

Status CatalogCheck::give_name(InodeId id, Found& found) {
  KVSYNCFS_ASSIGN(const InodeId parent, lost_and_found());
  Dentry dentry{id, found.mode & kTypeMask, 0, fmt::format("#{}", id.value)};
  for (int again = 2;; ++again) {
    KVSYNCFS_ASSIGN(const auto taken, tables_.get(dentry_key(parent, dentry.name).view()));
    if (!taken) break;
    dentry.name = fmt::format("#{}.{}", id.value, again);
  }
  KVSYNCFS_ASSIGN(dentry.cookie, mending_.free_cookie(parent, id.value + kCookieMin));
  mending_.put_entry(parent, dentry);
  if (found.orphan) mending_.erase(orphan_key(id).view());
  found.orphan = false;
  found.names = 1;
  Found& directory = inodes_[parent];
  ++directory.entries;
  if (!is_directory(found)) return {};
  found.parent = parent;
  found.changed = true;
  ++directory.subdirectories;
  ++directory.link_count;
  directory.changed = true;
  return {};
}

}  // namespace kvsyncfs
