// Who is refused in a full store, and who is not.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/lib/memory_engine.h"

namespace kvsyncfs {
namespace {

class Space : public MemoryEngine {};

TEST_F(Space, FullStoreTakesACopyOverBytesThatGo) {
  constexpr std::uint64_t kBytes = 4u << 20;
  const std::string old(kBytes, 'o'), fresh(kBytes, 'n'), more(64u << 10, 'm');
  const InodeId source = create("source").value(), target = create("target").value(),
                filler = create("filler").value();
  ASSERT_TRUE(engine_->write(source, 0, as_bytes(fresh)));
  ASSERT_TRUE(engine_->write(target, 0, as_bytes(old)));
  Status refused;
  for (std::uint64_t at = 0; refused; at += more.size())
    refused = engine_->write(filler, at, as_bytes(more));
  ASSERT_EQ(refused.error().code, Code::kNoSpace);

  const InodeId other = create("other").value();
  EXPECT_EQ(engine_->clone_range(source, 0, other, 0, kBytes).error().code, Code::kNoSpace);
  const auto copied = engine_->clone_range(source, 0, target, 0, kBytes);
  ASSERT_TRUE(copied) << describe(copied.error());
  EXPECT_EQ(*copied, kBytes);
  std::string found(kBytes, 'x');
  ASSERT_TRUE(engine_->read(target, 0, {reinterpret_cast<std::byte*>(found.data()), kBytes}));
  EXPECT_EQ(found, fresh);
}

TEST_F(Space, CopyCountsWhatDirtyOverwritesGiveBack) {
  constexpr std::uint64_t kBytes = 4u << 20;
  const std::string bytes(kBytes, 'o');
  const InodeId source = create("source").value(), target = create("target").value();
  ASSERT_TRUE(engine_->write(source, 0, as_bytes(bytes)));
  const InodeId filler = create("filler").value();
  std::uint64_t end = 0;
  for (; engine_->space()->free_bytes > kBytes + kBytes / 2; end += kBytes / 4)
    ASSERT_TRUE(engine_->write(filler, end, as_bytes(bytes).first(kBytes / 4)));
  ASSERT_TRUE(engine_->sync_all());
  ASSERT_TRUE(engine_->write(filler, 0, as_bytes(bytes)));  // counts twice until its flush
  const auto copied = engine_->clone_range(source, 0, target, 0, kBytes);
  ASSERT_TRUE(copied) << describe(copied.error());
  EXPECT_EQ(*copied, kBytes);
}

}  // namespace
}  // namespace kvsyncfs
