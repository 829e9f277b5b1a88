#include "fs/request_server.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <future>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "engine/env/daemon_client.h"
#include "fs/run_files.h"
#include "tests/lib/temp_folder.h"

namespace kvsyncfs {
namespace {

constexpr int kWaitMs = 20'000;  // far more than an answer takes

/// A barrier that ends when the test says so.
class Gate {
 public:
  Status pass() {
    std::unique_lock lock(mutex_);
    ++entered_;
    changed_.notify_all();
    changed_.wait(lock, [this] { return open_ > 0; });
    --open_;
    return result_;
  }
  void wait_for_entry(int count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return entered_ >= count; });
  }
  void open(Status result = {}) {
    std::lock_guard lock(mutex_);
    result_ = std::move(result);
    ++open_;
    changed_.notify_all();
  }
  int entered() {
    std::lock_guard lock(mutex_);
    return entered_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int entered_ = 0, open_ = 0;
  Status result_;
};

/// A connected socket, or -1.
int connect_to(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strcpy(address.sun_path, path.c_str());
  const int fd = ::socket(AF_UNIX, SOCK_STREAM, 0);
  if (::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0) return fd;
  ::close(fd);
  return -1;
}

class Requests : public ::testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "a barrier is for root";
    ASSERT_TRUE(files_.make(folder_.path(), "a.sock", "b.sock"));
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET, 0, heartbeat_), 0);
    RequestHandlers handlers;
    handlers.stats = [] { return std::string(1 << 20, 's'); };
    handlers.barrier = [this] { return gate_.pass(); };
    handlers.admin = [this](std::string_view request) {
      if (request == "{slow}") static_cast<void>(gate_.pass());
      ++admin_answers_;
      return "you said " + std::string(request) + "\n";
    };
    server_.emplace(files_.fd(), heartbeat_[0], std::move(handlers));
    ASSERT_TRUE(server_->start());
  }
  void TearDown() override {
    server_.reset();
    ::close(heartbeat_[0]);
    ::close(heartbeat_[1]);
  }

  std::string socket() const { return folder_.path() + "/a.sock"; }
  std::string answer(std::string_view request) const {
    const auto answer = ask(socket(), request, kWaitMs);
    return answer ? answer->text : describe(answer.error());
  }
  std::future<std::string> answer_later(std::string request) const {
    return std::async(std::launch::async, [this, request] { return answer(request); });
  }
  int connect() const {
    const int fd = connect_to(socket());
    EXPECT_GE(fd, 0);
    return fd;
  }

  TempFolder folder_;
  Gate gate_;
  std::atomic<int> admin_answers_ = 0;
  RunFiles files_;
  int heartbeat_[2] = {-1, -1};
  std::optional<RequestServer> server_;
};

TEST_F(Requests, PingNamesTheProcess) {
  const std::string expected = "{\"ok\":true,\"pid\":" + std::to_string(::getpid()) + "}\n";
  EXPECT_EQ(answer("ping"), expected);
  const auto reply = ask(socket(), "ping", kWaitMs);
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->pid, ::getpid());
}

TEST_F(Requests, LargeAnswersArriveWhole) {
  EXPECT_EQ(answer("stats"), std::string(1 << 20, 's') + "\n");
}

TEST_F(Requests, UnknownOnesAndEndlessOnesAreRefused) {
  for (const std::string& request :
       {std::string("nonsense"), std::string(), std::string("ping "), std::string(64, 'x')}) {
    EXPECT_NE(answer(request).find("unknown request"), std::string::npos) << request;
  }
  EXPECT_NE(answer(std::string(65, 'x')).find("too long"), std::string::npos);
}

TEST_F(Requests, InPiecesAreOneRequest) {
  const int fd = connect();
  for (const char* piece : {"p", "in", "g", "\n"}) ::send(fd, piece, std::strlen(piece), 0);
  char first = 0;
  EXPECT_EQ(::recv(fd, &first, 1, 0), 1);
  EXPECT_EQ(first, '{');
  ::close(fd);
}

TEST_F(Requests, BarrierAnswersWhenItIsDoneAndPingsGoOnMeanwhile) {
  auto barrier = answer_later("barrier");
  gate_.wait_for_entry(1);
  EXPECT_TRUE(answer("ping").starts_with("{\"ok\":true"));
  EXPECT_EQ(barrier.wait_for(std::chrono::seconds(0)), std::future_status::timeout);
  gate_.open();
  EXPECT_EQ(barrier.get(), "{\"ok\":true}\n");
}

