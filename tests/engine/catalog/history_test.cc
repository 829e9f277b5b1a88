// The digest of all that was written: the same wherever the same log was applied, and nowhere else.
#include <random>

#include "engine/catalog/keys.h"
#include "tests/engine/catalog/catalog_fixture.h"

namespace kvsyncfs {
namespace {

class CatalogHistory : public ::testing::Test {
 protected:
  struct Node {
    MemoryDisk disk;
    std::unique_ptr<Catalog> catalog;
  };
  static CatalogOptions options(std::uint64_t memtable_bytes) {
    CatalogOptions o = TestCatalog::options();
    o.memtable_bytes = memtable_bytes;
    o.keeps_history = true;
    return o;
  }
  void SetUp() override {
    for (Node* node : {&first_, &second_}) {
      EXPECT_TRUE(node->disk.make_directory("/store"));
      EXPECT_TRUE(Catalog::format(node->disk, options(4u << 20), 0, 0, at(1)));
      open(*node, 4u << 20);
    }
  }
  static void open(Node& node, std::uint64_t memtable_bytes) {
    node.catalog.reset();
    auto opened = Catalog::open(node.disk, options(memtable_bytes));
    ASSERT_TRUE(opened);
    node.catalog = std::move(*opened);
  }
  static void checkpoint(Node& node) {
    ASSERT_TRUE(node.catalog->begin_checkpoint());
    ASSERT_TRUE(node.catalog->finish_checkpoint());
  }
  void apply(Node& node, std::size_t from) {
    for (std::size_t i = from; i < log_.size(); ++i)
      ASSERT_TRUE(node.catalog->apply({i + 1}, log_[i]));
  }
  /// Names, bytes and attributes, many of which the catalog refuses.
  void extend(std::size_t count) {
    if (log_.empty()) log_.push_back({{OpenSegmentCommand{}}, {}});
    for (std::size_t i = 0; i < count; ++i) {
      const InodeId file{(random_() % log_.size() + 1) * 1024};
      const Timestamp time = at(static_cast<std::int64_t>(1000 + log_.size()));
      const std::string name = "f" + std::to_string(random_() % 300);
      Command command = UnlinkCommand{kRootInode, name, false, time};
      CreateCommand create;
      create.parent = kRootInode;
      create.name = name;
      create.mode = 0100644;
      create.time = time;
      WriteExtentsCommand write;
      write.inode = file;
      write.extents = {{random_() % 50 * 512, 512, {1024}, log_.size() * 512}};
      write.mtime = write.time = time;
      SetAttrCommand resize;
      resize.inode = file;
      resize.size = random_() % 20'000;
      resize.time = time;
      const auto kind = random_() % 8;
      if (kind < 3) command = create;
      if (kind >= 4) command = write;
      if (kind == 7) command = resize;
      log_.push_back(
          {{command, SetXattrCommand{file, "user.x", name, XattrMode::kSet, false, time}}, {}});
    }
  }

  Node first_, second_;
  std::vector<Transaction> log_;
  std::mt19937_64 random_{7};
};

TEST_F(CatalogHistory, WhoeverAppliedTheSameLogHasTheSameWhateverWaitsInMemory) {
  extend(1500);
  apply(first_, 0);
  std::size_t applied = 0;
  for (const std::size_t stop : {300u, 700u, 900u, 1100u, 1501u}) {  // crashes in between
    for (; applied < stop; ++applied)
      ASSERT_TRUE(second_.catalog->apply({applied + 1}, log_[applied]));
    if (stop % 200 == 100) checkpoint(second_);
    open(second_, 64u << 10);
    applied = second_.catalog->applied().value;
  }
  apply(second_, applied);
  ASSERT_EQ(first_.catalog->applied(), second_.catalog->applied());
  EXPECT_EQ(first_.catalog->digest().value(), second_.catalog->digest().value());
  extend(600);
  apply(first_, 1501);
  apply(second_, 1501);
  EXPECT_EQ(first_.catalog->history().position, Position{2000});
  EXPECT_EQ(first_.catalog->history(), second_.catalog->history());
  EXPECT_TRUE(first_.catalog->history_at({1000}));
  EXPECT_FALSE(first_.catalog->history_at({1500}));
  EXPECT_FALSE(first_.catalog->history_at({3000}));
}

TEST_F(CatalogHistory, ADifferenceStays) {
  extend(999);
  apply(first_, 0);
  auto other = log_;
  other[500] = {{CreateCommand{}}, {}};  // is refused: nothing but its place is written
  for (std::size_t i = 0; i < other.size(); ++i)
    ASSERT_TRUE(second_.catalog->apply({i + 1}, other[i]));
  EXPECT_NE(first_.catalog->history(), second_.catalog->history());
  extend(1000);
  apply(first_, 1000);
  apply(second_, 1000);
  EXPECT_EQ(first_.catalog->history().position, Position{2000});
  EXPECT_NE(first_.catalog->history(), second_.catalog->history());
}

TEST_F(CatalogHistory, WithoutItNothingIsTold) {
  CatalogOptions plain = options(4u << 20);
  plain.keeps_history = false;
  first_.catalog.reset();
  auto opened = Catalog::open(first_.disk, plain);
  ASSERT_TRUE(opened);
  first_.catalog = std::move(*opened);
  extend(1000);
  apply(first_, 0);
  EXPECT_EQ(first_.catalog->history(), HistoryDigest{});
}

TEST(CatalogCursor, FirstVersionWithoutADigestIsRead) {
  std::string first = encode_cursor({Position{7}, 3, 11, 4096, 0});
  first[0] = 1;
  first.resize(first.size() - 4);
  const auto cursor = decode_cursor(first);
  ASSERT_TRUE(cursor) << describe(cursor.error());
  EXPECT_EQ(cursor->applied, Position{7});
  EXPECT_EQ(cursor->reserved_bytes, 4096u);
  EXPECT_EQ(cursor->history, 0u);
  EXPECT_FALSE(decode_cursor(first + std::string(4, 'x')));
}

}  // namespace
}  // namespace kvsyncfs
