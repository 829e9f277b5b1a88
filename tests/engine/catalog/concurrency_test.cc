// Reads from other threads while entries are applied and checkpoints run.
#include <atomic>
#include <thread>

#include "tests/engine/catalog/catalog_fixture.h"

namespace kvsyncfs {
namespace {

using CatalogConcurrency = CatalogTest;

/// Calls `check` from `count` threads until destroyed.
class Readers {
 public:
  Readers(int count, std::function<void()> check) {
    for (int i = 0; i < count; ++i)
      threads_.emplace_back([this, check] {
        while (!stop_.load()) check();
      });
  }
  ~Readers() {
    stop_.store(true);
    for (std::thread& t : threads_) t.join();
  }

 private:
  std::atomic<bool> stop_{false};
  std::vector<std::thread> threads_;
};

TEST_F(CatalogConcurrency, NoReaderSeesAnOlderInodeAfterANewerOne) {
  InodeId f = catalog.file("f");
  std::atomic<std::uint64_t> newest{0}, backward{0};
  {
    Readers readers(3, [&] {
      const std::uint64_t before = newest.load();
      const std::uint64_t change = catalog->inode(f)->change;
      if (change < before) ++backward;
      std::uint64_t seen = before;
      while (seen < change && !newest.compare_exchange_weak(seen, change)) {
      }
    });
    for (int i = 0; i < 5000; ++i) catalog.run(WriteInlineCommand{f, {}, {}, false, at(i)});
  }
  EXPECT_EQ(backward.load(), 0u);
}

TEST_F(CatalogConcurrency, ListingsShowWhatStaysExactlyOnce) {
  for (int i = 0; i < 50; ++i) catalog.file("stays" + std::to_string(i));
  std::atomic<int> wrong{0}, listings{0};
  {
    Readers readers(2, [&] {
      int stays = 0;
      std::uint64_t after = 0;
      for (;;) {
        auto entries = catalog->list(kRootInode, after, 7);
        if (!entries || entries->empty()) break;
        after = entries->back().cookie;
        for (const Dentry& d : *entries) stays += d.name.starts_with("stays");
      }
      if (stays != 50) ++wrong;
      ++listings;
    });
    for (int i = 0; i < 1000 || listings.load() < 20; ++i) {
      catalog.file("comes" + std::to_string(i));
      catalog.run(catalog.unlink("comes" + std::to_string(i)));
      if (i % 100 == 0) catalog.checkpoint();
    }
  }
  EXPECT_EQ(wrong.load(), 0);
}

TEST_F(CatalogConcurrency, ExtentsAreWholeWhileTheyChange) {
  InodeId f = catalog.file("f");
  SegmentId s = catalog.segment();
  catalog.run(catalog.write(f, {{0, 1000, s, 0}}));
  std::atomic<int> holes{0};
  {
    Readers readers(2, [&] {
      auto extents = catalog->extents(f, 0, 1000, 1000);
      std::uint64_t at = 0;
      for (const Extent& e : *extents) {
        if (e.file_offset > at) ++holes;
        at = e.file_end();
      }
      if (at < 1000) ++holes;
    });
    for (std::uint64_t i = 0; i < 3000; ++i) {
      catalog.run(catalog.write(f, {{i * 37 % 990, 10, s, 1000 + i * 10}}));
      if (i % 500 == 0) catalog.checkpoint();
    }
  }
  EXPECT_EQ(holes.load(), 0);
}

}  // namespace
}  // namespace kvsyncfs
