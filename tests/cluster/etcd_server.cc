#include "tests/cluster/etcd_server.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <thread>
#include <utility>

namespace kvsyncfs {
namespace {

constexpr const char* kProgram = "/usr/bin/etcd";

/// Somebody listens there.
bool answers(std::uint16_t port) {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const bool connected =
      ::connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  ::close(socket);
  return connected;
}

}  // namespace

std::vector<std::uint16_t> free_ports(std::size_t count) {
  std::vector<int> sockets;
  std::vector<std::uint16_t> ports;
  for (std::size_t i = 0; i < count; ++i) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    sockets.push_back(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (::bind(sockets.back(), reinterpret_cast<const sockaddr*>(&address), size) == 0 &&
        ::getsockname(sockets.back(), reinterpret_cast<sockaddr*>(&address), &size) == 0)
      ports.push_back(ntohs(address.sin_port));
  }
  for (const int socket : sockets) ::close(socket);
  return ports;
}

bool EtcdCluster::is_available() { return ::access(kProgram, X_OK) == 0; }

EtcdCluster::EtcdCluster(const std::string& folder, std::size_t member_count,
                         std::string certificate, std::string key)
    : folder_(folder), certificate_(std::move(certificate)), key_(std::move(key)) {
  const auto ports = free_ports(2 * member_count);
  for (std::size_t i = 0; i < member_count; ++i) {
    const std::string name = fmt::format("m{}", i);
    members_.push_back({name, folder_ + "/" + name, ports[2 * i], ports[2 * i + 1], -1});
  }
  for (std::size_t i = 0; i < member_count; ++i) start(i);
}

EtcdCluster::~EtcdCluster() {
  for (std::size_t i = 0; i < members_.size(); ++i) kill(i);
}

std::vector<std::string> EtcdCluster::arguments(const Member& member) const {
  const char* scheme = has_tls() ? "https" : "http";
  std::string members;
  for (const Member& each : members_)
    members += fmt::format("{}{}=http://127.0.0.1:{}", members.empty() ? "" : ",", each.name,
                           each.peer_port);
  std::vector<std::string> out = {kProgram,
                                  "--name",
                                  member.name,
                                  "--data-dir",
                                  member.folder,
                                  "--listen-client-urls",
                                  fmt::format("{}://127.0.0.1:{}", scheme, member.client_port),
                                  "--advertise-client-urls",
                                  fmt::format("{}://127.0.0.1:{}", scheme, member.client_port),
                                  "--listen-peer-urls",
                                  fmt::format("http://127.0.0.1:{}", member.peer_port),
                                  "--initial-advertise-peer-urls",
                                  fmt::format("http://127.0.0.1:{}", member.peer_port),
                                  "--initial-cluster",
                                  members,
                                  "--heartbeat-interval",
                                  "50",
                                  "--election-timeout",
                                  "500"};
  if (has_tls()) out.insert(out.end(), {"--cert-file", certificate_, "--key-file", key_});
  return out;
}

void EtcdCluster::start(std::size_t index) {
  Member& member = members_[index];
  const std::vector<std::string> words = arguments(member);
  std::vector<char*> pointers;
  for (const std::string& word : words) pointers.push_back(const_cast<char*>(word.c_str()));
  pointers.push_back(nullptr);
  const std::string log = folder_ + "/" + member.name + ".log";
  const pid_t parent = ::getpid();
  member.pid = ::fork();
  if (member.pid != 0) return;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // it does not outlive the test, however that ends
  if (::getppid() != parent) ::_exit(1);
  const int output = ::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
  ::dup2(output, STDOUT_FILENO);
  ::dup2(output, STDERR_FILENO);
  ::execv(kProgram, pointers.data());
  ::_exit(1);
}

void EtcdCluster::kill(std::size_t index) {
  Member& member = members_[index];
  if (member.pid <= 0) return;
  ::kill(member.pid, SIGKILL);
  ::waitpid(member.pid, nullptr, 0);
  member.pid = -1;
}

bool EtcdCluster::wait_until_listening() {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  for (const Member& member : members_) {
    while (member.pid > 0 && !answers(member.client_port)) {
      if (std::chrono::steady_clock::now() > end) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  }
  return true;
}

std::vector<std::string> EtcdCluster::endpoints() const {
  std::vector<std::string> out;
  for (const Member& member : members_)
    out.push_back(fmt::format("127.0.0.1:{}", member.client_port));
  return out;
}

}  // namespace kvsyncfs
