// The cluster's log over real etcd servers on loopback.
#include <algorithm>
#include <cstdlib>
#include <set>

#include "engine/log/etcd/grpc_connection.h"
#include "engine/log/etcd/grpc_messages.h"
#include "engine/log/etcd/protobuf.h"
#include "tests/cluster/etcd_fixture.h"

namespace kvsyncfs {
namespace {

TEST_F(EtcdLogCluster, NodesThatAppendAtOnceApplyOneOrder) {
  start_servers(1);
  auto a = make_node("a"), b = make_node("b");
  a->follow();
  b->follow();
  std::vector<std::thread> appenders;
  for (Node* node : {a.get(), b.get()})
    for (int i = 0; i < 3; ++i)
      appenders.emplace_back([node, i, this] {
        append_many(*node, std::to_string(node == nullptr) + "-" + std::to_string(i) + "-", 40);
      });
  for (std::thread& appender : appenders) appender.join();
  ASSERT_TRUE(a->log->catch_up());
  ASSERT_TRUE(b->log->catch_up());
  EXPECT_EQ(a->entries().size(), 240u);
  EXPECT_EQ(a->entries(), b->entries());
  EXPECT_EQ(make_node("c")->entries(), a->entries());
}

TEST_F(EtcdLogCluster, AnEndpointThatDiesIsPassedOver) {
  start_servers(3);
  auto node = make_node("a");
  node->follow();
  append_many(*node, "before", 20);
  for (const std::size_t member : {0u, 1u, 2u}) {  // whichever leads is among them
    servers->kill(member);
    append_many(*node, "without" + std::to_string(member), 20);
    servers->start(member);
    ASSERT_TRUE(ready());
  }
  EXPECT_GT(node->client->counters().failovers, 0u);
  EXPECT_EQ(make_node("b")->entries(), node->entries());
}

TEST_F(EtcdLogCluster, ARestartOfEtcdLosesAndDoublesNothing) {
  start_servers(1);
  auto a = make_node("a"), b = make_node("b");
  a->follow();
  b->follow();
  std::thread appender([&] { append_many(*a, "x", 300); });
  for (int i = 0; i < 3; ++i) {
    append_many(*b, "y" + std::to_string(i), 5);
    servers->kill(0);
    servers->start(0);
    ASSERT_TRUE(ready());
  }
  appender.join();
  append(*b, "last");
  ASSERT_TRUE(a->log->catch_up());
  const Entries entries = a->entries();
  EXPECT_EQ(entries.size(), 316u);
  EXPECT_EQ(std::set<std::string>(entries.begin(), entries.end()).size(), entries.size());
  EXPECT_EQ(b->entries(), entries);
}

TEST_F(EtcdLogCluster, WithoutQuorumAnAppendTimesOutAndIsThereOnceAfterwards) {
  start_servers(3);
  EtcdLogOptions options = log_options("a");
  options.timeout_ns = kSecond;
  options.request_timeout_ns = kSecond / 4;
  auto made = try_node(options, grpc_options());
  ASSERT_TRUE(made) << describe(made.error());
  Node& node = **made;
  append(node, "before");
  servers->kill(1);
  servers->kill(2);
  const std::uint64_t begun_ns = clock->boot_ns();
  const auto lost = node.log->append("doubtful");
  ASSERT_FALSE(lost);
  EXPECT_EQ(lost.error().code, Code::kTimeout);
  EXPECT_LT(clock->boot_ns() - begun_ns, 2 * kSecond);
  servers->start(1);
  servers->start(2);
  ASSERT_TRUE(ready());
  node.follow();
  Result<Position> position = node.log->append("after");
  for (int i = 0; i < 20 && !position && position.error().code == Code::kTimeout; ++i)
    position = node.log->append("after");
  ASSERT_TRUE(position) << describe(position.error());
  const Entries entries = node.entries();
  EXPECT_EQ(std::count(entries.begin(), entries.end(), "doubtful"), 1);
}

TEST_F(EtcdLogCluster, WhoWaitsOnIsSentForWhenTheSenderGivesUp) {
  start_servers(1);
  EtcdLogOptions options = log_options("a");
  options.request_timeout_ns = kSecond / 4;
  auto made = try_node(options, grpc_options());
  ASSERT_TRUE(made) << describe(made.error());
  (*made)->follow();
  EtcdLog& log = *(*made)->log;
  servers->kill(0);
  const auto first = log.submit("first");
  ASSERT_TRUE(first);
  Result<Position> given_up = Position{1};
  std::thread sender([&] { given_up = log.wait(*first, clock->boot_ns() + 2 * kSecond); });
  while (log.counters().repeats == 0) std::this_thread::yield();  // the first one sends
  const auto second = log.submit("second");
  ASSERT_TRUE(second);
  Result<Position> position = Code::kTimeout;
  std::thread other([&] { position = log.wait(*second, clock->boot_ns() + 20 * kSecond); });
  sender.join();
  EXPECT_FALSE(given_up);
  servers->start(0);
  ASSERT_TRUE(ready());
  other.join();
  EXPECT_TRUE(position) << describe(position.error());
}

TEST_F(EtcdLogCluster, HistoryThatWasCompactedIsReadFromTheBatches) {
  start_servers(1);
  auto a = make_node("a"), b = make_node("b");
  ASSERT_TRUE(b->log->run_watch(0) || true);
  a->follow();
  append_many(*a, "x", 150);
  const auto now = a->client->range({"/", {}}, clock->boot_ns() + kSecond);
  ASSERT_TRUE(now);
  b->stop();
  auto fresh = make_node("c", {});
  ASSERT_TRUE(a->client->compact(now->revision, clock->boot_ns() + kSecond));
  b->follow();
  ASSERT_TRUE(b->log->catch_up());
  EXPECT_EQ(b->entries(), a->entries());
  EXPECT_EQ(fresh->entries(), a->entries());
}

TEST_F(EtcdLogCluster, TrimmedBatchesGoAndWhoNeedsThemIsToldSo) {
  start_servers(1);
  EtcdLogOptions options = log_options("a");
  options.window = 16;
  auto made = try_node(options, grpc_options());
  ASSERT_TRUE(made);
  Node& node = **made;
  append_many(node, "x", 200);
  const std::uint64_t held = node.log->held_bytes();
  const Status trimmed = node.log->trim({150});
  ASSERT_TRUE(trimmed) << describe(trimmed.error());
  EXPECT_LT(node.log->held_bytes(), held);
  const etcd::LogKeys keys("v", 1);
  const auto left = node.client->range({keys.batches(), etcd::end_of_prefix(keys.batches()), 1},
                                       clock->boot_ns() + kSecond);
  ASSERT_TRUE(left);
  EXPECT_LT(left->count, 110);
  options = log_options("b");
  options.window = 16;
  const auto behind = try_node(options, grpc_options());
  ASSERT_FALSE(behind);
  EXPECT_EQ(behind.error().code, Code::kStale);
  options.incarnation = ++incarnations;
  const auto snapshot = try_node(options, grpc_options(), node.entries());
  ASSERT_TRUE(snapshot) << describe(snapshot.error());
  append(**snapshot, "more");
}

TEST_F(EtcdLogCluster, ANewLifeOfANodeFencesTheOldOne) {
  start_servers(1);
  auto old = make_node("a");
  append(*old, "x");
  auto other = make_node("b");
  const auto early = other->log->append_end("end", "a", incarnations - 1);
  ASSERT_FALSE(early);
  EXPECT_EQ(early.error().code, Code::kBusy);
  const std::uint64_t incarnation = incarnations - 1;
  auto renewed = make_node("a");
  const auto fenced = old->log->append("y");
  ASSERT_FALSE(fenced);
  EXPECT_EQ(fenced.error().code, Code::kFenced);
  EXPECT_FALSE(old->log->lease_is_valid());
  ASSERT_TRUE(other->log->append_end("end", "a", incarnation));
  ASSERT_TRUE(renewed->log->lease_is_valid());
  EXPECT_EQ(other->entries(), (Entries{"x", "end"}));
}

TEST_F(EtcdLogCluster, ASessionThatLeftHasEndedForAll) {
  start_servers(1);
  auto a = make_node("a"), b = make_node("b");
  append(*a, "x");
  ASSERT_TRUE(a->log->leave());
  EXPECT_EQ(a->log->append("y").error().code, Code::kShutdown);
  EXPECT_FALSE(a->log->lease_is_valid());
  b->follow();
  ASSERT_TRUE(b->log->append_end("end", "a", incarnations - 1));
  EXPECT_EQ(b->entries(), (Entries{"x", "end"}));
}

TEST_F(EtcdLogCluster, ALeaseThatRanOutFencesAndIsInvalidBefore) {
  start_servers(1);
  EtcdLogOptions options = log_options("a");
  options.lease_ttl_s = 1;
  auto made = try_node(options, grpc_options());
  ASSERT_TRUE(made);
  Node& node = **made;
  const etcd::LogKeys keys("v", 1);
  const etcd::Range session{keys.session("a", options.incarnation), {}};
  const std::uint64_t end_ns = clock->boot_ns() + 20 * kSecond;
  for (;;) {
    const bool valid = node.log->lease_is_valid();
    const auto found = node.client->range(session, clock->boot_ns() + kSecond);
    ASSERT_TRUE(found && clock->boot_ns() < end_ns);
    if (found->items.empty()) {
      EXPECT_FALSE(valid);
      break;
    }
    (void)node.log->run_watch(kSecond / 20);
  }
  const auto fenced = node.log->append("x");
  ASSERT_FALSE(fenced);
  EXPECT_EQ(fenced.error().code, Code::kFenced);
}

TEST_F(EtcdLogCluster, TheLargestEntryFitsAndALargerOneIsRefused) {
  start_servers(1);
  auto node = make_node("a");
  append(*node, std::string((1u << 20) - 20, 'x'));
  const auto large = node->log->append(std::string((1u << 20) - 19, 'x'));
  ASSERT_FALSE(large);
  EXPECT_EQ(large.error().code, Code::kTooBig);
  append(*node, "small");
}

TEST_F(EtcdLogCluster, UserAndPasswordAreTheIdentity) {
  start_servers(1, false);
  const auto until = [this] { return clock->boot_ns() + 5 * kSecond; };
  const std::string endpoint = servers->endpoints()[0];
  const auto port = static_cast<std::uint16_t>(std::stoi(endpoint.substr(endpoint.find(':') + 1)));
  auto admin =
      etcd::GrpcConnection::connect(*clock, {"127.0.0.1", "127.0.0.1", port}, nullptr, until());
  ASSERT_TRUE(admin);
  std::string token;
  const auto ask = [&](const std::string& method, const std::vector<std::string>& fields) {
    etcd::ProtoWriter message;
    for (std::size_t i = 0; i < fields.size(); ++i)
      message.bytes(static_cast<std::uint32_t>(i + 1), fields[i]);
    const auto reply =
        (*admin)->call("/etcdserverpb.Auth/" + method, message.text(), token, until());
    ASSERT_TRUE(reply && reply->status == 0) << method << (reply ? reply->message : "");
  };
  etcd::ProtoWriter permission;
  permission.number(1, 2);  // to read and to write
  permission.bytes(2, "/kvsyncfs/v/");
  permission.bytes(3, "/kvsyncfs/v0");
  ask("UserAdd", {"root", "r"});
  ask("RoleAdd", {"root"});
  ask("UserGrantRole", {"root", "root"});
  ask("UserAdd", {"kv", "secret"});
  ask("RoleAdd", {"kv"});
  ask("RoleGrantPermission", {"kv", permission.text()});
  ask("UserGrantRole", {"kv", "kv"});
  ask("AuthEnable", {});

  etcd::GrpcOptions options = grpc_options();
  const auto code_of = [&](const std::string& volume) {
    const Status made = format_etcd_log(*make_client(options), *clock, volume, 1, {});
    return made ? Code{} : made.error().code;
  };
  EXPECT_EQ(code_of("v"), Code::kAccess);  // nobody
  options.user = "kv";
  options.password = "wrong";
  EXPECT_EQ(code_of("v"), Code::kAccess);
  options.password = "secret";
  EXPECT_EQ(code_of("w"), Code::kAccess);  // not its keys
  EXPECT_EQ(code_of("v"), Code{});
  auto node = try_node(log_options("a"), options);
  ASSERT_TRUE(node) << describe(node.error());
  (*node)->follow();
  append_many(**node, "x", 5);
  const auto login = (*admin)->call("/etcdserverpb.Auth/Authenticate",
                                    etcd::encode_login("root", "r"), {}, until());
  ASSERT_TRUE(login && etcd::parse_login(login->message));
  token = *etcd::parse_login(login->message);
  ask("UserChangePassword", {"kv", "secret"});  // the tokens of the user are worth nothing now
  append_many(**node, "y", 5);
  ASSERT_TRUE((*node)->log->trim({5}));
  EXPECT_GE((*node)->client->counters().logins, 2u);
}

TEST_F(EtcdLogCluster, TlsIsSpokenAndTheServersCertificateIsVerified) {
  const std::string pem = folder.path() + "/server", other = folder.path() + "/other";
  for (const std::string& name : {pem, other}) {
    const std::string command =
        "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=etcd -addext "
        "subjectAltName=IP:127.0.0.1 -keyout " +
        name + ".key -out " + name + ".crt 2>/dev/null";
    ASSERT_EQ(std::system(command.c_str()), 0);
  }
  servers = std::make_unique<EtcdCluster>(folder.path(), 1, pem + ".crt", pem + ".key");
  ASSERT_TRUE(servers->wait_until_listening());
  etcd::GrpcOptions options = grpc_options();
  options.ca_file = other + ".crt";
  const Status refused = format_etcd_log(*make_client(options), *clock, "v", 1, {});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kAccess);
  options.ca_file = pem + ".crt";
  const Status made = format_etcd_log(*make_client(options), *clock, "v", 1, {});
  ASSERT_TRUE(made) << describe(made.error());
  auto node = try_node(log_options("a"), options);
  ASSERT_TRUE(node) << describe(node.error());
  (*node)->follow();
  append_many(**node, "x", 10);
}

TEST_F(EtcdLogCluster, SixteenAppendersShareBatches) {
  start_servers(1);
  auto node = make_node("a");
  node->follow();
  const std::string entry(200, 'e');
  constexpr int kAlone = 300, kEach = 250, kAppenders = 16;
  const std::uint64_t bare_ns = clock->boot_ns();
  for (int i = 0; i < kAlone; ++i) {
    etcd::Txn put;
    put.success = {etcd::Put{"/bare", entry}};
    ASSERT_TRUE(node->client->txn(put, clock->boot_ns() + kSecond));
  }
  const std::uint64_t begun_ns = clock->boot_ns();
  for (int i = 0; i < kAlone; ++i) ASSERT_TRUE(node->log->append(entry));
  const std::uint64_t alone_ns = clock->boot_ns();
  std::vector<std::thread> appenders;
  for (int i = 0; i < kAppenders; ++i)
    appenders.emplace_back([&] {
      for (int k = 0; k < kEach; ++k) ASSERT_TRUE(node->log->append(entry));
    });
  for (std::thread& appender : appenders) appender.join();
  const std::uint64_t shared_ns = clock->boot_ns();
  const EtcdLogCounters counters = node->log->counters();
  const double each_us = static_cast<double>(alone_ns - begun_ns) / kAlone / 1e3;
  const double rate = kAppenders * kEach / (static_cast<double>(shared_ns - alone_ns) / 1e9);
  const double factor =
      static_cast<double>(kAppenders * kEach) / static_cast<double>(counters.batches - kAlone);
  const double put_us = static_cast<double>(begun_ns - bare_ns) / kAlone / 1e3;
  std::printf("one put: %.0f us, append: %.0f us; %d appenders: %.0f entries/s, %.1f a batch\n",
              put_us, each_us, kAppenders, rate, factor);
  EXPECT_GT(factor, 4.0);
}

}  // namespace
}  // namespace kvsyncfs
