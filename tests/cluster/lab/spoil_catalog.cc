// Makes the catalog of a store that is not mounted differ from those of the other nodes, as a fault
// of a machine might: a file of the root directory gets another owner.
// usage: spoil_catalog STORE NAME
#include <fmt/format.h>

#include "engine/catalog/keys.h"
#include "engine/catalog/snapshot.h"
#include "engine/catalog_folder.h"
#include "engine/env/real.h"
#include "engine/format/codec.h"

namespace kvsyncfs {
namespace {

constexpr std::uint32_t kOtherOwner = 12'345;

CatalogOptions options_of(const std::string& directory) {
  CatalogOptions options;
  options.directory = directory;
  return options;
}

/// The piece with another owner in the record of the inode, if that is in it.
Result<std::string> spoiled(const std::string& piece, InodeId victim) {
  std::string out;
  Writer w(out);
  for (Reader in(piece); in.left() > 0;) {
    const std::uint32_t key_size = in.u32(), value_size = in.u32();
    const std::string_view key = in.raw(key_size);
    std::string value(in.raw(value_size));
    if (key == inode_key(victim).view()) {
      KVSYNCFS_ASSIGN(Inode inode, decode_inode(value));
      inode.uid = kOtherOwner;
      value = encode(inode);
    }
    w.u32(key_size);
    w.u32(static_cast<std::uint32_t>(value.size()));
    w.raw(key);
    w.raw(value);
  }
  return out;
}

Status spoil(Disk& disk, const std::string& store, const std::string& name) {
  KVSYNCFS_ASSIGN(const std::string present, catalog_folder(disk, store));
  KVSYNCFS_ASSIGN(const std::string spare, spare_catalog_folder(disk, store));
  KVSYNCFS_TRY(remove_catalog(disk, spare));
  KVSYNCFS_ASSIGN(const auto catalog, Catalog::open(disk, options_of(present)));
  KVSYNCFS_ASSIGN(const Dentry victim, catalog->lookup(kRootInode, name));
  KVSYNCFS_ASSIGN(const auto snapshot, catalog->snapshot());
  KVSYNCFS_ASSIGN(const auto builder, CatalogBuilder::make(disk, options_of(spare)));
  for (;;) {
    KVSYNCFS_ASSIGN(const std::string piece,
                    snapshot->records_after(builder->last_key(), std::size_t{1} << 20));
    if (piece.empty()) break;
    KVSYNCFS_ASSIGN(const std::string changed, spoiled(piece, victim.inode));
    KVSYNCFS_TRY(builder->add(changed));
  }
  KVSYNCFS_TRY(builder->finish());
  return swap_catalog_folders(disk, store);
}

}  // namespace
}  // namespace kvsyncfs

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const auto disk = kvsyncfs::make_real_disk();
  const kvsyncfs::Status done = kvsyncfs::spoil(*disk, argv[1], argv[2]);
  if (!done) fmt::print(stderr, "spoil_catalog: {}\n", kvsyncfs::describe(done.error()));
  return done ? 0 : 1;
}
