#include "fs/stats_server.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <boost/json.hpp>

#include "engine/env/daemon_client.h"
#include "engine/env/real.h"
#include "tests/lib/memory_disk.h"
#include "tests/lib/temp_folder.h"

namespace kvsyncfs {
namespace {

constexpr int kWaitMs = 20'000;  // far more than an answer takes

class Stats : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(disk_.make_directory("store"));
    ASSERT_TRUE(disk_.sync_directory(""));
    FormatOptions format;
    format.store = "store";
    format.uuid[0] = 0xab;
    format.label = "volume";
    format.size_bytes = 256u << 20;
    ASSERT_TRUE(Engine::format(disk_, *clock_, format));
    EngineOptions options;
    options.store = "store";
    auto engine = Engine::open(disk_, *clock_, *random_, options);
    ASSERT_TRUE(engine) << describe(engine.error());
    engine_ = std::move(*engine);
    server_ = std::make_unique<StatsServer>(*engine_, metrics_, identity(), -1, folder_.path());
    ASSERT_TRUE(server_->start());
  }
  StatsIdentity identity() const { return {"/srv/kv", "/mnt/kv", makedev(0, 44), "of-the-store"}; }
  std::string socket(const std::string& name) const { return folder_.path() + "/" + name; }
  boost::json::object stats() const {
    const auto answer = ask(socket("0-44.sock"), "stats", kWaitMs);
    return answer ? boost::json::parse(answer->text).as_object() : boost::json::object{};
  }

  MemoryDisk disk_;
  std::unique_ptr<Clock> clock_ = make_real_clock();
  std::unique_ptr<Random> random_ = make_real_random();
  std::unique_ptr<Engine> engine_;
  OpMetrics metrics_;
  TempFolder folder_;
  std::unique_ptr<StatsServer> server_;
};

TEST_F(Stats, AreOfTheEngineAndTheOperations) {
  NewNode node;
  node.mode = S_IFREG | 0600;
  const auto file = engine_->create(kRootInode, "f", node);
  ASSERT_TRUE(file);
  ASSERT_TRUE(engine_->write(file->inode, 0, as_bytes("12345")));
  metrics_.record(OpKind::kWrite, 1000, false);
  const boost::json::object object = stats();
  EXPECT_EQ(object.at("uuid").as_string(), engine_->superblock().uuid_text());
  EXPECT_EQ(object.at("label").as_string(), "volume");
  EXPECT_EQ(object.at("mountpoint").as_string(), "/mnt/kv");
  EXPECT_EQ(object.at("pid").as_int64(), ::getpid());
  EXPECT_EQ(object.at("engine").at("written_bytes").to_number<std::uint64_t>(), 5u);
  EXPECT_EQ(object.at("operations").at("write").at("count").to_number<std::uint64_t>(), 1u);
  const auto total = object.at("space").at("total_bytes").to_number<std::uint64_t>();
  EXPECT_EQ(total, engine_->space()->total_bytes);
  EXPECT_FALSE(object.at("history").as_array().empty());
}

TEST_F(Stats, UptimeGrows) {
  const auto before = stats().at("uptime_ns").to_number<std::uint64_t>();
  EXPECT_GT(stats().at("uptime_ns").to_number<std::uint64_t>(), before);
}

TEST_F(Stats, BarrierMakesWhatWasWrittenSurviveAPowerCut) {
  if (::geteuid() != 0) GTEST_SKIP() << "a barrier is for root";
  ASSERT_TRUE(engine_->put("key", as_bytes("12345")));
  const auto answer = ask(socket("of-the-store.sock"), "barrier", kWaitMs);
  ASSERT_TRUE(answer) << describe(answer.error());
  EXPECT_EQ(answer->text, "{\"ok\":true}\n");
  server_->stop();
  disk_.crash();
  engine_.reset();
  EngineOptions options;
  options.store = "store";
  auto again = Engine::open(disk_, *clock_, *random_, options);
  ASSERT_TRUE(again) << describe(again.error());
  EXPECT_EQ(*(*again)->get("key"), "12345");
}

TEST_F(Stats, WithoutAMountTheStoreAloneNamesTheSocket) {
  server_->stop();
  server_ = std::make_unique<StatsServer>(*engine_, metrics_,
                                          StatsIdentity{"/srv/kv", "", kNoDevice, "of-the-store"},
                                          -1, folder_.path());
  ASSERT_TRUE(server_->start());
  const auto answer = ask(socket("of-the-store.sock"), "stats", kWaitMs);
  ASSERT_TRUE(answer) << describe(answer.error());
  EXPECT_EQ(boost::json::parse(answer->text).as_object().at("mountpoint").as_string(), "");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_.path()), {}), 1);
}

TEST_F(Stats, StopTakesTheSocketsAway) {
  server_->stop();
  EXPECT_TRUE(std::filesystem::is_empty(folder_.path()));
  EXPECT_EQ(ask(socket("0-44.sock"), "ping", kWaitMs).error().code, Code::kNotFound);
}

}  // namespace
}  // namespace kvsyncfs
