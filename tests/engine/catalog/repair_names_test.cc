// fsck --repair of inodes and their names: one kind of damage at a time. What can be known
// is put right at once, what was good stays, and what cannot be known is left and told.
#include "tests/engine/catalog/fsck_fixture.h"

namespace kvsyncfs {
namespace {

TEST_F(CatalogRepair, CleanCatalogIsNotTouched) {
  const std::uint32_t digest = catalog.digest();
  repair([](auto&) {});
  EXPECT_EQ(mending.size(), 0u);
  EXPECT_EQ(left, 0u);
  EXPECT_EQ(catalog.digest(), digest);
}

TEST_F(CatalogRepair, LinkCountIsThatOfTheNames) {
  for (const InodeId id : {file, directory, kRootInode}) {
    const Inode before = catalog.inode(id);
    Inode wrong = before;
    wrong.link_count = 77;
    repair([&](auto& batch) { put(batch, inode_key(id), encode(wrong)); });
    expect_mended("link count is");
    EXPECT_EQ(catalog.inode(id).link_count, before.link_count);
  }
}

TEST_F(CatalogRepair, EntryOfNoInodeGoes) {
  repair([&](auto& batch) { batch.Delete(inode_key(empty).view()); });
  expect_mended("entry 'e' names inode");
  EXPECT_EQ(catalog.names(directory), (std::vector<std::string>{"f", "sub"}));
  EXPECT_EQ(catalog->totals().inodes, 5u);
}

TEST_F(CatalogRepair, MissingRecordOfAFileWithBytesIsMade) {
  for (const bool junk : {false, true}) {
    repair([&](auto& batch) {
      batch.Delete(inode_key(file).view());
      if (junk) put(batch, inode_key(file), "junk");
    });
    expect_mended(junk ? "record does not decode" : "has no record");
    const Inode made = catalog.inode(file);
    EXPECT_EQ(made.mode, kRegular | 0600u);
    EXPECT_EQ(made.size, 250u);
    EXPECT_EQ(catalog.extents(file), file_extents);
    EXPECT_EQ(catalog->lookup(directory, "f")->inode, file);
    EXPECT_EQ(*catalog->xattr(file, "user.a"), "1");
  }
}

TEST_F(CatalogRepair, MissingRecordOfADirectoryWithEntriesIsMade) {
  for (const InodeId id : {directory, kRootInode}) {
    repair([&](auto& batch) { batch.Delete(inode_key(id).view()); });
    expect_mended("has no record, but");
    EXPECT_EQ(catalog->lookup(kRootInode, "d")->inode, directory);
    EXPECT_EQ(catalog->lookup(directory, "f")->inode, file);
    EXPECT_EQ(catalog.inode(directory).parent, kRootInode);
  }
}

TEST_F(CatalogRepair, InodeWithoutANameGoesToLostAndFound) {
  repair([&](auto& batch) {
    batch.Delete(dentry_key(directory, "f").view());
    batch.Delete(cookie_key(directory, cookie).view());
  });
  expect_mended("(/lost+found/" + number(file) + "): has no name and is no orphan");
  EXPECT_EQ(found_again().name, number(file));
  EXPECT_EQ(catalog.inode(file).link_count, 1u);
  EXPECT_EQ(catalog.extents(file), file_extents);
}

TEST_F(CatalogRepair, DirectoryWithoutANameKeepsWhatIsInIt) {
  const Dentry entry = catalog->lookup(kRootInode, "d").value();
  repair([&](auto& batch) {
    batch.Delete(dentry_key(kRootInode, "d").view());
    batch.Delete(cookie_key(kRootInode, entry.cookie).view());
  });
  expect_mended("has no name");
  EXPECT_EQ(found_again().inode, directory);
  EXPECT_EQ(catalog->lookup(directory, "f")->inode, file);
  EXPECT_EQ(catalog.inode(directory).parent, catalog->lookup(kRootInode, "lost+found")->inode);
}

TEST_F(CatalogRepair, LostAndFoundIsUsedAgainAndNeverOverwritten) {
  const InodeId there = catalog.directory("lost+found");
  catalog.file(number(file), there);
  catalog.checkpoint();
  repair([&](auto& batch) {
    batch.Delete(dentry_key(directory, "f").view());
    batch.Delete(cookie_key(directory, cookie).view());
  });
  expect_mended("has no name");
  EXPECT_EQ(catalog->lookup(there, number(file) + ".2")->inode, file);

  catalog.run(catalog.rename(kRootInode, "lost+found", kRootInode, "other"));
  catalog.file("lost+found");
  catalog.checkpoint();
  const Dentry entry = catalog->lookup(directory, "e").value();
  repair([&](auto& batch) {
    batch.Delete(dentry_key(directory, "e").view());
    batch.Delete(cookie_key(directory, entry.cookie).view());
  });
  expect_mended("has no name");
  EXPECT_EQ(catalog.inode(catalog->lookup(kRootInode, "lost+found")->inode).mode & kTypeMask,
            kRegular);
}

TEST_F(CatalogRepair, OrphanWithANameLosesTheOrphanRecordOnly) {
  repair([&](auto& batch) { put(batch, orphan_key(file), encode(OrphanRecord{})); });
  expect_mended("is an orphan with names");
  EXPECT_TRUE(catalog->orphans()->empty());
  EXPECT_EQ(catalog.extents(file), file_extents);
}

TEST_F(CatalogRepair, OrphanRecordOfNothingGoes) {
  repair([&](auto& batch) { put(batch, orphan_key({4711}), encode(OrphanRecord{})); });
  expect_mended("is an orphan and does not exist");
  EXPECT_TRUE(catalog->orphans()->empty());
}

TEST_F(CatalogRepair, OrphanThatSomethingSpeaksAgainstIsKept) {
  Inode inode = catalog.inode(file);
  inode.link_count = 1;
  repair([&](auto& batch) {
    batch.Delete(dentry_key(directory, "f").view());
    batch.Delete(cookie_key(directory, cookie).view());
    put(batch, orphan_key(file), encode(OrphanRecord{}));
  });
  expect_mended("is an orphan with links or entries");
  EXPECT_EQ(found_again().inode, file);
}

TEST_F(CatalogRepair, TrueOrphanIsNoProblem) {
  catalog.run(catalog.unlink("f", directory));
  catalog.checkpoint();
  repair([](auto&) {});
  EXPECT_EQ(left, 0u);
  EXPECT_EQ(catalog->orphans()->size(), 1u);
}

TEST_F(CatalogRepair, EntryIsListedAgain) {
  repair([&](auto& batch) { batch.Delete(cookie_key(directory, cookie).view()); });
  expect_mended("(/d): entry 'f' is not listed");
  EXPECT_EQ(catalog.names(directory), (std::vector<std::string>{"f", "e", "sub"}));
}

TEST_F(CatalogRepair, TwoEntriesWithOneCookieAreBothListed) {
  const Dentry entry = catalog->lookup(directory, "e").value();
  repair([&](auto& batch) {
    Dentry same = entry;
    same.cookie = cookie;
    batch.Delete(cookie_key(directory, entry.cookie).view());
    put(batch, dentry_key(directory, "e"), encode_dentry(same));
  });
  expect_mended("entry 'e' is not listed");
  EXPECT_EQ(catalog.names(directory), (std::vector<std::string>{"e", "f", "sub"}));
}

TEST_F(CatalogRepair, ListingWithoutAnEntryIsOneAgainIfItsInodeMissesAName) {
  repair([&](auto& batch) { batch.Delete(dentry_key(directory, "f").view()); });
  expect_mended("lists 'f', which is no entry, but was one");
  EXPECT_EQ(catalog->lookup(directory, "f")->inode, file);
  repair([&](auto& batch) { put(batch, dentry_key(directory, "f"), "junk"); });
  expect_mended("the entry 'f' does not decode");
  EXPECT_EQ(catalog->lookup(directory, "f")->inode, file);
  repair([&](auto& batch) { batch.Delete(dentry_key(directory, "sub").view()); });
  EXPECT_EQ(catalog->lookup(directory, "sub")->inode, below);
}

TEST_F(CatalogRepair, ListingOfNothingGoes) {
  repair([&](auto& batch) {
    put(batch, cookie_key(directory, 5), encode_listing({file, kRegular, 5, "ghost"}));
    put(batch, cookie_key(directory, 6), "junk");
  });
  expect_mended("lists 'ghost', which is no entry");
  EXPECT_EQ(catalog.names(directory), (std::vector<std::string>{"f", "e", "sub"}));
}

TEST_F(CatalogRepair, EntryHasTheTypeOfItsInode) {
  const Dentry wrong{file, kSymlink, cookie, "f"};
  repair([&](auto& batch) {
    put(batch, dentry_key(directory, "f"), encode_dentry(wrong));
    put(batch, cookie_key(directory, cookie), encode_listing(wrong));
  });
  expect_mended("entry 'f' has another type than inode");
  EXPECT_EQ(catalog->lookup(directory, "f")->type, kRegular);
}

TEST_F(CatalogRepair, EntryInAFileGoes) {
  const Dentry wrong{empty, kRegular, 90, "x"};
  repair([&](auto& batch) {
    put(batch, dentry_key(good, "x"), encode_dentry(wrong));
    put(batch, cookie_key(good, 90), encode_listing(wrong));
  });
  expect_mended("(/good): entry 'x' is in no directory");
}

TEST_F(CatalogRepair, EntryWithAnImpossibleNameGoesAndItsInodeStays) {
  const Dentry wrong{empty, kRegular, 90, "a/b"}, real = catalog->lookup(directory, "e").value();
  repair([&](auto& batch) {
    batch.Delete(dentry_key(directory, "e").view());
    batch.Delete(cookie_key(directory, real.cookie).view());
    put(batch, dentry_key(directory, "a/b"), encode_dentry(wrong));
    put(batch, cookie_key(directory, 90), encode_listing(wrong));
  });
  expect_mended("the entry 'a/b' does not decode");
  EXPECT_EQ(found_again().inode, empty);
}

TEST_F(CatalogRepair, DirectoryHasOneNameAndThatParent) {
  const Dentry second{below, kDirectory, 90, "again"}, root{kRootInode, kDirectory, 91, "root"};
  repair([&](auto& batch) {
    for (const Dentry& d : {second, root}) {
      put(batch, dentry_key(kRootInode, d.name), encode_dentry(d));
      put(batch, cookie_key(kRootInode, d.cookie), encode_listing(d));
    }
  });
  expect_mended("directory with another name, 'again'");
  EXPECT_EQ(catalog->lookup(kRootInode, "again").error().code, Code::kNotFound);
  EXPECT_EQ(catalog->lookup(kRootInode, "root").error().code, Code::kNotFound);
  EXPECT_EQ(catalog->lookup(directory, "sub")->inode, below);

  Inode inode = catalog.inode(below);
  inode.parent = kRootInode;
  repair([&](auto& batch) { put(batch, inode_key(below), encode(inode)); });
  expect_mended("says its parent is 1, but");
  EXPECT_EQ(catalog.inode(below).parent, directory);
}

TEST_F(CatalogRepair, CycleIsCut) {
  repair(cycle());
  expect_mended("cannot be reached from the root");
  const Dentry found = found_again();
  EXPECT_TRUE(found.inode == directory || found.inode == below);
  EXPECT_EQ(catalog->lookup(directory, "f")->inode, file);
}

}  // namespace
}  // namespace kvsyncfs
