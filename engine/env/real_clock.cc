#include <time.h>

#include <cassert>

#include "engine/env/real.h"

namespace kvsyncfs {
namespace {

timespec read_clock(clockid_t id) {
  timespec t{};
  [[maybe_unused]] const int result = ::clock_gettime(id, &t);
  assert(result == 0);  // fails only for a clock that the kernel does not have
  return t;
}

class RealClock final : public Clock {
 public:
  Timestamp now() override {
    const timespec t = read_clock(CLOCK_REALTIME);
    return {t.tv_sec, static_cast<std::uint32_t>(t.tv_nsec)};
  }

  std::uint64_t boot_ns() override {
    const timespec t = read_clock(CLOCK_BOOTTIME);
    return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000u +
           static_cast<std::uint64_t>(t.tv_nsec);
  }
};

}  // namespace

std::unique_ptr<Clock> make_real_clock() { return std::make_unique<RealClock>(); }

}  // namespace kvsyncfs
