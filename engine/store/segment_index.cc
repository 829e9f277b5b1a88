#include "engine/store/segment_index.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace kvsyncfs {
namespace {

constexpr std::string_view kSuffix = ".seg";
constexpr std::size_t kIdDigits = 16;

}  // namespace

std::string segment_path(const std::string& directory, SegmentId id) {
  return fmt::format("{}/{:016x}{}", directory, id.value, kSuffix);
}

SegmentId parse_segment_name(const std::string& name) {
  if (name.size() != kIdDigits + kSuffix.size() || !name.ends_with(kSuffix)) return kNoSegment;
  SegmentId id;
  const char* end = name.data() + kIdDigits;
  const auto parsed = std::from_chars(name.data(), end, id.value, 16);
  const bool ours = parsed.ec == std::errc{} && parsed.ptr == end &&
                    std::none_of(name.data(), end, [](char c) { return c >= 'A' && c <= 'F'; });
  return ours ? id : kNoSegment;
}

SegmentIndex::SegmentIndex(Disk& disk, std::string directory, std::uint64_t volume_tag,
                           std::size_t open_max, OpenMode mode, StoreCounts& counts)
    : disk_(disk),
      directory_(std::move(directory)),
      volume_tag_(volume_tag),
      open_max_(std::max<std::size_t>(open_max, 1)),
      mode_(mode),
      counts_(counts) {}

void SegmentIndex::add(SegmentId id, std::uint64_t file_bytes) {
  std::lock_guard lock(mutex_);
  entries_[id].info.file_bytes = file_bytes;
}

SegmentPtr SegmentIndex::add_open(SegmentId id, std::uint64_t file_bytes,
                                  std::unique_ptr<File> file) {
  auto segment = std::make_shared<Segment>(volume_tag_, id, segment_path(directory_, id), counts_);
  segment->start(std::move(file), static_cast<std::uint32_t>(file_bytes / kPageSize));
  std::lock_guard lock(mutex_);
  Entry& entry = entries_[id];
  entry.info.file_bytes = file_bytes;
  entry.any = segment;
  return segment;
}

void SegmentIndex::release(const SegmentPtr& segment) {
  std::vector<SegmentPtr> evicted;  // closes after the lock
  std::lock_guard lock(mutex_);
  segment->set_sealed();
  const auto found = entries_.find(segment->id());
  if (found != entries_.end()) cache(found->second, segment, evicted);
}

void SegmentIndex::cache(Entry& entry, const SegmentPtr& segment,
                         std::vector<SegmentPtr>& evicted) {
  if (entry.cached) {
    lru_.splice(lru_.begin(), lru_, entry.place);
    return;
  }
  entry.cached = segment;
  lru_.push_front(segment->id());
  entry.place = lru_.begin();
  if (lru_.size() <= open_max_) return;
  Entry& last = entries_.at(lru_.back());
  lru_.pop_back();
  evicted.push_back(std::move(last.cached));
  last.cached = nullptr;
}

Result<SegmentPtr> SegmentIndex::pin(SegmentId id) {
  std::vector<SegmentPtr> evicted;
  SegmentPtr segment;
  {
    std::lock_guard lock(mutex_);
    const auto found = entries_.find(id);
    if (found == entries_.end()) return Error(Code::kNotFound, fmt::format("segment {}", id.value));
    Entry& entry = found->second;
    segment = entry.any.lock();
    if (!segment) {
      segment = std::make_shared<Segment>(volume_tag_, id, segment_path(directory_, id), counts_);
      entry.any = segment;
    }
    // One that is being written is kept by its stream, not by the cache.
    if (!segment->is_written()) cache(entry, segment, evicted);
  }
  evicted.clear();
  KVSYNCFS_TRY(segment->load(disk_, mode_));
  return segment;
}

std::vector<std::pair<SegmentId, SegmentIndex::Info>> SegmentIndex::list() const {
  std::lock_guard lock(mutex_);
  std::vector<std::pair<SegmentId, Info>> all;
  for (const auto& [id, entry] : entries_) all.emplace_back(id, entry.info);
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  return all;
}

bool SegmentIndex::info(SegmentId id, Info& out) const {
  std::lock_guard lock(mutex_);
  const auto found = entries_.find(id);
  if (found == entries_.end()) return false;
  out = found->second.info;
  return true;
}

void SegmentIndex::set_info(SegmentId id, const Info& info) {
  std::lock_guard lock(mutex_);
  const auto found = entries_.find(id);
  if (found != entries_.end()) found->second.info = info;
}

SegmentIndex::Taken SegmentIndex::take(SegmentId id) {
  SegmentPtr cached;
  std::lock_guard lock(mutex_);
  const auto found = entries_.find(id);
  if (found == entries_.end()) return {};
  Entry& entry = found->second;
  if (entry.cached) {
    lru_.erase(entry.place);
    cached = std::move(entry.cached);
  }
  // Pins are made under this lock only, so none can come once the count says that there is none.
  const bool unused = cached ? cached.use_count() == 1 : entry.any.expired();
  Taken taken{true, unused, entry.info.file_bytes};
  entries_.erase(found);
  return taken;
}

std::size_t SegmentIndex::size() const {
  std::lock_guard lock(mutex_);
  return entries_.size();
}

}  // namespace kvsyncfs
