#include "engine/snapshot_fetch.h"

#include <fmt/format.h>

#include "engine/format/peer_message.h"
#include "engine/sync/waiting_call.h"

namespace kvsyncfs {
namespace {

constexpr std::uint64_t kTellPeriodNs = 5'000'000'000;

}  // namespace

Result<FetchedCatalog> SnapshotFetch::from(NodeId peer, Position at_least) {
  KVSYNCFS_TRY(remove_catalog(disk_, into_.directory));
  Call call;
  call.kind = static_cast<std::uint16_t>(PeerRequest::kOpenSnapshot);
  call.head = encode(SnapshotWanted{at_least});
  call.deadline_ns = clock_.boot_ns() + timeout_ns_;
  WaitingCall opening(transport_, peer, std::move(call));
  const Result<Reply>& reply = opening.wait();
  if (!reply) return reply.error();
  KVSYNCFS_ASSIGN(const SnapshotOpened opened, decode_snapshot_opened(reply->head));
  if (opened.position < at_least)
    return Error(Code::kCorrupt, "the snapshot is older than what was asked for");

  FetchedCatalog fetched;
  fetched.batch = {opened.batch_index, opened.batch_revision, opened.batch_key};
  KVSYNCFS_ASSIGN(const auto builder, CatalogBuilder::make(disk_, into_));
  KVSYNCFS_TRY(fetch_records(peer, opened.snapshot, opened.records, *builder, fetched));
  KVSYNCFS_ASSIGN(fetched.position, builder->finish());
  if (fetched.position != opened.position)
    return Error(Code::kCorrupt, "the snapshot is of another position than the peer said");
  fetched.records = builder->records();
  return fetched;
}

Status SnapshotFetch::fetch_records(NodeId peer, std::uint64_t snapshot,
                                    std::uint64_t estimated_records, CatalogBuilder& builder,
                                    FetchedCatalog& fetched) {
  AlignedBuffer room(kSnapshotPieceMax);
  std::uint64_t told_ns = clock_.boot_ns();
  for (;;) {
    const RecordsWanted wanted{snapshot, builder.last_key()};
    Call call;
    call.kind = static_cast<std::uint16_t>(PeerRequest::kReadSnapshot);
    call.head = encode(wanted);
    call.reply_body = room.bytes();
    call.deadline_ns = clock_.boot_ns() + timeout_ns_;
    WaitingCall waiting(transport_, peer, std::move(call));
    const Result<Reply>& reply = waiting.wait();
    if (!reply) return reply.error();
    KVSYNCFS_ASSIGN(const SnapshotPiece piece, decode_snapshot_piece(reply->head));
    const Bytes bytes = Bytes(room.bytes()).first(reply->body_size);
    if (snapshot_checksum(wanted, bytes) != piece.checksum)
      return Error(Code::kCorrupt, "a piece of the snapshot has a bad checksum");
    if (bytes.empty()) return {};
    KVSYNCFS_TRY(builder.add({reinterpret_cast<const char*>(bytes.data()), bytes.size()}));
    fetched.bytes += bytes.size();
    if (clock_.boot_ns() - told_ns < kTellPeriodNs) continue;
    told_ns = clock_.boot_ns();
    tell_(fmt::format("{} of about {} records of the catalog are here", builder.records(),
                      estimated_records));
  }
}

}  // namespace kvsyncfs
