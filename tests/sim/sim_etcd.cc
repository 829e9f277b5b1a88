#include "tests/sim/sim_etcd.h"

#include <algorithm>
#include <utility>
#include <variant>

namespace kvsyncfs {

using etcd::KeyValue;

namespace {

constexpr std::uint64_t kMillisecond = 1'000'000, kSecond = 1'000'000'000;

bool is_in(const std::string& key, const std::string& from, const std::string& end) {
  return end.empty() ? key == from : key >= from && key < end;
}

}  // namespace

bool SimEtcd::has(const std::string& key) const { return state_->keys.contains(key); }
std::int64_t SimEtcd::revision() const { return state_->revision; }
std::size_t SimEtcd::key_count() const { return state_->keys.size(); }

bool SimEtcd::holds(const etcd::Compare& compare) const {
  const auto found = state_->keys.find(compare.key);
  if (compare.target == etcd::Compare::Target::kValue)
    return found != state_->keys.end() && found->second.value == compare.value;
  const std::int64_t version = found == state_->keys.end() ? 0 : found->second.version;
  return compare.relation == etcd::Compare::Relation::kEqual ? version == compare.version
                                                             : version < compare.version;
}

void SimEtcd::put(const etcd::Put& put, std::int64_t revision) {
  KeyValue& item = state_->keys[put.key];
  item.key = put.key;
  item.value = put.value;
  item.mod_revision = revision;
  item.lease = put.lease;
  ++item.version;
  state_->changes.push_back(item);
  on_put(item);
}

void SimEtcd::erase(const etcd::Delete& range, std::int64_t revision) {
  for (auto i = state_->keys.begin(); i != state_->keys.end();) {
    if (!is_in(i->first, range.key, range.end)) {
      ++i;
      continue;
    }
    KeyValue gone;
    gone.key = i->first;
    gone.mod_revision = revision;
    state_->changes.push_back(gone);
    i = state_->keys.erase(i);
  }
}

Result<etcd::TxnReply> SimEtcd::carry_out(const etcd::Txn& txn) {
  etcd::TxnReply reply;
  reply.succeeded = std::all_of(txn.compares.begin(), txn.compares.end(),
                                [this](const etcd::Compare& c) { return holds(c); });
  if (faults.ignores_compares) reply.succeeded = true;
  const auto& branch = reply.succeeded ? txn.success : txn.failure;
  for (const auto& operation : branch) {
    const auto* wanted = std::get_if<etcd::Put>(&operation);
    if (wanted != nullptr && wanted->lease != 0 && !state_->leases.contains(wanted->lease))
      return Error(Code::kNotFound, "lease");
  }
  const std::int64_t next = state_->revision + 1;
  for (const auto& operation : branch) {
    const std::size_t before = state_->changes.size();
    if (const auto* wanted = std::get_if<etcd::Put>(&operation)) put(*wanted, next);
    if (const auto* wanted = std::get_if<etcd::Delete>(&operation)) erase(*wanted, next);
    if (state_->changes.size() != before) state_->revision = next;
    if (const auto* wanted = std::get_if<etcd::Range>(&operation)) {
      KVSYNCFS_ASSIGN(etcd::RangeReply found, range(*wanted));
      reply.ranges.push_back(std::move(found));
    }
  }
  reply.revision = state_->revision;
  return reply;
}

std::map<std::string, KeyValue> SimEtcd::at(std::int64_t revision) const {
  if (revision == 0 || revision == state_->revision) return state_->keys;
  std::map<std::string, KeyValue> keys;
  for (const KeyValue& change : state_->changes) {
    if (change.mod_revision > revision) break;
    if (change.version == 0)
      keys.erase(change.key);
    else
      keys[change.key] = change;
  }
  return keys;
}

Result<etcd::RangeReply> SimEtcd::range(const etcd::Range& range) const {
  if (range.revision > state_->revision) return Code::kNoSuchRange;
  if (range.revision != 0 && range.revision < state_->compacted) return Code::kStale;
  etcd::RangeReply reply;
  reply.revision = state_->revision;
  for (const auto& [key, item] : at(range.revision)) {
    if (!is_in(key, range.key, range.end)) continue;
    ++reply.count;
    if (range.limit != 0 && static_cast<std::int64_t>(reply.items.size()) == range.limit) {
      reply.more = true;
      continue;
    }
    reply.items.push_back(item);
    if (range.keys_only) reply.items.back().value.clear();
  }
  return reply;
}

Status SimEtcd::compact(std::int64_t revision) {
  if (revision <= state_->compacted) return Code::kStale;
  if (revision > state_->revision) return Code::kNoSuchRange;
  state_->compacted = revision;
  return {};
}

void SimEtcd::tick() {
  if (!has_quorum_) return;
  for (std::size_t i = 0; i < late_.size();) {
    if (late_[i].due_ns > clock_.boot_ns()) {
      ++i;
      continue;
    }
    const etcd::Txn txn = std::move(late_[i].txn);
    late_.erase(late_.begin() + static_cast<std::ptrdiff_t>(i));
    (void)carry_out(txn);
  }
  std::vector<std::int64_t> ended;
  for (const auto& [id, lease] : state_->leases)
    if (lease.end_ns <= clock_.boot_ns()) ended.push_back(id);
  for (const std::int64_t id : ended) {
    state_->leases.erase(id);
    std::vector<std::string> gone;
    for (const auto& [key, item] : state_->keys)
      if (item.lease == id) gone.push_back(key);
    if (gone.empty()) continue;
    ++state_->revision;
    for (const std::string& key : gone) erase({key, {}}, state_->revision);
  }
}

void SimEtcd::elect_leader() {
  has_quorum_ = true;
  for (auto& [id, lease] : state_->leases)
    lease.end_ns = std::max(lease.end_ns,
                            clock_.boot_ns() + static_cast<std::uint64_t>(lease.ttl_s) * kSecond);
}

std::shared_ptr<const SimEtcd::State> SimEtcd::backup() const {
  return std::make_shared<State>(*state_);
}

void SimEtcd::restore(const std::shared_ptr<const State>& state) {
  state_ = std::make_shared<State>(*state);
  late_.clear();
  ++restores_;
  elect_leader();
}

class SimWatch final : public etcd::EtcdWatch {
 public:
  SimWatch(SimEtcd& etcd, const etcd::WatchRequest& request)
      : etcd_(etcd), request_(request), restores_(etcd.restores_), next_(request.start_revision) {
    if (next_ == 0) next_ = etcd_.state_->revision + 1;
    silent_ = hit(etcd_.faults.silent_watch);
  }

