// Extended attributes, and POSIX ACLs among them.
#include "engine/format/codec.h"
#include "tests/engine/catalog/catalog_fixture.h"

namespace kvsyncfs {
namespace {

constexpr const char* kAccess = "system.posix_acl_access";
constexpr const char* kDefault = "system.posix_acl_default";

struct Entry {
  std::uint16_t tag, permissions;
  std::uint32_t id = 0xffffffff;
};

std::string acl(std::vector<Entry> entries) {
  std::string out;
  Writer w(out);
  w.u32(2);
  for (const Entry& e : entries) {
    w.u16(e.tag);
    w.u16(e.permissions);
    w.u32(e.id);
  }
  return out;
}

class CatalogXattr : public CatalogTest {
 protected:
  InodeId file = catalog.file("f");
  std::optional<Code> set(InodeId id, std::string name, std::string value,
                          XattrMode mode = XattrMode::kSet) {
    return catalog.code(catalog.set_xattr(id, std::move(name), std::move(value), mode));
  }
  std::optional<Code> remove(InodeId id, std::string name) {
    return catalog.code(RemoveXattrCommand{id, std::move(name), at(1)});
  }
};
using CatalogAcl = CatalogXattr;

TEST_F(CatalogXattr, IsSetReadListedAndRemoved) {
  EXPECT_EQ(set(file, "user.b", "2"), std::nullopt);
  EXPECT_EQ(set(file, "user.a", ""), std::nullopt);
  EXPECT_EQ(set(file, "user.b", "3"), std::nullopt);
  EXPECT_EQ(catalog->xattr(file, "user.b").value(), "3");
  EXPECT_EQ(catalog->xattr(file, "user.a").value(), "");
  EXPECT_EQ(catalog->xattr_names(file).value(), (std::vector<std::string>{"user.a", "user.b"}));
  EXPECT_EQ(catalog.inode(file).xattr_count, 2u);
  EXPECT_EQ(remove(file, "user.b"), std::nullopt);
  EXPECT_EQ(remove(file, "user.b"), Code::kNoData);
  EXPECT_EQ(catalog->xattr(file, "user.b").error().code, Code::kNoData);
}

TEST_F(CatalogXattr, CreateAndReplaceSayWhatIsThere) {
  EXPECT_EQ(set(file, "user.a", "1", XattrMode::kReplace), Code::kNoData);
  EXPECT_EQ(set(file, "user.a", "1", XattrMode::kCreate), std::nullopt);
  EXPECT_EQ(set(file, "user.a", "2", XattrMode::kCreate), Code::kExists);
  EXPECT_EQ(set(file, "user.a", "3", XattrMode::kReplace), std::nullopt);
  EXPECT_EQ(catalog->xattr(file, "user.a").value(), "3");
}

TEST_F(CatalogXattr, LimitsAreThoseOfLinux) {
  std::string longest = "user." + std::string(250, 'n');
  EXPECT_EQ(set(file, longest, "v"), std::nullopt);
  EXPECT_EQ(set(file, longest + "n", "v"), Code::kRange);
  EXPECT_EQ(set(file, "", "v"), Code::kRange);
  EXPECT_EQ(set(file, "user.", "v"), Code::kInvalid);
  EXPECT_EQ(set(file, "user.v", std::string(65536, 'v')), std::nullopt);
  EXPECT_EQ(set(file, "user.v", std::string(65537, 'v')), Code::kTooBig);
  EXPECT_EQ(set(file, "nothing.x", "v"), Code::kUnsupported);
  EXPECT_EQ(set(file, "system.x", "v"), Code::kUnsupported);
  EXPECT_EQ(catalog->xattr(file, "nothing.x").error().code, Code::kUnsupported);
  EXPECT_EQ(catalog->xattr(file, "user.").error().code, Code::kInvalid);
  EXPECT_EQ(catalog->xattr(file, "user.x").error().code, Code::kNoData);
}

TEST_F(CatalogXattr, ListIsBounded) {
  std::optional<Code> last;
  int count = 0;
  for (; count < 400 && !last; ++count) {
    std::string name = "user." + std::to_string(1000 + count) + std::string(246, 'n');
    last = set(file, name, "");
  }
  EXPECT_EQ(last, Code::kNoSpace);
  EXPECT_EQ(count, 65536 / 256 + 1);
}

TEST_F(CatalogXattr, UserAttributesNeedAFileOrDirectory) {
  InodeId link = catalog.create(kRootInode, "l", kSymlink | 0777);
  InodeId fifo = catalog.create(kRootInode, "p", 0010644);
  EXPECT_EQ(set(link, "user.a", "1"), Code::kNotPermitted);
  EXPECT_EQ(set(fifo, "user.a", "1"), Code::kNotPermitted);
  EXPECT_EQ(set(fifo, "trusted.a", "1"), std::nullopt);
  EXPECT_EQ(set(kRootInode, "user.a", "1"), std::nullopt);
  EXPECT_EQ(set(link, kAccess, acl({{1, 7}, {4, 5}, {32, 5}})), Code::kUnsupported);
}

TEST_F(CatalogAcl, ThatEqualsModeBitsIsNotStored) {
  EXPECT_EQ(set(file, kAccess, acl({{1, 7}, {4, 5}, {32, 4}})), std::nullopt);
  EXPECT_EQ(catalog.inode(file).mode, kRegular | 0754);
  EXPECT_EQ(catalog->xattr(file, kAccess).error().code, Code::kNoData);
}

TEST_F(CatalogAcl, MaskIsTheGroupClass) {
  std::string value = acl({{1, 6}, {2, 7, 1000}, {4, 5}, {16, 6}, {32, 0}});
  EXPECT_EQ(set(file, kAccess, value), std::nullopt);
  EXPECT_EQ(catalog.inode(file).mode, kRegular | 0660);
  EXPECT_EQ(catalog->xattr(file, kAccess).value(), value);
  SetAttrCommand chmod;
  chmod.inode = file;
  chmod.mode = 0741;
  catalog.run(chmod);
  EXPECT_EQ(catalog->xattr(file, kAccess).value(),
            acl({{1, 7}, {2, 7, 1000}, {4, 5}, {16, 4}, {32, 1}}));
}

TEST_F(CatalogAcl, OnlyWellFormedOnesAreTaken) {
  const std::vector<std::vector<Entry>> wrong = {
      {{1, 7}},                                                 // objects are missing
      {{1, 7}, {2, 7, 5}, {4, 5}, {32, 4}},                     // named without mask
      {{4, 5}, {1, 7}, {32, 4}},                                // order
      {{1, 7}, {1, 7}, {4, 5}, {32, 4}},                        // twice
      {{1, 8}, {4, 5}, {32, 4}},                                // permissions
      {{1, 7}, {3, 7}, {4, 5}, {32, 4}},                        // tag
      {{1, 7}, {2, 7, 0xffffffff}, {4, 5}, {16, 7}, {32, 4}}};  // id
  for (const auto& entries : wrong) EXPECT_EQ(set(file, kAccess, acl(entries)), Code::kInvalid);
  EXPECT_EQ(set(file, kAccess, ""), Code::kInvalid);
  EXPECT_EQ(set(file, kAccess, acl({}).substr(0, 3)), Code::kInvalid);
  EXPECT_EQ(set(file, kAccess, acl({{1, 7}, {4, 5}, {32, 4}}) + "x"), Code::kInvalid);
}

TEST_F(CatalogAcl, DefaultBelongsToDirectories) {
  EXPECT_EQ(set(file, kDefault, acl({{1, 7}, {4, 5}, {32, 4}})), Code::kAccess);
  EXPECT_EQ(set(kRootInode, kDefault, acl({{1, 7}, {4, 5}, {32, 4}})), std::nullopt);
  EXPECT_EQ(catalog->xattr_names(kRootInode).value(), std::vector<std::string>{kDefault});
  EXPECT_EQ(remove(kRootInode, kDefault), std::nullopt);
  EXPECT_EQ(remove(kRootInode, kDefault), std::nullopt);
}

TEST_F(CatalogAcl, DefaultIsInheritedInPlaceOfTheUmask) {
  InodeId d = catalog.directory("d");
  std::string value = acl({{1, 7}, {4, 7}, {8, 7, 65534}, {16, 7}, {32, 5}});
  EXPECT_EQ(set(d, kDefault, value), std::nullopt);
  CreateCommand c = catalog.creation(d, "f", kRegular | 0666);
  c.umask = 077;
  Inode made = catalog.run(c).attributes;
  EXPECT_EQ(made.mode, kRegular | 0664);
  EXPECT_EQ(catalog->xattr(catalog->lookup(d, "f")->inode, kAccess).value(),
            acl({{1, 6}, {4, 7}, {8, 7, 65534}, {16, 6}, {32, 4}}));
  InodeId sub = catalog.create(d, "sub", kDirectory | 0777);
  EXPECT_EQ(catalog.inode(sub).mode, kDirectory | 0775);
  EXPECT_EQ(catalog->xattr(sub, kDefault).value(), value);
  EXPECT_EQ(catalog.inode(catalog.create(d, "l", kSymlink | 0777)).mode, kSymlink | 0777);
}

TEST_F(CatalogAcl, SettingMayClearSetGroupId) {
  SetAttrCommand chmod;
  chmod.inode = file;
  chmod.mode = 02755;
  catalog.run(chmod);
  SetXattrCommand c = catalog.set_xattr(file, kAccess, acl({{1, 7}, {4, 5}, {32, 5}}));
  EXPECT_EQ(catalog.run(c).attributes.mode, kRegular | 02755);
  c.clear_setgid = true;
  EXPECT_EQ(catalog.run(c).attributes.mode, kRegular | 0755);
}

}  // namespace
}  // namespace kvsyncfs
