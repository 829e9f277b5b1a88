#include "engine/store/segment_writer.h"

#include <algorithm>

namespace kvsyncfs {
namespace {

/// So many files may wait for a sync before the writer syncs them, which bounds the open files.
constexpr std::size_t kUnsyncedSegmentsMax = 16;
/// So many segments in a row may lose a holder under one append.
constexpr int kLossesMax = 4;

}  // namespace

SegmentWriter::SegmentWriter(Stream stream, Disk& disk, const StoreOptions& options,
                             SegmentIndex& index, Space& space, Syncer& syncer, StoreCounts& counts)
    : stream_(stream),
      disk_(disk),
      options_(options),
      index_(index),
      space_(space),
      syncer_(syncer),
      counts_(counts),
      segment_pages_(static_cast<std::uint32_t>(options.segment_size_bytes / kPageSize)),
      builder_(options.volume_tag) {}

/// The first of those who wait writes for as many as fit into one batch.
Result<std::vector<Placed>> SegmentWriter::append(std::span<const Bytes> runs) {
  Waiting own{runs, {}, {}, false};
  std::unique_lock lock(queue_mutex_);
  queue_.push_back(&own);
  for (;;) {
    written_.wait(lock, [&] { return own.done || !is_led_; });
    if (own.done) break;
    is_led_ = true;
    const std::vector<Waiting*> group = take_group();
    lock.unlock();
    append_group(group);
    lock.lock();
    for (Waiting* waiting : group) waiting->done = true;
    is_led_ = false;
    written_.notify_all();
  }
  if (!own.status) return own.status.error();
  return std::move(own.placed);
}

std::vector<SegmentWriter::Waiting*> SegmentWriter::take_group() {
  std::vector<Waiting*> group;
  std::uint64_t room = kPagesPerBatchMax * kPageSize;
  while (!queue_.empty()) {
    std::uint64_t size = 0;
    for (const Bytes run : queue_.front()->runs) size += round_up(run.size(), kPageSize);
    if (!group.empty() && size > room) break;
    room -= std::min(room, size);
    group.push_back(queue_.front());
    queue_.pop_front();
  }
  return group;
}

/// Whole pages of all first, then the rest, which would misalign them.
void SegmentWriter::append_group(std::span<Waiting* const> group) {
  std::lock_guard lock(mutex_);
  if (group.size() == 1) {
    auto placed = append_runs(group[0]->runs);
    if (placed)
      group[0]->placed = std::move(*placed);
    else
      group[0]->status = placed.error();
    return;
  }
  struct Source {
    Waiting* waiting;
    std::size_t run;
  };
  std::vector<Source> sources;
  for (Waiting* waiting : group)
    for (std::size_t i = 0; i < waiting->runs.size(); ++i) sources.push_back({waiting, i});
  std::stable_partition(sources.begin(), sources.end(), [](const Source& s) {
    return s.waiting->runs[s.run].size() % kPageSize == 0;
  });
  std::vector<Bytes> runs;
  for (const Source& s : sources) runs.push_back(s.waiting->runs[s.run]);
  const auto placed = append_runs(runs);
  for (Waiting* waiting : group)
    if (!placed) waiting->status = placed.error();
  if (!placed) return;
  for (const Placed& p : *placed) {
    Placed& own = sources[p.run].waiting->placed.emplace_back(p);
    own.run = sources[p.run].run;
  }
}

Result<std::vector<Placed>> SegmentWriter::append_runs(std::span<const Bytes> runs) {
  std::vector<Placed> placed;
  int losses = 0;
  for (RunCursor cursor(runs); !cursor.done();) {
    KVSYNCFS_TRY(prepare());
    const RunCursor before = cursor;
    const std::size_t placed_before = placed.size();
    const std::uint32_t page_count_max = std::min(kPagesPerBatchMax, pages_left() - 1);
    builder_.build(cursor, segment_->id(), next_page_, segment_->synced_pages(), page_count_max,
                   placed);
    const Status written = write_batch();
    if (written) continue;
    if (written.error().code != Code::kUnreachable || ++losses == kLossesMax)
      return written.error();
    KVSYNCFS_TRY(seal());
    cursor = before;
    placed.resize(placed_before);
  }
  return placed;
}

Status SegmentWriter::finish(SegmentId id) {
  std::lock_guard lock(mutex_);
  return segment_ && segment_->id() == id ? seal() : Status{};
}

SegmentId SegmentWriter::let_go() {
  std::lock_guard lock(mutex_);
  if (!segment_) return kNoSegment;
  const SegmentId id = segment_->id();
  index_.release(segment_);
  segment_.reset();
  ending_ = false;
  space_.set_left(stream_, 0);
  return id;
}

Status SegmentWriter::write_batch() {
  StoreOptions::Shipment shipment;
  if (options_.ship) shipment = options_.ship(segment_->id(), next_page_, builder_.pieces());
  // A failed write is overwritten by the next one at the same place.
  Status written = segment_->file().write_at(next_page_ * kPageSize, builder_.pieces());
  syncer_.wrote(segment_);
  if (shipment) {
    if (written) written = syncer_.sync();
    const Status shipped = shipment();  // in any case: it borrows the pieces
    if (written) written = shipped;
  }
  KVSYNCFS_TRY(written);
  segment_->add_batch(next_page_, builder_.checksums());
  const auto pages = static_cast<std::uint32_t>(builder_.checksums().size() + 1);
  next_page_ += pages;
  space_.set_left(stream_, pages_left());
  counts_.written_bytes.fetch_add(pages * kPageSize, std::memory_order_relaxed);
  auto& data = stream_ == Stream::kUser ? counts_.appended_bytes : counts_.moved_bytes;
  data.fetch_add(builder_.data_bytes(), std::memory_order_relaxed);
  return {};
}

Status SegmentWriter::prepare() {
  if (pages_left() >= 2 && !ending_) return {};
  if (segment_) KVSYNCFS_TRY(seal());
  return open_next();
}

Status SegmentWriter::seal() {
  const std::uint64_t length = next_page_ * kPageSize;
  ending_ = true;
  const Status sealed = options_.seal_segment(segment_->id(), length);
  // One whose answer did not come may have sealed it, and without live bytes it was deleted then.
  const bool is_gone = !sealed && sealed.error().code == Code::kNotFound;
  if (!sealed && !is_gone) return sealed;
  SegmentIndex::Info info{options_.segment_size_bytes, length};
  // If it cannot be cut, it stays as long as it is; nothing is lost but a page.
  if (!is_gone && segment_->file().truncate(length)) {
    space_.resize_segment(info.file_bytes, length);
    info.file_bytes = length;
  }
  if (!is_gone) index_.set_info(segment_->id(), info);
  index_.release(segment_);
  segment_.reset();
  ending_ = false;
  space_.set_left(stream_, 0);
  return syncer_.pending_count() < kUnsyncedSegmentsMax ? Status{} : syncer_.sync();
}

Status SegmentWriter::open_next() {
  KVSYNCFS_ASSIGN(const std::string spare, space_.take_spare(stream_));
  auto id = options_.open_segment();
  if (!id) {
    space_.return_spare(spare);
    return id.error();
  }
  // Opened before it has its name: a failure leaves a spare, and an id without a file.
  auto file = disk_.open(spare, OpenMode::kReadWrite, true);
  if (file) {
    if (auto renamed = disk_.rename(spare, segment_path(options_.directory, *id)); !renamed)
      file = renamed.error();
  }
  if (!file) {
    space_.return_spare(spare);
    return file.error();
  }
  syncer_.changed_directory();
  segment_ = index_.add_open(*id, options_.segment_size_bytes, std::move(*file));
  next_page_ = 0;
  space_.set_left(stream_, pages_left());
  return {};
}

}  // namespace kvsyncfs
