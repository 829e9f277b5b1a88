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

/// What was on its way then may be in the log as well.
bool ends_log(const Error& error) {
  return error.code == Code::kFenced || error.code == Code::kCorrupt ||
         error.code == Code::kStale || error.code == Code::kShutdown;
}

}  // namespace

struct NodeSession::Sent {
  SentId id;
  EtcdLog::Ticket ticket;
  LandedFlag flag;
  // Under sent_mutex_; results, once they are there, stay.
  bool is_dropped = false;  ///< by the log
  Position position;
  std::optional<Result<std::vector<CommandResult>>> results;
};

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
    std::lock_guard lock(sent_mutex_);
    sent_.clear();  // all that came to the log of the former session was applied
  }
  acknowledger_.begin(incarnation);
  return join();
}

/// The number and the place in the queue are taken together: apply drops a number below the last.
Result<NodeSession::SentPtr> NodeSession::send(Transaction& transaction, const Deadline& until,
                                               const SendOptions& options) {
  const auto sent = std::make_shared<Sent>();
  sent->flag = options.has_landed;
  std::mutex mutex;
  std::condition_variable never;
  for (;;) {
    {
      std::lock_guard order(order_mutex_);
      if (is_out() || options.wanted.value_or(incarnation()) != incarnation())
        return Error(Code::kTimeout, "this node's session has ended");
      sent->id = {incarnation(), request_ + 1};
      transaction.origin = Origin{node_, incarnation(), request_ + 1};
      {
        std::lock_guard lock(sent_mutex_);
        sent_[sent->id] = sent;
      }
      if (options.numbered) options.numbered(request_ + 1);
      auto ticket = log_.submit(encode(transaction));
      if (ticket) {
        ++request_;
        sent->ticket = std::move(*ticket);
        return sent;
      }
      std::lock_guard lock(sent_mutex_);
      sent_.erase(sent->id);
      if (ticket.error().code != Code::kBusy) return without_fence(ticket.error());
    }
    // The queue is full: somebody has to send it.
    static_cast<void>(log_.run_append());
    std::unique_lock lock(mutex);
    never.wait_for(lock, std::chrono::milliseconds(1));
    if (until.is_over()) return Error(Code::kTimeout, "the log's queue is full");
  }
}

Result<std::vector<CommandResult>> NodeSession::finish(Sent& sent, const Deadline& until) {
  if (!has_landed(sent)) {
    const auto position = log_.wait(sent.ticket, until.end_ns());
    assert((!position || has_landed(sent)) && "an append returns after apply");
    if (!position && !has_landed(sent)) {
      if (!ends_log(position.error())) note_dropped(sent);
      return without_fence(position.error());
    }
  }
  if (sent.id.first == incarnation())
    KVSYNCFS_TRY(acknowledgements_.wait(
        sent.position, node_, [this] { return catalog_.sessions(); }, until));
  else
    KVSYNCFS_TRY(commit_until(Transaction{{HoldOrphansCommand{}}}, until, {}));
  return *sent.results;
}

bool NodeSession::has_landed(const Sent& sent) const {
  std::lock_guard lock(sent_mutex_);
  return sent.results.has_value();
}

/// If the log has dropped it; else it is still on its way.
void NodeSession::note_dropped(Sent& sent) {
  const auto result = log_.take(sent.ticket);
  if (!result || *result || ends_log(result->error())) return;
  std::lock_guard lock(sent_mutex_);
  sent.is_dropped = true;
  sent_.erase(sent.id);
}

/// In this order: what the session sent was applied, if ever, before the catalog showed its end.
NodeSession::Fate NodeSession::fate(const Sent& sent) const {
  const auto sessions = catalog_.sessions();
  const auto own = sessions.find(node_);
  const Incarnation its = sent.id.first;
  const bool has_ended = own != sessions.end() && own->second.incarnation >= its &&
                         (own->second.incarnation > its || !own->second.lives());
  std::lock_guard lock(sent_mutex_);
  if (sent.results) return Fate::kLanded;
  return has_ended || sent.is_dropped ? Fate::kRefused : Fate::kUnknown;
}

Result<std::vector<CommandResult>> NodeSession::commit(Transaction transaction,
                                                       const SendOptions& options) {
  return commit_until(std::move(transaction), Deadline(clock_, timeout_ns_), options);
}

Result<std::vector<CommandResult>> NodeSession::commit_until(Transaction transaction,
                                                             const Deadline& until,
                                                             const SendOptions& options) {
  KVSYNCFS_ASSIGN(const SentPtr sent, send(transaction, until, options));
  return finish(*sent, until);
}

void NodeSession::note_landed(const SentId& id, Position position,
                              Result<std::vector<CommandResult>> results) {
  std::lock_guard lock(sent_mutex_);
  const auto found = sent_.extract(id);
  const SentPtr sent = found.empty() ? nullptr : found.mapped().lock();
  if (!sent) return;
  sent->position = position;
  sent->results.emplace(std::move(results));
  if (sent->flag) *sent->flag = true;
}

void NodeSession::applied(Position position, const Transaction& transaction,
                          Result<std::vector<CommandResult>> results) {
  const auto& origin = transaction.origin;
  if (origin && origin->node == node_)
    return note_landed({origin->incarnation, origin->request}, position, std::move(results));
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
