#include "engine/sync/copy_keeper.h"

#include <algorithm>
#include <memory>

#include "engine/format/peer_message.h"
#include "engine/sync/waiting_call.h"

namespace kvsyncfs {

bool CheckedCopy::is_bad() const {
  if (status) return false;
  const Code code = status.error().code;
  return code == Code::kCorrupt || code == Code::kNotFound || code == Code::kIo;
}

Call CopyKeeper::call_to(std::uint16_t kind, SegmentId segment, std::uint64_t page) const {
  Call call;
  call.kind = kind;
  call.head = encode(BatchPlace{segment, page});
  call.deadline_ns = clock_.boot_ns() + timeout_ns_;
  return call;
}

Result<PageRange> CopyKeeper::check_copy(NodeId holder, SegmentId segment, std::uint64_t page) {
  if (holder == self_) {
    KVSYNCFS_TRY(store_.check_file(segment));
    KVSYNCFS_ASSIGN(const PageRange batch, store_.batch_of(segment, page));
    KVSYNCFS_TRY(store_.read_batch(segment, batch.page));
    return batch;
  }
  if (transport_ == nullptr) return Code::kUnreachable;
  const auto kind = static_cast<std::uint16_t>(PeerRequest::kCheckBatch);
  WaitingCall waiting(*transport_, holder, call_to(kind, segment, page));
  const Result<Reply>& reply = waiting.wait();
  if (!reply) return reply.error();
  KVSYNCFS_ASSIGN(const BatchSpan span, decode_batch_span(reply->head));
  if (page < span.page || page - span.page >= span.count)
    return Error(Code::kDisconnected, "it answers of another page");
  return PageRange{span.page, span.count};
}

CheckedBatch CopyKeeper::check(SegmentId segment, std::uint64_t page,
                               std::span<const NodeId> holders) {
  CheckedBatch checked;
  for (const NodeId holder : holders) {
    const auto batch = check_copy(holder, segment, page);
    if (batch) checked.batch = *batch;
    checked.copies.push_back({holder, batch ? Status{} : Status(batch.error())});
  }
  return checked;
}

Result<std::uint64_t> CopyKeeper::next_batch_of(NodeId holder, SegmentId segment,
                                                std::uint64_t page) {
  if (holder == self_) return store_.next_batch(segment, page);
  if (transport_ == nullptr) return Code::kUnreachable;
  const auto kind = static_cast<std::uint16_t>(PeerRequest::kNextBatch);
  WaitingCall waiting(*transport_, holder, call_to(kind, segment, page));
  const Result<Reply>& reply = waiting.wait();
  if (!reply) return reply.error();
  KVSYNCFS_ASSIGN(const BatchSpan span, decode_batch_span(reply->head));
  if (span.page < page) return Error(Code::kDisconnected, "it answers of another page");
  return span.page;
}

std::optional<std::uint64_t> CopyKeeper::next_batch(SegmentId segment, std::uint64_t page,
                                                    std::span<const NodeId> holders) {
  std::optional<std::uint64_t> first;
  for (const NodeId holder : holders) {
    const auto next = next_batch_of(holder, segment, page);
    if (next && (!first || *next < *first)) first = *next;
  }
  return first;
}

Result<AlignedBuffer> CopyKeeper::read_copy(NodeId holder, SegmentId segment, PageRange batch) {
  if (holder == self_) return store_.read_batch(segment, batch.page);
  AlignedBuffer bytes(batch.count * kPageSize);
  Call call = call_to(static_cast<std::uint16_t>(PeerRequest::kReadBatch), segment, batch.page);
  call.reply_body = bytes.bytes();
  WaitingCall waiting(*transport_, holder, std::move(call));
  const Result<Reply>& reply = waiting.wait();
  if (!reply) return reply.error();
  if (reply->body_size != bytes.bytes().size())
    return Error(Code::kCorrupt, "the batch has another size than it says");
  return bytes;
}

Result<AlignedBuffer> CopyKeeper::read_from_others(SegmentId segment, std::uint64_t page,
                                                   std::span<const NodeId> holders) {
  Error why(Code::kNotFound, "no other node has the batch");
  for (const NodeId holder : holders) {
    if (holder == self_) continue;
    const auto batch = check_copy(holder, segment, page);
    auto read = batch ? read_copy(holder, segment, *batch) : Result<AlignedBuffer>(batch.error());
    if (batch && read && batch->page == page) return read;
    why = read ? Error(Code::kDisconnected, "it answers of another batch") : read.error();
  }
  return why;
}

/// Who gets it looks whether it is whole and of that place.
Status CopyKeeper::write_copy(NodeId holder, SegmentId segment, std::uint64_t page,
                              const std::shared_ptr<AlignedBuffer>& batch) {
  if (holder == self_) return mend_own_copy(store_, held_length_, segment, page, batch->bytes());
  Call call = call_to(static_cast<std::uint16_t>(PeerRequest::kMendBatch), segment, page);
  call.body = {batch->bytes(), batch};
  WaitingCall waiting(*transport_, holder, std::move(call));
  const Result<Reply>& reply = waiting.wait();
  return reply ? Status{} : Status(reply.error());
}

void CopyKeeper::mend(SegmentId segment, std::uint64_t page, std::span<const NodeId> holders,
                      CheckedBatch& checked) {
  const auto is_good = [](const CheckedCopy& copy) { return copy.status.has_value(); };
  auto good = std::find_if(checked.copies.begin(), checked.copies.end(), is_good);
  const std::size_t asked = checked.copies.size();
  for (const NodeId holder : holders) {
    if (good != checked.copies.end()) break;
    const auto knows = [&](const CheckedCopy& copy) { return copy.node == holder; };
    if (std::any_of(checked.copies.begin(), checked.copies.end(), knows)) continue;
    const NodeId one[] = {holder};
    CheckedBatch more = check(segment, page, one);
    if (more.batch) checked.batch = more.batch;
    checked.copies.push_back(std::move(more.copies.front()));
    good = std::find_if(checked.copies.begin(), checked.copies.end(), is_good);
  }
  if (good == checked.copies.end() || !checked.batch) return;
  auto read = read_copy(good->node, segment, *checked.batch);
  if (!read) return;
  const auto batch = std::make_shared<AlignedBuffer>(std::move(*read));
  for (std::size_t i = 0; i < asked; ++i) {
    CheckedCopy& copy = checked.copies[i];
    if (!copy.is_bad()) continue;
    copy.is_mended = write_copy(copy.node, segment, checked.batch->page, batch).has_value();
  }
}

}  // namespace kvsyncfs
