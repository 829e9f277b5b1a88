#include <sys/random.h>

#include <cerrno>
#include <cstdlib>

#include "engine/env/real.h"

namespace kvsyncfs {
namespace {

class RealRandom final : public Random {
 public:
  std::uint64_t next() override {
    std::uint64_t bits = 0;
    for (;;) {
      const ssize_t count = ::getrandom(&bits, sizeof bits, 0);  // up to 256 bytes never come short
      if (count == static_cast<ssize_t>(sizeof bits)) return bits;
      if (count < 0 && errno == EINTR) continue;
      std::abort();  // a kernel without getrandom; ids that may repeat would be worse
    }
  }
};

}  // namespace

std::unique_ptr<Random> make_real_random() { return std::make_unique<RealRandom>(); }

}  // namespace kvsyncfs
