// Transactions on the wire: golden bytes, round trips, and bad input.
#include "engine/format/command.h"

#include <gtest/gtest.h>

#include "tests/engine/format/command_generator.h"

namespace kvsyncfs {
namespace {

std::string bytes(std::initializer_list<int> values) {
  std::string s;
  for (int v : values) s.push_back(static_cast<char>(v));
  return s;
}

Code code(std::string_view encoded) { return decode_transaction(encoded).error().code; }

TEST(CommandFormat, GoldenBytesOfUnlink) {
  Transaction t;
  t.commands.push_back(UnlinkCommand{{0x0102030405060708}, "ab", true, {-1, 999'999'999}});
  const std::string golden = bytes({1,    1,    0,                              // version, count
                                    3,                                          // tag
                                    8,    7,    6,    5,   4,   3,   2,   1,    // parent
                                    2,    0,    0,    0,   'a', 'b',            // name
                                    1,                                          // directory
                                    255,  255,  255,  255, 255, 255, 255, 255,  // seconds
                                    0xff, 0xc9, 0x9a, 0x3b});                   // nanoseconds
  EXPECT_EQ(encode(t), golden);
  EXPECT_EQ(encode(decode_transaction(golden).value()), golden);
}

TEST(CommandFormat, GoldenBytesOfWriteExtents) {
  Transaction t;
  t.commands.push_back(WriteExtentsCommand{{5}, {{1, 2, {3}, 4}}, Timestamp{6, 7}, true, {8, 9}});
  const std::string golden =
      bytes({1,       1, 0, 6, 5, 0, 0, 0, 0, 0, 0, 0,                // inode
             32 + 64,                                                 // has mtime, kill privileges
             6,       0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0,                // mtime
             8,       0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0,                // time
             1,       0, 0, 0,                                        // count
             1,       0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0,    // file offset, length
             3,       0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0});  // segment, segment offset
  EXPECT_EQ(encode(t), golden);
}

const std::initializer_list<int> kNobody = {2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
                                            0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};

TEST(CommandFormat, GoldenBytesOfPrivilegesTakenFromAnOwnersChange) {
  SetAttrCommand command;
  command.inode = {5};
  command.gid = 7;
  command.kill_privileges = command.kill_setgid = true;
  command.time = {8, 9};
  Transaction t;
  t.commands.push_back(command);
  const std::string golden = bytes({1,       1, 0, 5, 5, 0, 0, 0, 0, 0, 0, 0,  // inode
                                    4 + 192,                                   // gid, and both bits
                                    7,       0, 0, 0,                          // gid
                                    8,       0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0});  // time
  EXPECT_EQ(encode(t), golden);
  EXPECT_EQ(encode(decode_transaction(golden).value()), golden);
}

TEST(CommandFormat, GoldenBytesOfAnOrigin) {
  Transaction t{{ReclaimCommand{{5}}}, Origin{{1}, {0x0203}, 4}};
  const std::string golden = bytes({2,                        // version
                                    1,  0, 0, 0, 0, 0, 0, 0,  // node
                                    3,  2, 0, 0, 0, 0, 0, 0,  // incarnation
                                    4,  0, 0, 0, 0, 0, 0, 0,  // request
                                    1,  0,                    // count
                                    12, 5, 0, 0, 0, 0, 0, 0, 0});
  EXPECT_EQ(encode(t), golden);
  EXPECT_EQ(decode_transaction(golden)->origin, t.origin);
}

TEST(CommandFormat, GoldenBytesOfJoinAndEnd) {
  const Transaction t{{JoinCommand{{1}, {2}, 0x0304, 5000}, EndCommand{{6}, {7}}}};
  EXPECT_EQ(encode(t), bytes(kNobody) + bytes({2,    0,                          // count
                                               17,   1,    0, 0, 0, 0, 0, 0, 0,  // node
                                               2,    0,    0, 0, 0, 0, 0, 0,     // incarnation
                                               4,    3,    0, 0, 0, 0, 0, 0,     // features
                                               0x88, 0x13, 0, 0,                 // lease
                                               18,   6,    0, 0, 0, 0, 0, 0, 0,  // node
                                               7,    0,    0, 0, 0, 0, 0, 0}));  // incarnation
}

TEST(CommandFormat, GoldenBytesOfHoldOrphans) {
  const Transaction t{{HoldOrphansCommand{{{1}, {2}}, {{0x0304}}}}};
  EXPECT_EQ(encode(t), bytes(kNobody) + bytes({1,  0,                    // count
                                               19, 2, 0, 0, 0,           // held
                                               1,  0, 0, 0, 0, 0, 0, 0,  //
                                               2,  0, 0, 0, 0, 0, 0, 0,  //
                                               1,  0, 0, 0,              // released
                                               4,  3, 0, 0, 0, 0, 0, 0}));
}

TEST(CommandFormat, GoldenBytesOfLocks) {
  const Transaction t{
      {AcquireLockCommand{{1}, LockKind::kPosix, LockType::kExclusive, 3, 4, 5, 6, true},
       ReleaseLockCommand{{1}, LockKind::kFlock, 2, 3, 4},
       CancelLockCommand{{1}, LockKind::kPosix, 2}}};
  const std::string golden = bytes(kNobody) + bytes({3,  0,                       // count
                                                     20, 1, 0, 0, 0, 0, 0, 0, 0,  // inode
                                                     2,  2,                       // kind, type
                                                     3,  0, 0, 0, 0, 0, 0, 0,     // owner
                                                     4,  0, 0, 0, 0, 0, 0, 0,     // start
                                                     5,  0, 0, 0, 0, 0, 0, 0,     // end
                                                     6,  0, 0, 0, 1,              // pid, wait
                                                     21, 1, 0, 0, 0, 0, 0, 0, 0,  // inode
                                                     1,                           // kind
                                                     2,  0, 0, 0, 0, 0, 0, 0,     // owner
                                                     3,  0, 0, 0, 0, 0, 0, 0,     // start
                                                     4,  0, 0, 0, 0, 0, 0, 0,     // end
                                                     22, 1, 0, 0, 0, 0, 0, 0, 0,  // inode
                                                     2,                           // kind
                                                     2,  0, 0, 0, 0, 0, 0, 0});   // wait
  EXPECT_EQ(encode(t), golden);
  for (const std::size_t at : {27u + 2 - 2 + 1 + 8, 27u + 1 + 8 + 1}) {  // kind, type
    for (const char bad : {'\0', '\3'}) {
      std::string changed = golden;
      changed[at] = bad;
      EXPECT_EQ(code(changed), Code::kCorrupt) << at;
    }
  }
}

TEST(CommandFormat, GoldenBytesOfCreateFilled) {
  const Transaction t{{CreateFilledCommand{{1}, "ab", 2, 3, 4, 5, {6, 7}, {{8, 9, {10}, 11}}}}};
  EXPECT_EQ(
      encode(t),
      bytes(kNobody) + bytes({1,  0,                                                 // count
                              23, 1, 0, 0, 0,   0,   0, 0, 0,                        // parent
                              2,  0, 0, 0, 'a', 'b',                                 // name
                              2,  0, 0, 0, 3,   0,   0, 0, 4,  0, 0, 0, 5, 0, 0, 0,  // mode to gid
                              6,  0, 0, 0, 0,   0,   0, 0, 7,  0, 0, 0,              // time
                              1,  0, 0, 0,                                           // count
                              8,  0, 0, 0, 0,   0,   0, 0, 9,  0, 0, 0, 0, 0, 0, 0,  // extent
                              10, 0, 0, 0, 0,   0,   0, 0, 11, 0, 0, 0, 0, 0, 0, 0}));
}

TEST(CommandFormat, OfNoSessionWithCommandsOfVersionOneIsVersionOne) {
  CommandGenerator generator(4);
  for (std::size_t kind = 0; kind < std::variant_size_v<Command>; ++kind) {
    const Transaction t{{generator.command(kind)}};
    EXPECT_EQ(encode(t)[0], kind < 16 ? 1 : 2);
  }
  const std::string in_version_2 = bytes(kNobody) + bytes({1, 0, 13});
  EXPECT_EQ(code(in_version_2), Code::kCorrupt);
}

TEST(CommandFormat, AnOriginWithAZeroIsCorrupt) {
  for (const std::size_t zero : {1, 9, 17}) {
    std::string encoded = encode(Transaction{{OpenSegmentCommand{}}, Origin{{1}, {1}, 1}});
    encoded[zero] = 0;
    EXPECT_EQ(code(encoded), Code::kCorrupt);
  }
}

TEST(CommandFormat, TagsAreTheirPlacesFromOne) {
  CommandGenerator generator(1);
  for (std::size_t i = 0; i < std::variant_size_v<Command>; ++i) {
    Transaction t;
    t.commands.push_back(generator.command(i));
    EXPECT_EQ(t.commands[0].index(), i);
    const std::string encoded = encode(t);
    const std::size_t header_size = encoded[0] == 1 ? 3 : 27;
    EXPECT_EQ(static_cast<std::size_t>(encoded[header_size]), i + 1);
  }
}

TEST(CommandFormat, EveryCommandComesBackAsItWas) {
  CommandGenerator generator(2);
  for (int round = 0; round < 2000; ++round) {
    Transaction t = generator.transaction(6);
    std::string encoded = encode(t);
    auto decoded = decode_transaction(encoded);
    ASSERT_TRUE(decoded) << describe(decoded.error());
    ASSERT_EQ(decoded->commands.size(), t.commands.size());
    for (std::size_t i = 0; i < t.commands.size(); ++i)
      EXPECT_EQ(decoded->commands[i].index(), t.commands[i].index());
    EXPECT_EQ(encode(*decoded), encoded);
    EXPECT_EQ(decoded->origin, t.origin);
  }
}

TEST(CommandFormat, FieldsComeBackInTheirPlaces) {
  Transaction t;
  t.commands.push_back(CreateCommand{{1}, "name", 2, 3, 4, 5, 6, "target", {7, 8}});
  t.commands.push_back(RenameCommand{{1}, "old", {2}, "new", RenameMode::kExchange, {3, 4}});
  Transaction back = decode_transaction(encode(t)).value();
  const auto& create = std::get<CreateCommand>(back.commands[0]);
  EXPECT_EQ(create.parent, InodeId{1});
  EXPECT_EQ(create.name, "name");
  EXPECT_EQ(create.mode, 2u);
  EXPECT_EQ(create.umask, 3u);
  EXPECT_EQ(create.uid, 4u);
  EXPECT_EQ(create.gid, 5u);
  EXPECT_EQ(create.device, 6u);
  EXPECT_EQ(create.target, "target");
  EXPECT_EQ(create.time, (Timestamp{7, 8}));
  const auto& rename = std::get<RenameCommand>(back.commands[1]);
  EXPECT_EQ(rename.old_parent, InodeId{1});
  EXPECT_EQ(rename.old_name, "old");
  EXPECT_EQ(rename.new_parent, InodeId{2});
  EXPECT_EQ(rename.new_name, "new");
  EXPECT_EQ(rename.mode, RenameMode::kExchange);
}

TEST(CommandFormat, GoldenBytesOfHolds) {
  const Transaction t{{HoldSegmentsCommand{"ab", {1, 2}, {3, 4}}, ReleaseHoldCommand{"c", {5}}}};
  EXPECT_EQ(encode(t), bytes(kNobody) + bytes({2,  0,                           // count
                                               27, 2, 0, 0, 0, 'a', 'b',        // name
                                               1,  0, 0, 0, 0, 0,   0,   0,     // time
                                               2,  0, 0, 0,                     //
                                               3,  0, 0, 0, 0, 0,   0,   0,     // expires
                                               4,  0, 0, 0,                     //
                                               28, 1, 0, 0, 0, 'c',             // name
                                               5,  0, 0, 0, 0, 0,   0,   0}));  // position
}

TEST(CommandFormat, CutShortAnywhereIsCorrupt) {
  CommandGenerator generator(3);
  for (std::size_t kind = 0; kind < std::variant_size_v<Command>; ++kind) {
    Transaction t;
    t.commands.push_back(generator.command(kind));
    std::string encoded = encode(t);
    for (std::size_t size = 0; size < encoded.size(); ++size)
      EXPECT_EQ(code(std::string_view(encoded).substr(0, size)), Code::kCorrupt);
    EXPECT_EQ(code(encoded + "x"), Code::kCorrupt);
  }
}

TEST(CommandFormat, NewerVersionAndUnknownCommandAreSaidSo) {
  EXPECT_EQ(code(bytes({3, 0, 0})), Code::kNewerFormat);
  EXPECT_EQ(code(bytes({1, 1, 0, 17})), Code::kNewerFormat);
  EXPECT_EQ(code(bytes({0, 0, 0})), Code::kCorrupt);
  EXPECT_EQ(code(bytes({1, 1, 0, 0})), Code::kCorrupt);
}

TEST(CommandFormat, CountsAreNotBelieved) {
  EXPECT_EQ(code(bytes({1, 255, 255})), Code::kCorrupt);
  EXPECT_EQ(code(bytes({1, 1, 4, 13})), Code::kCorrupt);
  EXPECT_EQ(code(bytes({1, 1, 0, 16, 255, 255, 255, 255})), Code::kCorrupt);
}

TEST(CommandFormat, ValuesOutsideTheirRangeAreCorrupt) {
  Transaction t;
  t.commands.push_back(UnlinkCommand{{1}, "", false, {0, 0}});
  std::string encoded = encode(t);
  std::string bad = encoded;
  bad[16] = 2;  // neither true nor false
  EXPECT_EQ(code(bad), Code::kCorrupt);
  bad = encoded;
  bad.replace(encoded.size() - 4, 4, bytes({0x00, 0xca, 0x9a, 0x3b}));  // a whole second
  EXPECT_EQ(code(bad), Code::kCorrupt);
}

}  // namespace
}  // namespace kvsyncfs
