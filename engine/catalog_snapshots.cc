#include "engine/catalog_snapshots.h"

#include <fmt/format.h>

#include <utility>

#include "engine/base/checksum.h"
#include "engine/format/peer_message.h"

namespace kvsyncfs {
namespace {

constexpr std::uint64_t kIdleNs = 60'000'000'000;
constexpr NodeId kOperator{0};

}  // namespace

Result<Answer> CatalogSnapshots::answer(const Incoming& request) {
  if (static_cast<PeerRequest>(request.kind) == PeerRequest::kOpenSnapshot) return open(request);
  return read(request);
}

/// Taken while the log is frozen, so that the position and the last batch fit the records.
Result<Answer> CatalogSnapshots::open(const Incoming& request) {
  KVSYNCFS_ASSIGN(const SnapshotWanted wanted, decode_snapshot_wanted(request.head));
  Result<std::unique_ptr<CatalogSnapshot>> taken = Code::kBusy;
  SnapshotOpened opened;
  KVSYNCFS_TRY(log_.freeze_at_batch([&](Position, const AppliedBatch& last) {
    taken = catalog_.snapshot();
    opened.batch_index = last.index;
    opened.batch_revision = last.revision;
    opened.batch_key = last.key;
  }));
  KVSYNCFS_ASSIGN(std::shared_ptr<const CatalogSnapshot> snapshot, std::move(taken));
  opened.position = snapshot->position();
  opened.records = snapshot->estimated_records();
  if (opened.position < wanted.at_least)
    return Error(Code::kBusy, fmt::format("this node is at position {} of the log, not at {} yet",
                                          opened.position.value, wanted.at_least.value));
  std::lock_guard lock(mutex_);
  opened.snapshot = give_locked(request.peer, std::move(snapshot));
  return Answer{encode(opened), {}};
}

std::uint64_t CatalogSnapshots::give_locked(NodeId peer,
                                            std::shared_ptr<const CatalogSnapshot> snapshot) {
  given_[peer] = {++last_id_, std::move(snapshot), clock_.boot_ns()};
  return last_id_;
}

Result<Answer> CatalogSnapshots::read(const Incoming& request) {
  KVSYNCFS_ASSIGN(const RecordsWanted wanted, decode_records_wanted(request.head));
  KVSYNCFS_ASSIGN(std::string records, records_of(request.peer, wanted.snapshot, wanted.after));
  const auto piece = std::make_shared<const std::string>(std::move(records));
  Answer answer;
  answer.head = encode(SnapshotPiece{snapshot_checksum(wanted, as_bytes(*piece))});
  answer.body = {as_bytes(*piece), piece};
  return answer;
}

Result<std::string> CatalogSnapshots::records_of(NodeId peer, std::uint64_t id,
                                                 std::string_view after) {
  std::shared_ptr<const CatalogSnapshot> snapshot;
  {
    std::lock_guard lock(mutex_);
    const auto given = given_.find(peer);
    if (given == given_.end() || given->second.id != id)
      return Error(Code::kStale, "the snapshot is not there any more");
    given->second.used_ns = clock_.boot_ns();
    snapshot = given->second.snapshot;
  }
  KVSYNCFS_ASSIGN(std::string records, snapshot->records_after(after, kSnapshotPieceAim));
  if (records.size() > kSnapshotPieceMax)
    return Error(Code::kTooBig, "a record of the catalog is larger than a piece of a snapshot");
  return records;
}

void CatalogSnapshots::expect(const std::string& name) {
  std::lock_guard lock(mutex_);
  expected_name_ = name;
  expected_ = Error(Code::kStale, "no snapshot was taken");
}

void CatalogSnapshots::hold_applied(const std::string& name) {
  {
    std::lock_guard lock(mutex_);
    if (expected_name_ != name) return;
    expected_name_.clear();
  }
  auto taken = catalog_.snapshot();
  std::lock_guard lock(mutex_);
  if (!taken) {
    expected_ = taken.error();
    return;
  }
  const std::shared_ptr<const CatalogSnapshot> snapshot = std::move(*taken);
  expected_ = Expected{give_locked(kOperator, snapshot), snapshot->position(),
                       snapshot->estimated_records()};
}

Result<CatalogSnapshots::Expected> CatalogSnapshots::expected() {
  std::lock_guard lock(mutex_);
  expected_name_.clear();
  return expected_;
}

Result<std::string> CatalogSnapshots::records(std::uint64_t id, std::string_view after) {
  return records_of(kOperator, id, after);
}

void CatalogSnapshots::drop_idle() {
  std::lock_guard lock(mutex_);
  const std::uint64_t now_ns = clock_.boot_ns();
  std::erase_if(given_, [&](const auto& each) { return now_ns - each.second.used_ns > kIdleNs; });
}

}  // namespace kvsyncfs
