// The judges of the cluster's simulation say yes to what can happen and no to what cannot.
#include <gtest/gtest.h>

#include "tests/sim/cluster/byte_history.h"
#include "tests/sim/cluster/lock_history.h"
#include "tests/sim/cluster/name_history.h"
#include "tests/sim/cluster/register_history.h"

namespace kvsyncfs {
namespace {

NameOp op(NameCall call, unsigned node, std::uint64_t begin, std::uint64_t end,
          std::uint64_t token = 0, Code code = {}) {
  NameOp op;
  op.call = call;
  op.node = node;
  op.b = {1, 0};
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
  moved.a = {1, 0};
  EXPECT_EQ(check_names({create(1, 2, 7), op(NameCall::kRename, 1, 3, 4), moved}), "");
  EXPECT_NE(check_names({create(1, 2, 7), op(NameCall::kRename, 1, 3, 4), lookup(2, 5, 7)}), "");
}

constexpr std::uint64_t kFolder = token_of(5, NodeKind::kDirectory);

/// One call about the name in the folder, or with `b` to it.
NameOp inside(NameCall call, std::uint64_t begin, NamePlace b = {}, Code code = {}) {
  NameOp op{call, 1, {0, kFolder}, b, token_of(6, NodeKind::kFile), begin, begin + 1, code};
  return op;
}

TEST(NameHistory, AFolderIsRemovedWhenItIsEmpty) {
  const NameOp made = create(1, 2, kFolder);
  const auto removed = [](std::uint64_t begin, Code code) {
    return op(NameCall::kRmdir, 2, begin, begin + 1, 0, code);
  };
  EXPECT_EQ(check_names({made, removed(5, {})}), "");
  EXPECT_EQ(check_names({made, inside(NameCall::kCreate, 3), removed(5, Code::kNotEmpty)}), "");
  EXPECT_NE(check_names({made, inside(NameCall::kCreate, 3), removed(5, {})}), "");
  EXPECT_NE(check_names({made, removed(5, {}), inside(NameCall::kCreate, 7)}), "") << "it is gone";
}

TEST(NameHistory, WhatLiesInAFolderGoesWithIt) {
  const NameOp made = create(1, 2, kFolder), moved = op(NameCall::kRename, 1, 5, 6);
  EXPECT_EQ(check_names({made, inside(NameCall::kCreate, 3), moved, inside(NameCall::kLookup, 7)}),
            "");
  EXPECT_NE(check_names({made, inside(NameCall::kCreate, 3), moved,
                         inside(NameCall::kLookup, 7, {}, Code::kNotFound)}),
            "");
}

TEST(NameHistory, AFolderIsNotMovedIntoItself) {
  NameOp loop = op(NameCall::kRename, 1, 3, 4, 0, Code::kInvalid);
  loop.b = {0, kFolder};
  EXPECT_EQ(check_names({create(1, 2, kFolder), loop}), "");
  loop.code = {};
  EXPECT_NE(check_names({create(1, 2, kFolder), loop}), "");
}

FileHistory written(std::uint64_t confirmed_first, std::uint64_t begin_second) {
  FileHistory history;
  history.writes[1] = {1, 0, 1, 10, confirmed_first, false, nullptr, 0};
  history.writes[2] = {2, 0, 1, begin_second, 40, false, nullptr, 0};
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

TEST(ByteHistory, WhatAnotherNodeSawDoesNotComeASecondTime) {
  FileHistory history = written(~std::uint64_t{0}, 30);
  history.reads = {{1, 22, 25, cells_of(1, 1)}, {1, 50, 60, cells_of(1, 1)}};
  EXPECT_EQ(check_cells("f", history), "") << "its own node may see it before it lands";
  history.reads[0].node = 2;
  EXPECT_NE(check_cells("f", history), "");
  history.reads[0].end_ns = 31;  // the second one had begun
  EXPECT_EQ(check_cells("f", history), "");
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

TEST(ByteHistory, WhatWasCutOffIsGone) {
  FileHistory history = written(20, 30);
  history.writes[2].is_zeros = true;
  history.reads = {{1, 50, 60, ""}};
  EXPECT_EQ(check_cells("f", history), "");
  history.reads = {{1, 35, 60, cells_of(1, 1)}};
  EXPECT_EQ(check_cells("f", history), "") << "under way";
  history.reads = {{1, 50, 60, cells_of(1, 1)}};
  EXPECT_NE(check_cells("f", history), "");
}

TEST(ByteHistory, ACopyShowsWhatItsSourceShowed) {
  const FileHistory source = written(20, 30);
  FileHistory history;
  history.writes[3] = {1, 4, 1, 50, 60, false, &source, 0};
  const std::string nothing(4 * kCellSize, '\0');
  history.reads = {{1, 70, 80, nothing + cells_of(2, 1)}};
  EXPECT_EQ(check_cells("f", history), "");
  history.reads = {{1, 70, 80, nothing + cells_of(1, 1)}};
  EXPECT_NE(check_cells("f", history), "") << "the source was newer";
  history.reads = {{1, 70, 80, ""}};
  EXPECT_NE(check_cells("f", history), "") << "lost";
}

RegisterOp change(RegisterCall call, std::uint64_t value, std::uint64_t begin, Code code = {}) {
  return {call, 1, value, begin, begin + 1, code};
}
RegisterOp seen(unsigned node, std::uint64_t value, std::uint64_t begin) {
  return {RegisterCall::kRead, node, value, begin, begin + 1, {}};
}

TEST(RegisterHistory, AReadSeesTheLastThatReturned) {
  const RegisterOp set = change(RegisterCall::kSet, 7, 1);
  EXPECT_EQ(check_register("r", 0, {set, seen(2, 7, 5)}), "");
  EXPECT_NE(check_register("r", 0, {set, seen(2, 0, 5)}), "") << "an older one";
  EXPECT_NE(check_register("r", 0, {set, seen(2, 8, 5)}), "") << "nobody's";
  EXPECT_NE(check_register("r", 0, {set, seen(2, 7, 5), seen(2, 0, 7)}), "") << "back again";
}

TEST(RegisterHistory, WhatMustBeThereOrNotIs) {
  const RegisterOp add = change(RegisterCall::kAdd, 7, 1);
  EXPECT_EQ(check_register("r", 0, {add, change(RegisterCall::kAdd, 8, 5, Code::kExists)}), "");
  EXPECT_NE(check_register("r", 0, {add, change(RegisterCall::kAdd, 8, 5)}), "");
  EXPECT_EQ(check_register("r", 0, {add, change(RegisterCall::kReplace, 8, 5)}), "");
  EXPECT_NE(check_register("r", 0, {change(RegisterCall::kReplace, 8, 5)}), "");
  EXPECT_NE(check_register("r", 0, {add, change(RegisterCall::kRemove, 0, 5, Code::kNoData)}), "");
  EXPECT_EQ(check_register("r", 0, {add, change(RegisterCall::kRemove, 0, 5), seen(2, 0, 7)}), "");
}

TEST(LockHistory, AnExclusiveLockIsHeldAlone) {
  const LockHold first{1, 1, true, 0, 9, 10, 20}, later{2, 2, true, 0, 9, 20, 30},
      inside{2, 2, true, 5, 5, 15, 30}, beside{2, 2, true, 10, 19, 15, 30};
  EXPECT_EQ(check_locks({first, later}), "");
  EXPECT_NE(check_locks({first, inside}), "");
  EXPECT_EQ(check_locks({first, beside}), "") << "other bytes";
  EXPECT_EQ(check_locks({{1, 1, false, 0, 9, 10, 20}, {2, 2, false, 0, 9, 15, 30}}), "");
}

}  // namespace
}  // namespace kvsyncfs
