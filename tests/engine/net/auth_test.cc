#include "engine/net/auth.h"

#include <gtest/gtest.h>

#include <string>

namespace kvsyncfs {
namespace {

TEST(Auth, TheSecretCheckIsAnHmacOfWordsAndUuid) {
  std::string secret;
  Uuid volume{};
  for (char c = 0; c < 32; ++c) secret += c;
  for (std::size_t i = 0; i < volume.size(); ++i) volume[i] = static_cast<std::uint8_t>(16 + i);
  const Proof golden = {0x36, 0x8e, 0xd5, 0x09, 0xfe, 0x12, 0xc0, 0xab, 0xd9, 0x79, 0xd0,
                        0x69, 0x7d, 0xbb, 0x77, 0x51, 0xb3, 0x52, 0x13, 0x06, 0x6c, 0x1c,
                        0x0b, 0x50, 0x90, 0x88, 0x0d, 0x0e, 0x5a, 0x83, 0xfe, 0x4c};
  EXPECT_EQ(make_secret_check(secret, volume), golden);
  volume[15] ^= 1;
  EXPECT_NE(make_secret_check(secret, volume), golden);
}

}  // namespace
}  // namespace kvsyncfs
