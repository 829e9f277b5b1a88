#include "engine/base/size_text.h"

#include <gtest/gtest.h>

namespace kvsyncfs {
namespace {

TEST(SizeText, BytesAndUnits) {
  const struct {
    const char* text;
    std::uint64_t bytes;
  } cases[] = {{"1", 1},
               {"4096", 4096},
               {"1K", 1u << 10},
               {"64k", 64u << 10},
               {"512M", 512u << 20},
               {"10G", std::uint64_t{10} << 30},
               {"2TiB", std::uint64_t{2} << 40},
               {"1.5G", std::uint64_t{3} << 29},
               {"0.5P", std::uint64_t{1} << 49},
               {"1.000001E", (std::uint64_t{1} << 60) + ((std::uint64_t{1} << 30) / 1000000 << 30)},
               {"18446744073709551615", ~std::uint64_t{0}},
               {"15E", std::uint64_t{15} << 60}};
  for (const auto& c : cases) {
    const auto size = parse_size_text(c.text);
    ASSERT_TRUE(size) << c.text;
    EXPECT_EQ(size->bytes, c.bytes) << c.text;
    EXPECT_EQ(size->of(7), c.bytes) << "bytes do not depend on the whole";
  }
}

TEST(SizeText, PercentIsOfTheWhole) {
  EXPECT_EQ(parse_size_text("50%")->of(1000), 500u);
  EXPECT_EQ(parse_size_text("1%")->of(99), 0u);
  EXPECT_EQ(parse_size_text("100%")->of(~std::uint64_t{0}), ~std::uint64_t{0});
}

TEST(SizeText, NonsenseIsInvalid) {
  for (const char* text : {"",
                           " ",
                           "0",
                           "0K",
                           "-5",
                           "+5",
                           "10X",
                           "10 G",
                           "G",
                           ".5G",
                           "5.",
                           "5.G",
                           "1.5",
                           "1e9",
                           "0x10",
                           "10GG",
                           "10Gi",
                           "iB",
                           "5iB",
                           "0%",
                           "101%",
                           "-1%",
                           "1.5%",
                           "%",
                           "99999999999999999999",
                           "16E",
                           "18446744073709551615K",
                           "1.1234567G",
                           "1,5G",
                           "nan",
                           "50%%"}) {
    const auto size = parse_size_text(text);
    ASSERT_FALSE(size) << text;
    EXPECT_EQ(size.error().code, Code::kInvalid) << text;
  }
}

TEST(SizeText, ForPeople) {
  EXPECT_EQ(size_for_people(0), "0 bytes");
  EXPECT_EQ(size_for_people(1023), "1023 bytes");
  EXPECT_EQ(size_for_people(1536), "1.5 KiB");
  EXPECT_EQ(size_for_people(std::uint64_t{1} << 30), "1.0 GiB");
  EXPECT_EQ(size_for_people(~std::uint64_t{0}), "15.9 EiB");
}

}  // namespace
}  // namespace kvsyncfs
