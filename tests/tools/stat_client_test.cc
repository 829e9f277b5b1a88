#include "tools/stat_client.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <vector>

#include "engine/env/daemon_client.h"
#include "tests/lib/temp_folder.h"
#include "tests/tools/fake_daemon.h"

namespace kvsyncfs {
namespace {

TEST(StatClient, AsksOneLineAndTakesTheWholeAnswer) {
  const std::string answer =
      std::string(1'000'000, 'x') + "\n";  // more than a socket holds at once
  std::string asked;
  {
    const FakeDaemon daemon([&](int connection) {
      asked = read_line(connection);
      write_all(connection, answer);
    });
    const auto got = ask_daemon(daemon.path());
    ASSERT_TRUE(got) << describe(got.error());
    EXPECT_EQ(*got, answer);
  }
  EXPECT_EQ(asked, "stats");
}

TEST(StatClient, WithoutASocketThereIsNoDaemon) {
  const TempFolder folder;
  const auto got = ask_daemon(folder.path() + "/none.sock");
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().code, Code::kNotFound);
  EXPECT_NE(describe(got.error()).find("/none.sock"), std::string::npos);
}

TEST(StatClient, ASocketThatADeadDaemonLeftIsNoDaemon) {
  const TempFolder folder;
  const std::string path = folder.path() + "/left.sock";
  const int fd = ::socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strcpy(address.sun_path, path.c_str());
  ASSERT_EQ(::bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  ::close(fd);
  const auto got = ask_daemon(path);
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().code, Code::kNotFound);
  EXPECT_NE(describe(got.error()).find("nobody listens"), std::string::npos);
}

TEST(StatClient, ADaemonThatDoesNotAnswerCostsTheDeadlineAndNoMore) {
  const FakeDaemon daemon;  // connects by the kernel's queue, but nobody accepts
  const auto got = ask_daemon(daemon.path(), 50);
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().code, Code::kTimeout);
}

TEST(StatClient, ADaemonWithAFullQueueCostsTheDeadlineAndNoMore) {
  const FakeDaemon daemon({}, 0, 0);
  std::vector<int> waiting;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strcpy(address.sun_path, daemon.path().c_str());
  for (int i = 0; i < 4; ++i) {
    waiting.push_back(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0));
    ::connect(waiting.back(), reinterpret_cast<sockaddr*>(&address), sizeof(address));
  }
  const auto got = ask_daemon(daemon.path(), 50);
  for (const int fd : waiting) ::close(fd);
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().code, Code::kTimeout);
}

TEST(StatClient, AnAnswerWithoutAnEndIsRefused) {
  const FakeDaemon daemon([](int connection) {
    const std::string part(1 << 20, 'x');
    for (std::size_t i = 0; i <= kAnswerSizeMax / part.size(); ++i) {
      write_all(connection, part);
    }
  });
  const auto got = ask_daemon(daemon.path());
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().code, Code::kTooBig);
}

TEST(StatClient, ADaemonThatHangsUpIsAskedAgain) {
  int asked = 0;
  {
    const FakeDaemon daemon(
        [&](int connection) {
          if (++asked < 3) return;
          read_line(connection);
          write_all(connection, "{}\n");
        },
        3);
    const auto got = ask_daemon(daemon.path());
    ASSERT_TRUE(got) << describe(got.error());
    EXPECT_EQ(*got, "{}\n");
  }
  EXPECT_EQ(asked, 3);
}

TEST(StatClient, ADaemonThatOnlyHangsUpIsBusy) {
  const FakeDaemon daemon([](int) {}, 1);
  const auto got = ask_daemon(daemon.path(), 1);
  ASSERT_FALSE(got);
  EXPECT_TRUE(got.error().code == Code::kBusy || got.error().code == Code::kTimeout);
}

TEST(StatClient, APathThatNoSocketCanHaveIsRefused) {
  const auto got = ask_daemon("/" + std::string(200, 'x'));
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().code, Code::kNameTooLong);
}

TEST(StatClient, AnInterruptEndsTheWait) {
  const FakeDaemon daemon;
  const int interrupt = ::eventfd(1, EFD_CLOEXEC);
  const auto got = ask_daemon(daemon.path(), kStatTimeoutMs, interrupt);
  ::close(interrupt);
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().code, Code::kShutdown);
}

TEST(StatInterrupt, SignalsEndTheWaitInsteadOfTheProcess) {
  const Interrupt interrupt;
  EXPECT_FALSE(interrupt.wait(0));
  ::raise(SIGTERM);
  EXPECT_TRUE(interrupt.wait(kStatTimeoutMs));
}

}  // namespace
}  // namespace kvsyncfs
