#include "fs/request_flags.h"

#include <gtest/gtest.h>
#include <linux/fuse.h>

#include <cstring>
#include <string>
#include <thread>

namespace kvsyncfs {
namespace {

template <typename Body>
std::string request(std::uint32_t opcode, const Body& body) {
  fuse_in_header header{};
  header.opcode = opcode;
  std::string bytes(sizeof header + sizeof body, '\0');
  std::memcpy(bytes.data(), &header, sizeof header);
  std::memcpy(bytes.data() + sizeof header, &body, sizeof body);
  return bytes;
}

std::string write_request(std::uint32_t flags) {
  fuse_write_in write{};
  write.write_flags = flags;
  return request(FUSE_WRITE, write);
}

bool kills(const std::string& bytes) {
  note_request(bytes.data(), bytes.size());
  return request_kills_privileges();
}

TEST(RequestFlags, WriteAsksByItsOwnBit) {
  EXPECT_TRUE(kills(write_request(FUSE_WRITE_KILL_SUIDGID)));
  EXPECT_TRUE(kills(write_request(FUSE_WRITE_KILL_SUIDGID | FUSE_WRITE_LOCKOWNER)));
  EXPECT_FALSE(kills(write_request(FUSE_WRITE_CACHE | FUSE_WRITE_LOCKOWNER)));
}

TEST(RequestFlags, SetattrAsksByItsOwnBit) {
  fuse_setattr_in change{};
  change.valid = FATTR_SIZE;
  EXPECT_FALSE(kills(request(FUSE_SETATTR, change)));
  change.valid |= FATTR_KILL_SUIDGID;
  EXPECT_TRUE(kills(request(FUSE_SETATTR, change)));
}

TEST(RequestFlags, OpenAsksByItsOwnBit) {
  fuse_open_in open{};
  EXPECT_FALSE(kills(request(FUSE_OPEN, open)));
  open.open_flags = FUSE_OPEN_KILL_SUIDGID;
  EXPECT_TRUE(kills(request(FUSE_OPEN, open)));
}

TEST(RequestFlags, EachRequestForgetsTheOneBefore) {
  ASSERT_TRUE(kills(write_request(FUSE_WRITE_KILL_SUIDGID)));
  EXPECT_FALSE(kills(request(FUSE_GETATTR, fuse_getattr_in{})));
  ASSERT_TRUE(kills(write_request(FUSE_WRITE_KILL_SUIDGID)));
  EXPECT_FALSE(kills(""));
}

TEST(RequestFlags, ShortRequestsAskNothing) {
  const std::string whole = write_request(~0u);
  for (std::size_t size = 0; size < whole.size(); ++size) {
    EXPECT_FALSE(kills(whole.substr(0, size))) << size;
  }
}

TEST(RequestFlags, ThreadsSeeTheirOwn) {
  ASSERT_TRUE(kills(write_request(FUSE_WRITE_KILL_SUIDGID)));
  bool other = true;
  std::thread([&other] { other = request_kills_privileges(); }).join();
  EXPECT_FALSE(other);
  EXPECT_TRUE(request_kills_privileges());
}

}  // namespace
}  // namespace kvsyncfs
