// Looks up host names with a deadline. A look-up that takes longer goes on behind it; its end is
// waited for only when the Resolver goes. Numeric addresses need none. Thread: any.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "engine/base/error.h"
#include "engine/env/clock.h"

namespace kvsyncfs::etcd {

class Resolver {
 public:
  explicit Resolver(Clock& clock);
  ~Resolver();

  /// A numeric address of the host. Errors: kTimeout, kIo (no such host).
  Result<std::string> resolve(const std::string& host, std::uint64_t deadline_ns);

 private:
  struct Impl;
  Clock& clock_;
  std::unique_ptr<Impl> impl_;
};

}  // namespace kvsyncfs::etcd
