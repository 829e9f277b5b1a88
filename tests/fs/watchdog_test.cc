#include "fs/watchdog.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <thread>

namespace kvsyncfs {
namespace {

constexpr int kIntervalMs = 1;

class Heartbeat : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends_), 0); }
  void TearDown() override {
    ::close(ends_[0]);
    ::close(ends_[1]);
  }
  void close_daemon() { ::shutdown(ends_[0], SHUT_RDWR); }

  int ends_[2];  // the daemon's, the watchdog's
};

TEST_F(Heartbeat, ThatNeverComesIsFoundAndAskedForOnlyOnce) {
  EXPECT_EQ(watch_heartbeat(ends_[1], kIntervalMs), WatchEnd::kSilent);
  char byte = 0;
  EXPECT_EQ(::recv(ends_[0], &byte, 1, MSG_DONTWAIT), 1);
  EXPECT_EQ(::recv(ends_[0], &byte, 1, MSG_DONTWAIT), -1);
}

TEST_F(Heartbeat, KeepsTheConnectionForMoreThanTheMissesAllowed) {
  std::thread daemon([this] {
    char byte = 0;
    for (int i = 0; i < kMissedMax + 2 && ::recv(ends_[0], &byte, 1, 0) == 1; ++i) {
      ::send(ends_[0], &byte, 1, 0);
    }
    close_daemon();
  });
  EXPECT_EQ(watch_heartbeat(ends_[1], 100), WatchEnd::kDaemonEnded);
  daemon.join();
}

TEST_F(Heartbeat, OfAnEndedDaemonIsNotMissed) {
  close_daemon();
  EXPECT_EQ(watch_heartbeat(ends_[1], 60'000), WatchEnd::kDaemonEnded);
}

TEST(Watchdog, LeavesNoProcess) {
  Watchdog watchdog;
  ASSERT_TRUE(watchdog.start(15, "/mnt/kv"));
  watchdog.stop();
  char byte = 0;
  EXPECT_EQ(::recv(watchdog.heartbeat(), &byte, 1, MSG_DONTWAIT), 0) << "not at its end";
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1);
  EXPECT_EQ(errno, ECHILD);
}

TEST(Watchdog, EndsWithoutAMountWhenTheDaemonDoes) {
  const pid_t daemon = ::fork();
  if (daemon == 0) {
    Watchdog watchdog;
    if (!watchdog.start(15, "/mnt/kv")) ::_exit(1);
    ::close(watchdog.heartbeat());
    // No kill: it ends because nobody can say anything to it any more.
    int status = 0;
    ::_exit(::waitpid(-1, &status, 0) > 0 && WIFEXITED(status) ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(daemon, &status, 0), daemon);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

}  // namespace
}  // namespace kvsyncfs
