#include "engine/base/error.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <set>
#include <string>

namespace kvsyncfs {
namespace {

constexpr int kCodeCount = static_cast<int>(kLastCode);

Code code_at(int i) { return static_cast<Code>(i); }

TEST(Error, EveryCodeHasANameOfItsOwnAndAnErrno) {
  std::set<std::string_view> names;
  for (int i = 1; i <= kCodeCount; ++i) {
    names.insert(to_string(code_at(i)));
    EXPECT_FALSE(to_string(code_at(i)).empty());
    EXPECT_GT(to_errno(code_at(i)), 0);
  }
  EXPECT_EQ(names.size(), static_cast<std::size_t>(kCodeCount));
}

TEST(Error, ErrnoOfACodeComesBackAsACodeOfThatErrno) {
  for (int i = 1; i <= kCodeCount; ++i) {
    const int error = to_errno(code_at(i));
    EXPECT_EQ(to_errno(from_errno(error)), error);
  }
}

TEST(Error, ErrnoWithoutAPlaceIsIo) {
  EXPECT_EQ(from_errno(EXDEV), Code::kIo);
  EXPECT_EQ(from_errno(0), Code::kIo);
  EXPECT_EQ(from_errno(-1), Code::kIo);
}

TEST(Error, ErrnosOfOneKindShareACode) {
  EXPECT_EQ(from_errno(EDQUOT), Code::kNoSpace);
  EXPECT_EQ(from_errno(EMFILE), Code::kNoMemory);
  EXPECT_EQ(from_errno(EINVAL), Code::kInvalid);
  EXPECT_EQ(from_errno(EIO), Code::kIo);
}

TEST(Error, ACodeOutOfTheListIsStillAnError) {
  for (const int i : {0, kCodeCount + 1, 255}) {
    EXPECT_EQ(to_errno(code_at(i)), EIO);
    EXPECT_FALSE(to_string(code_at(i)).empty());
  }
}

TEST(Error, DescribeSaysTheObjectThenTheNameThenTheErrno) {
  EXPECT_EQ(describe({Code::kCorrupt, "segment 12 page 7"}),
            "segment 12 page 7: corrupt data (EIO)");
  EXPECT_EQ(describe(Code::kNoSpace), "no space left (ENOSPC)");
}

Result<int> half(int n) {
  if (n % 2 != 0) return Error(Code::kInvalid, "odd");
  return n / 2;
}

Result<int> quarter(int n) {
  KVSYNCFS_ASSIGN(const int h, half(n));
  KVSYNCFS_TRY(half(h));
  return h / 2;
}

TEST(Error, TryAndAssignPassTheErrorUpUnchanged) {
  EXPECT_EQ(*quarter(8), 2);
  EXPECT_EQ(quarter(3).error().detail, "odd");
  EXPECT_EQ(quarter(6).error().code, Code::kInvalid);
}

TEST(Error, TheValueOfAnErrorThrowsWithItsDescription) {
  try {
    (void)quarter(3).value();
    FAIL() << "no exception";
  } catch (const std::exception& e) {
    EXPECT_EQ(std::string(e.what()), "odd: invalid argument (EINVAL)");
  }
}

}  // namespace
}  // namespace kvsyncfs
