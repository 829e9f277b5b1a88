#include "fs/running_requests.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/fuse.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <string>
#include <thread>

#include "engine/env/caller.h"

namespace kvsyncfs {
namespace {

constexpr std::uint32_t kKilled = 9, kSignalled = 10;

/// What the kernel would get.
class Device {
 public:
  Device() { EXPECT_EQ(::pipe2(ends_.data(), O_CLOEXEC), 0); }
  ~Device() {
    for (const int fd : ends_) ::close(fd);
  }
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  int fd() const { return ends_[1]; }
  /// Waits for the next one.
  fuse_out_header answer() const {
    fuse_out_header out{};
    EXPECT_EQ(::read(ends_[0], &out, sizeof out), static_cast<ssize_t>(sizeof out));
    return out;
  }
  bool is_empty() const {
    ::fcntl(ends_[0], F_SETFL, O_NONBLOCK);
    char byte = 0;
    return ::read(ends_[0], &byte, 1) < 0 && errno == EAGAIN;
  }

 private:
  std::array<int, 2> ends_{};
};

class RunningRequestsTest : public ::testing::Test {
 protected:
  explicit RunningRequestsTest(bool clustered = true)
      : requests_(clustered, [](std::uint32_t thread) { return thread == kKilled; }) {}
  void SetUp() override { ASSERT_TRUE(requests_.start()); }

  void begin(std::uint32_t opcode, std::uint64_t unique, std::uint32_t caller) {
    fuse_in_header header{};
    header.opcode = opcode;
    header.unique = unique;
    header.pid = caller;
    requests_.began(device_.fd(), &header, sizeof header);
  }
  /// By another thread, as the kernel's word comes.
  void interrupt(std::uint64_t unique) {
    std::thread([&] {
      fuse_in_header header{};
      header.opcode = FUSE_INTERRUPT;
      const fuse_interrupt_in body{unique};
      std::string bytes(sizeof header + sizeof body, '\0');
      std::memcpy(bytes.data(), &header, sizeof header);
      std::memcpy(bytes.data() + sizeof header, &body, sizeof body);
      requests_.began(device_.fd(), bytes.data(), bytes.size());
    }).join();
  }
  void expect_interrupted(std::uint64_t unique) {
    const fuse_out_header out = device_.answer();
    EXPECT_EQ(out.len, sizeof out);
    EXPECT_EQ(out.error, -EINTR);
    EXPECT_EQ(out.unique, unique);
  }

  Device device_;
  RunningRequests requests_;
};

TEST_F(RunningRequestsTest, CallerThatIsKilledIsAnsweredOnce) {
  begin(FUSE_MKDIR, 2, kKilled);
  interrupt(2);
  expect_interrupted(2);
  EXPECT_FALSE(Caller::may_change());
  EXPECT_FALSE(requests_.may_reply(2));
  begin(FUSE_MKDIR, 4, kKilled);
  EXPECT_TRUE(Caller::may_change());
  EXPECT_TRUE(requests_.may_reply(4));
}

TEST_F(RunningRequestsTest, SignalThatIsHeardBeforeItsRequestCounts) {
  interrupt(2);
  begin(FUSE_FSYNC, 2, kKilled);
  expect_interrupted(2);
}

TEST_F(RunningRequestsTest, SignalEndsAWriteOnlyBeforeItChangesSomething) {
  begin(FUSE_WRITE, 2, kSignalled);
  EXPECT_TRUE(Caller::may_change());
  interrupt(2);
  std::thread([&] {
    begin(FUSE_WRITE, 4, kSignalled);
    interrupt(4);
    expect_interrupted(4);  // 2 has waited as long by now
    EXPECT_FALSE(Caller::may_change());
  }).join();
  EXPECT_TRUE(requests_.may_reply(2));
  EXPECT_TRUE(device_.is_empty());
}

TEST_F(RunningRequestsTest, SignalEndsNoChangeOfNames) {
  begin(FUSE_RENAME2, 2, kSignalled);
  interrupt(2);
  std::thread([&] {
    begin(FUSE_FSYNC, 4, kSignalled);
    interrupt(4);
    expect_interrupted(4);
    EXPECT_TRUE(Caller::may_change()) << "a sync goes on, whoever waits";
  }).join();
  EXPECT_TRUE(requests_.may_reply(2));
  EXPECT_TRUE(device_.is_empty());
}

TEST_F(RunningRequestsTest, LocksAreLeftToTheEngine) {
  begin(FUSE_SETLKW, 2, kKilled);
  interrupt(2);
  std::thread([&] {
    begin(FUSE_FSYNC, 4, kKilled);
    interrupt(4);
    expect_interrupted(4);
    EXPECT_FALSE(requests_.may_reply(4));
  }).join();
  EXPECT_TRUE(requests_.may_reply(2));
  EXPECT_TRUE(device_.is_empty());
}

TEST_F(RunningRequestsTest, CloseOfAKilledProcessIsAnsweredWithoutASignal) {
  begin(FUSE_FLUSH, 2, kKilled);
  expect_interrupted(2);
}

TEST_F(RunningRequestsTest, NotificationsAreNoReplies) {
  begin(FUSE_FSYNC, 2, kKilled);
  interrupt(2);
  expect_interrupted(2);
  EXPECT_FALSE(requests_.may_reply(2));
  EXPECT_TRUE(requests_.may_reply(0));
}

class RunningRequestsOfALoneNode : public RunningRequestsTest {
 protected:
  RunningRequestsOfALoneNode() : RunningRequestsTest(false) {}
};

TEST_F(RunningRequestsOfALoneNode, ChangeThatHasBegunIsWaitedFor) {
  begin(FUSE_MKDIR, 2, kKilled);
  EXPECT_TRUE(Caller::may_change());
  interrupt(2);
  std::thread([&] {
    begin(FUSE_MKDIR, 4, kKilled);
    interrupt(4);
    expect_interrupted(4);
    EXPECT_FALSE(Caller::may_change());
  }).join();
  EXPECT_TRUE(requests_.may_reply(2)) << "the kernel would not know the name";
  EXPECT_TRUE(device_.is_empty());
}

TEST_F(RunningRequestsTest, ChangeThatHasBegunInAClusterIsNot) {
  begin(FUSE_MKDIR, 2, kKilled);
  EXPECT_TRUE(Caller::may_change());
  interrupt(2);
  expect_interrupted(2);
}

TEST(IsKilled, ThisThreadIsNotAndNobodyIs) {
  EXPECT_FALSE(is_killed(static_cast<std::uint32_t>(::gettid())));
  EXPECT_FALSE(is_killed(0)) << "a caller of another namespace";
  EXPECT_TRUE(is_killed(0x7ffffffe));
}

TEST(IsKilled, ProcessThatIsEndingByASignalIs) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::raise(SIGKILL);
    ::_exit(0);
  }
  siginfo_t info{};
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT), 0);
  EXPECT_TRUE(is_killed(static_cast<std::uint32_t>(child)));
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED), 0);
}

}  // namespace
}  // namespace kvsyncfs
