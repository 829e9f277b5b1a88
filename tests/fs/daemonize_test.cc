#include "fs/daemonize.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <string>

namespace kvsyncfs {
namespace {

/// Runs `work` in the background and returns what the caller of mount(8) sees.
struct Outcome {
  int status;
  std::string said;
};
Outcome run(const std::function<int(Verdict&)>& work) {
  testing::internal::CaptureStderr();
  const pid_t caller = ::getpid();
  const int status = run_daemon(false, work);
  if (::getpid() != caller) ::_exit(status);
  return {status, testing::internal::GetCapturedStderr()};
}

TEST(Daemon, ReadyReturnsWhileItRuns) {
  int lifeline[2];
  ASSERT_EQ(::pipe(lifeline), 0);
  const Outcome outcome = run([&](Verdict& verdict) {
    ::close(lifeline[1]);
    verdict.ready("");
    char byte;
    return static_cast<int>(::read(lifeline[0], &byte, 1));  // until the caller closes its end
  });
  EXPECT_EQ(outcome.status, 0);
  EXPECT_EQ(outcome.said, "");
  ::close(lifeline[0]);
  ::close(lifeline[1]);
}

TEST(Daemon, ReadyWithAWarningPrintsIt) {
  const Outcome outcome = run([](Verdict& verdict) {
    verdict.ready("warning: /mnt is not empty");
    return 0;
  });
  EXPECT_EQ(outcome.status, 0);
  EXPECT_EQ(outcome.said, "kvsyncfs: warning: /mnt is not empty\n");
}

TEST(Daemon, FailureIsOneLineAndAStatus) {
  const std::string line = "/store: " + std::string(3000, 'x');
  const Outcome outcome = run([&](Verdict& verdict) {
    verdict.failed(line);
    return 1;
  });
  EXPECT_EQ(outcome.status, 1);
  EXPECT_EQ(outcome.said, "kvsyncfs: " + line + "\n");
}

TEST(Daemon, DeathBeforeTheVerdictIsTold) {
  const Outcome exited = run([](Verdict&) { return 7; });
  EXPECT_NE(exited.status, 0);
  EXPECT_NE(exited.said.find("exit status 7"), std::string::npos) << exited.said;
  const Outcome killed = run([](Verdict&) { return ::kill(::getpid(), SIGKILL); });
  EXPECT_NE(killed.status, 0);
  EXPECT_NE(killed.said.find("Killed"), std::string::npos) << killed.said;
}

TEST(Daemon, InTheForegroundPrintsItself) {
  testing::internal::CaptureStderr();
  const int status = run_daemon(true, [](Verdict& verdict) {
    verdict.failed("no");
    return 3;
  });
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "kvsyncfs: no\n");
  EXPECT_EQ(status, 3);
}

}  // namespace
}  // namespace kvsyncfs
