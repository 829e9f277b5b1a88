#include "engine/base/hex.h"

#include <gtest/gtest.h>

namespace kvsyncfs {
namespace {

TEST(Hex, ComesBackAsItWas) {
  std::string all;
  for (int byte = 0; byte < 256; ++byte) all.push_back(static_cast<char>(byte));
  EXPECT_EQ(from_hex(to_hex(all)).value(), all);
  EXPECT_EQ(to_hex(std::string("\x00\x0a\xff", 3)), "000aff");
  EXPECT_EQ(from_hex("").value(), "");
}

TEST(Hex, AnythingElseIsNone) {
  for (const char* text : {"0", "0g", "0A", " 0", "000"}) EXPECT_FALSE(from_hex(text)) << text;
}

}  // namespace
}  // namespace kvsyncfs
