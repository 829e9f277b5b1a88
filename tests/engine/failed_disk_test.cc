// A disk that failed for good, as its users see it.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/lib/memory_engine.h"

namespace kvsyncfs {
namespace {

class FailedDisk : public MemoryEngine {};

TEST_F(FailedDisk, EveryChangeNamesWhatFailed) {
  const InodeId file = create("file").value();
  ASSERT_TRUE(engine_->write(file, 0, as_bytes("bytes")));
  disk_.set_hook(fail_from(DiskOperation::kWrite, "log/", 1, Code::kIo));
  const Status synced = engine_->sync(file);
  ASSERT_EQ(synced.error().code, Code::kIo);
  const std::vector<Error> errors = {engine_->write(file, 0, as_bytes("more")).error(),
                                     create("other").error(),
                                     engine_->unlink(kRootInode, "file").error(),
                                     engine_->sync(file).error(), engine_->close().error()};
  for (const Error& error : errors) {
    EXPECT_EQ(error.code, Code::kIo);
    EXPECT_EQ(error.detail, synced.error().detail);
  }
  EXPECT_NE(synced.error().detail, "");
  std::string found(5, 'x');
  ASSERT_TRUE(engine_->read(file, 0, {reinterpret_cast<std::byte*>(found.data()), 5}));
  EXPECT_EQ(found, "bytes") << "reads go on";
}

TEST_F(FailedDisk, IsShownAsDegraded) {
  EXPECT_EQ(engine_->degraded(), std::vector<std::string>{});
  const InodeId file = create("file").value();
  disk_.set_hook(fail_from(DiskOperation::kSync, "log/", 1, Code::kIo));
  ASSERT_FALSE(engine_->sync(file));
  const auto lines = engine_->degraded();
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_NE(lines[0].find("store: takes no more changes"), std::string::npos) << lines[0];
  EXPECT_NE(lines[0].find("(EIO)"), std::string::npos) << lines[0];
}

}  // namespace
}  // namespace kvsyncfs
