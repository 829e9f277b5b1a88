#include "fs/admin_requests.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <boost/json.hpp>

#include "engine/engine.h"
#include "engine/env/real.h"
#include "tests/lib/memory_disk.h"

namespace kvsyncfs {
namespace {

namespace json = boost::json;

class Admin : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(disk_.make_directory("store"));
    ASSERT_TRUE(disk_.sync_directory(""));
    FormatOptions format;
    format.store = "store";
    format.size_bytes = 256u << 20;
    ASSERT_TRUE(Engine::format(disk_, *clock_, format));
    open();
  }
  void open() {
    engine_.reset();
    EngineOptions options;
    options.store = "store";
    auto engine = Engine::open(disk_, *clock_, *random_, options);
    ASSERT_TRUE(engine) << describe(engine.error());
    engine_ = std::move(*engine);
  }
  json::object answer(const json::object& request) {
    return json::parse(answer_admin(engine_->admin(), json::serialize(request))).as_object();
  }
  std::string error(const json::object& request) {
    const json::object said = answer(request);
    return said.at("ok").as_bool() ? "" : said.at("error").as_string().c_str();
  }
  json::object locate(const std::string& path) {
    return answer({{"do", "locate"}, {"path", path}});
  }

  MemoryDisk disk_;
  std::unique_ptr<Clock> clock_ = make_real_clock();
  std::unique_ptr<Random> random_ = make_real_random();
  std::unique_ptr<Engine> engine_;
};

TEST_F(Admin, RequestsWithoutSenseAreRefusedInOneLine) {
  const std::string nonsense = answer_admin(engine_->admin(), "{nonsense");
  EXPECT_TRUE(nonsense.starts_with("{\"ok\":false,\"error\":")) << nonsense;
  EXPECT_TRUE(nonsense.ends_with("}\n"));
  EXPECT_NE(error({{"do", "fly"}}).find("'fly'"), std::string::npos);
  EXPECT_NE(error({{"path", "a"}}).find("''"), std::string::npos);
}

TEST_F(Admin, LocateTellsOfALoneNodesFileWhereItIs) {
  const std::string value(3 * kPageSize, 'v');
  ASSERT_TRUE(engine_->put("a/b", as_bytes(value)));
  const json::object said = locate("/a/b");
  ASSERT_TRUE(said.at("ok").as_bool()) << said;
  EXPECT_EQ(said.at("size_bytes"), 3 * kPageSize);
  EXPECT_EQ(said.at("dirty_bytes"), 0);
  ASSERT_EQ(said.at("extents").as_array().size(), 1u);
  const json::object extent = said.at("extents").as_array()[0].as_object();
  EXPECT_EQ(extent.at("offset"), 0);
  EXPECT_EQ(extent.at("length"), 3 * kPageSize);
  EXPECT_EQ(extent.at("owner"), 0);
  EXPECT_EQ(extent.at("here"), true);
  EXPECT_EQ(extent.at("pages"), 3);
  EXPECT_TRUE(said.at("nodes").as_array().empty());
}

TEST_F(Admin, LocateTellsWhatIsInMemory) {
  ASSERT_TRUE(engine_->put("f", as_bytes(std::string(2 * kPageSize, 'v'))));
  ASSERT_TRUE(engine_->close());
  open();
  const auto in_memory = [&] {
    return locate("f").at("extents").as_array()[0].at("pages_in_memory").to_number<int>();
  };
  EXPECT_EQ(in_memory(), 0);
  ASSERT_TRUE(engine_->get("f"));
  EXPECT_EQ(in_memory(), 2);
}

TEST_F(Admin, LocateTellsOfBytesThatAreInNoSegmentYet) {
  NewNode node;
  node.mode = S_IFREG | 0600;
  const auto file = engine_->create(kRootInode, "f", node);
  ASSERT_TRUE(file);
  ASSERT_TRUE(engine_->write(file->inode, 0, as_bytes("12345")));
  EXPECT_EQ(locate("f").at("dirty_bytes"), kPageSize);
  ASSERT_TRUE(engine_->sync_all());
  EXPECT_EQ(locate("f").at("dirty_bytes"), 0);
}

TEST_F(Admin, LocateNamesWhatIsNoFile) {
  ASSERT_TRUE(engine_->put("d/f", as_bytes("x")));
  for (const auto& [path, word] :
       std::vector<std::pair<std::string, std::string>>{{"none", "/none: "},
                                                        {"d", "EISDIR"},
                                                        {"/", "EISDIR"},
                                                        {"d/f/g", "ENOTDIR"},
                                                        {"d/../f", "EINVAL"}}) {
    EXPECT_NE(error({{"do", "locate"}, {"path", path}}).find(word), std::string::npos)
        << error({{"do", "locate"}, {"path", path}});
  }
}