  Result<etcd::WatchBatch> next(std::uint64_t deadline_ns) override {
    etcd_.clock_.advance(kMillisecond / 10);
    if (restores_ != etcd_.restores_ || hit(etcd_.faults.cut_watch)) return Code::kIo;
    const auto& state = *etcd_.state_;
    if (next_ <= state.compacted) return Code::kStale;
    etcd::WatchBatch batch;
    std::uint64_t room = 1 + etcd_.random_.below(5);
    const bool stands = silent_ || !etcd_.has_quorum_ || hit(etcd_.faults.slow_watch);
    std::size_t in_revision = 0;
    auto change = std::lower_bound(
        state.changes.begin(), state.changes.end(), next_,
        [](const KeyValue& item, std::int64_t revision) { return item.mod_revision < revision; });
    for (; change != state.changes.end() && !stands && room > 0; ++change) {
      if (change->mod_revision > next_) {
        next_ = change->mod_revision;
        shown_ = in_revision = 0;
      }
      if (in_revision++ < shown_) continue;  // in an earlier part of the revision
      ++shown_;
      if (change->version == 0 || !is_in(change->key, request_.key, request_.end)) continue;
      if (hit(etcd_.faults.gap_watch)) continue;
      batch.puts.push_back(*change);
      --room;
    }
    if (batch.puts.empty()) {
      etcd_.await_change(deadline_ns);
      return Code::kTimeout;
    }
    return batch;
  }

 private:
  bool hit(std::uint64_t one_in) { return one_in != 0 && etcd_.random_.one_in(one_in); }

  SimEtcd& etcd_;
  const etcd::WatchRequest request_;
  const std::uint64_t restores_;
  std::int64_t next_;      // revision
  std::size_t shown_ = 0;  // changes of that revision
  bool silent_ = false;
};

class SimEtcdClient final : public etcd::EtcdClient {
 public:
  explicit SimEtcdClient(SimEtcd& etcd) : etcd_(etcd) {}

