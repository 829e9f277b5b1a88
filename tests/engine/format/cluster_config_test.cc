#include "engine/format/cluster_config.h"

#include <gtest/gtest.h>

#include <functional>

namespace kvsyncfs {
namespace {

const Uuid kUuid = *parse_uuid("10111213-1415-4617-9819-1a1b1c1d1e1f");
const std::string kUuidText = "10111213-1415-4617-9819-1a1b1c1d1e1f";

ClusterConfig sample_config() {
  ClusterConfig config;
  config.volume = "builds";
  config.endpoints = {"10.0.0.1:2379", "[fd00::2]:2379"};
  config.tls = true;
  config.ca_file = "/etc/ca.pem";
  config.certificate_file = "/etc/node.pem";
  config.key_file = "/etc/node.key";
  config.user = "kv";
  config.password_file = "/etc/kv \"password\"";
  config.node = "a-1.b_2";
  config.id = {~std::uint64_t{0}};
  config.store = kUuid;
  config.rack = "r1";
  config.listen = "10.0.0.1:7420";
  return config;
}

VolumeRecord sample_volume() {
  VolumeRecord record;
  record.uuid = kUuid;
  record.replicas = 3;
  record.segment_size_bytes = 64u << 20;
  record.uid = 1000;
  record.gid = ~std::uint32_t{0};
  record.created = {-2, 999'999'999};
  for (std::size_t i = 0; i < 32; ++i) record.secret_check[i] = static_cast<std::uint8_t>(8 * i);
  return record;
}

NodeRecord sample_node() { return {{7}, kUuid, "", {1'700'000'000, 5}}; }

std::string with(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(ClusterConfig, GoldenText) {
  EXPECT_EQ(encode(sample_config()),
            R"({"version":1,"volume":"builds","endpoints":["10.0.0.1:2379","[fd00::2]:2379"],)"
            R"("tls":true,"ca_file":"/etc/ca.pem","certificate_file":"/etc/node.pem",)"
            R"("key_file":"/etc/node.key","user":"kv","password_file":"/etc/kv \"password\"",)"
            R"("node":"a-1.b_2","node_id":18446744073709551615,"store":")" +
                kUuidText + R"(","rack":"r1","listen":"10.0.0.1:7420"})" + "\n");
  EXPECT_EQ(
      encode(sample_volume()),
      R"({"version":1,"uuid":")" + kUuidText +
          R"(","replicas":3,"segment_size_bytes":67108864,"uid":1000,"gid":4294967295,)"
          R"("created_seconds":-2,"created_nanoseconds":999999999,)"
          R"("secret_check":"0008101820283038404850586068707880889098a0a8b0b8c0c8d0d8e0e8f0f8"})"
          "\n");
  EXPECT_EQ(encode(sample_node()),
            R"({"version":1,"id":7,"store":")" + kUuidText +
                R"(","rack":"","created_seconds":1700000000,"created_nanoseconds":5})" + "\n");
}

TEST(ClusterConfig, RoundTrip) {
  EXPECT_EQ(*decode_cluster_config(encode(sample_config())), sample_config());
  EXPECT_EQ(*decode_volume_record(encode(sample_volume())), sample_volume());
  EXPECT_EQ(*decode_node_record(encode(sample_node())), sample_node());
  ClusterConfig least;
  least.volume = least.node = "n";
  least.endpoints = {"h:1"};
  least.listen = "[::1]:0";
  EXPECT_EQ(*decode_cluster_config(encode(least)), least);
}

TEST(ClusterConfig, UnknownFieldsAreIgnored) {
  const std::string more = R"({"later":[1,{"a":null}],)";
  EXPECT_EQ(*decode_cluster_config(with(encode(sample_config()), "{", more)), sample_config());
  EXPECT_EQ(*decode_volume_record(with(encode(sample_volume()), "{", more)), sample_volume());
  EXPECT_EQ(*decode_node_record(with(encode(sample_node()), "{", more)), sample_node());
}

TEST(ClusterConfig, ANewerVersionIsToldFromDamageWhateverElseItHolds) {
  const std::string newer = R"({"version":2,"volume":17})";
  EXPECT_EQ(decode_cluster_config(newer).error().code, Code::kNewerFormat);
  EXPECT_EQ(decode_volume_record(newer).error().code, Code::kNewerFormat);
  EXPECT_EQ(decode_node_record(newer).error().code, Code::kNewerFormat);
  for (const char* bad : {R"({"version":0})", R"({"version":"1"})", R"({"version":1.5})", "{}"})
    EXPECT_EQ(decode_node_record(bad).error().code, Code::kCorrupt) << bad;
}