TEST_F(Requests, JsonIsAnsweredWhileABarrierAndPingsGoOn) {
  EXPECT_EQ(answer("{a}"), "you said {a}\n");
  const std::string large = "{" + std::string(20'000, 'p') + "}";
  EXPECT_EQ(answer(large), "you said " + large + "\n");
  EXPECT_NE(answer("{" + std::string(40'000, 'p')).find("too long"), std::string::npos);
  auto slow = answer_later("{slow}");
  gate_.wait_for_entry(1);
  EXPECT_TRUE(answer("ping").starts_with("{\"ok\":true"));
  gate_.open();
  EXPECT_EQ(slow.get(), "you said {slow}\n");
}

TEST_F(Requests, JsonThatNobodyWaitsForIsNotBegun) {
  auto slow = answer_later("{slow}");
  gate_.wait_for_entry(1);
  const int fd = connect();
  ::send(fd, "{left}\n", 7, 0);
  EXPECT_TRUE(answer("ping").starts_with("{\"ok\":true"));  // so it was read as well
  ::close(fd);
  EXPECT_TRUE(answer("ping").starts_with("{\"ok\":true"));  // and its end was seen
  gate_.open();
  slow.get();
  EXPECT_EQ(answer("{next}"), "you said {next}\n");
  EXPECT_EQ(admin_answers_, 2);
}

TEST_F(Requests, BarrierThatFailsSaysWhy) {
  auto barrier = answer_later("barrier");
  gate_.open(Error(Code::kIo, "the disk is gone"));
  const std::string text = barrier.get();
  EXPECT_TRUE(text.starts_with("{\"ok\":false")) << text;
  EXPECT_NE(text.find("the disk is gone"), std::string::npos) << text;
}

TEST_F(Requests, BarrierAskedDuringAnotherGetsARunOfItsOwn) {
  auto first = answer_later("barrier");
  gate_.wait_for_entry(1);
  const int fd = connect();
  ::send(fd, "barrier\n", 8, 0);
  EXPECT_TRUE(answer("ping").starts_with("{\"ok\":true"));  // so the second was read as well
  gate_.open();
  EXPECT_EQ(first.get(), "{\"ok\":true}\n");
  gate_.wait_for_entry(2);
  char byte = 0;
  EXPECT_EQ(::recv(fd, &byte, 1, MSG_DONTWAIT), -1) << "answered by a run that began before it";
  gate_.open();
  EXPECT_EQ(::recv(fd, &byte, 1, 0), 1);
  ::close(fd);
}

TEST_F(Requests, BarriersThatWaitShareTheNextRun) {
  auto first = answer_later("barrier");
  gate_.wait_for_entry(1);
  const int waiting[] = {connect(), connect(), connect()};
  for (const int fd : waiting) ::send(fd, "barrier\n", 8, 0);
  EXPECT_TRUE(answer("ping").starts_with("{\"ok\":true"));  // so all of them were read
  gate_.open();
  EXPECT_EQ(first.get(), "{\"ok\":true}\n");
  gate_.wait_for_entry(2);
  gate_.open();
  char byte = 0;
  for (const int fd : waiting) {
    EXPECT_EQ(::recv(fd, &byte, 1, 0), 1);
    ::close(fd);
  }
}

TEST_F(Requests, ClientsThatAreSilentAreDroppedAndBlockNobody) {
  std::vector<int> silent;
  for (int i = 0; i < 16; ++i) silent.push_back(connect());
  // All places are taken until their patience ends; then the server closes them.
  char byte = 0;
  EXPECT_EQ(::recv(silent[0], &byte, 1, 0), 0);
  EXPECT_TRUE(answer("ping").starts_with("{\"ok\":true"));
  for (const int fd : silent) ::close(fd);
}

TEST_F(Requests, ClientsThatLeaveEarlyHarmNobody) {
  for (const char* request : {"", "pi", "stats\n", "barrier\n"}) {
    const int fd = connect();
    ::send(fd, request, std::strlen(request), MSG_NOSIGNAL);
    ::close(fd);
  }
  gate_.open();
  EXPECT_TRUE(answer("ping").starts_with("{\"ok\":true"));
}

TEST_F(Requests, HeartbeatIsAnsweredDuringABarrier) {
  auto barrier = answer_later("barrier");
  gate_.wait_for_entry(1);
  for (int i = 0; i < 3; ++i) {
    char byte = '?';
    ASSERT_EQ(::send(heartbeat_[1], &byte, 1, 0), 1);
    EXPECT_EQ(::recv(heartbeat_[1], &byte, 1, 0), 1);
  }
  gate_.open();
  EXPECT_EQ(barrier.get(), "{\"ok\":true}\n");
}

TEST_F(Requests, StopWaitsForTheBarrierAndLeavesTheClientWithoutAnAnswer) {
  auto barrier = answer_later("barrier");
  gate_.wait_for_entry(1);
  auto stopped = std::async(std::launch::async, [this] { server_->stop(); });
  EXPECT_EQ(stopped.wait_for(std::chrono::milliseconds(20)), std::future_status::timeout);
  gate_.open();
  stopped.get();
  server_->stop();
  EXPECT_NE(barrier.get().find("without an answer"), std::string::npos);
}

TEST(RunFiles, BothNamesLeadToTheSameDaemonAndGoWithIt) {
  TempFolder folder;
  const std::string run = folder.path() + "/run";
  {
    RunFiles files;
    ASSERT_TRUE(files.make(run, socket_name(makedev(0, 44)), "uuid.sock"));
    struct stat st {};
    ASSERT_EQ(::stat(run.c_str(), &st), 0);
    EXPECT_EQ(st.st_mode & 07777, 0755u);
    ASSERT_EQ(::stat((run + "/0-44.sock").c_str(), &st), 0);
    EXPECT_TRUE(S_ISSOCK(st.st_mode));
    EXPECT_EQ(st.st_mode & 07777, 0666u);
    for (const char* name : {"/0-44.sock", "/uuid.sock"}) {
      const int client = connect_to(run + name);
      EXPECT_GE(client, 0) << name;
      ::close(client);
    }
  }
  EXPECT_TRUE(std::filesystem::is_empty(run));
}

TEST(RunFiles, OfADeadDaemonAreReplaced) {
  TempFolder folder;
  for (const char* name : {"/a.sock", "/b.sock"}) {
    std::filesystem::create_symlink("nowhere", folder.path() + name);
  }
  RunFiles files;
  ASSERT_TRUE(files.make(folder.path(), "a.sock", "b.sock"));
  const int client = connect_to(folder.path() + "/b.sock");
  EXPECT_GE(client, 0);
  ::close(client);
}

TEST(RunFiles, SecondNameOfADeadDaemonDoesNotLeadToItsSuccessor) {
  TempFolder folder;
  const std::string kept = folder.path() + "/kept.sock";
  {
    RunFiles dead;
    ASSERT_TRUE(dead.make(folder.path(), "1.sock", "dead.sock"));
    std::filesystem::create_hard_link(folder.path() + "/dead.sock", kept);  // as after kill -9
  }
  RunFiles next;
  ASSERT_TRUE(next.make(folder.path(), "1.sock", "next.sock"));
  EXPECT_EQ(ask(kept, "ping", 1).error().code, Code::kNotFound);
}

TEST(RunFiles, NamesThatNobodyListensToGo) {
  TempFolder folder;
  RunFiles other;
  ASSERT_TRUE(other.make(folder.path(), "1.sock", "other.sock"));
  const std::string dead = folder.path() + "/dead.sock";
  {
    const int fd = ::socket(AF_UNIX, SOCK_STREAM, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strcpy(address.sun_path, dead.c_str());
    ASSERT_EQ(::bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    ::close(fd);
  }
  std::ofstream(folder.path() + "/note") << "not a socket";
  RunFiles files;
  ASSERT_TRUE(files.make(folder.path(), "2.sock", "mine.sock"));
  std::set<std::string> left;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path()))
    left.insert(entry.path().filename());
  EXPECT_EQ(left, (std::set<std::string>{"1.sock", "2.sock", "mine.sock", "note", "other.sock"}));
}

TEST(RunFiles, NameThatTheNextDaemonTookIsLeftAlone) {
  TempFolder folder;
  RunFiles next;
  {
    RunFiles first;
    ASSERT_TRUE(first.make(folder.path(), "1.sock", "first.sock"));
    ASSERT_TRUE(next.make(folder.path(), "1.sock", "next.sock"));
  }
  const int client = connect_to(folder.path() + "/1.sock");
  EXPECT_GE(client, 0);
  ::close(client);
  EXPECT_FALSE(std::filesystem::exists(folder.path() + "/first.sock"));
}

TEST(RunFiles, SecondNameThatAnotherDaemonTookIsLeftAlone) {
  TempFolder folder;
  RunFiles second;
  {
    RunFiles first;
    ASSERT_TRUE(first.make(folder.path(), "1.sock", "uuid.sock"));
    ASSERT_TRUE(second.make(folder.path(), "2.sock", "uuid.sock"));
  }
  EXPECT_TRUE(std::filesystem::exists(folder.path() + "/uuid.sock"));
  EXPECT_FALSE(std::filesystem::exists(folder.path() + "/1.sock"));
}

TEST(RunFiles, ThatCannotBeMadeAreNamed) {
  TempFolder folder;
  RunFiles files;
  const auto made = files.make(folder.path() + "/missing/run", "a.sock", "b.sock");
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, Code::kNotFound);
  EXPECT_NE(made.error().detail.find("/missing/run"), std::string::npos);
  const auto longer = RunFiles().make(folder.path(), std::string(120, 'n'), "b.sock");
  ASSERT_FALSE(longer);
  EXPECT_EQ(longer.error().code, Code::kNameTooLong);
}

TEST(DaemonClient, TellsADeadDaemonFromASilentOne) {
  TempFolder folder;
  const std::string socket = folder.path() + "/a.sock";
  EXPECT_EQ(ask(socket, "ping", 1).error().code, Code::kNotFound);
  RunFiles files;
  ASSERT_TRUE(files.make(folder.path(), "a.sock", "b.sock"));
  EXPECT_EQ(ask(socket, "ping", 1).error().code, Code::kTimeout);  // nobody accepts
  ::shutdown(files.fd(), SHUT_RDWR);
  EXPECT_EQ(ask(socket, "ping", 1).error().code, Code::kNotFound);
}

}  // namespace
}  // namespace kvsyncfs
