#include "engine/sync/peer_server.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>

#include "engine/base/kept_buffers.h"
#include "engine/format/peer_message.h"

namespace kvsyncfs {
namespace {
constexpr std::chrono::milliseconds kIdle{50};
}

void PeerServer::take(Incoming request, Responder responder) {
  std::lock_guard lock(mutex_);
  queue_.push_back({std::move(request), std::move(responder)});
  came_.notify_one();
}

void PeerServer::run() {
  std::unique_lock lock(mutex_);
  if (!came_.wait_for(lock, kIdle, [this] { return !queue_.empty(); })) return;
  Waiting next = std::move(queue_.front());
  queue_.pop_front();
  lock.unlock();
  next.responder.reply(answer(next.request));
}

Result<Answer> PeerServer::answer(const Incoming& request) {
  switch (static_cast<PeerRequest>(request.kind)) {
    case PeerRequest::kReplicate:
      return replicate(request);
    case PeerRequest::kReadPages:
      return read_pages(request);
    case PeerRequest::kCheckBatch:
    case PeerRequest::kReadBatch:
      return read_batch(request, static_cast<PeerRequest>(request.kind) == PeerRequest::kReadBatch);
    case PeerRequest::kMendBatch:
      return mend_batch(request);
    case PeerRequest::kNextBatch:
      return next_batch(request);
    default:
      if (others_) return others_(request);
      return Error(Code::kUnsupported, fmt::format("request of kind {}", request.kind));
  }
}

Result<Answer> PeerServer::replicate(const Incoming& request) {
  if (!takes_copies_) return Error(Code::kBusy, "this node is still starting");
  KVSYNCFS_ASSIGN(const BatchPlace place, decode_batch_place(request.head));
  KVSYNCFS_TRY(store_.write_replica(place.segment, place.page, request.body.bytes()));
  return Answer{};
}

Result<Answer> PeerServer::read_batch(const Incoming& request, bool with_body) {
  KVSYNCFS_ASSIGN(const BatchPlace place, decode_batch_place(request.head));
  if (!with_body) KVSYNCFS_TRY(store_.check_file(place.segment));
  KVSYNCFS_ASSIGN(const PageRange batch, store_.batch_of(place.segment, place.page));
  KVSYNCFS_ASSIGN(AlignedBuffer read, store_.read_batch(place.segment, batch.page));
  Answer answer{encode(BatchSpan{batch.page, static_cast<std::uint32_t>(batch.count)}), {}};
  if (!with_body) return answer;
  const auto bytes = std::make_shared<AlignedBuffer>(std::move(read));
  answer.body = {bytes->bytes(), bytes};
  return answer;
}

Result<Answer> PeerServer::mend_batch(const Incoming& request) {
  KVSYNCFS_ASSIGN(const BatchPlace place, decode_batch_place(request.head));
  KVSYNCFS_TRY(
      mend_own_copy(store_, held_length_, place.segment, place.page, request.body.bytes()));
  return Answer{};
}

Result<Answer> PeerServer::next_batch(const Incoming& request) {
  KVSYNCFS_ASSIGN(const BatchPlace place, decode_batch_place(request.head));
  KVSYNCFS_ASSIGN(const std::uint64_t page, store_.next_batch(place.segment, place.page));
  KVSYNCFS_ASSIGN(const PageRange batch, store_.batch_of(place.segment, page));
  return Answer{encode(BatchSpan{batch.page, static_cast<std::uint32_t>(batch.count)}), {}};
}

Result<Answer> PeerServer::read_pages(const Incoming& request) {
  KVSYNCFS_ASSIGN(const PagesWanted wanted, decode_pages_wanted(request.head));
  const auto pages = take_kept_buffer(wanted.count * kPageSize);
  KVSYNCFS_ASSIGN(const std::size_t count,
                  store_.load_pages(wanted.segment, wanted.page,
                                    pages->bytes().first(wanted.count * kPageSize)));
  std::vector<std::uint32_t> checksums(count);
  for (std::size_t i = 0; i < count; ++i)
    checksums[i] = page_checksum({volume_tag_, wanted.segment, wanted.page + i},
                                 pages->bytes().subspan(i * kPageSize, kPageSize));
  return Answer{encode_page_checksums(checksums), {pages->bytes().first(count * kPageSize), pages}};
}

}  // namespace kvsyncfs
