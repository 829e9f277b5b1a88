// Real etcd servers on loopback, with data folders of their own, gone with the object. Thread: one.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

namespace kvsyncfs {

/// Ports of 127.0.0.1 that nobody has right now.
std::vector<std::uint16_t> free_ports(std::size_t count);

class EtcdCluster {
 public:
  /// Data goes below `folder`. `certificate` and `key` (PEM): clients come with TLS.
  EtcdCluster(const std::string& folder, std::size_t member_count, std::string certificate = {},
              std::string key = {});
  ~EtcdCluster();  ///< kills them
  EtcdCluster(const EtcdCluster&) = delete;
  EtcdCluster& operator=(const EtcdCluster&) = delete;

  static bool is_available();  ///< etcd is installed

  void start(std::size_t member);
  void kill(std::size_t member);  ///< kill -9
  /// Those that run take connections; false: not within half a minute.
  bool wait_until_listening();

  std::vector<std::string> endpoints() const;  ///< "127.0.0.1:port"
  bool has_tls() const { return !certificate_.empty(); }

 private:
  struct Member {
    std::string name, folder;
    std::uint16_t client_port = 0, peer_port = 0;
    pid_t pid = -1;
  };
  std::vector<std::string> arguments(const Member& member) const;

  std::string folder_, certificate_, key_;
  std::vector<Member> members_;
};

}  // namespace kvsyncfs
