#include "engine/log/etcd/resolver.h"

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <chrono>
#include <mutex>
#include <optional>

namespace kvsyncfs::etcd {

namespace asio = boost::asio;
using asio::ip::tcp;

struct Resolver::Impl {
  std::timed_mutex mutex;  // one look-up at a time
  asio::io_context context;
  tcp::resolver resolver{context};
};

Resolver::Resolver(Clock& clock) : clock_(clock), impl_(std::make_unique<Impl>()) {}
Resolver::~Resolver() = default;

Result<std::string> Resolver::resolve(const std::string& host, std::uint64_t deadline_ns) {
  boost::system::error_code numeric;
  if (asio::ip::make_address(host, numeric); !numeric) return host;

  // Shared with a look-up that outlives this call.
  const auto found = std::make_shared<std::optional<Result<std::string>>>();
  const Error late(Code::kTimeout, "etcd " + host + ": name look-up");
  const std::uint64_t begin_ns = clock_.boot_ns();
  const std::chrono::nanoseconds wait(deadline_ns > begin_ns ? deadline_ns - begin_ns : 0);
  std::unique_lock lock(impl_->mutex, wait);
  if (!lock) return late;
  impl_->resolver.async_resolve(
      host, "", [found, host](boost::system::error_code error, tcp::resolver::results_type all) {
        if (error || all.empty())
          found->emplace(Error(Code::kIo, "etcd " + host + ": " + error.message()));
        else
          found->emplace(all.begin()->endpoint().address().to_string());
      });
  impl_->context.restart();
  while (!*found) {
    const std::uint64_t now_ns = clock_.boot_ns();
    if (now_ns >= deadline_ns) return late;
    impl_->context.run_one_for(std::chrono::nanoseconds(deadline_ns - now_ns));
  }
  return **found;
}

}  // namespace kvsyncfs::etcd
