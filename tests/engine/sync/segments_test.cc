// Batches go to the other holders, and pages come from them.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <optional>
#include <thread>

#include "engine/env/real.h"
#include "engine/sync/copy_keeper.h"
#include "engine/sync/page_puller.h"
#include "engine/sync/peer_server.h"
#include "engine/sync/shipper.h"
#include "tests/engine/store/store_fixture.h"
#include "tests/engine/sync/loop_transport.h"

namespace kvsyncfs {
namespace {

constexpr NodeId kSelf{1}, kB{2}, kC{3};
constexpr std::uint64_t kSecond = 1'000'000'000;

/// A node that holds copies.
class Holder {
 public:
  Holder(LoopNet& net, NodeId node, Disk& disk, StoreOptions options, HeldLength held_length)
      : transport_(net, node) {
    EXPECT_TRUE(SegmentStore::format(disk, options));
    auto opened = SegmentStore::open(disk, options);
    EXPECT_TRUE(opened);
    store = std::move(*opened);
    server_ = std::make_unique<PeerServer>(*store, options.volume_tag, std::move(held_length));
    server_->take_copies();
    TransportHandlers handlers;
    handlers.on_request = [this](Incoming request, Responder responder) {
      server_->take(std::move(request), std::move(responder));
    };
    EXPECT_TRUE(transport_.start(std::move(handlers)));
    thread_ = std::thread([this] {
      while (!stopped_) server_->run();
    });
  }
  ~Holder() {
    stopped_ = true;
    thread_.join();
  }

  std::unique_ptr<SegmentStore> store;

 private:
  LoopTransport transport_;
  std::unique_ptr<PeerServer> server_;
  std::atomic<bool> stopped_ = false;
  std::thread thread_;
};

class SyncSegments : public StoreTest {
 protected:
  void SetUp() override {
    StoreTest::SetUp();
    StoreOptions at_b = options_, at_c = options_;
    at_b.directory = folder_.path() + "/b";
    at_c.directory = folder_.path() + "/c";
    b_ = std::make_unique<Holder>(net_, kB, disk_, at_b, held_);
    c_ = std::make_unique<Holder>(net_, kC, disk_, at_c, held_);
    options_.ship = [this](SegmentId id, std::uint64_t page, std::span<const Bytes> pieces) {
      return shipper_.ship(id, page, pieces, {kB, kC},
                           [this](NodeId node, const Error&) { lost_.push_back(node); });
    };
    make();
  }

  Result<std::string> pull(const Placed& at, std::vector<NodeId> holders) {
    AlignedBuffer pages(2 * kPageSize);
    KVSYNCFS_ASSIGN(const std::size_t count, puller_.pull(at.segment, at.segment_offset / kPageSize,
                                                          pages.bytes(), holders));
    EXPECT_GE(count * kPageSize, at.length);
    return std::string(as_string(pages.bytes().first(at.length)));
  }
  void damage(const std::string& folder, const Placed& at) {
    const std::string own = options_.directory;
    options_.directory = folder_.path() + "/" + folder;
    flip(at.segment, at.segment_offset + 1);
    options_.directory = own;
  }

