#include "engine/env/progress_bar.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

namespace kvsyncfs {
namespace {

constexpr std::uint64_t kSecondNs = 1'000'000'000;
constexpr std::uint64_t kDrawEveryNs = kSecondNs / 10;
constexpr std::size_t kColumns = 30;

std::string time_left(std::uint64_t seconds) {
  if (seconds < 120) return fmt::format("{} s left", seconds);
  if (seconds < 7200) return fmt::format("{} min left", seconds / 60);
  return fmt::format("{} h {} min left", seconds / 3600, seconds / 60 % 60);
}

}  // namespace

std::string progress_line(std::string_view phase, std::uint64_t done, std::uint64_t total,
                          std::uint64_t elapsed_ns, std::size_t columns) {
  const double share =
      total == 0 ? 1.0 : static_cast<double>(std::min(done, total)) / static_cast<double>(total);
  const auto filled = static_cast<std::size_t>(share * static_cast<double>(columns));
  std::string line = fmt::format("{} [{}{}] {:3} %", phase, std::string(filled, '#'),
                                 std::string(columns - filled, ' '), static_cast<int>(share * 100));
  // An estimate from less than a second or a hundredth of the work would only jump about.
  if (share >= 0.01 && share < 1 && elapsed_ns >= kSecondNs) {
    const double left_ns = static_cast<double>(elapsed_ns) * (1 - share) / share;
    line += ", " + time_left(static_cast<std::uint64_t>(left_ns) / kSecondNs + 1);
  }
  return line;
}

ProgressBar::ProgressBar(Clock& clock, std::FILE* out, bool quiet)
    : clock_(clock), out_(out), active_(!quiet && ::isatty(::fileno(out)) == 1) {}

ProgressBar::~ProgressBar() { clear(); }

void ProgressBar::show(std::string_view phase, std::uint64_t done, std::uint64_t total) {
  if (!active_) return;
  const std::uint64_t now = clock_.boot_ns();
  if (phase != phase_) {
    phase_ = phase;
    phase_start_ns_ = now;
    drawn_ns_ = 0;
  }
  if (drawn_ns_ != 0 && now - drawn_ns_ < kDrawEveryNs && done < total) return;
  drawn_ns_ = now;
  const std::string line = progress_line(phase, done, total, now - phase_start_ns_, kColumns);
  fmt::print(out_, "\r{}\x1b[K", line);
  std::fflush(out_);
  visible_ = true;
}

void ProgressBar::clear() {
  if (!visible_) return;
  fmt::print(out_, "\r\x1b[K");
  std::fflush(out_);
  visible_ = false;
}

}  // namespace kvsyncfs