  Result<etcd::RangeReply> range(const etcd::Range& request, std::uint64_t deadline_ns) override {
    return ask<Result<etcd::RangeReply>>(deadline_ns, [&] { return etcd_.range(request); });
  }
  Result<etcd::TxnReply> txn(const etcd::Txn& request, std::uint64_t deadline_ns) override {
    if (hit(etcd_.faults.late_request)) {
      const std::uint64_t due_ns =
          deadline_ns + etcd_.random_.below(etcd_.random_.one_in(2) ? kSecond : 20 * kSecond);
      etcd_.late_.push_back({due_ns, request});
      return lose(deadline_ns);
    }
    return ask<Result<etcd::TxnReply>>(deadline_ns, [&]() -> Result<etcd::TxnReply> {
      const bool full = hit(etcd_.faults.no_space) && !request.compares.empty();
      if (full && etcd_.random_.one_in(2)) return Code::kNoSpace;
      auto reply = etcd_.carry_out(request);
      return full ? Code::kNoSpace : std::move(reply);
    });
  }
  Result<etcd::Lease> grant_lease(std::int64_t ttl_s, std::uint64_t deadline_ns) override {
    return ask<Result<etcd::Lease>>(deadline_ns, [&]() -> Result<etcd::Lease> {
      const std::int64_t id = ++etcd_.state_->next_lease;
      etcd_.state_->leases[id] = {ttl_s, end_of(ttl_s)};
      return etcd::Lease{id, ttl_s};
    });
  }
  Result<etcd::Lease> keep_alive(std::int64_t lease, std::uint64_t deadline_ns) override {
    return ask<Result<etcd::Lease>>(deadline_ns, [&]() -> Result<etcd::Lease> {
      const auto found = etcd_.state_->leases.find(lease);
      if (found == etcd_.state_->leases.end()) return Code::kNotFound;
      found->second.end_ns = end_of(found->second.ttl_s);
      return etcd::Lease{lease, found->second.ttl_s};
    });
  }
  Status revoke_lease(std::int64_t lease, std::uint64_t deadline_ns) override {
    return ask<Status>(deadline_ns, [&]() -> Status {
      const auto found = etcd_.state_->leases.find(lease);
      if (found == etcd_.state_->leases.end()) return Code::kNotFound;
      found->second.end_ns = 0;
      etcd_.tick();
      return {};
    });
  }
  Status compact(std::int64_t revision, std::uint64_t deadline_ns) override {
    return ask<Status>(deadline_ns, [&] { return etcd_.compact(revision); });
  }
  Result<std::unique_ptr<etcd::EtcdWatch>> watch(const etcd::WatchRequest& request,
                                                 std::uint64_t deadline_ns) override {
    using Made = Result<std::unique_ptr<etcd::EtcdWatch>>;
    return ask<Made>(deadline_ns,
                     [&]() -> Made { return std::make_unique<SimWatch>(etcd_, request); });
  }

 private:
  bool hit(std::uint64_t one_in) { return one_in != 0 && etcd_.random_.one_in(one_in); }
  std::uint64_t end_of(std::int64_t ttl_s) const {
    const std::uint64_t length_ns = static_cast<std::uint64_t>(ttl_s) * kSecond;
    return etcd_.clock_.boot_ns() + (etcd_.faults.forgets_leases ? length_ns / 2 : length_ns);
  }
  Error lose(std::uint64_t deadline_ns) {
    etcd_.meanwhile();
    const std::uint64_t now_ns = etcd_.clock_.boot_ns();
    if (deadline_ns > now_ns) etcd_.clock_.advance(deadline_ns - now_ns);
    etcd_.tick();
    return Code::kTimeout;
  }
  template <typename Answer, typename Effect>
  Answer ask(std::uint64_t deadline_ns, Effect effect) {
    etcd_.clock_.advance(kMillisecond / 10 + etcd_.random_.below(kMillisecond));
    etcd_.meanwhile();
    etcd_.tick();
    if (!etcd_.has_quorum_ || hit(etcd_.faults.lost_request)) return lose(deadline_ns);
    Answer answer = effect();
    etcd_.clock_.advance(kMillisecond / 10);
    if (hit(etcd_.faults.lost_answer)) return lose(deadline_ns);
    etcd_.meanwhile();
    return answer;
  }

  SimEtcd& etcd_;
};

std::unique_ptr<etcd::EtcdClient> SimEtcd::client() {
  return std::make_unique<SimEtcdClient>(*this);
}

}  // namespace kvsyncfs
