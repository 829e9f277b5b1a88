#include "engine/base/checksum.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <string>

#include "engine/base/bytes.h"

namespace kvsyncfs {
namespace {

/// The definition, bit by bit: reflected polynomial 0x82f63b78.
std::uint32_t slow_crc32c(std::string_view s) {
  std::uint32_t state = 0xffffffff;
  for (const char c : s) {
    state ^= static_cast<unsigned char>(c);
    for (int bit = 0; bit < 8; ++bit) state = (state >> 1) ^ ((state & 1) ? 0x82f63b78u : 0u);
  }
  return ~state;
}

TEST(Crc32c, GivesTheValuesOfRfc3720) {
  EXPECT_EQ(crc32c(as_bytes("123456789")), 0xE3069283u);
  EXPECT_EQ(crc32c(as_bytes(std::string(32, '\0'))), 0x8A9136AAu);
  EXPECT_EQ(crc32c(as_bytes(std::string(32, '\xff'))), 0x62A8AB43u);
}

TEST(Crc32c, OfNothingIsTheSeed) {
  EXPECT_EQ(crc32c({}), 0u);
  EXPECT_EQ(crc32c({}, 77), 77u);
}

RC_GTEST_PROP(Crc32c, EqualsTheDefinition, (const std::string& s)) {
  RC_ASSERT(crc32c(as_bytes(s)) == slow_crc32c(s));
}

RC_GTEST_PROP(Crc32c, ContinuesFromASeed, (const std::string& a, const std::string& b)) {
  RC_ASSERT(crc32c(as_bytes(b), crc32c(as_bytes(a))) == crc32c(as_bytes(a + b)));
}

}  // namespace
}  // namespace kvsyncfs
