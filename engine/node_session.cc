#include "engine/node_session.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <condition_variable>

namespace kvsyncfs {
namespace {

constexpr std::uint64_t kAskAgainNs = 500'000'000;  // whether a session that is suspected has ended

/// The node joins again, so that the end of a session is no end to its callers.
Error without_fence(const Error& error) {
  return error.code == Code::kFenced ? Error(Code::kTimeout, error.detail) : error;
}

}  // namespace

NodeSession::NodeSession(const ClusterSeams& seams, EtcdLog& log, Catalog& catalog, Clock& clock,
                         std::uint64_t timeout_ns)
    : log_(log),
      catalog_(catalog),
      clock_(clock),
      node_(seams.node),
      name_(seams.node_name),
      incarnation_(seams.incarnation.value),
      timeout_ns_(timeout_ns),
      lease_ms_(static_cast<std::uint32_t>(seams.lease_ttl_s * 1000)),
      acknowledger_(seams.transport, clock, seams.incarnation) {}

std::string NodeSession::end_entry(NodeId node, Incarnation incarnation) {
  return encode(Transaction{{EndCommand{node, incarnation}}});
}

Status NodeSession::join() {
  const auto session = [this]() -> std::optional<SessionRecord> {
    const auto all = catalog_.sessions();
    const auto own = all.find(node_);
    return own == all.end() ? std::nullopt : std::optional(own->second);
  };
  if (const auto former = session(); former && former->lives())
    KVSYNCFS_TRY(
        log_.append_end(end_entry(node_, former->incarnation), name_, former->incarnation.value));
  const Incarnation own = incarnation();
  KVSYNCFS_TRY(log_.append(encode(Transaction{{JoinCommand{node_, own, 0, lease_ms_}}})));
  const auto joined = session();
  if (!joined || !joined->lives() || joined->incarnation != own)
    return Error(Code::kFenced, fmt::format("node {}: a later life of it has joined", node_.value));
  return {};
}

void NodeSession::ended() {
  std::uint64_t in = 0;
  out_ns_.compare_exchange_strong(in, clock_.boot_ns());
}

Status NodeSession::rejoin(Incarnation incarnation) {
  {
    std::lock_guard order(order_mutex_);
    incarnation_ = incarnation.value;
    request_ = 0;
  }
  acknowledger_.begin(incarnation);
  return join();
}

/// The number and the place in the queue are taken together: apply drops a number below the last.
Result<EtcdLog::Ticket> NodeSession::submit(Transaction& transaction,
                                            std::optional<Incarnation> wanted, const SlotPtr& slot,
                                            const Numbered& numbered, const Deadline& until) {
  std::mutex mutex;
  std::condition_variable never;
  for (;;) {
    {
      std::lock_guard order(order_mutex_);
      if (is_out() || wanted.value_or(incarnation()) != incarnation())
        return Error(Code::kFenced, "this node's session has ended");
      transaction.origin = Origin{node_, incarnation(), request_ + 1};
      {
        std::lock_guard lock(slots_mutex_);
        slots_[request_ + 1] = slot;
      }
      if (numbered) numbered(request_ + 1);
      auto ticket = log_.submit(encode(transaction));
      if (ticket) {
        ++request_;
        return ticket;
      }
      std::lock_guard lock(slots_mutex_);
      slots_.erase(request_ + 1);
      if (ticket.error().code != Code::kBusy) return ticket;
    }
    // The queue is full: somebody has to send it.
    static_cast<void>(log_.run_append());
    std::unique_lock lock(mutex);
    never.wait_for(lock, std::chrono::milliseconds(1));
    if (until.is_over()) return Error(Code::kTimeout, "the log's queue is full");
  }
}

void NodeSession::forget(std::uint64_t request, const SlotPtr& slot) {
  std::lock_guard lock(slots_mutex_);
  const auto found = slots_.find(request);
  if (found != slots_.end() && found->second == slot) slots_.erase(found);
}

Result<std::vector<CommandResult>> NodeSession::commit(Transaction transaction,
                                                       std::optional<Incarnation> wanted,
                                                       const Numbered& numbered) {
  const Deadline until(clock_, timeout_ns_);
  const auto slot = std::make_shared<Slot>();
  const auto ticket = submit(transaction, wanted, slot, numbered, until);
  if (!ticket) return without_fence(ticket.error());
  const auto position = log_.wait(*ticket, clock_.boot_ns() + timeout_ns_);
  forget(transaction.origin->request, slot);
  if (!position) return without_fence(position.error());
  assert(slot->results && "an append returns after apply");
  KVSYNCFS_TRY(acknowledgements_.wait(
      *position, node_, [this] { return catalog_.sessions(); }, until));
  return std::move(*slot->results);
}

void NodeSession::applied(Position position, const Transaction& transaction,
                          Result<std::vector<CommandResult>> results) {
  const auto& origin = transaction.origin;
  if (origin && origin->node == node_) {
    if (origin->incarnation != incarnation()) return;
    std::lock_guard lock(slots_mutex_);
    if (const auto waiting = slots_.find(origin->request); waiting != slots_.end())
      waiting->second->results.emplace(std::move(results));
    return;
  }
  if (origin)
    due_([this, from = *origin, position] {
      acknowledger_.owe(from.node, from.incarnation, position);
    });
  const bool sessions =
      std::any_of(transaction.commands.begin(), transaction.commands.end(), [](const Command& c) {
        return std::holds_alternative<JoinCommand>(c) || std::holds_alternative<EndCommand>(c);
      });
  if (sessions) acknowledgements_.sessions_changed();
}

Status NodeSession::may_answer() {
  const auto is_valid = [this] { return is_proved(); };
  if (is_valid()) return {};
  // Counted from the lease's end, so that not each of many requests waits anew.
  const std::uint64_t now_ns = clock_.boot_ns();
  const std::uint64_t out_ns = out_ns_;
  const std::uint64_t end_ns = (out_ns != 0 ? out_ns : log_.lease_until_ns()) + timeout_ns_;
  const Deadline until(clock_, end_ns > now_ns ? end_ns - now_ns : 0);
  std::mutex mutex;
  std::condition_variable never;
  std::unique_lock lock(mutex);
  // Nobody tells of a renewal: the wait itself looks at it often enough.
  if (until.wait(never, lock, is_valid)) return {};
  return Error(Code::kTimeout, "this node cannot prove its lease");
}

void NodeSession::end_the_dead(const std::function<bool(NodeId)>& is_down,
                               const std::function<Result<std::string>(NodeId)>& name_of) {
  const std::uint64_t now_ns = clock_.boot_ns();
  const auto awaited = acknowledgements_.awaited();
  for (const auto& [node, record] : catalog_.sessions()) {
    if (node == node_ || !record.lives()) continue;
    if (!awaited.contains(node) && !is_down(node)) continue;
    std::uint64_t& asked_ns = asked_ns_[node];
    if (asked_ns == 0) asked_ns = now_ns;  // one that is merely slow gets a moment
    if (now_ns - asked_ns < kAskAgainNs) continue;
    asked_ns = now_ns;
    const auto name = name_of(node);
    if (!name) continue;
    // kBusy: its lease holds. Whatever else goes wrong is tried again.
    static_cast<void>(
        log_.append_end(end_entry(node, record.incarnation), *name, record.incarnation.value));
  }
}

Status NodeSession::leave() {
  const auto ended = log_.append(end_entry(node_, incarnation()));
  const Status left = log_.leave();
  return ended ? left : Status(ended.error());
}

}  // namespace kvsyncfs
