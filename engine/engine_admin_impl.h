// The maker of EngineAdmin: a part of EngineImpl, over several engine_admin*.cc.
#pragma once

#include <map>
#include <mutex>
#include <set>
#include <string>

#include "engine/engine_admin.h"
#include "engine/engine_impl.h"
#include "engine/format/scrub_mark.h"
#include "engine/sync/copy_keeper.h"

namespace kvsyncfs {

class EngineImpl::Admin final : public EngineAdmin {
 public:
  explicit Admin(EngineImpl& engine) : engine_(engine) {}

  // engine_admin.cc
  Result<FileLocation> locate(std::string_view path, std::uint64_t offset,
                              std::size_t count_max) override;
  Result<WarmStep> warm(std::string_view path, std::uint64_t offset) override;

  // engine_admin_copies.cc
  Result<VerifyStep> verify(std::string_view path, std::uint64_t offset) override;
  Result<ScrubStep> scrub(ScrubPlace from) override;

  // engine_admin_heal.cc
  Result<HealReport> heal() override;
  Status set_heal_rate(std::uint64_t bytes_per_second) override;
  Status heal_now() override;
  Result<SegmentShare> last_copies(NodeId node) override;
  Result<LostFiles> lost() override;

  // engine_scrub.cc
  /// One step of the scrub that runs by itself; returns when the next is due. Thread: one at a
  /// time.
  std::uint64_t scrub_by_itself();
  void count_scrub(EngineCounters& counters) const;
  std::string scrub_trouble() const;  ///< one line; empty: none

  // engine_holds.cc
  Result<SavedCatalog> save_catalog(std::string_view name, std::uint64_t seconds) override;
  Result<SavedPiece> saved_records(std::uint64_t snapshot, std::string_view after) override;
  Status release_hold(std::string_view name) override;
  Result<std::vector<HoldView>> holds() override;

 private:
  struct SelfScrub {
    ScrubMark mark;
    bool is_known = false;    // the mark is that of the store
    bool is_running = false;  // a pass is not over
    bool is_changed = false;  // the mark is not on the disk
    std::uint64_t due_ns = 0, marked_ns = 0;
    std::uint64_t user_bytes = 0;  // that had come and gone at the last look
    int pauses = 0;                // one after the other
    std::set<SegmentId> told;      // of this pass
    std::string told_error;
    std::uint64_t done_bytes = 0, total_bytes = 0, checked_bytes = 0, mended_pages = 0,
                  bad_pages = 0;
  };
  struct AskedScrub {
    ScrubPlace next;
    std::uint32_t bad = 0;
  };
  void load_scrub_mark();
  Status store_scrub_mark();
  bool begin_scrub_pass();
  bool scrub_has_to_wait();
  void tell_scrubbed(const ScrubStep& step);
  void note_scrubbed(const ScrubStep& step);
  void note_asked(ScrubPlace from, const ScrubStep& step);
  /// Up to so many batches or bytes. What could not be mended has no paths yet.
  Result<ScrubStep> scrub_some(ScrubPlace from, std::size_t batches_max, std::uint64_t bytes_max);

  /// A regular file. Errors: as locate().
  Result<Entry> find_file(std::string_view path);
  Result<LocatedExtent> place_of(const Extent& extent) const;
  Result<std::vector<LocatedExtent>> places_of(InodeId inode, std::uint64_t offset,
                                               std::size_t count_max) const;
  std::vector<NodeView> views_of(const std::set<NodeId>& nodes);
  /// Asks etcd for names that are not known yet. One that cannot be learned now stays empty.
  void learn_names(const std::set<NodeId>& nodes);

  Result<std::uint64_t> warm_extent(const LocatedExtent& extent, std::uint64_t from,
                                    std::uint64_t length_max);

  NodeId self() const;
  CopyKeeper keeper() const;
  /// Whether a step that began then has lasted long enough, or the engine closes.
  bool is_over(std::uint64_t begun_ns) const;
  static void note_bad(BadCopy copy, std::vector<BadCopy>& bad);
  /// Reads copies of the batch that has the page and tells what is bad of them, after mending.
  /// Returns the batch; where nobody has it whole, what is up to the next one that anybody knows
  /// of, with a count of 0 where there is none.
  PageRange look_after(SegmentId segment, std::uint64_t page, const std::vector<NodeId>& asked,
                       const std::vector<NodeId>& holders, std::vector<BadCopy>& bad,
                       std::set<NodeId>& unchecked);
  Result<std::vector<std::string>> paths_at(SegmentId segment, PageRange pages) const;
  /// Whether the node holds the segment no more: it was removed, or moved away.
  Result<bool> is_gone(const BadCopy& copy) const;
  /// A copy whose file went while it was looked at was no bad one.
  Status drop_gone(std::vector<BadCopy>& bad) const;
  /// Of what no copy could mend: who has to be told. Slow.
  Status name_files(std::vector<BadCopy>& bad) const;

  bool is_lost(SegmentId id, const SegmentRecord& record,
               const std::map<NodeId, SessionRecord>& sessions) const;
  OrdersById orders() const;
  static void count_copies(const SegmentRecord& record, std::uint64_t bytes,
                           const std::map<NodeId, SessionRecord>& sessions, std::size_t replicas,
                           HealReport& report);

  EngineImpl& engine_;
  mutable std::mutex scrub_mutex_;  // a leaf; guards what others see of the next two
  SelfScrub self_scrub_;
  AskedScrub asked_scrub_;
  std::mutex names_mutex_;  // held over a call of etcd
  std::map<NodeId, std::string> names_;
  std::mutex save_mutex_;  // one catalog is saved at a time; held over a commit
};

}  // namespace kvsyncfs
