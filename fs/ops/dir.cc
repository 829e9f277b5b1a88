// Directories: opendir, readdir, readdirplus, releasedir, fsyncdir.
//
// Offsets are the dentries' cookies, which are stable; "." has offset 1 and
// ".." has offset 2, and cookies are larger. For readdir a handle keeps the
// entries that it read ahead, with the cookie they follow on, so that a seek or
// rewind just reads again. For readdirplus nothing is kept: the kernel takes
// names and attributes as true at the time of the request, so an entry that was
// read earlier could bring a removed name or an old size back.
#include <linux/fuse.h>
#include <sys/stat.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "fs/ops/op.h"

namespace kvsyncfs {

namespace {

constexpr std::size_t kChunk = 256;
constexpr std::uint64_t kDotOffset = 1, kDotDotOffset = 2;

struct DirHandle {
  std::mutex mutex;  // the kernel sends one readdir a handle at a time; NFS may not
  std::vector<ListEntry> entries;
  std::uint64_t after = 0;  // `entries` follow this cookie
  bool filled = false;
};

DirHandle& handle(fuse_file_info* fi) { return *reinterpret_cast<DirHandle*>(fi->fh); }

/// Fills one reply buffer; adds entries until one does not fit.
class Listing {
 public:
  Listing(Op& op, std::size_t size, bool plus)
      : op_(op), buffer_(new char[size]), size_(size), plus_(plus) {}

  bool add(const char* name, std::uint64_t offset, InodeId inode, const Inode& attributes) {
    fuse_entry_param e = to_entry(inode, attributes);
    const std::size_t room = size_ - used_;
    const std::size_t size =
        plus_ ? fuse_add_direntry_plus(op_.request(), buffer_.get() + used_, room, name, &e,
                                       static_cast<off_t>(offset))
              : fuse_add_direntry(op_.request(), buffer_.get() + used_, room, name, &e.attr,
                                  static_cast<off_t>(offset));
    if (size > room) return false;
    used_ += size;
    return true;
  }
  bool add(const ListEntry& entry) {
    Inode attributes = entry.attributes;
    if (!plus_) attributes.mode = entry.dentry.type;
    if (!add(entry.dentry.name.c_str(), entry.dentry.cookie, entry.dentry.inode, attributes))
      return false;
    if (plus_) {
      op_.engine().retain(entry.dentry.inode);
      retained_.push_back(entry.dentry.inode);
    }
    return true;
  }
  std::size_t room() const { return size_ - used_; }
  void reply() {
    if (fuse_reply_buf(op_.request(), buffer_.get(), used_) != 0) give_back();
  }
  /// The kernel never saw the entries.
  void give_back() {
    for (InodeId inode : retained_) op_.engine().release(inode);
    retained_.clear();
  }

