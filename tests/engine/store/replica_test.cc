// A store that sends its batches to another one: the copies are equal, byte for byte.
#include "tests/engine/store/store_fixture.h"

namespace kvsyncfs {
namespace {

class SegmentStoreReplica : public StoreTest {
 protected:
  void SetUp() override {
    StoreTest::SetUp();
    copy_options_ = options_;
    copy_options_.directory = folder_.path() + "/copy";
    ASSERT_TRUE(SegmentStore::format(disk_, copy_options_));
    reopen_copy();
    options_.seal_segment = [this, seal = options_.seal_segment](SegmentId id,
                                                                 std::uint64_t length) {
      return seal_error_ ? Status(*seal_error_) : seal(id, length);
    };
    options_.ship = [this](SegmentId id, std::uint64_t page, std::span<const Bytes> pieces) {
      std::string batch;
      for (const Bytes piece : pieces) batch.append(as_string(piece));
      return [this, id, page, batch]() -> Status {
        if (losses_ > 0 && --losses_ >= 0) return Error(Code::kUnreachable, "holder");
        last_ = {id, page, batch};
        const Status written = write(id, page, batch);
        return written ? written : Status(Error(Code::kUnreachable, written.error().detail));
      };
    };
    make();
  }

  void reopen_copy() {
    copy_.reset();
    auto opened = SegmentStore::open(disk_, copy_options_);
    ASSERT_TRUE(opened);
    copy_ = std::move(*opened);
  }

  Status write(SegmentId id, std::uint64_t page, const std::string& batch) {
    return copy_->write_replica(id, page, aligned_bytes(batch).bytes());
  }

  Result<std::string> read_copy(const Placed& at) {
    std::string out(at.length, '?');
    KVSYNCFS_TRY(copy_->read(at.segment, at.segment_offset,
                             {reinterpret_cast<std::byte*>(out.data()), out.size()}));
    return out;
  }

