#include "engine/format/etcd_batch.h"

#include <gtest/gtest.h>

namespace kvsyncfs {
namespace {

const std::string kGolden(
    "KVEB\x01\0\0\0\x02\0\0\0"
    "\x03\0\0\0abc"
    "\0\0\0\0",
    23);

TEST(EtcdBatch, LayoutIsPinned) {
  const std::string value = encode_etcd_batch({"abc", ""});
  ASSERT_EQ(value.size(), kGolden.size() + 4);
  EXPECT_EQ(value.substr(0, kGolden.size()), kGolden);
  EXPECT_EQ(value.substr(kGolden.size()), std::string("\x55\x9f\xbe\x15", 4));
}

TEST(EtcdBatch, EntriesComeBackAsTheyWere) {
  const std::vector<std::string_view> entries = {"a", "", std::string_view("\0\xff", 2)};
  const std::string value = encode_etcd_batch(entries);
  const auto decoded = decode_etcd_batch(value);
  ASSERT_TRUE(decoded);
  EXPECT_EQ(*decoded, entries);
}

TEST(EtcdBatch, AnyChangedOrMissingByteIsCorrupt) {
  const std::string value = encode_etcd_batch({"abc", "defg"});
  for (std::size_t i = 0; i < value.size(); ++i) {
    EXPECT_FALSE(decode_etcd_batch(value.substr(0, i))) << i;
    std::string changed = value;
    changed[i] = static_cast<char>(changed[i] ^ 0x10);
    EXPECT_FALSE(decode_etcd_batch(changed)) << i;
  }
  EXPECT_FALSE(decode_etcd_batch(value + "x"));
}

TEST(EtcdBatch, ABatchOfNothingIsCorrupt) {
  const auto decoded = decode_etcd_batch(encode_etcd_batch({}));
  ASSERT_FALSE(decoded);
  EXPECT_EQ(decoded.error().code, Code::kCorrupt);
}

}  // namespace
}  // namespace kvsyncfs
