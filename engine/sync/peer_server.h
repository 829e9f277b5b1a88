// Answers what other nodes ask of this one's store. Requests wait in a queue, since the store waits
// for the disk and the transport's loop must not; the transport's credits bound it.
// Thread: take() is called by the transport's loop; run() by any number of threads.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <utility>

#include "engine/net/transport.h"
#include "engine/store/segment_store.h"
#include "engine/sync/own_copies.h"

namespace kvsyncfs {

class PeerServer {
 public:
  /// Borrowed.
  PeerServer(SegmentStore& store, std::uint64_t volume_tag, HeldLength held_length)
      : store_(store), volume_tag_(volume_tag), held_length_(std::move(held_length)) {}

  /// From now on copies are taken: the store knows what it has. Before, kReplicate is kBusy.
  void take_copies() { takes_copies_ = true; }
  /// Who answers requests of other kinds, from run(). Before the first request comes.
  void serve_others(std::function<Result<Answer>(const Incoming&)> others) {
    others_ = std::move(others);
  }
  void take(Incoming request, Responder responder);
  /// Answers one request, or returns when none has come for a moment.
  void run();

 private:
  struct Waiting {
    Incoming request;
    Responder responder;
  };
  Result<Answer> answer(const Incoming& request);
  Result<Answer> replicate(const Incoming& request);
  Result<Answer> read_pages(const Incoming& request);
  Result<Answer> read_batch(const Incoming& request, bool with_body);
  Result<Answer> mend_batch(const Incoming& request);
  Result<Answer> next_batch(const Incoming& request);

  SegmentStore& store_;
  const std::uint64_t volume_tag_;
  const HeldLength held_length_;
  std::atomic<bool> takes_copies_ = false;
  std::function<Result<Answer>(const Incoming&)> others_;
  std::mutex mutex_;
  std::condition_variable came_;
  std::deque<Waiting> queue_;
};

}  // namespace kvsyncfs
