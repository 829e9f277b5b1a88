// Directories: opendir, readdir, readdirplus, fsyncdir.
//
// Offsets are the dentries' cookies, which are stable; "." has offset 1 and
// ".." has offset 2, and cookies are larger. So a stream needs no state here:
// each request says where to go on. Nothing is read ahead for a later request
// either: the kernel takes names and attributes as true at the time of the
// request, so an entry that was read earlier could bring a removed name or an
// old size back.
#include <linux/fuse.h>
#include <sys/stat.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "fs/ops/op.h"

namespace kvsyncfs {

namespace {

constexpr std::size_t kChunk = 256;
constexpr std::uint64_t kDotOffset = 1, kDotDotOffset = 2;

/// Fills one reply buffer; adds entries until one does not fit.
class Listing {
 public:
  Listing(Op& op, std::size_t size, bool plus)
      : op_(op), buffer_(new char[size]), size_(size), plus_(plus) {}

  bool add(const char* name, std::uint64_t offset, InodeId inode, const Inode& attributes) {
    fuse_entry_param e = to_entry(op_.face(), inode, attributes);
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
  bool plus() const { return plus_; }
  /// Bytes of a typical entry with its name.
  std::size_t entry_size() const {
    return (plus_ ? sizeof(fuse_direntplus) : sizeof(fuse_dirent)) + 16;
  }
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

/// As many entries as fit, no more than a few of them read in vain.
Status fill(Op& op, InodeId inode, std::uint64_t cookie, Listing& listing) {
  const std::uint64_t end = op.face().listing_bounds.end(inode);
  for (;;) {
    const std::size_t wanted = std::min(listing.room() / listing.entry_size() + 1, kChunk);
    KVSYNCFS_ASSIGN(const auto entries, op.engine().list(inode, cookie, wanted, listing.plus()));
    for (const ListEntry& entry : entries) {
      if (entry.dentry.cookie > end || !listing.add(entry)) return {};
      cookie = entry.dentry.cookie;
    }
    if (entries.size() < wanted) return {};
  }
}

Status fill_reply(Op& op, InodeId directory, std::uint64_t offset, Listing& listing) {
  if (offset == 0) op.face().listing_bounds.begin(directory, op.engine().newest_cookie());
  KVSYNCFS_ASSIGN(const Inode inode, op.engine().attributes(directory));
  if (!add_dots(listing, offset, directory, inode)) return {};
  return fill(op, directory, std::max(offset, kDotDotOffset), listing);
}

void read_entries(Op& op, fuse_ino_t ino, std::size_t size, off_t off, bool plus) {
  Listing listing(op, size, plus);
  const Status filled = fill_reply(op, id(ino), static_cast<std::uint64_t>(off), listing);
  if (filled) return listing.reply();
  listing.give_back();
  op.error(filled.error());
}

/// ARCHITECTURE, "Nothing is opened". In a cluster the kernel may keep no listing.
void open_dir(fuse_req_t req, fuse_ino_t ino, fuse_file_info* fi) {
  Op op(req, OpKind::kOpendir);
  if (!op.face().clustered) return op.unimplemented();
  const auto opened = op.engine().open_handle(id(ino));
  if (!opened) return op.error(opened.error());
  if (fuse_reply_open(req, fi) != 0) op.engine().close_handle(id(ino));
}

void release_dir(fuse_req_t req, fuse_ino_t ino, fuse_file_info*) {
  Op op(req, OpKind::kRelease);
  if (op.face().clustered) op.engine().close_handle(id(ino));
  op.done({});
}

void read_dir(fuse_req_t req, fuse_ino_t ino, std::size_t size, off_t off, fuse_file_info*) {
  Op op(req, OpKind::kReaddir);
  read_entries(op, ino, size, off, false);
}

void read_dir_plus(fuse_req_t req, fuse_ino_t ino, std::size_t size, off_t off, fuse_file_info*) {
  Op op(req, OpKind::kReaddirplus);
  read_entries(op, ino, size, off, true);
}

void sync_dir(fuse_req_t req, fuse_ino_t ino, int, fuse_file_info*) {
  Op op(req, OpKind::kFsyncdir);
  op.done(op.engine().sync(id(ino)));
}

}  // namespace

void add_dir_ops(fuse_lowlevel_ops& ops) {
  ops.opendir = open_dir;
  ops.releasedir = release_dir;
  ops.readdir = read_dir;
  ops.readdirplus = read_dir_plus;
  ops.fsyncdir = sync_dir;
}

}  // namespace kvsyncfs