  struct Batch {
    SegmentId id;
    std::uint64_t page = 0;
    std::string bytes;
  };
  StoreOptions copy_options_;
  std::unique_ptr<SegmentStore> copy_;
  int losses_ = 0;
  std::optional<Code> seal_error_;
  Batch last_;
};

TEST_F(SegmentStoreReplica, CopiesReadLikeTheOriginal) {
  for (const std::size_t size : {1u, 4096u, 70'000u, 500'000u}) {
    const std::vector<std::string> runs{random_bytes(size, size)};
    for (const Placed& p : append(runs)) {
      const auto content = read_copy(p);
      ASSERT_TRUE(content) << describe(content.error());
      EXPECT_EQ(*content, runs[0].substr(p.run_offset, p.length));
    }
  }
}

TEST_F(SegmentStoreReplica, SealCutsTheCopyToo) {
  const Placed p = append_one("bytes");
  ASSERT_TRUE(copy_->seal_replica(p.segment, 2 * kPageSize));
  EXPECT_EQ(copy_->file(p.segment)->file_bytes, 2 * kPageSize);
  EXPECT_EQ(read_copy(p).value(), "bytes");
}

TEST_F(SegmentStoreReplica, LostHolderMovesTheBatchToANewSegment) {
  const Placed before = append_one("before");
  losses_ = 1;
  const Placed after = append_one("after");
  EXPECT_NE(after.segment, before.segment);
  EXPECT_EQ(read(before).value(), "before");
  EXPECT_EQ(read(after).value(), "after");
  EXPECT_EQ(known_[before.segment].length, before.segment_offset + kPageSize);
  EXPECT_TRUE(known_[before.segment].sealed);
}

TEST_F(SegmentStoreReplica, HoldersThatStayLostFailTheAppend) {
  losses_ = 1000;
  const std::string run = "x";
  const Bytes bytes = as_bytes(run);
  const auto placed = store_->append(Stream::kUser, {&bytes, 1});
  ASSERT_FALSE(placed);
  EXPECT_EQ(placed.error().code, Code::kUnreachable);
}

TEST_F(SegmentStoreReplica, BatchSentAgainIsWrittenOnce) {
  const Placed p = append_one("once");
  const std::uint64_t written = copy_->counters().copied_bytes;
  EXPECT_TRUE(write(last_.id, last_.page, last_.bytes));
  EXPECT_EQ(copy_->counters().copied_bytes, written);
  EXPECT_EQ(read_copy(p).value(), "once");
}

TEST_F(SegmentStoreReplica, BatchOutOfPlaceOrDamagedIsRefused) {
  append_one("one");
  const Batch good = last_;
  EXPECT_EQ(write(good.id, good.page + 1, good.bytes).error().code, Code::kCorrupt);
  std::string bad = good.bytes;
  bad[kPageSize + 7] = static_cast<char>(bad[kPageSize + 7] ^ 1);
  EXPECT_EQ(write(good.id, good.page, bad).error().code, Code::kCorrupt);
  EXPECT_EQ(write(good.id, good.page, good.bytes.substr(0, kPageSize)).error().code,
            Code::kCorrupt);
  EXPECT_EQ(write(good.id, kSegmentSize / kPageSize, good.bytes).error().code, Code::kInvalid);
  append_one("two");
  const Batch second = last_;
  reopen_copy();
  EXPECT_EQ(write(second.id, second.page, second.bytes).error().code, Code::kStale);
}

TEST_F(SegmentStoreReplica, GapIsRefused) {
  append_one("one");
  const SegmentId id = last_.id;
  ASSERT_TRUE(copy_->remove(id));
  append_one("two");  // the copy does not have the first batch any more
  EXPECT_NE(last_.id, id);
}

TEST_F(SegmentStoreReplica, OpenSegmentIsAdoptedUpToWhatIsReferredTo) {
  const Placed kept = append_one("kept");
  append_one("nobody refers to this");
  known_[kept.segment].length = kept.segment_offset + kept.length;
  reopen();
  ASSERT_TRUE(store_->adopt(known()));
  EXPECT_EQ(known_[kept.segment].length, kept.segment_offset + kPageSize);
  EXPECT_EQ(read(kept).value(), "kept");
}

TEST_F(SegmentStoreReplica, BatchesOfASealedSegmentMakeAnEqualCopy) {
  std::vector<Placed> placed;
  for (const char* content : {"one", "two", "three"}) placed.push_back(append_one(content));
  ASSERT_TRUE(store_->finish(placed[0].segment));
  const std::uint64_t end =
      store_->batch_end(placed[0].segment, placed[2].segment_offset + 1).value();
  EXPECT_EQ(known_[placed[0].segment].length, end);
  ASSERT_TRUE(copy_->remove(placed[0].segment));
  for (std::uint64_t page = 0; page * kPageSize < end;) {
    const auto batch = store_->read_batch(placed[0].segment, page);
    ASSERT_TRUE(batch) << describe(batch.error());
    ASSERT_TRUE(copy_->write_replica(placed[0].segment, page, batch->bytes()));
    page += batch->bytes().size() / kPageSize;
  }
  EXPECT_EQ(read_copy(placed[0]).value() + read_copy(placed[2]).value(), "onethree");
  EXPECT_EQ(store_->read_batch(placed[0].segment, 1).error().code, Code::kNotFound);
  flip(placed[1].segment, placed[1].segment_offset);
  EXPECT_EQ(
      store_->read_batch(placed[1].segment, placed[1].segment_offset / kPageSize - 1).error().code,
      Code::kCorrupt);
}

TEST_F(SegmentStoreReplica, NothingIsAppendedBehindASealThatMayHaveHappened) {
  const Placed before = append_one("before");
  seal_error_ = Code::kTimeout;
  losses_ = 1;
  const std::string run = "after";
  const Bytes bytes = as_bytes(run);
  const auto failed = store_->append(Stream::kUser, {&bytes, 1});
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code, Code::kTimeout);
  seal_error_.reset();
  const Placed after = append_one(run);
  EXPECT_NE(after.segment, before.segment);
  EXPECT_EQ(known_[before.segment].length, before.segment_offset + kPageSize);
}

/// The seal had happened, and what was sealed had no live bytes.
TEST_F(SegmentStoreReplica, ASegmentThatWasDeletedBehindItsSealIsFollowedByAnother) {
  const Placed before = append_one("before");
  seal_error_ = Code::kTimeout;
  ASSERT_FALSE(store_->finish(before.segment));
  ASSERT_TRUE(store_->remove(before.segment));
  const std::uint64_t files_bytes = store_->counters().files_bytes;
  seal_error_ = Code::kNotFound;
  EXPECT_TRUE(store_->finish(before.segment));
  EXPECT_EQ(store_->counters().files_bytes, files_bytes);
  seal_error_.reset();
  EXPECT_NE(append_one("after").segment, before.segment);
}

TEST_F(SegmentStoreReplica, FinishOfAnotherSegmentChangesNothing) {
  const Placed p = append_one("x");
  ASSERT_TRUE(store_->finish({p.segment.value + 1}));
  EXPECT_FALSE(known_[p.segment].sealed);
}

TEST_F(SegmentStoreReplica, AMendedBatchMustBeWholeOfItsPlaceAndSealed) {
  const Placed placed = append_one("bytes");
  const auto batch = aligned_bytes(last_.bytes);
  const std::uint64_t page = last_.page;
  const auto mend = [&](SegmentId id, std::uint64_t at, Bytes bytes) {
    const Status mended = copy_->mend_batch(id, at, bytes);
    return mended ? Code{} : mended.error().code;
  };
  EXPECT_EQ(mend(placed.segment, page, batch.bytes()), Code::kStale) << "it is being written";
  ASSERT_TRUE(copy_->seal_replica(placed.segment, page * kPageSize + last_.bytes.size()));
  EXPECT_EQ(mend(placed.segment, page, batch.bytes()), Code{});
  EXPECT_EQ(mend({placed.segment.value + 1}, page, batch.bytes()), Code::kNotFound);
  EXPECT_EQ(mend(placed.segment, page + 1, batch.bytes()), Code::kInvalid);
  auto torn = aligned_bytes(last_.bytes);
  torn.bytes()[kPageSize] ^= std::byte{1};
  EXPECT_EQ(mend(placed.segment, page, torn.bytes()), Code::kCorrupt);
  EXPECT_EQ(read_copy(placed).value(), "bytes");
}

}  // namespace
}  // namespace kvsyncfs