  /// What each node is to hold, as the catalog would say.
  std::map<SegmentId, std::uint64_t> held_lengths_;
  const HeldLength held_ = [this](SegmentId segment) -> Result<std::uint64_t> {
    const auto found = held_lengths_.find(segment);
    return found == held_lengths_.end() ? Result<std::uint64_t>(Code::kNotFound) : found->second;
  };
  std::unique_ptr<Clock> clock_ = make_real_clock();
  LoopNet net_;
  LoopTransport self_{net_, kSelf};
  Shipper shipper_{self_, *clock_, 5 * kSecond};
  PagePuller puller_{self_, *clock_, 0x1122334455667788, 5 * kSecond};
  std::unique_ptr<Holder> b_, c_;
  std::vector<NodeId> lost_;
};

TEST_F(SyncSegments, EachHolderHasWhatWasAppended) {
  const Placed p = append_one("bytes");
  EXPECT_EQ(pull(p, {kB}).value(), "bytes");
  EXPECT_EQ(pull(p, {kC}).value(), "bytes");
}

TEST_F(SyncSegments, HolderThatIsDownIsNamed) {
  net_.down.insert(kC);
  const std::string run = "x";
  const Bytes bytes = as_bytes(run);
  const auto placed = store_->append(Stream::kUser, {&bytes, 1});
  ASSERT_FALSE(placed);
  EXPECT_EQ(placed.error().code, Code::kUnreachable);
  EXPECT_EQ(lost_.at(0), kC);
}

TEST_F(SyncSegments, PullGoesToAnotherHolderWhereOneIsDown) {
  const Placed p = append_one("bytes");
  net_.down.insert(kB);
  EXPECT_EQ(pull(p, {kB, kC}).value(), "bytes");
}

TEST_F(SyncSegments, PullGoesToAnotherHolderWhereAPageIsBad) {
  const Placed p = append_one("bytes");
  damage("b", p);
  EXPECT_EQ(pull(p, {kB, kC}).value(), "bytes");
  damage("c", p);
  EXPECT_EQ(pull(p, {kB, kC}).error().code, Code::kCorrupt);
}

TEST_F(SyncSegments, PullAsksAnotherHolderWhereOneDoesNotAnswer) {
  const Placed p = append_one("bytes");
  LoopTransport silent(net_, kB);  // in B's place, which is the first in the order
  TransportHandlers handlers;
  std::vector<Responder> kept;
  handlers.on_request = [&](Incoming, Responder responder) {
    kept.push_back(std::move(responder));
  };
  ASSERT_TRUE(silent.start(std::move(handlers)));
  EXPECT_EQ(pull(p, {kB, kC}).value(), "bytes");
  EXPECT_EQ(kept.size(), 1u) << "it was asked first";
  EXPECT_EQ(self_.calls(kC), 2u) << "the copy, and the pull";
}

TEST_F(SyncSegments, PullAsksOneHolderWhereThatAnswers) {
  const Placed p = append_one("bytes");
  const std::size_t before = self_.calls(kC);
  EXPECT_EQ(pull(p, {kB, kC}).value(), "bytes");
  EXPECT_EQ(self_.calls(kC), before);
}

class SyncCopies : public SyncSegments {
 protected:
  /// An own segment with two batches, sealed on all nodes.
  void SetUp() override {
    SyncSegments::SetUp();
    place_ = append_one("bytes");
    append_one(random_bytes(3 * kPageSize, 1));
    ASSERT_TRUE(store_->finish(place_.segment));
    const std::uint64_t length = known().at(0).length;
    ASSERT_TRUE(b_->store->seal_replica(place_.segment, length));
    ASSERT_TRUE(c_->store->seal_replica(place_.segment, length));
    held_lengths_[place_.segment] = length;
    page_ = place_.segment_offset / kPageSize;
    start_keeper();
  }
  void start_keeper() { keeper_.emplace(&self_, *clock_, *store_, kSelf, 5 * kSecond, held_); }
  CheckedBatch check(const std::vector<NodeId>& nodes) {
    return keeper_->check(place_.segment, page_, nodes);
  }
  CheckedBatch check_and_mend(const std::vector<NodeId>& nodes) {
    CheckedBatch checked = check(nodes);
    keeper_->mend(place_.segment, page_, kAll, checked);
    return checked;
  }
  static std::vector<NodeId> bad_in(const CheckedBatch& checked) {
    std::vector<NodeId> bad;
    for (const CheckedCopy& copy : checked.copies)
      if (copy.is_bad()) bad.push_back(copy.node);
    return bad;
  }