 private:
  Op& op_;
  const std::unique_ptr<char[]> buffer_;
  const std::size_t size_;
  std::vector<InodeId> retained_;
  std::size_t used_ = 0;
  const bool plus_;
};

/// "." and ".." are not counted as look-ups by the kernel.
bool add_dots(Listing& listing, std::uint64_t offset, InodeId directory, const Inode& inode) {
  Inode dot;
  dot.mode = S_IFDIR;
  const InodeId up = inode.parent.value == 0 ? kRootInode : inode.parent;
  if (offset < kDotOffset && !listing.add(".", kDotOffset, directory, dot)) return false;
  return offset >= kDotDotOffset || listing.add("..", kDotDotOffset, up, dot);
}

/// The next entries after `cookie`, from what the handle has read ahead or from
/// the engine.
Result<std::span<const ListEntry>> next_entries(Op& op, DirHandle& dir, InodeId inode,
                                                std::uint64_t cookie) {
  const auto follows = [cookie](const ListEntry& e) { return e.dentry.cookie > cookie; };
  if (dir.filled && dir.after <= cookie) {
    const auto it = std::find_if(dir.entries.begin(), dir.entries.end(), follows);
    if (it != dir.entries.end()) return std::span<const ListEntry>(it, dir.entries.end());
  }
  KVSYNCFS_ASSIGN(dir.entries, op.engine().list(inode, cookie, kChunk, false));
  dir.after = cookie;
  dir.filled = true;
  return std::span<const ListEntry>(dir.entries);
}

Status fill(Op& op, DirHandle& dir, InodeId inode, std::uint64_t cookie, Listing& listing) {
  for (;;) {
    KVSYNCFS_ASSIGN(const auto entries, next_entries(op, dir, inode, cookie));
    if (entries.empty()) return {};
    for (const ListEntry& entry : entries) {
      if (!listing.add(entry)) return {};
      cookie = entry.dentry.cookie;
    }
  }
}

/// As many entries as fit, no more than a few of them read in vain.
Status fill_plus(Op& op, InodeId inode, std::uint64_t cookie, Listing& listing) {
  constexpr std::size_t kEntrySizeTypical = sizeof(fuse_direntplus) + 16;  // bytes, name included
  for (;;) {
    const std::size_t wanted = std::min(listing.room() / kEntrySizeTypical + 1, kChunk);
    KVSYNCFS_ASSIGN(const auto entries, op.engine().list(inode, cookie, wanted, true));
    for (const ListEntry& entry : entries) {
      if (!listing.add(entry)) return {};
      cookie = entry.dentry.cookie;
    }
    if (entries.size() < wanted) return {};
  }
}

/// Fills the reply; the handle's lock is gone before it goes out, because it lets the kernel send
/// the releasedir that destroys the handle.
Status fill_reply(Op& op, DirHandle& dir, InodeId directory, std::uint64_t offset, bool plus,
                  Listing& listing) {
  KVSYNCFS_ASSIGN(const Inode inode, op.engine().attributes(directory));
  const std::uint64_t cookie = std::max(offset, kDotDotOffset);
  if (!add_dots(listing, offset, directory, inode)) return {};
  if (plus) return fill_plus(op, directory, cookie, listing);
  std::lock_guard lock(dir.mutex);
  if (offset == 0) dir.filled = false;  // rewinddir(3) sees what is new
  return fill(op, dir, directory, cookie, listing);
}

void read_entries(Op& op, fuse_ino_t ino, std::size_t size, off_t off, fuse_file_info* fi,
                  bool plus) {
  Listing listing(op, size, plus);
  const Status filled =
      fill_reply(op, handle(fi), id(ino), static_cast<std::uint64_t>(off), plus, listing);
  if (filled) return listing.reply();
  listing.give_back();
  op.error(filled.error());
}

void open_dir(fuse_req_t req, fuse_ino_t, fuse_file_info* fi) {
  Op op(req, OpKind::kOpendir);
  auto dir = std::make_unique<DirHandle>();
  fi->fh = reinterpret_cast<std::uint64_t>(dir.get());
  if (fuse_reply_open(req, fi) == 0) (void)dir.release();  // releasedir deletes it
}

void read_dir(fuse_req_t req, fuse_ino_t ino, std::size_t size, off_t off, fuse_file_info* fi) {
  Op op(req, OpKind::kReaddir);
  read_entries(op, ino, size, off, fi, false);
}

void read_dir_plus(fuse_req_t req, fuse_ino_t ino, std::size_t size, off_t off,
                   fuse_file_info* fi) {
  Op op(req, OpKind::kReaddirplus);
  read_entries(op, ino, size, off, fi, true);
}

void release_dir(fuse_req_t req, fuse_ino_t, fuse_file_info* fi) {
  Op op(req, OpKind::kReleasedir);
  const std::unique_ptr<DirHandle> dir(&handle(fi));
  op.done({});
}

void sync_dir(fuse_req_t req, fuse_ino_t ino, int, fuse_file_info*) {
  Op op(req, OpKind::kFsyncdir);
  op.done(op.engine().sync(id(ino)));
}

}  // namespace

void add_dir_ops(fuse_lowlevel_ops& ops) {
  ops.opendir = open_dir;
  ops.readdir = read_dir;
  ops.readdirplus = read_dir_plus;
  ops.releasedir = release_dir;
  ops.fsyncdir = sync_dir;
}

}  // namespace kvsyncfs
