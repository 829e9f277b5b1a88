#include "fs/metrics_server.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>

namespace kvsyncfs {
namespace {

/// A connection to a port of this machine; -1: nobody listens.
int connect_to(const char* address, std::uint16_t port) {
  sockaddr_in name{};
  name.sin_family = AF_INET;
  name.sin_port = htons(port);
  ::inet_pton(AF_INET, address, &name.sin_addr);
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (::connect(fd, reinterpret_cast<const sockaddr*>(&name), sizeof name) == 0) return fd;
  ::close(fd);
  return -1;
}

/// The whole answer to a GET.
std::string get(std::uint16_t port, const std::string& path) {
  const int fd = connect_to("127.0.0.1", port);
  const std::string request = "GET " + path + " HTTP/1.0\r\n\r\n";
  EXPECT_EQ(::send(fd, request.data(), request.size(), MSG_NOSIGNAL), ssize_t(request.size()));
  std::string answer;
  char part[4096];
  for (ssize_t n = 0; (n = ::recv(fd, part, sizeof part, 0)) > 0;)
    answer.append(part, static_cast<std::size_t>(n));
  ::close(fd);
  return answer;
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

std::unique_ptr<MetricsServer> listen() {
  auto server = MetricsServer::listen("127.0.0.1:0");
  EXPECT_TRUE(server) << describe(server.error());
  return server ? std::move(*server) : nullptr;
}

TEST(MetricsServer, AnswersWithTheDocumentAsItIsNow) {
  const auto server = listen();
  int scrapes = 0;
  server->serve([&scrapes] { return "{\"scrapes\":" + std::to_string(++scrapes) + "}"; });
  EXPECT_TRUE(contains(get(server->port(), "/metrics"), "\nkvsyncfs_scrapes 1\n"));
  EXPECT_TRUE(contains(get(server->port(), "/metrics"), "\nkvsyncfs_scrapes 2\n"));
  EXPECT_TRUE(contains(get(server->port(), "/"), " 404 "));
  server->serve({});
}

TEST(MetricsServer, TellsNothingBeforeAndAfterItServes) {
  const auto server = listen();
  EXPECT_FALSE(contains(get(server->port(), "/metrics"), "kvsyncfs_"));
  server->serve([] { return std::string("{\"a\":1}"); });
  server->serve({});
  EXPECT_FALSE(contains(get(server->port(), "/metrics"), "kvsyncfs_"));
}

TEST(MetricsServer, ListensAtItsAddressOnly) {
  const auto server = listen();
  EXPECT_EQ(connect_to("127.0.0.2", server->port()), -1);
}

TEST(MetricsServer, SaysThatSomebodyElseListensThere) {
  const auto server = listen();
  const std::string address = "127.0.0.1:" + std::to_string(server->port());
  const auto second = MetricsServer::listen(address);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, Code::kBusy);
  EXPECT_TRUE(contains(describe(second.error()), "metrics=" + address));
}

TEST(MetricsServer, RefusesWhatIsNoAddress) {
  for (const char* address : {"localhost:1", "nonsense", "127.0.0.1", "1.2.3:4"}) {
    const auto server = MetricsServer::listen(address);
    ASSERT_FALSE(server) << address;
    EXPECT_EQ(server.error().code, Code::kInvalid) << address;
  }
}

TEST(MetricsServer, EndsWhileAClientSaysNothing) {
  auto server = listen();
  const int silent = connect_to("127.0.0.1", server->port());
  ASSERT_GE(silent, 0);
  server.reset();
  ::close(silent);
}

}  // namespace
}  // namespace kvsyncfs
