// create, link, unlink and rename as POSIX has them.
#include "tests/engine/catalog/catalog_fixture.h"

namespace kvsyncfs {
namespace {

using CatalogNames = CatalogTest;
using CatalogRename = CatalogTest;

TEST_F(CatalogNames, CreatedNameIsFoundWithItsAttributes) {
  CreateCommand c = catalog.creation(kRootInode, "f", kRegular | 0666);
  c.umask = 022;
  c.uid = 5;
  c.gid = 6;
  CommandResult result = catalog.run(c);
  ASSERT_TRUE(result.status);
  Dentry dentry = catalog->lookup(kRootInode, "f").value();
  EXPECT_EQ(dentry.inode, result.inode);
  EXPECT_EQ(dentry.type, kRegular);
  Inode inode = catalog.inode(result.inode);
  EXPECT_EQ(inode, result.attributes);
  EXPECT_EQ(inode.mode, kRegular | 0644);
  EXPECT_EQ(inode.uid, 5u);
  EXPECT_EQ(inode.gid, 6u);
  EXPECT_EQ(inode.link_count, 1u);
  EXPECT_EQ(inode.ctime, c.time);
  EXPECT_EQ(inode.birth, c.time);
  EXPECT_EQ(catalog.inode(kRootInode).mtime, c.time);
  EXPECT_EQ(catalog->totals().inodes, 2u);
}

TEST_F(CatalogNames, CreateSaysWhyNot) {
  InodeId file = catalog.file("f");
  auto code = [&](InodeId parent, std::string name, std::uint32_t mode = kRegular) {
    return catalog.code(catalog.creation(parent, std::move(name), mode));
  };
  EXPECT_EQ(code(kRootInode, "f"), Code::kExists);
  EXPECT_EQ(code(file, "x"), Code::kNotDirectory);
  EXPECT_EQ(code({77}, "x"), Code::kNotFound);
  EXPECT_EQ(code(kRootInode, std::string(256, 'n')), Code::kNameTooLong);
  for (std::string name : {"", ".", "..", "a/b"}) EXPECT_EQ(code(kRootInode, name), Code::kInvalid);
  EXPECT_EQ(code(kRootInode, std::string("a\0b", 3)), Code::kInvalid);
  EXPECT_EQ(code(kRootInode, "x", 0), Code::kInvalid);
  EXPECT_EQ(code(kRootInode, std::string(255, '\xff')), std::nullopt);
  CreateCommand link = catalog.creation(kRootInode, "l", kSymlink | 0777);
  link.target = std::string(4096, 't');
  EXPECT_EQ(catalog.code(link), Code::kNameTooLong);
  link.target.pop_back();
  EXPECT_EQ(catalog.code(link), std::nullopt);
}

TEST_F(CatalogNames, DirectoryLinksCountItsSubdirectories) {
  InodeId d = catalog.directory("d");
  EXPECT_EQ(catalog.inode(d).link_count, 2u);
  EXPECT_EQ(catalog.inode(kRootInode).link_count, 3u);
  catalog.directory("e", d);
  catalog.file("f", d);
  EXPECT_EQ(catalog.inode(d).link_count, 3u);
  EXPECT_EQ(catalog.code(catalog.rmdir("d")), Code::kNotEmpty);
  catalog.run(catalog.rmdir("e", d));
  EXPECT_EQ(catalog.inode(d).link_count, 2u);
}

TEST_F(CatalogNames, NothingIsMadeInARemovedDirectory) {
  InodeId d = catalog.directory("d");
  CommandResult removed = catalog.run(catalog.rmdir("d"));
  EXPECT_TRUE(removed.orphaned);
  EXPECT_EQ(catalog.inode(d).link_count, 0u);
  EXPECT_EQ(catalog.code(catalog.creation(d, "x", kRegular)), Code::kNotFound);
  EXPECT_EQ(catalog->orphans().value(), std::vector<InodeId>{d});
}

TEST_F(CatalogNames, SetGroupIdDirectoryGivesItsGroup) {
  CreateCommand c = catalog.creation(kRootInode, "d", kDirectory | 02775);
  c.gid = 50;
  InodeId d = catalog.run(c).inode;
  Inode sub = catalog.inode(catalog.directory("sub", d));
  EXPECT_EQ(sub.gid, 50u);
  EXPECT_EQ(sub.mode, kDirectory | 02755);
  Inode file = catalog.inode(catalog.file("f", d));
  EXPECT_EQ(file.gid, 50u);
  EXPECT_EQ(file.mode, kRegular | 0644);
}

TEST_F(CatalogNames, LinkGivesASecondName) {
  InodeId f = catalog.file("f");
  LinkCommand link{f, kRootInode, "g", at(5000)};
  EXPECT_EQ(catalog.code(link), std::nullopt);
  EXPECT_EQ(catalog.inode(f).link_count, 2u);
  EXPECT_EQ(catalog.inode(f).ctime, at(5000));
  EXPECT_EQ(catalog.code(link), Code::kExists);
  EXPECT_EQ(catalog.code(LinkCommand{catalog.directory("d"), kRootInode, "h", at(1)}),
            Code::kNotPermitted);
  EXPECT_FALSE(catalog.run(catalog.unlink("f")).orphaned);
  EXPECT_EQ(catalog.inode(f).link_count, 1u);
  EXPECT_TRUE(catalog.run(catalog.unlink("g")).orphaned);
  EXPECT_EQ(catalog.code(LinkCommand{f, kRootInode, "again", at(1)}), Code::kNotFound);
}

TEST_F(CatalogNames, UnlinkAndRmdirTellDirectoriesFromFiles) {
  catalog.file("f");
  catalog.directory("d");
  EXPECT_EQ(catalog.code(catalog.unlink("d")), Code::kIsDirectory);
  EXPECT_EQ(catalog.code(catalog.rmdir("f")), Code::kNotDirectory);
  EXPECT_EQ(catalog.code(catalog.unlink("none")), Code::kNotFound);
}

TEST_F(CatalogNames, ListingGoesOnAfterACookieWhateverIsRemoved) {
  for (int i = 0; i < 10; ++i) catalog.file("f" + std::to_string(i));
  auto first = catalog->list(kRootInode, 0, 4).value();
  ASSERT_EQ(first.size(), 4u);
  EXPECT_GE(first.front().cookie, 3u);
  for (const Dentry& d : first) catalog.run(catalog.unlink(d.name));
  catalog.file("late");
  std::vector<std::string> rest;
  for (const Dentry& d : catalog->list(kRootInode, first.back().cookie, 100).value())
    rest.push_back(d.name);
  EXPECT_EQ(rest, (std::vector<std::string>{"f4", "f5", "f6", "f7", "f8", "f9", "late"}));
}

TEST_F(CatalogNames, ChangeTimeAndCounterNeverGoBack) {
  InodeId f = catalog.file("f");
  Inode before = catalog.inode(f);
  SetAttrCommand c;
  c.inode = f;
  c.mode = 0600;
  c.time = at(3);
  Inode after = catalog.run(c).attributes;
  EXPECT_EQ(after.ctime, before.ctime);
  EXPECT_GT(after.change, before.change);
  c.time = at(99999);
  EXPECT_EQ(catalog.run(c).attributes.ctime, at(99999));
}

TEST_F(CatalogNames, ReclaimFreesOnlyOrphans) {
  InodeId f = catalog.file("f");
  EXPECT_EQ(catalog.code(ReclaimCommand{f}), Code::kInvalid);
  catalog.run(catalog.set_xattr(f, "user.a", "1"));
  catalog.run(catalog.unlink("f"));
  EXPECT_EQ(catalog->totals().inodes, 2u);
  EXPECT_EQ(catalog.code(ReclaimCommand{f}), std::nullopt);
  EXPECT_EQ(catalog->inode(f).error().code, Code::kNotFound);
  EXPECT_EQ(catalog->totals().inodes, 1u);
  EXPECT_TRUE(catalog->orphans().value().empty());
  EXPECT_EQ(catalog.code(ReclaimCommand{f}), Code::kNotFound);
}

TEST_F(CatalogRename, MovesAndReplaces) {
  InodeId d = catalog.directory("d");
  InodeId a = catalog.file("a"), b = catalog.file("b", d);
  CommandResult result = catalog.run(catalog.rename(kRootInode, "a", d, "b"));
  ASSERT_TRUE(result.status);
  EXPECT_EQ(result.inode, a);
  EXPECT_EQ(result.replaced, b);
  EXPECT_TRUE(result.orphaned);
  EXPECT_EQ(catalog->lookup(d, "b")->inode, a);
  EXPECT_EQ(catalog->lookup(kRootInode, "a").error().code, Code::kNotFound);
  EXPECT_EQ(catalog.inode(b).link_count, 0u);
}

TEST_F(CatalogRename, TwoNamesOfOneInodeStayBoth) {
  InodeId a = catalog.file("a");
  catalog.run(LinkCommand{a, kRootInode, "b", at(9)});
  EXPECT_EQ(catalog.code(catalog.rename(kRootInode, "a", kRootInode, "b")), std::nullopt);
  EXPECT_EQ(catalog.names(kRootInode), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(catalog.code(catalog.rename(kRootInode, "a", kRootInode, "a")), std::nullopt);
}

TEST_F(CatalogRename, SaysWhyNot) {
  InodeId d = catalog.directory("d"), e = catalog.directory("e");
  catalog.file("f");
  catalog.file("x", e);
  auto code = [&](std::string from, InodeId to, std::string name,
                  RenameMode mode = RenameMode::kReplace) {
    return catalog.code(catalog.rename(kRootInode, std::move(from), to, std::move(name), mode));
  };
  EXPECT_EQ(code("none", kRootInode, "y"), Code::kNotFound);
  EXPECT_EQ(code("d", kRootInode, "f"), Code::kNotDirectory);
  EXPECT_EQ(code("f", kRootInode, "d"), Code::kIsDirectory);
  EXPECT_EQ(code("d", kRootInode, "e"), Code::kNotEmpty);
  EXPECT_EQ(code("d", d, "inside"), Code::kInvalid);
  InodeId deep = catalog.directory("deep", d);
  EXPECT_EQ(code("d", deep, "inside"), Code::kInvalid);
  EXPECT_EQ(code("f", kRootInode, "e", RenameMode::kNoReplace), Code::kExists);
  EXPECT_EQ(code("f", kRootInode, "none", RenameMode::kExchange), Code::kNotFound);
  EXPECT_EQ(code("f", kRootInode, std::string(256, 'n')), Code::kNameTooLong);
  EXPECT_EQ(code("f", kRootInode, ".."), Code::kInvalid);
  EXPECT_EQ(code("f", deep, "f", RenameMode::kNoReplace), std::nullopt);
}

TEST_F(CatalogRename, DirectoryTakesItsDotDotAlong) {
  InodeId from = catalog.directory("from"), to = catalog.directory("to");
  InodeId d = catalog.directory("d", from);
  catalog.directory("d", to);
  EXPECT_EQ(catalog.code(catalog.rename(from, "d", to, "d")), std::nullopt);
  EXPECT_EQ(catalog.inode(from).link_count, 2u);
  EXPECT_EQ(catalog.inode(to).link_count, 3u);
  EXPECT_EQ(catalog.inode(d).parent, to);
}

TEST_F(CatalogRename, ExchangeSwapsAcrossKindsAndDirectories) {
  InodeId d = catalog.directory("d"), sub = catalog.directory("sub", d);
  InodeId f = catalog.file("f");
  EXPECT_EQ(catalog.code(catalog.rename(kRootInode, "f", d, "sub", RenameMode::kExchange)),
            std::nullopt);
  EXPECT_EQ(catalog->lookup(kRootInode, "f")->inode, sub);
  EXPECT_EQ(catalog->lookup(d, "sub")->inode, f);
  EXPECT_EQ(catalog.inode(sub).parent, kRootInode);
  EXPECT_EQ(catalog.inode(d).link_count, 2u);
  EXPECT_EQ(catalog.inode(kRootInode).link_count, 4u);
}

TEST_F(CatalogRename, ExchangeMakesNoCycleEitherWay) {
  InodeId d = catalog.directory("d"), sub = catalog.directory("sub", d);
  InodeId other = catalog.directory("other", sub);
  EXPECT_EQ(catalog.code(catalog.rename(kRootInode, "d", sub, "other", RenameMode::kExchange)),
            Code::kInvalid);
  EXPECT_EQ(catalog.code(catalog.rename(sub, "other", kRootInode, "d", RenameMode::kExchange)),
            Code::kInvalid);
  EXPECT_EQ(catalog.inode(other).parent, sub);
}

TEST_F(CatalogRename, TouchesBothDirectoriesAndTheInodes) {
  InodeId d = catalog.directory("d");
  InodeId a = catalog.file("a"), b = catalog.file("b", d);
  RenameCommand c = catalog.rename(kRootInode, "a", d, "b");
  c.time = at(7777);
  catalog.run(c);
  for (InodeId id : {kRootInode, d}) {
    EXPECT_EQ(catalog.inode(id).mtime, at(7777));
    EXPECT_EQ(catalog.inode(id).ctime, at(7777));
  }
  EXPECT_EQ(catalog.inode(a).ctime, at(7777));
  EXPECT_EQ(catalog.inode(b).ctime, at(7777));
}

TEST_F(CatalogRename, PlaceInTheListingChangesWithTheDirectoryOnly) {
  InodeId d = catalog.directory("d");
  catalog.file("a");
  std::uint64_t cookie = catalog->lookup(kRootInode, "a")->cookie;
  catalog.run(catalog.rename(kRootInode, "a", kRootInode, "b"));
  EXPECT_EQ(catalog->lookup(kRootInode, "b")->cookie, cookie);
  catalog.file("last", d);
  std::uint64_t last = catalog->lookup(d, "last")->cookie;
  catalog.run(catalog.rename(kRootInode, "b", d, "b"));
  EXPECT_GT(catalog->lookup(d, "b")->cookie, last);
  EXPECT_EQ(catalog->list(kRootInode, 0, 100)->size(), 1u);
}

TEST_F(CatalogRename, ReplacedNameKeepsItsPlaceInTheListing) {
  catalog.file("a");
  catalog.file("b");
  catalog.file("c");
  std::uint64_t cookie = catalog->lookup(kRootInode, "b")->cookie;
  catalog.run(catalog.rename(kRootInode, "c", kRootInode, "b"));
  EXPECT_EQ(catalog->lookup(kRootInode, "b")->cookie, cookie);
}

}  // namespace
}  // namespace kvsyncfs
