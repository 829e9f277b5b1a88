// Entries that the kernel is told to forget.
#include "fs/moved_entries.h"

#include <gtest/gtest.h>

#include <future>
#include <vector>

namespace kvsyncfs {
namespace {

TEST(MovedEntries, EachIsForgottenInOrder) {
  std::promise<void> last;
  std::vector<std::pair<InodeId, std::string>> seen;
  MovedEntries entries([&](InodeId parent, const std::string& name) {
    seen.emplace_back(parent, name);
    if (name == "z") last.set_value();
  });
  ASSERT_TRUE(entries.start());
  entries.add(InodeId{1}, "a");
  entries.add(InodeId{2}, "b");
  entries.add(InodeId{1}, "z");
  ASSERT_EQ(last.get_future().wait_for(std::chrono::seconds(20)), std::future_status::ready);
  entries.stop();
  const std::vector<std::pair<InodeId, std::string>> want{
      {InodeId{1}, "a"}, {InodeId{2}, "b"}, {InodeId{1}, "z"}};
  EXPECT_EQ(seen, want);
}

TEST(MovedEntries, WhoAddsDoesNotWaitAndTheEndDropsTheRest) {
  std::promise<void> begun, go;
  auto gone = go.get_future().share();
  int forgotten = 0;
  MovedEntries entries([&](InodeId, const std::string&) {
    if (++forgotten == 1) begun.set_value();
    gone.wait();
  });
  ASSERT_TRUE(entries.start());
  for (int i = 0; i < 10'000; ++i) entries.add(InodeId{1}, "name");
  begun.get_future().wait();
  std::thread stopper([&] { entries.stop(); });
  go.set_value();
  stopper.join();
  EXPECT_LT(forgotten, 5000) << "a bound on what waits";
}

}  // namespace
}  // namespace kvsyncfs
