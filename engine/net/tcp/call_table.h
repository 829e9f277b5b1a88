// The calls and reads to one peer: waiting for credits, sent, or given up by the caller but not
// answered yet. Decides what may be sent when; sends nothing, knows no socket and no clock.
//
// A call that was given up keeps its credits and its share of the peer's bytes until the answer
// comes or the connection ends: the peer is still busy with it. Numbers grow, so what is sent in
// their order is asked in the order of the callers.
// Thread: one at a time; the owner's mutex.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <optional>
#include <set>
#include <unordered_map>
#include <vector>

#include "engine/format/frame.h"
#include "engine/net/tcp/read_budget.h"
#include "engine/net/transport.h"

namespace kvsyncfs {

struct PendingCall {
  std::uint16_t kind = 0;
  std::string head;
  Payload body;
  std::optional<ReadRange> range;  ///< a read
  MutableBytes out;                ///< where the answer's body goes
  std::uint64_t deadline_ns = 0;
  std::function<void(Result<Reply>)> done;  ///< null: given up

  std::size_t size() const { return head.size() + body.bytes.size(); }
};

/// A done() that is due, to be called without any lock.
struct Finished {
  std::function<void(Result<Reply>)> done;
  Result<Reply> result;
};

class CallTable {
 public:
  /// `calls_max` and `bytes_max` bound what waits.
  CallTable(ReadBudget& budget, std::uint64_t calls_max, std::uint64_t bytes_max)
      : budget_(budget), calls_max_(calls_max), bytes_max_(bytes_max) {}

  /// Errors: kBusy.
  Status add(PendingCall call);
  /// What the peer lets be unanswered; a single call may always be.
  void set_credits(const Welcome& credits) { credits_ = credits; }
  /// The next call in turn, if its credits and bytes are free, which it takes. Its head and body
  /// may be moved away. Valid until the next change.
  struct Sendable {
    std::uint64_t number;
    PendingCall* call;
  };
  std::optional<Sendable> next();

  /// A call that was sent and is not answered; null: there is none.
  PendingCall* find_sent(std::uint64_t number);
  /// The answer came. Empty: nobody waits any more.
  std::optional<Finished> answer(std::uint64_t number, Result<Reply> result);
  /// Gives up what is due at `now_ns`. `number`s of those that were sent go to `given_up`.
  std::vector<Finished> expire(std::uint64_t now_ns, std::vector<std::uint64_t>* given_up);
  /// The connection ended: the sent ones end with `sent_error`, the waiting ones with
  /// `waiting_error`.
  std::vector<Finished> fail(const Error& sent_error, const Error& waiting_error);

  /// Earliest deadline of somebody who waits; the largest number if nobody does.
  std::uint64_t due_ns() const;
  /// Whether budget was given back that somebody may wait for; asks once.
  bool take_released() { return std::exchange(released_, false); }

  std::size_t waiting_count() const { return waiting_count_; }
  std::uint64_t waiting_bytes() const { return waiting_bytes_; }
  std::size_t sent_count() const { return sent_count_; }
  std::uint64_t outstanding_bytes() const { return outstanding_bytes_; }

 private:
  struct Entry {
    PendingCall call;
    bool is_sent = false;
    std::size_t sent_bytes = 0;     // of head and body, while unanswered
    std::size_t budget_bytes = 0;   // taken from the budget of all peers
    std::size_t pending_bytes = 0;  // of outstanding_bytes_
  };
  using Entries = std::unordered_map<std::uint64_t, Entry>;

  bool has_credits(const Entry& entry) const;
  void give_back_budget(Entry& entry);
  void forget_waiting(const Entry& entry);
  void forget_sent(Entries::iterator entry);

  ReadBudget& budget_;
  const std::uint64_t calls_max_, bytes_max_;
  Welcome credits_{1, 0};
  std::uint64_t last_number_ = 0;
  Entries entries_;
  std::deque<std::uint64_t> waiting_;  // in order; may name calls that were given up
  std::set<std::pair<std::uint64_t, std::uint64_t>> deadlines_;  // (deadline, number)
  std::size_t waiting_count_ = 0, sent_count_ = 0;
  std::uint64_t waiting_bytes_ = 0, sent_bytes_ = 0, outstanding_bytes_ = 0;
  bool released_ = false;
};

}  // namespace kvsyncfs
