// The judges of the cluster's simulation say yes to what can happen and no to what cannot.
#include <gtest/gtest.h>

#include "tests/sim/cluster/byte_history.h"
#include "tests/sim/cluster/lock_history.h"
#include "tests/sim/cluster/name_history.h"

namespace kvsyncfs {
namespace {

NameOp op(NameCall call, unsigned node, std::uint64_t begin, std::uint64_t end,
          std::uint64_t token = 0, Code code = {}) {
  NameOp op;
  op.call = call;
  op.node = node;
  op.b = 1;
  op.begin_ns = begin;
  op.end_ns = end;
  op.token = token;
  op.code = code;
  return op;
}
NameOp lookup(unsigned node, std::uint64_t begin, std::uint64_t token) {
  return op(NameCall::kLookup, node, begin, begin + 1, token,
            token == 0 ? Code::kNotFound : Code{});
}
NameOp create(std::uint64_t begin, std::uint64_t end, std::uint64_t token, Code code = {}) {
  return op(NameCall::kCreate, 1, begin, end, token, code);
}

TEST(NameHistory, AReadSeesWhatReturnedBefore) {
  EXPECT_EQ(check_names({create(1, 2, 7), lookup(2, 3, 7)}), "");
  EXPECT_NE(check_names({create(1, 2, 7), lookup(2, 3, 0)}), "");
}

TEST(NameHistory, AChangeUnderWayMayBeSeenOnOneNodeFirst) {
  EXPECT_EQ(check_names({create(1, 9, 7), lookup(1, 3, 7), lookup(2, 5, 0)}), "");
  EXPECT_NE(check_names({create(1, 9, 7), lookup(1, 3, 7), lookup(1, 5, 0)}), "");
}

TEST(NameHistory, OneOfTwoExclusiveCreatesFails) {
  EXPECT_EQ(check_names({create(1, 5, 7), create(2, 6, 8, Code::kExists)}), "");
  EXPECT_NE(check_names({create(1, 5, 7), create(2, 6, 8)}), "");
}

TEST(NameHistory, WhatHadNoAnswerHappensOnceOrNever) {
  EXPECT_EQ(check_names({create(1, kNoAnswer, 7), lookup(2, 3, 0), lookup(2, 5, 7)}), "");
  EXPECT_NE(check_names({create(1, kNoAnswer, 7), lookup(2, 3, 7), lookup(2, 5, 0)}), "");
}

TEST(NameHistory, ARenameMovesTheFile) {
  NameOp moved = lookup(2, 5, 7);
  moved.a = 1;
  EXPECT_EQ(check_names({create(1, 2, 7), op(NameCall::kRename, 1, 3, 4), moved}), "");
  EXPECT_NE(check_names({create(1, 2, 7), op(NameCall::kRename, 1, 3, 4), lookup(2, 5, 7)}), "");
}

FileHistory written(std::uint64_t confirmed_first, std::uint64_t begin_second) {
  FileHistory history;
  history.writes[1] = {1, 0, 1, 10, confirmed_first};
  history.writes[2] = {2, 0, 1, begin_second, 40};
  return history;
}

TEST(ByteHistory, ACellIsNotOlderThanWhatWasConfirmed) {
  FileHistory history = written(20, 30);
  history.reads = {{1, 50, 60, cells_of(2, 1)}};
  EXPECT_EQ(check_cells("f", history), "");
  history.reads = {{1, 50, 60, cells_of(1, 1)}};
  EXPECT_NE(check_cells("f", history), "");
  history.reads = {{1, 35, 60, cells_of(1, 1)}};  // the second one is under way
  EXPECT_EQ(check_cells("f", history), "");
  history.reads = {{1, 50, 60, ""}};
  EXPECT_NE(check_cells("f", history), "");
}

TEST(ByteHistory, OfTwoWritesAtOnceEitherStays) {
  FileHistory history = written(35, 30);
  history.reads = {{1, 50, 60, cells_of(1, 1)}};
  EXPECT_EQ(check_cells("f", history), "");
}

TEST(ByteHistory, ACellIsWholeAndSomebodys) {
  FileHistory history = written(20, 30);
  history.reads = {{1, 50, 60, cells_of(2, 1).substr(0, 500)}};
  EXPECT_NE(check_cells("f", history), "");
  history.reads = {{1, 50, 60, cells_of(3, 1)}};
  EXPECT_NE(check_cells("f", history), "");
  history.reads = {{1, 50, 60, cells_of(2, 2)}};
  EXPECT_NE(check_cells("f", history), "") << "beyond the write's cells";
}

TEST(ByteHistory, ARecordIsThereOnceAndForAll) {
  FileHistory history = written(20, 30);
  history.reads = {{1, 50, 60, record_of(1) + record_of(2)}};
  EXPECT_EQ(check_appends("f", history), "");
  history.reads.push_back({2, 50, 60, record_of(2) + record_of(1)});
  EXPECT_NE(check_appends("f", history), "") << "two orders";
  history.reads = {{1, 50, 60, record_of(1) + record_of(2) + record_of(1)}};
  EXPECT_NE(check_appends("f", history), "") << "twice";
  history.reads = {{1, 50, 60, record_of(1)}};
  EXPECT_NE(check_appends("f", history), "") << "lost";
  history.reads = {{1, 35, 60, record_of(1)}};
  EXPECT_EQ(check_appends("f", history), "") << "under way";
}

TEST(LockHistory, AnExclusiveLockIsHeldAlone) {
  const LockHold first{1, 1, true, 10, 20}, later{2, 2, true, 20, 30}, inside{2, 2, true, 15, 30};
  EXPECT_EQ(check_locks({first, later}), "");
  EXPECT_NE(check_locks({first, inside}), "");
  EXPECT_EQ(check_locks({{1, 1, false, 10, 20}, {2, 2, false, 15, 30}}), "");
}

}  // namespace
}  // namespace kvsyncfs
