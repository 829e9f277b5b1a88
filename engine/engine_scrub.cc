// The scrub that runs by itself: what an operator's scrub does of this node's copies, a piece at a
// time, so slowly that a pass takes a good part of the period between two of them. It waits while
// users are at work, and goes on after a restart where it was.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "engine/cluster/etcd_access.h"
#include "engine/engine_admin_impl.h"

namespace kvsyncfs {

namespace {

constexpr std::uint64_t kSecondNs = 1'000'000'000;
constexpr std::uint64_t kStepBytes = 4u << 20;
constexpr std::size_t kStepBatches = 256;                           // of small ones
constexpr std::uint64_t kRateMin = 1u << 20, kRateMax = 64u << 20;  // bytes a second
constexpr std::uint64_t kBusyBytes = 16u << 20;                     // of users since the last look
constexpr int kPausesMax = 60;  // then it goes one step on all the same
constexpr std::uint64_t kMarkPeriodNs = 10 * kSecondNs;

}  // namespace

/// A store that was never scrubbed is young, or what made it young is its first mount with this.
void EngineImpl::Admin::load_scrub_mark() {
  SelfScrub& scrub = self_scrub_;
  scrub.is_known = true;
  const std::uint64_t tag = engine_.superblock_.volume_tag();
  const auto bytes = read_small_file(
      engine_.disk_, engine_.options_.store + "/" + std::string(kScrubMarkFile), kScrubMarkSize);
  const auto mark = bytes ? decode_scrub_mark(*bytes) : Result<ScrubMark>(bytes.error());
  std::lock_guard lock(scrub_mutex_);
  if (mark && mark->volume_tag == tag) {
    scrub.mark = *mark;
    scrub.is_running = mark->segment != kNoSegment;
    return;
  }
  scrub.mark = {tag, kNoSegment, 0, engine_.clock_.now().seconds, 0, 0};
  scrub.is_changed = true;
}

/// Losing it costs only that a pass begins anew.
Status EngineImpl::Admin::store_scrub_mark() {
  ScrubMark mark;
  {
    std::lock_guard lock(scrub_mutex_);
    if (!self_scrub_.is_changed) return {};
    self_scrub_.is_changed = false;
    mark = self_scrub_.mark;
  }
  const std::string folder = engine_.options_.store + "/";
  const std::string next = folder + std::string(kNextScrubMarkFile);
  const std::string bytes = encode(mark);
  {
    KVSYNCFS_ASSIGN(const auto file, engine_.disk_.open(next, OpenMode::kCreateOrOpen));
    KVSYNCFS_TRY(file->truncate(0));
    KVSYNCFS_TRY(file->write_at(0, as_bytes(bytes)));
    KVSYNCFS_TRY(file->sync());
  }
  return engine_.disk_.rename(next, folder + std::string(kScrubMarkFile));
}

/// A pass is under way, or is due now.
bool EngineImpl::Admin::begin_scrub_pass() {
  SelfScrub& scrub = self_scrub_;
  const auto period = static_cast<std::int64_t>(engine_.options_.scrub_period_ns / kSecondNs);
  const std::int64_t now = engine_.clock_.now().seconds;
  std::lock_guard lock(scrub_mutex_);
  if (scrub.is_running) return true;
  if (scrub.mark.begun_seconds > now) {  // the clock was set back
    scrub.mark.begun_seconds = now;
    scrub.is_changed = true;
  }
  if (now - scrub.mark.begun_seconds < period) return false;
  scrub.is_running = true;
  scrub.mark.begun_seconds = now;
  scrub.mark.bad_now = 0;
  scrub.told.clear();
  return true;
}

/// Users come first, but not for ever.
bool EngineImpl::Admin::scrub_has_to_wait() {
  const std::uint64_t bytes = engine_.counts_.read_bytes + engine_.counts_.written_bytes;
  const std::uint64_t moved = bytes - std::exchange(self_scrub_.user_bytes, bytes);
  const bool is_busy =
      moved > kBusyBytes || engine_.dirty_bytes_ > engine_.options_.write_buffer_bytes / 4;
  if (is_busy && ++self_scrub_.pauses <= kPausesMax) return true;
  self_scrub_.pauses = 0;
  return false;
}

void EngineImpl::Admin::tell_scrubbed(const ScrubStep& step) {
  for (const BadCopy& copy : step.bad) {
    std::unique_lock lock(scrub_mutex_);
    (copy.is_mended ? self_scrub_.mended_pages : self_scrub_.bad_pages) +=
        std::max<std::uint64_t>(copy.count, 1);  // 0: nobody knows how many
    if (!self_scrub_.told.insert(copy.segment).second) continue;
    lock.unlock();
    engine_.options_.warn(fmt::format(
        "scrub: segment {} from page {} on: {}; {}", copy.segment.value, copy.page, copy.why,
        copy.is_mended ? "mended from another copy"
                       : "no good copy was found, kvsyncfs-ctl scrub names the files"));
  }
}

void EngineImpl::Admin::note_scrubbed(const ScrubStep& step) {
  const auto is_left = [](const BadCopy& copy) { return !copy.is_mended; };
  std::lock_guard lock(scrub_mutex_);
  SelfScrub& scrub = self_scrub_;
  scrub.done_bytes = step.done_bytes;
  scrub.total_bytes = step.total_bytes;
  scrub.checked_bytes += step.checked_bytes;
  scrub.mark.bad_now +=
      static_cast<std::uint32_t>(std::count_if(step.bad.begin(), step.bad.end(), is_left));
  scrub.mark.segment = step.next.segment;
  scrub.mark.page = step.next.page;
  scrub.is_changed = true;
  if (step.next.segment != kNoSegment) return;
  scrub.is_running = false;
  scrub.mark.bad_before = std::exchange(scrub.mark.bad_now, 0);
  scrub.marked_ns = 0;
}

std::uint64_t EngineImpl::Admin::scrub_by_itself() {
  SelfScrub& scrub = self_scrub_;
  const std::uint64_t now_ns = engine_.clock_.boot_ns();
  const EngineOptions& options = engine_.options_;
  if (options.scrub_period_ns == 0 || options.read_only || engine_.closed_ || engine_.failed_ ||
      !engine_.serving_)
    return now_ns + kSecondNs;
  if (now_ns < scrub.due_ns) return scrub.due_ns;
  if (!scrub.is_known) load_scrub_mark();
  scrub.due_ns = now_ns + kSecondNs;
  if (begin_scrub_pass() && !scrub_has_to_wait()) {
    const auto step = scrub_some({scrub.mark.segment, scrub.mark.page}, kStepBatches, kStepBytes);
    if (!step) {
      const std::string line = "scrub: " + describe(step.error());
      if (std::exchange(scrub.told_error, line) != line) options.warn(line);
      return scrub.due_ns = now_ns + 60 * kSecondNs;
    }
    scrub.told_error.clear();
    tell_scrubbed(*step);
    note_scrubbed(*step);
    const std::uint64_t rate = std::clamp(
        step->total_bytes / std::max<std::uint64_t>(options.scrub_period_ns / kSecondNs, 1),
        kRateMin, kRateMax);
    scrub.due_ns = now_ns + step->checked_bytes * kSecondNs / rate;
  }
  if (now_ns - scrub.marked_ns >= kMarkPeriodNs || scrub.marked_ns == 0) {
    scrub.marked_ns = now_ns;
    static_cast<void>(store_scrub_mark());  // told where the disk fails otherwise
  }
  return scrub.due_ns;
}

void EngineImpl::Admin::count_scrub(EngineCounters& counters) const {
  std::lock_guard lock(scrub_mutex_);
  counters.scrubbed_bytes = self_scrub_.checked_bytes;
  counters.scrub_done_bytes = self_scrub_.done_bytes;
  counters.scrub_total_bytes = self_scrub_.total_bytes;
  counters.scrub_mended_pages = self_scrub_.mended_pages;
  counters.scrub_bad_pages = self_scrub_.bad_pages;
}

std::string EngineImpl::Admin::scrub_trouble() const {
  std::lock_guard lock(scrub_mutex_);
  const std::uint32_t bad = std::max(self_scrub_.mark.bad_now, self_scrub_.mark.bad_before);
  if (bad == 0) return {};
  return fmt::format(
      "{} places in copies of this node are damaged, and no other copy is good: "
      "kvsyncfs-ctl scrub names the files",
      bad);
}

/// Steps of one pass that follow one another; whoever ends a pass knows what is bad now.
void EngineImpl::Admin::note_asked(ScrubPlace from, const ScrubStep& step) {
  const auto is_left = [](const BadCopy& copy) { return !copy.is_mended; };
  std::lock_guard lock(scrub_mutex_);
  AskedScrub& asked = asked_scrub_;
  const bool is_first = from.segment == kNoSegment;
  if (!is_first && (from.segment != asked.next.segment || from.page != asked.next.page)) return;
  if (is_first) asked.bad = 0;
  asked.bad += static_cast<std::uint32_t>(std::count_if(step.bad.begin(), step.bad.end(), is_left));
  asked.next = step.next;
  if (step.next.segment != kNoSegment) return;
  self_scrub_.mark.bad_before = asked.bad;
  self_scrub_.mark.bad_now = 0;
  self_scrub_.is_changed = true;
}

}  // namespace kvsyncfs