TEST(ClusterConfig, EveryFieldOutOfRangeIsNamed) {
  const auto refused = [](const auto& decoded, const std::string& field) {
    ASSERT_FALSE(decoded) << field;
    EXPECT_EQ(decoded.error().code, Code::kCorrupt);
    EXPECT_NE(decoded.error().detail.find("'" + field + "'"), std::string::npos)
        << decoded.error().detail;
  };
  const std::pair<const char*, std::function<void(ClusterConfig&)>> configs[] = {
      {"volume", [](auto& c) { c.volume = "a/b"; }},
      {"endpoints", [](auto& c) { c.endpoints.clear(); }},
      {"endpoints", [](auto& c) { c.endpoints.assign(kEndpointsMax + 1, "h:1"); }},
      {"endpoints", [](auto& c) { c.endpoints = {"h:0"}; }},
      {"key_file", [](auto& c) { c.key_file.clear(); }},
      {"password_file", [](auto& c) { c.user.clear(); }},
      {"node", [](auto& c) { c.node.clear(); }},
      {"node", [](auto& c) { c.node.assign(kClusterNameMax + 1, 'n'); }},
      {"rack", [](auto& c) { c.rack = "r 1"; }},
      {"listen", [](auto& c) { c.listen = "10.0.0.1"; }},
      {"ca_file", [](auto& c) { c.ca_file.assign(5000, 'p'); }},
  };
  for (const auto& [field, change] : configs) {
    ClusterConfig config = sample_config();
    change(config);
    refused(decode_cluster_config(encode(config)), field);
  }
  const std::pair<const char*, std::function<void(VolumeRecord&)>> volumes[] = {
      {"replicas", [](auto& v) { v.replicas = 0; }},
      {"replicas", [](auto& v) { v.replicas = kReplicasMax + 1; }},
      {"segment_size_bytes", [](auto& v) { v.segment_size_bytes = 0; }},
      {"segment_size_bytes", [](auto& v) { v.segment_size_bytes = 4097; }},
      {"segment_size_bytes", [](auto& v) { v.segment_size_bytes = kSegmentSizeMax + kPageSize; }},
      {"created_nanoseconds", [](auto& v) { v.created.nanoseconds = 1'000'000'000; }},
  };
  for (const auto& [field, change] : volumes) {
    VolumeRecord record = sample_volume();
    change(record);
    refused(decode_volume_record(encode(record)), field);
  }
  refused(decode_volume_record(with(encode(sample_volume()), "00081018", "000810")),
          "secret_check");
  refused(decode_volume_record(with(encode(sample_volume()), "4294967295", "4294967296")), "gid");
  refused(decode_volume_record(with(encode(sample_volume()), "-2", "1e40")), "created_seconds");
  refused(decode_node_record(with(encode(sample_node()), "\"id\":7", "\"id\":0")), "id");
  refused(decode_node_record(with(encode(sample_node()), "\"id\":7", "\"id\":-1")), "id");
  refused(decode_node_record(with(encode(sample_node()), kUuidText, "1011")), "store");
}

TEST(ClusterConfig, AFieldThatIsMissingIsNamed) {
  const std::string text = encode(sample_node());
  for (const std::string field : {"id", "store", "rack", "created_seconds"}) {
    const auto decoded = decode_node_record(with(text, "\"" + field, "\"x" + field));
    ASSERT_FALSE(decoded) << field;
    EXPECT_NE(decoded.error().detail.find(field), std::string::npos);
  }
}

TEST(ClusterConfig, WhatIsNoJsonOrTooLargeIsCorrupt) {
  const std::string huge = with(encode(sample_node()), "{", "{" + std::string(70'000, ' '));
  for (const std::string& bad : {std::string(), std::string("[]"), std::string("{"), huge,
                                 std::string(1000, '['), encode(sample_node()) + "x"})
    EXPECT_EQ(decode_node_record(bad).error().code, Code::kCorrupt);
}

TEST(ClusterConfig, HostsAndPortsAreTakenApart) {
  const auto parsed = parse_host_port("[fd00::1%eth0]:65535");
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->host, "fd00::1%eth0");
  EXPECT_EQ(parsed->port, 65535);
  EXPECT_EQ(parse_host_port("h:0")->port, 0);
  for (const char* bad : {"", ":1", "h", "h:", "h:65536", "h:-1", "h:1x", "h: 1", "a b:1", "::1:80",
                          "[]:1", "http://h:1", "h/p:1", "[h:1", "h]:1"})
    EXPECT_FALSE(parse_host_port(bad)) << bad;
  EXPECT_FALSE(parse_host_port(std::string(256, 'h') + ":1"));
}

TEST(ClusterConfig, ASecretIs64HexDigits) {
  std::string secret;
  for (char c = 0; c < 32; ++c) secret += static_cast<char>(-c);
  const std::string text = encode_secret(secret);
  EXPECT_EQ(text, "00fffefdfcfbfaf9f8f7f6f5f4f3f2f1f0efeeedecebeae9e8e7e6e5e4e3e2e1\n");
  EXPECT_EQ(*decode_secret(text), secret);
  EXPECT_EQ(*decode_secret(text.substr(0, 64)), secret);
  for (const std::string& bad : {std::string(), text.substr(2), text.substr(1), text + "\n",
                                 "00" + text, with(text, "ff", "FF"), with(text, "ff", "f ")})
    EXPECT_EQ(decode_secret(bad).error().code, Code::kInvalid) << bad;
}

}  // namespace
}  // namespace kvsyncfs
