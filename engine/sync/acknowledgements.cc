#include "engine/sync/acknowledgements.h"

#include <fmt/format.h>

#include <vector>

#include "engine/format/peer_message.h"

namespace kvsyncfs {

void Acknowledgements::note(NodeId node, Incarnation incarnation, Position position) {
  std::lock_guard lock(mutex_);
  Seen& seen = seen_[node];
  if (incarnation < seen.incarnation) return;
  if (incarnation > seen.incarnation) seen = {incarnation, {}};
  seen.position = std::max(seen.position, position);
  changed_.notify_all();
}

void Acknowledgements::sessions_changed() {
  std::lock_guard lock(mutex_);
  ++generation_;
  changed_.notify_all();
}

Acknowledgements::Missing Acknowledgements::missing(Position position, NodeId own,
                                                    const Sessions& sessions) const {
  for (const auto& [node, record] : sessions) {
    if (node == own || !must_acknowledge(record, position)) continue;
    const auto seen = seen_.find(node);
    const bool has_said = seen != seen_.end() && seen->second.incarnation == record.incarnation &&
                          seen->second.position >= position;
    if (!has_said) return {node, record.incarnation};
  }
  return {};
}

Status Acknowledgements::wait(Position position, NodeId own,
                              const std::function<Sessions()>& sessions, const Deadline& until) {
  std::unique_lock lock(mutex_);
  for (;;) {
    const std::uint64_t generation = generation_;
    lock.unlock();
    const Sessions now = sessions();
    lock.lock();
    if (const auto self = now.find(own); self != now.end() && !self->second.lives())
      return Error(Code::kTimeout, "this node's session ended before all others had the change");
    const Missing who = missing(position, own, now);
    if (who.node.value == 0) return {};
    auto& awaited = awaited_[who.node];
    awaited = {who.incarnation, awaited.second + 1};
    const bool in_time = until.wait(changed_, lock, [&] {
      return generation_ != generation || missing(position, own, now).node != who.node;
    });
    if (--awaited_[who.node].second == 0) awaited_.erase(who.node);
    if (!in_time)
      return Error(Code::kTimeout, fmt::format("node {} has not acknowledged position {}",
                                               who.node.value, position.value));
  }
}

std::map<NodeId, Incarnation> Acknowledgements::awaited() const {
  std::lock_guard lock(mutex_);
  std::map<NodeId, Incarnation> nodes;
  for (const auto& [node, who] : awaited_) nodes.emplace(node, who.first);
  return nodes;
}

std::size_t Acknowledgements::waiting() const {
  std::lock_guard lock(mutex_);
  std::size_t count = 0;  // each call waits for one node at a time
  for (const auto& [node, who] : awaited_) count += who.second;
  return count;
}

struct Acknowledger::State {
  struct Debt {
    Incarnation to;
    Position owed, told;
    std::uint64_t since_ns = 0;  // when the first was owed that is not told, or the last was told
    bool on_its_way = false;
  };
  Transport& transport;
  Clock& clock;
  Incarnation incarnation;
  std::mutex mutex;  // guards the rest, and `incarnation`
  bool stopped = false;
  std::map<NodeId, Debt> debts;
  std::function<Acknowledge(Position)> compose = [](Position position) {
    return Acknowledge{position, {}, 0, {}, {}};
  };
  std::function<void()> is_wrong = [] {};
};

namespace {
constexpr std::uint64_t kAcknowledgeTimeoutNs = 1'000'000'000;
}

Acknowledger::Acknowledger(Transport& transport, Clock& clock, Incarnation incarnation)
    : state_(new State{transport, clock, incarnation, {}, false, {}}) {}

void Acknowledger::begin(Incarnation incarnation) {
  std::lock_guard lock(state_->mutex);
  state_->incarnation = incarnation;
}

void Acknowledger::carry(std::function<Acknowledge(Position)> compose,
                         std::function<void()> is_wrong) {
  state_->compose = std::move(compose);
  state_->is_wrong = std::move(is_wrong);
}

Acknowledger::~Acknowledger() {
  std::lock_guard lock(state_->mutex);
  state_->stopped = true;
}

void Acknowledger::owe(NodeId node, Incarnation session, Position position) {
  std::lock_guard lock(state_->mutex);
  State::Debt& debt = state_->debts[node];
  if (session > debt.to) {
    debt.to = session;
    debt.told = {};
  }
  if (debt.owed <= debt.told) debt.since_ns = state_->clock.boot_ns();
  debt.owed = std::max(debt.owed, position);
}

std::set<NodeId> Acknowledger::overdue(std::uint64_t age_ns) const {
  std::set<NodeId> nodes;
  std::lock_guard lock(state_->mutex);
  const std::uint64_t now_ns = state_->clock.boot_ns();
  for (const auto& [node, debt] : state_->debts)
    if (debt.owed > debt.told && now_ns - debt.since_ns >= age_ns) nodes.insert(node);
  return nodes;
}

void Acknowledger::send() {
  std::vector<NodeId> due;
  {
    std::lock_guard lock(state_->mutex);
    for (const auto& [node, debt] : state_->debts)
      if (debt.owed > debt.told && !debt.on_its_way) due.push_back(node);
  }
  for (const NodeId node : due) send_to(state_, node);
}

void Acknowledger::send_to(const std::shared_ptr<State>& state, NodeId node) {
  Call call;
  Acknowledge word;
  {
    std::lock_guard lock(state->mutex);
    State::Debt& debt = state->debts[node];
    if (state->stopped || debt.on_its_way || debt.owed <= debt.told) return;
    debt.on_its_way = true;
    word = state->compose(debt.owed);
    word.incarnation = state->incarnation;
    word.to = debt.to;
  }
  call.kind = static_cast<std::uint16_t>(PeerRequest::kAcknowledge);
  call.head = encode(word);
  call.deadline_ns = state->clock.boot_ns() + kAcknowledgeTimeoutNs;
  call.done = [state, node, to = word.to, position = word.position](const Result<Reply>& result) {
    {
      std::lock_guard lock(state->mutex);
      State::Debt& debt = state->debts[node];
      debt.on_its_way = false;
      if (!result) {  // send() tries again
        if (result.error().code == Code::kFenced && !state->stopped) state->is_wrong();
        return;
      }
      if (debt.to == to) debt.told = std::max(debt.told, position);
      debt.since_ns = state->clock.boot_ns();
    }
    send_to(state, node);
  };
  if (state->transport.call(node, std::move(call))) return;
  std::lock_guard lock(state->mutex);
  state->debts[node].on_its_way = false;
}

}  // namespace kvsyncfs
