// The daemon's counters for Prometheus, by HTTP at one address (mount option `metrics`). Costs the
// data path nothing: the library's threads read counters when somebody asks.
//
// Whoever reaches the address may ask, there is nothing secret in the answer but paths. Thread:
// one; it listens in threads of its own.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "engine/base/error.h"

namespace kvsyncfs {

class MetricsServer {
 public:
  /// The JSON document of kvsyncfs-stat(8); called from any thread, one at a time.
  using Document = std::function<std::string()>;

  /// Listens at "address:port", numeric; port 0 is any. Until serve() there is nothing to be had.
  /// Errors, all naming the option: kBusy (somebody listens there), kInvalid, kAccess, kIo.
  static Result<std::unique_ptr<MetricsServer>> listen(const std::string& address);
  virtual ~MetricsServer() = default;

  /// Answers /metrics with what `document` says; empty: with nothing any more, and the call waits
  /// for an answer that is being made.
  virtual void serve(Document document) = 0;
  virtual std::uint16_t port() const = 0;
};

}  // namespace kvsyncfs