TEST_F(Admin, WarmBringsAFileIntoMemoryOnce) {
  ASSERT_TRUE(engine_->put("f", as_bytes(std::string(300 * kPageSize, 'v'))));
  ASSERT_TRUE(engine_->close());
  open();
  const json::object request{{"do", "warm"}, {"path", "f"}};
  json::object said = answer(request);
  EXPECT_EQ(said.at("pulled_bytes"), 300 * kPageSize);
  EXPECT_EQ(said.at("size_bytes"), 300 * kPageSize);
  EXPECT_EQ(said.at("next"), 0);
  EXPECT_EQ(locate("f").at("extents").as_array()[0].at("pages_in_memory"), 300);
  EXPECT_EQ(answer(request).at("pulled_bytes"), 0);
}

TEST_F(Admin, WarmGoesInStepsAndOverHoles) {
  NewNode node;
  node.mode = S_IFREG | 0600;
  const auto file = engine_->create(kRootInode, "f", node);
  ASSERT_TRUE(file);
  ASSERT_TRUE(engine_->write(file->inode, 0, as_bytes(std::string(20u << 20, 'v'))));
  ASSERT_TRUE(engine_->write(file->inode, 40u << 20, as_bytes("end")));
  ASSERT_TRUE(engine_->close());
  open();
  std::uint64_t offset = 0, pulled = 0;
  int steps = 0;
  do {
    const json::object said = answer({{"do", "warm"}, {"path", "f"}, {"offset", offset}});
    ASSERT_TRUE(said.at("ok").as_bool()) << said;
    offset = said.at("next").to_number<std::uint64_t>();
    pulled += said.at("pulled_bytes").to_number<std::uint64_t>();
    ++steps;
  } while (offset != 0 && steps < 10);
  EXPECT_EQ(offset, 0u);
  EXPECT_GE(steps, 2);
  EXPECT_EQ(pulled, (20u << 20) + kPageSize);
}

/// A page of the first sealed segment is damaged.
class DamagedAdmin : public Admin {
 protected:
  void SetUp() override {
    Admin::SetUp();
    ASSERT_TRUE(engine_->put("a/b", as_bytes(std::string(3 * kPageSize, 'v'))));
    const json::object extent = locate("a/b").at("extents").as_array()[0].as_object();
    segment_ = extent.at("segment").to_number<std::uint64_t>();
    at_ = extent.at("segment_offset").to_number<std::uint64_t>() + kPageSize;
    ASSERT_TRUE(engine_->close());
    engine_.reset();
    char name[32];
    std::snprintf(name, sizeof name, "%016llx.seg", static_cast<unsigned long long>(segment_));
    path_ = std::string("store/segments/") + name;
    auto file = disk_.open(path_, OpenMode::kReadWrite, false);
    ASSERT_TRUE(file);
    ASSERT_TRUE((*file)->write_at(at_, as_bytes("x")));
    file->reset();
    open();
  }
  std::uint64_t segment_ = 0, at_ = 0;
  std::string path_;
};

TEST_F(DamagedAdmin, VerifyNamesThePagesAndWhoUsesThem) {
  const json::object said = answer({{"do", "verify"}, {"path", "a/b"}});
  ASSERT_EQ(said.at("bad").as_array().size(), 1u) << said;
  const json::object bad = said.at("bad").as_array()[0].as_object();
  EXPECT_EQ(bad.at("segment"), segment_);
  EXPECT_EQ(bad.at("mended"), false);
  EXPECT_EQ(bad.at("paths"), json::value(json::array{"/a/b"}));
}

TEST_F(DamagedAdmin, ScrubReadsEverySealedSegment) {
  const json::object said = answer({{"do", "scrub"}});
  EXPECT_EQ(said.at("segment"), 0);
  EXPECT_EQ(said.at("done_bytes"), said.at("total_bytes"));
  ASSERT_EQ(said.at("bad").as_array().size(), 1u) << said;
  EXPECT_EQ(said.at("bad").as_array()[0].at("segment"), segment_);
}

TEST_F(DamagedAdmin, LostNamesFilesWhoseSegmentIsGone) {
  EXPECT_TRUE(answer({{"do", "lost"}}).at("paths").as_array().empty());
  ASSERT_TRUE(engine_->close());
  engine_.reset();
  ASSERT_TRUE(disk_.remove(path_));
  open();
  EXPECT_EQ(answer({{"do", "lost"}}).at("paths"), json::value(json::array{"/a/b"}));
}

TEST_F(Admin, HealingIsNothingForALoneNode) {
  for (const char* what : {"heal", "heal_now"})
    EXPECT_NE(error({{"do", what}}).find("EOPNOTSUPP"), std::string::npos) << what;
  EXPECT_FALSE(error({{"do", "heal_rate"}, {"bytes", 5}}).empty());
}

}  // namespace
}  // namespace kvsyncfs