  /// Of this node's store, or of the one in that folder.
  std::string file_of(const std::string& folder = "segments") const {
    return fmt::format("{}/{}/{:016x}.seg", folder_.path(), folder, place_.segment.value);
  }
  std::string content(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  /// As a scrub does: from batch to batch, each mended.
  void scrub(NodeId node) {
    const std::uint64_t end = held_lengths_.at(place_.segment) / kPageSize;
    for (std::uint64_t page = 0; page < end;) {
      const NodeId one[] = {node};
      CheckedBatch checked = keeper_->check(place_.segment, page, one);
      keeper_->mend(place_.segment, page, kAll, checked);
      ASSERT_TRUE(checked.batch);
      page = checked.batch->page + checked.batch->count;
    }
  }

  const std::vector<NodeId> kAll{kSelf, kB, kC};
  Placed place_;
  std::uint64_t page_ = 0;
  std::optional<CopyKeeper> keeper_;
};

TEST_F(SyncCopies, GoodOnesAreToldToBeGood) {
  const CheckedBatch checked = check(kAll);
  EXPECT_TRUE(bad_in(checked).empty());
  EXPECT_EQ(checked.copies.size(), 3u);
  EXPECT_EQ(checked.batch, (PageRange{page_ - 1, 2}));
}

TEST_F(SyncCopies, ABadOneIsMendedFromAGoodOne) {
  damage("b", place_);
  const CheckedBatch checked = check_and_mend(kAll);
  EXPECT_EQ(bad_in(checked), std::vector{kB});
  EXPECT_TRUE(checked.copies[1].is_mended);
  EXPECT_TRUE(bad_in(check(kAll)).empty());
  EXPECT_EQ(pull(place_, {kB}).value(), "bytes");
}

TEST_F(SyncCopies, TheOwnOneIsMendedFromAPeerThatWasNotAskedBefore) {
  flip(place_.segment, place_.segment_offset + 1);
  damage("b", place_);
  const CheckedBatch checked = check_and_mend({kSelf});
  EXPECT_TRUE(checked.copies[0].is_mended);
  EXPECT_FALSE(checked.copies[1].is_mended) << "only what was asked for is mended";
  EXPECT_TRUE(bad_in(check({kSelf})).empty());
  EXPECT_EQ(read(place_).value(), "bytes");
}

TEST_F(SyncCopies, ABatchWhoseChecksumPageIsBadIsFoundAndMended) {
  flip(place_.segment, (page_ - 1) * kPageSize + 8);
  reopen();  // so that no table in memory knows it
  ASSERT_TRUE(store_->adopt(known()));
  start_keeper();
  EXPECT_EQ(bad_in(check({kSelf})), std::vector{kSelf});
  EXPECT_TRUE(check_and_mend({kSelf}).copies[0].is_mended);
  EXPECT_EQ(read(place_).value(), "bytes");
}

TEST_F(SyncCopies, AFileThatIsGoneIsMadeAnew) {
  const std::string whole = content(file_of("c"));
  for (const auto& [node, path] : {std::pair{kSelf, file_of()}, std::pair{kB, file_of("b")}}) {
    ASSERT_EQ(content(path), whole);
    ASSERT_TRUE(std::filesystem::remove(path));
    EXPECT_EQ(bad_in(check({node})), std::vector{node}) << "though it may still be open";
    scrub(node);
    EXPECT_EQ(content(path), whole);
    EXPECT_TRUE(bad_in(check(kAll)).empty());
  }
  EXPECT_EQ(read(place_).value(), "bytes");
}

TEST_F(SyncCopies, AFileThatIsGoneIsMadeAnewAfterARestart) {
  const std::string whole = content(file_of());
  ASSERT_TRUE(std::filesystem::remove(file_of()));
  reopen();
  ASSERT_TRUE(store_->adopt(known()));
  start_keeper();
  EXPECT_TRUE(check_and_mend({kSelf}).copies[0].is_mended);
  reopen();  // in the middle of it
  ASSERT_TRUE(store_->adopt(known()));
  start_keeper();
  EXPECT_EQ(read(place_).value(), "bytes") << "what was mended stays";
  scrub(kSelf);
  EXPECT_EQ(content(file_of()), whole);
}

TEST_F(SyncCopies, AFileThatIsNotToBeHereIsNotMade) {
  ASSERT_TRUE(std::filesystem::remove(file_of("b")));
  const std::uint64_t length = std::exchange(held_lengths_[place_.segment], 0);
  held_lengths_.erase(place_.segment);
  EXPECT_FALSE(check_and_mend({kB}).copies[0].is_mended);
  EXPECT_FALSE(std::filesystem::exists(file_of("b")));
  held_lengths_[place_.segment] = length;
  damage("c", place_);
  flip(place_.segment, place_.segment_offset + 1);
  EXPECT_FALSE(check_and_mend({kB}).copies[0].is_mended) << "nobody has the bytes";
  EXPECT_FALSE(std::filesystem::exists(file_of("b")));
}

TEST_F(SyncCopies, WhereTheNextBatchBeginsIsAskedOfOthers) {
  const std::uint64_t first = page_ - 1, second = first + 2;
  for (const std::uint64_t page : {first, second}) flip(place_.segment, page * kPageSize + 8);
  reopen();  // so that no table in memory knows them
  ASSERT_TRUE(store_->adopt(known()));
  start_keeper();
  EXPECT_EQ(keeper_->next_batch(place_.segment, first + 1, {{kSelf}}), std::nullopt);
  EXPECT_EQ(keeper_->next_batch(place_.segment, first + 1, kAll), second);
  EXPECT_EQ(keeper_->next_batch(place_.segment, second + 1, kAll), std::nullopt);
}

TEST_F(SyncCopies, WhereAllAreBadNothingIsWritten) {
  flip(place_.segment, place_.segment_offset + 1);
  damage("b", place_);
  damage("c", place_);
  const CheckedBatch checked = check_and_mend(kAll);
  EXPECT_EQ(bad_in(checked), kAll);
  for (const CheckedCopy& copy : checked.copies) EXPECT_FALSE(copy.is_mended);
}

TEST_F(SyncCopies, ABatchIsReadFromTheOneThatHasItWhole) {
  const auto good = store_->read_batch(place_.segment, page_ - 1);
  ASSERT_TRUE(good);
  flip(place_.segment, place_.segment_offset + 1);
  damage("b", place_);
  const auto read = keeper_->read_from_others(place_.segment, page_ - 1, kAll);
  ASSERT_TRUE(read) << describe(read.error());
  EXPECT_TRUE(std::ranges::equal(read->bytes(), good->bytes()));
  damage("c", place_);
  EXPECT_EQ(keeper_->read_from_others(place_.segment, page_ - 1, kAll).error().code,
            Code::kCorrupt);
  EXPECT_EQ(keeper_->read_from_others(place_.segment, page_ - 1, {}).error().code, Code::kNotFound);
}

TEST_F(SyncCopies, TheBatchBehindABadOneIsFound) {
  const std::uint64_t first = page_ - 1, second = first + 2;
  EXPECT_EQ(store_->next_batch(place_.segment, first).value(), first);
  EXPECT_EQ(store_->next_batch(place_.segment, first + 1).value(), second);
  EXPECT_EQ(store_->next_batch(place_.segment, second + 1).error().code, Code::kNotFound);
  flip(place_.segment, first * kPageSize + 8);
  reopen();  // so that no table in memory knows it
  ASSERT_TRUE(store_->adopt(known()));
  EXPECT_EQ(store_->next_batch(place_.segment, first).value(), second);
}

TEST_F(SyncCopies, WhoIsNotReachedIsNotCalledBad) {
  net_.down.insert(kC);
  const CheckedBatch checked = check(kAll);
  EXPECT_TRUE(bad_in(checked).empty());
  EXPECT_FALSE(checked.copies[2].status);
}

TEST_F(SyncSegments, PullSaysWhatTheHoldersSay) {
  const Placed p = append_one("bytes");
  EXPECT_EQ(pull({0, 0, 5, {77}, kPageSize}, {kB, kC}).error().code, Code::kNotFound);
  net_.down = {kB, kC};
  EXPECT_EQ(pull(p, {kB, kC}).error().code, Code::kUnreachable);
  EXPECT_EQ(pull(p, {}).error().code, Code::kUnreachable);
}

TEST_F(SyncSegments, AnswerThatLiesIsNotTaken) {
  const Placed p = append_one("bytes");
  LoopTransport liar(net_, {4});
  TransportHandlers handlers;
  std::string head;
  handlers.on_request = [&](Incoming, Responder responder) {
    responder.reply(Answer{head, {as_bytes(head), nullptr}});
  };
  ASSERT_TRUE(liar.start(std::move(handlers)));
  for (const std::string& lie : {std::string(), std::string(4, 'x'), std::string(4096, 'x')}) {
    head = lie;
    EXPECT_EQ(pull(p, {NodeId{4}}).error().code, Code::kCorrupt) << lie.size();
  }
}

}  // namespace
}  // namespace kvsyncfs
