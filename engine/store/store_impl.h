// The maker of SegmentStore: wires index, space, syncer and one writer per stream.
// Thread: as SegmentStore says.
#pragma once

#include <memory>
#include <string>

#include "engine/store/replica_writer.h"
#include "engine/store/segment_index.h"
#include "engine/store/segment_store.h"
#include "engine/store/segment_writer.h"
#include "engine/store/space.h"
#include "engine/store/syncer.h"

namespace kvsyncfs {

class SegmentStoreImpl final : public SegmentStore {
 public:
  SegmentStoreImpl(Disk& disk, StoreOptions options);

  /// Takes stock of the folder; once.
  Status scan();

  Status adopt(std::span<const KnownSegment> known) override;
  Status reserve(std::uint64_t bytes) override;
  void unreserve(std::uint64_t bytes) override { space_.unreserve(bytes); }
  Result<std::vector<Placed>> append(Stream stream, std::span<const Bytes> runs) override;
  Status sync() override { return syncer_.sync(); }
  Status read(SegmentId id, std::uint64_t offset, MutableBytes out) override;
  Result<std::size_t> load_pages(SegmentId id, std::uint64_t page, MutableBytes out) override;
  Status remove(SegmentId id) override;
  Result<std::vector<PageRange>> scrub(
      SegmentId id, Scrub what, const std::function<void(std::uint64_t bytes)>& progress) override;
  std::optional<SegmentFile> file(SegmentId id) const override;
  Status write_replica(SegmentId id, std::uint64_t page, Bytes batch) override;
  Status seal_replica(SegmentId id, std::uint64_t length) override;
  Result<AlignedBuffer> read_batch(SegmentId id, std::uint64_t page) override;
  Result<PageRange> batch_of(SegmentId id, std::uint64_t page) override;
  Result<std::uint64_t> next_batch(SegmentId id, std::uint64_t page) override;
  Status mend_batch(SegmentId id, std::uint64_t page, Bytes batch) override;
  Status make_anew(SegmentId id, std::uint64_t length) override;
  Status check_file(SegmentId id) const override;
  Result<std::uint64_t> batch_end(SegmentId id, std::uint64_t length) override;
  Status finish(SegmentId id) override;
  std::vector<SegmentId> let_go() override;
  std::uint64_t free_bytes() const override { return space_.free_bytes(); }
  StoreCounters counters() const override;

 private:
  Status adopt_sealed(const KnownSegment& known);
  Status adopt_open(const KnownSegment& known);
  /// Cuts a file that is longer than its segment.
  Status cut(SegmentId id, File& file, std::uint64_t length);

  Disk& disk_;
  const StoreOptions options_;
  StoreCounts counts_;
  Space space_;
  SegmentIndex index_;
  Syncer syncer_;
  SegmentWriter user_, cleaner_;
  ReplicaWriter replicas_;
};

}  // namespace kvsyncfs
