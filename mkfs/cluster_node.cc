#include "mkfs/cluster_node.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <unistd.h>

#include <array>
#include <filesystem>

namespace kvsyncfs {
namespace {

Result<std::string> host_name() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0 || !is_cluster_name(name.data()))
    return Error(Code::kInvalid,
                 fmt::format("the host's name '{}' is none for a node; --node gives "
                             "another",
                             name.data()));
  return std::string(name.data());
}

Result<std::string> host_address() {
  ifaddrs* all = nullptr;
  std::string found;
  if (::getifaddrs(&all) != 0) all = nullptr;
  for (const ifaddrs* at = all; at != nullptr && found.empty(); at = at->ifa_next) {
    const bool usable = at->ifa_addr != nullptr && at->ifa_addr->sa_family == AF_INET &&
                        (at->ifa_flags & IFF_UP) != 0 && (at->ifa_flags & IFF_LOOPBACK) == 0;
    if (!usable) continue;
    std::array<char, INET_ADDRSTRLEN> text{};
    const auto* address = reinterpret_cast<const sockaddr_in*>(at->ifa_addr);
    if (::inet_ntop(AF_INET, &address->sin_addr, text.data(), text.size()) != nullptr)
      found = text.data();
  }
  if (all != nullptr) ::freeifaddrs(all);
  if (found.empty())
    return Error(Code::kInvalid, "the host has no address but loopback; --listen gives one");
  return found;
}

void make_absolute(std::string& path) {
  if (!path.empty()) path = std::filesystem::absolute(path).lexically_normal();
}

std::string for_shell(const std::string& word) {
  constexpr std::string_view kPlain =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-./:,@%+=[]";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) return word;
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

}  // namespace

Status complete_cluster(Disk& disk, ClusterOptions& cluster) {
  ClusterConfig& config = cluster.format.config;
  if (config.node.empty()) {
    KVSYNCFS_ASSIGN(config.node, host_name());
  }
  if (config.listen.empty()) {
    KVSYNCFS_ASSIGN(const std::string address, host_address());
    config.listen = fmt::format("{}:{}", address, kNodePort);
  }
  for (std::string* path :
       {&config.ca_file, &config.certificate_file, &config.key_file, &config.password_file})
    make_absolute(*path);
  if (cluster.format.join) {
    KVSYNCFS_ASSIGN(cluster.format.secret, read_volume_secret(disk, cluster.secret_file));
  }
  return {};
}

std::string next_node_command(const ClusterOptions& cluster) {
  const ClusterConfig& config = cluster.format.config;
  std::string command = fmt::format("mkfs.kvsyncfs --volume {} --cluster {}", config.volume,
                                    for_shell(cluster.address));
  const std::pair<const char*, const std::string&> given[] = {
      {"--ca", config.ca_file},
      {"--cert", config.certificate_file},
      {"--key", config.key_file},
      {"--user", config.user},
      {"--password-file", config.password_file}};
  for (const auto& [option, value] : given)
    if (!value.empty()) command += fmt::format(" {} {}", option, for_shell(value));
  return command + " --join --secret FILE STORE";
}

}  // namespace kvsyncfs
