#include "fs/metrics_server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <prometheus/collectable.h>
#include <prometheus/exposer.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <exception>
#include <future>
#include <mutex>
#include <utility>

#include "engine/format/cluster_config.h"
#include "fs/metrics_text.h"

namespace kvsyncfs {
namespace {

Error refuse(Code code, const std::string& address, const std::string& why) {
  return Error(code, "option metrics=" + address + ": " + why);
}

/// A numeric address as the system wants it.
class Address {
 public:
  /// Errors: kInvalid.
  static Result<Address> parse(const std::string& text) {
    const auto parsed = parse_host_port(text);
    if (!parsed) return refuse(Code::kInvalid, text, "not ADDRESS:PORT");
    Address address;
    address.v4_.sin_family = AF_INET;
    address.v6_.sin6_family = AF_INET6;
    address.is_v4_ = ::inet_pton(AF_INET, parsed->host.c_str(), &address.v4_.sin_addr) == 1;
    if (!address.is_v4_ && ::inet_pton(AF_INET6, parsed->host.c_str(), &address.v6_.sin6_addr) != 1)
      return refuse(Code::kInvalid, text, "the address is not numeric");
    address.set_port(parsed->port);
    return address;
  }
  void set_port(std::uint16_t port) { v4_.sin_port = v6_.sin6_port = htons(port); }
  const sockaddr* name() const {
    return is_v4_ ? reinterpret_cast<const sockaddr*>(&v4_)
                  : reinterpret_cast<const sockaddr*>(&v6_);
  }
  socklen_t size() const { return is_v4_ ? sizeof v4_ : sizeof v6_; }

 private:
  sockaddr_in v4_{};
  sockaddr_in6 v6_{};
  bool is_v4_ = true;
};

/// The library only says that it failed: why, a socket of our own tells before it.
Status try_to_listen(const Address& address, const std::string& text) {
  const int fd = ::socket(address.name()->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int on = 1;
  ::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  const bool listens = ::bind(fd, address.name(), address.size()) == 0 && ::listen(fd, 1) == 0;
  const int error = errno;
  if (fd >= 0) ::close(fd);
  if (listens) return {};
  return refuse(error == EADDRINUSE ? Code::kBusy : from_errno(error), text, std::strerror(error));
}

void knock(const Address& address) {
  const int fd = ::socket(address.name()->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return;
  static_cast<void>(::connect(fd, address.name(), address.size()));
  ::close(fd);
}

class Source final : public prometheus::Collectable {
 public:
  void set(MetricsServer::Document document) {
    std::lock_guard lock(mutex_);
    document_ = std::move(document);
  }
  std::vector<prometheus::MetricFamily> Collect() const override {
    std::lock_guard lock(mutex_);
    return document_ ? to_metrics(document_()) : std::vector<prometheus::MetricFamily>{};
  }

 private:
  mutable std::mutex mutex_;  // held while the document is made
  MetricsServer::Document document_;
};

class Server final : public MetricsServer {
 public:
  Server(const Address& address, const std::string& text)
      : address_(address), exposer_(std::make_unique<prometheus::Exposer>(text)) {
    exposer_->RegisterCollectable(source_);
    address_.set_port(port());
  }
  /// The library looks every 2 s whether it is to end, and when somebody comes.
  ~Server() override {
    const auto ended = std::async(std::launch::async, [this] { exposer_.reset(); });
    while (ended.wait_for(std::chrono::milliseconds(10)) != std::future_status::ready)
      knock(address_);
  }
  void serve(Document document) override { source_->set(std::move(document)); }
  std::uint16_t port() const override {
    const auto ports = exposer_->GetListeningPorts();
    return ports.empty() ? std::uint16_t{0} : static_cast<std::uint16_t>(ports.front());
  }

 private:
  std::shared_ptr<Source> source_ = std::make_shared<Source>();  // shared with the library
  Address address_;
  std::unique_ptr<prometheus::Exposer> exposer_;
};

}  // namespace

Result<std::unique_ptr<MetricsServer>> MetricsServer::listen(const std::string& address) {
  KVSYNCFS_ASSIGN(const Address parsed, Address::parse(address));
  KVSYNCFS_TRY(try_to_listen(parsed, address));
  try {
    return std::unique_ptr<MetricsServer>(std::make_unique<Server>(parsed, address));
  } catch (const std::exception& error) {
    return refuse(Code::kIo, address, error.what());
  }
}

}  // namespace kvsyncfs
