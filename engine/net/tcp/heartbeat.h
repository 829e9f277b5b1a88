// When a connection should be asked for a sign of life, and when it has been silent for too long.
// Decides only. Thread: one, the loop.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

namespace kvsyncfs {

class Heartbeat {
 public:
  Heartbeat(std::uint64_t interval_ns, std::uint64_t silence_ns)
      : interval_ns_(interval_ns), silence_ns_(silence_ns) {}

  void start(std::uint64_t now_ns) {
    heard_ns_ = looked_ns_ = now_ns;
    asked_ns_ = 0;
    ask_at_ns_ = now_ns + interval_ns_;
  }
  void on_heard(std::uint64_t now_ns) { heard_ns_ = now_ns; }
  /// Answer to on_time() having asked. Returns the round trip; 0 if nothing was asked.
  std::uint64_t on_answer(std::uint64_t now_ns) {
    return asked_ns_ == 0 ? 0 : now_ns - std::exchange(asked_ns_, 0);
  }

  struct Verdict {
    bool is_silent = false;
    bool asks = false;  ///< the caller sends a ping
  };
  Verdict on_time(std::uint64_t now_ns) {
    // A loop that was held up itself has not read yet what came in meanwhile.
    if (now_ns - looked_ns_ > 3 * interval_ns_)
      heard_ns_ = std::max(heard_ns_, now_ns - std::min(now_ns, silence_ns_ / 2));
    looked_ns_ = now_ns;
    Verdict verdict;
    verdict.is_silent = now_ns - heard_ns_ >= silence_ns_;
    if (now_ns >= ask_at_ns_) {
      verdict.asks = asked_ns_ == 0;
      if (verdict.asks) asked_ns_ = now_ns;
      ask_at_ns_ = now_ns + interval_ns_;
    }
    return verdict;
  }
  std::uint64_t due_ns() const { return std::min(ask_at_ns_, heard_ns_ + silence_ns_); }

 private:
  const std::uint64_t interval_ns_, silence_ns_;
  std::uint64_t heard_ns_ = 0, looked_ns_ = 0, asked_ns_ = 0, ask_at_ns_ = 0;
};

}  // namespace kvsyncfs
