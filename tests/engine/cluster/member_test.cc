#include "engine/cluster/member.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <functional>
#include <tuple>

#include "engine/format/cluster_config.h"

namespace kvsyncfs {
namespace {

Member some_member() {
  return {NodeId{3},
          "n3",
          Incarnation{7},
          {"10.0.0.3:7420", "[fd00::3]:7420"},
          "row-1",
          1ull << 40,
          1ull << 39,
          "0.1.0",
          {NodeId{1}, NodeId{4}},
          {1, 2},
          {"tls"},
          6};
}

const std::string kLine =
    R"({"format":1,"id":3,"name":"n3","incarnation":7,)"
    R"("addresses":["10.0.0.3:7420","[fd00::3]:7420"],"rack":"row-1",)"
    R"("capacity_bytes":1099511627776,"free_bytes":549755813888,"version":"0.1.0",)"
    R"("protocol_min":1,"protocol_max":2,"features":["tls"],"unreached":[1,4],"beat":6})";

std::string replaced(const std::string& part, const std::string& by) {
  std::string line = kLine;
  const std::size_t at = line.find(part);
  EXPECT_NE(at, std::string::npos) << part;
  return line.replace(at, part.size(), by);
}

Code code_of(const std::string& line) {
  const auto member = decode_member(line);
  return member ? Code{} : member.error().code;
}

TEST(MemberLine, ItsTextIsPinned) {
  EXPECT_EQ(*encode_member(some_member()), kLine);
  EXPECT_EQ(*decode_member(kLine), some_member());
}

RC_GTEST_PROP(MemberLine, WhatIsEncodedIsDecodedAlike, ()) {
  Member member = some_member();
  member.id.value = *rc::gen::nonZero<std::uint64_t>();
  member.incarnation.value = *rc::gen::nonZero<std::uint64_t>();
  member.capacity_bytes = *rc::gen::arbitrary<std::uint64_t>();
  member.free_bytes = *rc::gen::arbitrary<std::uint64_t>();
  member.version = *rc::gen::container<std::string>(rc::gen::inRange<char>(' ', '~' + 1));
  member.version.resize(std::min(member.version.size(), kMemberVersionSizeMax));
  const auto line = encode_member(member);
  RC_ASSERT(line.has_value());
  RC_ASSERT(line->size() <= kMemberLineSizeMax);
  RC_ASSERT(decode_member(*line).value() == member);
}

TEST(MemberLine, FieldsOfALaterVersionAreIgnored) {
  const auto member = decode_member(replaced("\"id\":3", R"("load":[1,{"a":null}],"id":3)"));
  ASSERT_TRUE(member) << describe(member.error());
  EXPECT_EQ(*member, some_member());
}

TEST(MemberLine, WhatTheFirstVersionDidNotTellIsAsItWas) {
  const auto member =
      decode_member(replaced(R"("protocol_min":1,"protocol_max":2,"features":["tls"],)", ""));
  ASSERT_TRUE(member) << describe(member.error());
  EXPECT_EQ(member->protocol, (ProtocolRange{1, 1}));
  EXPECT_TRUE(member->features.empty());
}

TEST(MemberLine, ProtocolAndFeaturesAreWithinBounds) {
  EXPECT_EQ(code_of(replaced("\"protocol_min\":1", "\"protocol_min\":0")), Code::kCorrupt);
  EXPECT_EQ(code_of(replaced("\"protocol_min\":1", "\"protocol_min\":3")), Code::kCorrupt);
  EXPECT_EQ(code_of(replaced(R"(["tls"])", R"([5])")), Code::kCorrupt);
  EXPECT_EQ(code_of(replaced(R"(["tls"])", R"(["b","a"])")), Code::kCorrupt);
  EXPECT_EQ(code_of(replaced(R"(["tls"])", R"(["a b"])")), Code::kCorrupt);
  EXPECT_EQ(code_of(replaced(R"(["tls"])", R"(["a","of-a-later-version"])")), Code{});
}

Member speaking(std::uint64_t min, std::uint64_t max, std::vector<std::string> features = {}) {
  Member member = some_member();
  member.protocol = {min, max};
  member.features = std::move(features);
  return member;
}

TEST(Members, GetOnWhereTheySpeakACommonVersion) {
  for (const auto& [ours, theirs, good] : {std::tuple{speaking(1, 1), speaking(1, 1), true},
                                           {speaking(1, 1), speaking(1, 2), true},
                                           {speaking(1, 2), speaking(2, 5), true},
                                           {speaking(1, 1), speaking(2, 3), false},
                                           {speaking(4, 5), speaking(2, 3), false}}) {
    const Status one = get_on(ours, theirs), other = get_on(theirs, ours);
    EXPECT_EQ(one.has_value(), good);
    EXPECT_EQ(other.has_value(), good) << "both find the same";
    if (!good) {
      EXPECT_EQ(one.error().code, Code::kNewerFormat);
    }
  }
}

TEST(Members, GetOnWhereTheyHaveAlikeWhatAllMustHave) {
  EXPECT_TRUE(get_on(speaking(1, 1, {"a", "tls"}), speaking(1, 1, {"a", "tls"})));
  const Status without = get_on(speaking(1, 1, {"tls"}), speaking(1, 1));
  ASSERT_FALSE(without);
  EXPECT_EQ(without.error().code, Code::kUnsupported);
  EXPECT_NE(without.error().detail.find("is without tls"), std::string::npos);
  const Status with = get_on(speaking(1, 1), speaking(1, 1, {"tls"}));
  ASSERT_FALSE(with);
  EXPECT_NE(with.error().detail.find("node n3 of version 0.1.0 has tls"), std::string::npos);
}

TEST(MemberLine, ANewerFormatIsToldFromADamagedLine) {
  EXPECT_EQ(code_of(replaced("\"format\":1", "\"format\":2")), Code::kNewerFormat);
  EXPECT_EQ(code_of(R"({"format":2})"), Code::kNewerFormat);
  EXPECT_EQ(code_of(replaced("\"format\":1", "\"format\":0")), Code::kCorrupt);
  EXPECT_EQ(code_of(replaced("\"format\":1,", "")), Code::kCorrupt);
}

TEST(MemberLine, EveryFieldMustBeThereAndOfItsType) {
  for (const std::string field : {"id", "name", "incarnation", "addresses", "rack",
                                  "capacity_bytes", "free_bytes", "version"}) {
    EXPECT_EQ(code_of(replaced("\"" + field + "\":", "\"other\":")), Code::kCorrupt) << field;
    EXPECT_EQ(code_of(replaced("\"" + field + "\":", "\"" + field + "\":{},\"other\":")),
              Code::kCorrupt)
        << field;
  }
}

TEST(MemberLine, ValuesOutsideTheirBoundsAreRefused) {
  EXPECT_EQ(code_of(replaced(":3,", ":0,")), Code::kCorrupt);
  EXPECT_EQ(code_of(replaced(":3,", ":-3,")), Code::kCorrupt);
  EXPECT_EQ(code_of(replaced(":3,", ":3.5,")), Code::kCorrupt);
  EXPECT_EQ(code_of(replaced(":3,", ":18446744073709551616,")), Code::kCorrupt);
  EXPECT_EQ(code_of(replaced(":7,", ":0,")), Code::kCorrupt);
  EXPECT_EQ(code_of(replaced("\"n3\"", "\"\"")), Code::kCorrupt);
  EXPECT_EQ(code_of(replaced("\"n3\"", "\"n/3\"")), Code::kCorrupt);
  EXPECT_EQ(code_of(replaced("row-1", "row\\u0007")), Code::kCorrupt);
  EXPECT_EQ(code_of(replaced("row-1", std::string(kClusterNameMax + 1, 'r'))), Code::kCorrupt);
  EXPECT_EQ(code_of(replaced("row-1", std::string(kClusterNameMax, 'r'))), Code{});
  EXPECT_EQ(code_of(replaced("0.1.0", std::string(kMemberVersionSizeMax + 1, 'r'))),
            Code::kCorrupt);
  EXPECT_EQ(code_of(replaced(R"("10.0.0.3:7420",)", R"("10.0.0.3",)")), Code::kCorrupt);
  EXPECT_EQ(code_of(replaced(R"("10.0.0.3:7420",)", R"(5,)")), Code::kCorrupt);
  EXPECT_EQ(code_of(replaced(R"("10.0.0.3:7420","[fd00::3]:7420")", "")), Code::kCorrupt);
  std::string many = "\"10.0.0.3:1\"";
  for (std::size_t i = 0; i < kMemberAddressesMax; ++i) many = "\"10.0.0.3:1\"," + many;
  EXPECT_EQ(code_of(replaced(R"("10.0.0.3:7420","[fd00::3]:7420")", many)), Code::kCorrupt);
}

TEST(MemberLine, WhatIsNoObjectOrTooLongIsRefused) {
  EXPECT_EQ(code_of(""), Code::kCorrupt);
  EXPECT_EQ(code_of("[1]"), Code::kCorrupt);
  EXPECT_EQ(code_of(kLine + "x"), Code::kCorrupt);
  EXPECT_EQ(code_of(kLine.substr(0, kLine.size() - 1)), Code::kCorrupt);
  EXPECT_EQ(code_of(std::string(1000, '[')), Code::kCorrupt);
  EXPECT_EQ(code_of(std::string(kMemberLineSizeMax - kLine.size(), ' ') + kLine), Code{});
  EXPECT_EQ(code_of(std::string(kMemberLineSizeMax - kLine.size() + 1, ' ') + kLine),
            Code::kCorrupt);
}

TEST(MemberLine, AMemberOutsideItsBoundsIsNotEncoded) {
  const std::function<void(Member&)> harms[] = {
      [](Member& m) { m.id = {}; },
      [](Member& m) { m.name = "a b"; },
      [](Member& m) { m.incarnation = {}; },
      [](Member& m) { m.addresses.clear(); },
      [](Member& m) { m.addresses.assign(kMemberAddressesMax + 1, "10.0.0.3:1"); },
      [](Member& m) { m.addresses[0] = "host:7420"; },
      [](Member& m) { m.rack = "\n"; },
      [](Member& m) { m.version.assign(kMemberVersionSizeMax + 1, 'v'); },
  };
  for (const auto& harm : harms) {
    Member member = some_member();
    harm(member);
    const auto line = encode_member(member);
    ASSERT_FALSE(line) << *line;
    EXPECT_EQ(line.error().code, Code::kInvalid);
  }
}

TEST(MemberAddress, ItIsNumericWithAPortThatCanBeDialed) {
  for (const char* good : {"10.0.0.3:1", "127.0.0.1:65535", "[::1]:7420", "[fd00::3]:7420"})
    EXPECT_TRUE(is_member_address(good)) << good;
  for (const char* bad : {"", ":", "10.0.0.3", "10.0.0.3:", "10.0.0.3:0", "10.0.0.3:65536",
                          "10.0.0.3:+1", "10.0.0.3:1 ", "10.0.0:1", "host:1", "fd00::3:7420",
                          "[fd00::3]", "[]:1", "0.0.0.0:1", "[::]:1", "10.0.0.3:99999999999"})
    EXPECT_FALSE(is_member_address(bad)) << bad;
  EXPECT_FALSE(is_member_address(std::string("10.0.0.3\0x:1", 12)));
}

}  // namespace
}  // namespace kvsyncfs
