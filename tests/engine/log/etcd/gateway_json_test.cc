#include "engine/log/etcd/gateway_json.h"

#include <gtest/gtest.h>

#include <string>

namespace kvsyncfs::etcd {
namespace {

TEST(GatewayJson, RequestsAreWhatTheGatewayTakes) {
  EXPECT_EQ(range_json({"a", "b", 5, 7, true}),
            R"({"key":"YQ==","range_end":"Yg==","limit":"5","revision":"7","keys_only":true})");
  Txn txn;
  txn.compares = {value_is("s", "1"), version_below("c", 9)};
  txn.success = {Put{"k", "v", 3}, Delete{"x", {}}};
  txn.failure = {Range{"s", {}}};
  EXPECT_EQ(txn_json(txn),
            R"({"compare":[{"key":"cw==","result":"EQUAL","target":"VALUE","value":"MQ=="},)"
            R"({"key":"Yw==","result":"LESS","target":"VERSION","version":"9"}],)"
            R"("success":[{"request_put":{"key":"aw==","value":"dg==","lease":"3"}},)"
            R"({"request_delete_range":{"key":"eA=="}}],)"
            R"("failure":[{"request_range":{"key":"cw=="}}]})");
}

TEST(GatewayJson, Base64IsInverseAndStrict) {
  std::string bytes, back;
  for (int i = 0; i < 70; ++i) {
    EXPECT_TRUE(from_base64(to_base64(bytes), &back));
    EXPECT_EQ(back, bytes);
    bytes.push_back(static_cast<char>(i * 37));
  }
  for (const char* bad : {"A", "AB", "ABC", "A===", "AB!=", "====", "YQ==YQ=="})
    EXPECT_FALSE(from_base64(bad, &back)) << bad;
}

TEST(GatewayJson, AFieldThatIsLeftOutIsZero) {
  const auto reply = parse_range(R"({"header":{"revision":"4"}})");
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->revision, 4);
  EXPECT_TRUE(reply->items.empty() && reply->count == 0 && !reply->more);
}

TEST(GatewayJson, AnswersThatMakeNoSenseAreCorrupt) {
  for (const char* text :
       {"", "nonsense", "[]", "{}", "{\"header\":5}", R"({"header":{"revision":"x"}})",
        R"({"header":{"revision":"99999999999999999999"}})", R"({"header":{"revision":"-1"}})",
        R"({"header":{"revision":"4"},"kvs":7})", R"({"header":{"revision":"4"},"kvs":[7]})",
        R"({"header":{"revision":"4"},"count":"1","kvs":[{"key":"!","version":"1"}]})",
        R"({"header":{"revision":"4"},"count":"0",)"
        R"("kvs":[{"key":"YQ==","mod_revision":"3","version":"1"}]})",
        R"({"header":{"revision":"4"},"count":"1","kvs":[{"key":"YQ==","mod_revision":"3"}]})"}) {
    const auto reply = parse_range(text);
    ASSERT_FALSE(reply) << text;
    EXPECT_EQ(reply.error().code, Code::kCorrupt) << text;
  }
}

TEST(GatewayJson, ATransactionsAnswersMatchItsBranch) {
  Txn txn;
  txn.success = {Put{"k", "v"}, Range{"k", {}}};
  txn.failure = {Range{"s", {}}};
  const std::string done =
      R"({"header":{"revision":"9"},"succeeded":true,"responses":[{"response_put":{}},)"
      R"({"response_range":{"count":"1",)"
      R"("kvs":[{"key":"aw==","mod_revision":"9","version":"3"}]}}]})";
  const auto reply = parse_txn(done, txn);
  ASSERT_TRUE(reply) << describe(reply.error());
  ASSERT_EQ(reply->ranges.size(), 1u);
  EXPECT_EQ(reply->ranges[0].items[0].version, 3);
  EXPECT_FALSE(parse_txn(R"({"header":{"revision":"9"},"succeeded":true})", txn));
  EXPECT_FALSE(parse_txn(R"({"header":{"revision":"9"},"responses":[{"response_put":{}}]})", txn));
}

TEST(GatewayJson, RefusalsKeepTheirKinds) {
  const auto code = [](int grpc, const std::string& message) {
    bool expired = false;
    const std::string text = R"({"error":")" + message + R"(","message":")" + message +
                             R"(","code":)" + std::to_string(grpc) + "}";
    return parse_refusal(400, text, &expired).code;
  };
  EXPECT_EQ(code(3, "etcdserver: request is too large"), Code::kTooBig);
  EXPECT_EQ(code(3, "etcdserver: user name is empty"), Code::kAccess);
  EXPECT_EQ(code(3, "etcdserver: duplicate key given in txn request"), Code::kInvalid);
  EXPECT_EQ(code(5, "etcdserver: requested lease not found"), Code::kNotFound);
  EXPECT_EQ(code(7, "etcdserver: permission denied"), Code::kAccess);
  EXPECT_EQ(code(8, "etcdserver: mvcc: database space exceeded"), Code::kNoSpace);
  EXPECT_EQ(code(11, "etcdserver: mvcc: required revision has been compacted"), Code::kStale);
  EXPECT_EQ(code(11, "etcdserver: mvcc: required revision is a future revision"),
            Code::kNoSuchRange);
  EXPECT_EQ(code(14, "etcdserver: request timed out"), Code::kTimeout);
  bool expired = false;
  EXPECT_EQ(parse_refusal(502, "<html>", &expired).code, Code::kCorrupt);
  (void)parse_refusal(401, R"({"code":16,"message":"etcdserver: invalid auth token"})", &expired);
  EXPECT_TRUE(expired);
}

TEST(GatewayJson, AWatchShowsPutsOrSaysWhyItEnds) {
  bool created = false;
  ASSERT_TRUE(parse_watch(R"({"result":{"header":{"revision":"3"},"created":true}})", &created));
  EXPECT_TRUE(created);
  const auto batch =
      parse_watch(R"({"result":{"header":{"revision":"3"},"events":[{"kv":{"key":"YQ==",)"
                  R"("mod_revision":"3","version":"2","value":"Yg=="}}]}})",
                  &created);
  ASSERT_TRUE(batch);
  EXPECT_EQ(batch->puts.at(0).value, "b");
  const auto compacted = parse_watch(
      R"({"result":{"header":{"revision":"3"},"canceled":true,"compact_revision":"2"}})", &created);
  EXPECT_EQ(compacted.error().code, Code::kStale);
  const auto gone = parse_watch(R"({"error":{"grpc_code":14,"message":"no leader"}})", &created);
  EXPECT_EQ(gone.error().code, Code::kTimeout);
}

TEST(GatewayJson, ALeaseWithoutTimeIsGone) {
  EXPECT_EQ(parse_keep_alive(R"({"result":{"ID":"7","TTL":"5"}})")->ttl_s, 5);
  EXPECT_EQ(parse_keep_alive(R"({"result":{"ID":"7"}})").error().code, Code::kNotFound);
}

}  // namespace
}  // namespace kvsyncfs::etcd
