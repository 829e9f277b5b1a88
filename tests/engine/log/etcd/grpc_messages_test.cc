#include "engine/log/etcd/grpc_messages.h"

#include <gtest/gtest.h>

#include <initializer_list>
#include <limits>
#include <string>

#include "engine/log/etcd/protobuf.h"

namespace kvsyncfs::etcd {
namespace {

std::string hex(std::string_view bytes) {
  std::string text;
  for (const char c : bytes) {
    char digits[3];
    std::snprintf(digits, sizeof digits, "%02x", static_cast<unsigned char>(c));
    text += digits;
  }
  return text;
}

struct Field {
  std::uint32_t number;
  std::int64_t value = 0;
  std::string bytes;
};
std::string message(std::initializer_list<Field> fields) {
  ProtoWriter out;
  for (const Field& field : fields) {
    out.number(field.number, field.value);
    out.bytes(field.number, field.bytes);
  }
  return out.text();
}
std::string header(std::int64_t revision) { return message({{3, revision, ""}}); }
std::string item(const std::string& key, std::int64_t revision, std::int64_t version) {
  return message({{1, 0, key}, {3, revision, ""}, {4, version, ""}, {5, 0, "b"}});
}

TEST(GrpcMessages, RequestsAreWhatEtcdTakes) {
  EXPECT_EQ(hex(encode_range({"a", "b", 5, 7, true})), "0a0161120162180520074001");
  Txn txn;
  txn.compares = {value_is("s", "1"), version_below("c", 9)};
  txn.success = {Put{"k", "v", 3}, Delete{"x", {}}};
  txn.failure = {Range{"s", {}}};
  EXPECT_EQ(hex(encode_txn(txn)),
            "0a0810031a01733a0131"
            "0a0708021a01632009"
            "120a12080a016b1201761803"
            "12051a030a0178"
            "1a050a030a0173");
  EXPECT_EQ(hex(encode_watch({"a", "b", 300})), "0a0e0a016112016218ac022a01014001");
}

TEST(GrpcMessages, ACompareOfZeroIsWritten) {
  Txn txn;
  txn.compares = {version_is("k", 0)};
  EXPECT_EQ(hex(encode_txn(txn)), "0a051a016b2000");
  txn.compares = {value_is("k", "")};
  EXPECT_EQ(hex(encode_txn(txn)), "0a0710031a016b3a00");
}

TEST(GrpcMessages, NumbersOfAllSizesComeBack) {
  constexpr auto kMost = std::numeric_limits<std::int64_t>::max();
  for (const std::int64_t n : {std::int64_t{1}, std::int64_t{127}, std::int64_t{128}, kMost,
                               std::int64_t{-1}, std::numeric_limits<std::int64_t>::min()}) {
    ProtoWriter out;
    out.number(5, n);
    ProtoReader reader(out.text());
    ASSERT_TRUE(reader.next());
    EXPECT_EQ(reader.field(), 5u);
    EXPECT_EQ(reader.number(), n);
    EXPECT_FALSE(reader.next());
    EXPECT_TRUE(reader.ok());
  }
}

TEST(GrpcMessages, FieldsThatAreNotKnownArePassedOver) {
  const std::string more("\x39\1\2\3\4\5\6\7\x08\x3d\1\2\3\4", 14);  // of eight and of four bytes
  const auto reply = parse_range(message({{1, 0, header(4)}, {99, 7, ""}, {98, 0, "x"}}) + more);
  ASSERT_TRUE(reply) << describe(reply.error());
  EXPECT_EQ(reply->revision, 4);
}

TEST(GrpcMessages, AFieldThatIsLeftOutIsZero) {
  const auto reply = parse_range(message({{1, 0, header(4)}}));
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->revision, 4);
  EXPECT_TRUE(reply->items.empty() && reply->count == 0 && !reply->more);
}

TEST(GrpcMessages, AnswersThatMakeNoSenseAreCorrupt) {
  const std::string good = message({{1, 0, header(4)}, {2, 0, item("a", 3, 1)}, {4, 1, ""}});
  ASSERT_TRUE(parse_range(good));
  for (std::size_t size = 0; size < good.size(); ++size)
    EXPECT_EQ(parse_range(good.substr(0, size)).has_value(), size == 4) << size;  // a whole header
  for (const std::string& text :
       {std::string("nonsense"), message({{1, 5, ""}}), message({{1, 0, header(-1)}}),
        message({{1, 0, header(4)}, {2, 7, ""}}), message({{1, 0, header(4)}, {4, 0, "x"}}),
        message({{1, 0, header(4)}, {2, 0, item("a", 3, 1)}}),              // fewer counted
        message({{1, 0, header(4)}, {4, 1, ""}, {2, 0, item("a", 3, 0)}}),  // no version
        message({{1, 0, header(4)}, {4, 1, ""}, {2, 0, item("", 3, 1)}}),   // no key
        message({{1, 0, header(4)}, {4, 1, ""}, {2, 0, item("a", 0, 1)}}),  // no revision
        std::string(11, '\xff'), std::string("\x0a\xff\xff\xff\xff\x0f", 6)}) {
    const auto reply = parse_range(text);
    ASSERT_FALSE(reply) << hex(text);
    EXPECT_EQ(reply.error().code, Code::kCorrupt) << hex(text);
  }
}

TEST(GrpcMessages, ATransactionsAnswersMatchItsBranch) {
  Txn txn;
  txn.success = {Put{"k", "v"}, Range{"k", {}}};
  txn.failure = {Range{"s", {}}};
  const std::string range = message({{1, 0, message({{2, 0, item("k", 9, 3)}, {4, 1, ""}})}});
  const std::string put("\x12\0", 2);
  const auto answer = [](std::initializer_list<std::string> responses, bool succeeded) {
    ProtoWriter out;
    out.bytes(1, header(9));
    out.number(2, succeeded ? 1 : 0);
    for (const std::string& response : responses) out.always_bytes(3, response);
    return out.text();
  };
  const auto reply = parse_txn(answer({put, range}, true), txn);
  ASSERT_TRUE(reply) << describe(reply.error());
  ASSERT_EQ(reply->ranges.size(), 1u);
  EXPECT_EQ(reply->ranges[0].items[0].version, 3);
  EXPECT_EQ(reply->ranges[0].revision, 9);
  EXPECT_FALSE(parse_txn(answer({}, true), txn));
  EXPECT_FALSE(parse_txn(answer({put}, false), txn));
  EXPECT_FALSE(parse_txn(answer({range, put}, true), txn));
}

TEST(GrpcMessages, RefusalsKeepTheirKinds) {
  const auto code = [](int grpc, const std::string& text) {
    bool expired = false;
    return refusal(grpc, text, &expired).code;
  };
  EXPECT_EQ(code(3, "etcdserver: request is too large"), Code::kTooBig);
  EXPECT_EQ(code(3, "etcdserver: user name is empty"), Code::kAccess);
  EXPECT_EQ(code(3, "etcdserver: duplicate key given in txn request"), Code::kInvalid);
  EXPECT_EQ(code(5, "etcdserver: requested lease not found"), Code::kNotFound);
  EXPECT_EQ(code(7, "etcdserver: permission denied"), Code::kAccess);
  EXPECT_EQ(code(8, "etcdserver: mvcc: database space exceeded"), Code::kNoSpace);
  EXPECT_EQ(code(8, "grpc: received message larger than max"), Code::kTooBig);
  EXPECT_EQ(code(11, "etcdserver: mvcc: required revision has been compacted"), Code::kStale);
  EXPECT_EQ(code(11, "etcdserver: mvcc: required revision is a future revision"),
            Code::kNoSuchRange);
  EXPECT_EQ(code(14, "etcdserver: request timed out"), Code::kTimeout);
  bool expired = false;
  (void)refusal(16, "etcdserver: invalid auth token", &expired);
  EXPECT_TRUE(expired);
}

TEST(GrpcMessages, AWatchShowsPutsOrSaysWhyItEnds) {
  bool created = false;
  ASSERT_TRUE(parse_watch(message({{1, 0, header(3)}, {3, 1, ""}}), &created));
  EXPECT_TRUE(created);
  const std::string put = message({{2, 0, item("a", 3, 2)}});
  const auto batch = parse_watch(message({{1, 0, header(3)}, {11, 0, put}}), &created);
  ASSERT_TRUE(batch);
  EXPECT_FALSE(created);
  EXPECT_EQ(batch->puts.at(0).value, "b");
  const std::string removal = message({{1, 1, ""}, {2, 0, item("a", 3, 2)}});
  EXPECT_FALSE(parse_watch(message({{11, 0, removal}}), &created));
  const auto compacted = parse_watch(message({{4, 1, ""}, {5, 2, ""}}), &created);
  EXPECT_EQ(compacted.error().code, Code::kStale);
  const auto gone = parse_watch(message({{4, 1, ""}, {6, 0, "no leader"}}), &created);
  EXPECT_EQ(gone.error().code, Code::kIo);
}

TEST(GrpcMessages, ALeaseWithoutTimeIsGone) {
  EXPECT_EQ(parse_keep_alive(message({{2, 7, ""}, {3, 5, ""}}))->ttl_s, 5);
  EXPECT_EQ(parse_keep_alive(message({{2, 7, ""}})).error().code, Code::kNotFound);
}

TEST(GrpcMessages, ALoginIsATokenThatFitsIntoAHeader) {
  EXPECT_EQ(*parse_login(message({{2, 0, "abc.1"}})), "abc.1");
  EXPECT_FALSE(parse_login(message({{2, 0, "a\nb"}})));
  EXPECT_FALSE(parse_login(""));
}

}  // namespace
}  // namespace kvsyncfs::etcd
