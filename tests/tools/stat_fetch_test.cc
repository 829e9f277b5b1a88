#include "tools/stat_fetch.h"

#include <gtest/gtest.h>

#include "tests/tools/fake_daemon.h"

namespace kvsyncfs {
namespace {

/// What fetch() makes of `answer`, asked for a store with this UUID.
Result<StatDocument> fetched(std::string_view answer, const std::string& uuid) {
  const FakeDaemon daemon([answer](int connection) {
    read_line(connection);
    write_all(connection, std::string(answer) + "\n");
  });
  return fetch({daemon.path(), "store /srv/kv", uuid});
}

TEST(StatFetch, GivesTheAnswerOfTheStoreThatWasAskedFor) {
  const auto document = fetched(R"({"pid":5,"uptime_ns":1,"uuid":"a-b"})", "a-b");
  ASSERT_TRUE(document) << describe(document.error());
  EXPECT_EQ(document->pid(), 5u);
}

TEST(StatFetch, ForAMountAnyStoreMayAnswer) {
  EXPECT_TRUE(fetched(R"({"pid":5,"uptime_ns":1,"uuid":"a-b"})", ""));
}

TEST(StatFetch, AnotherStoresDaemonIsNoDaemon) {
  for (const char* answer :
       {R"({"pid":5,"uptime_ns":1,"uuid":"c-d"})", R"({"pid":5,"uptime_ns":1})"}) {
    const auto document = fetched(answer, "a-b");
    ASSERT_FALSE(document);
    EXPECT_EQ(document.error().code, Code::kNotFound);
    EXPECT_NE(document.error().detail.find("store /srv/kv: no daemon"), std::string::npos);
    EXPECT_NE(document.error().detail.find("another store"), std::string::npos);
  }
}

TEST(StatFetch, ErrorsNameTheTargetAndTheSocket) {
  const auto broken = fetched("broken", "");
  ASSERT_FALSE(broken);
  EXPECT_EQ(broken.error().code, Code::kCorrupt);
  EXPECT_EQ(broken.error().detail.find("store /srv/kv: /"), 0u) << broken.error().detail;
  const auto missing = fetch({"/nonexistent/kv.sock", "mount /mnt/kv", ""});
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().detail.find("mount /mnt/kv: no daemon: /nonexistent/kv.sock"), 0u)
      << missing.error().detail;
}

}  // namespace
}  // namespace kvsyncfs
