#include "tests/sim/cluster/lock_history.h"

#include <fmt/format.h>

namespace kvsyncfs {
namespace {

std::string to_text(const LockHold& hold) {
  return fmt::format("{} lock of owner {} on n{} from {:.6f} to {:.6f}",
                     hold.is_exclusive ? "an exclusive" : "a shared", hold.owner, hold.node,
                     static_cast<double>(hold.begin_ns) / 1e9,
                     static_cast<double>(hold.end_ns) / 1e9);
}

}  // namespace

std::string check_locks(const std::vector<LockHold>& holds) {
  for (const LockHold& a : holds)
    for (const LockHold& b : holds)
      if (&a < &b && (a.is_exclusive || b.is_exclusive) && a.first <= b.last && b.first <= a.last &&
          a.begin_ns < b.end_ns && b.begin_ns < a.end_ns)
        return to_text(a) + " and " + to_text(b);
  return {};
}

}  // namespace kvsyncfs
