#include "tests/sim/etcd_world.h"

#include <algorithm>

#include "engine/format/etcd_batch.h"

namespace kvsyncfs {
namespace {

constexpr std::uint64_t kMillisecond = 1'000'000, kSecond = 1'000'000'000;
constexpr const char* kVolume = "v";
constexpr int kDepthMax = 3;  // calls that are under way within another

/// "entry <session> <n>" or "end <session> <n>": the session that wrote it, or that ended.
std::string session_of(const std::string& entry) {
  const std::size_t from = entry.find(' ') + 1;
  return entry.substr(from, entry.find(' ', from) - from);
}
bool is_end(const std::string& entry) { return entry.starts_with("end "); }

}  // namespace

EtcdWorld::EtcdWorld(std::uint64_t seed, std::size_t node_count)
    : random_(seed), etcd_(clock_, seed * 7 + 1) {
  etcd_.on_put = [this](const etcd::KeyValue& put) { note_put(put); };
  const auto client = etcd_.client();
  if (!format_etcd_log(*client, clock_, kVolume, 1, {})) fail("format");
  for (std::size_t i = 0; i < node_count; ++i) {
    nodes_.push_back(std::make_unique<Node>());
    nodes_.back()->name = "n" + std::to_string(i);
    nodes_.back()->client = etcd_.client();
  }
  // Each run has faults of its own mixture.
  const auto rate = [this](std::uint64_t n) {
    return random_.one_in(3) ? 0 : n + random_.below(n);
  };
  etcd_.faults = {rate(12), rate(12), rate(12), rate(15), rate(4), rate(6), rate(12), rate(30)};
  etcd_.meanwhile = [this] {
    if (depth_ < kDepthMax && random_.one_in(3)) act();
  };
}

EtcdWorld::~EtcdWorld() {
  etcd_.meanwhile = [] {};
}

void EtcdWorld::fail(const std::string& problem) {
  if (problem_.empty()) problem_ = problem;
}

std::string EtcdWorld::session_name(const std::string& node, std::uint64_t incarnation) {
  return node + "/" + std::to_string(incarnation);
}

void EtcdWorld::note_put(const etcd::KeyValue& put) {
  const etcd::LogKeys keys(kVolume, 1);
  if (keys.parse_batch(put.key)) batch_ = put;
  if (put.key != keys.count()) return;
  if (!batch_) return fail("a count without a batch");
  note_entries(batch_->value);
  newest_ = {static_cast<std::uint64_t>(put.version), put.mod_revision, batch_->key};
  batch_.reset();
}

void EtcdWorld::note_entries(const std::string& value) {
  const auto entries = decode_etcd_batch(value);
  if (!entries) return fail("a batch that is none");
  for (const std::string_view view : *entries) {
    const std::string entry(view);
    const std::string session = session_of(entry);
    truth_.push_back(entry);
    if (!seen_.insert(entry).second) fail("twice in the log: " + entry);
    if (forbidden_.contains(entry)) fail("was refused and is in the log: " + entry);
    if (is_end(entry))
      ended_.insert(session);
    else if (ended_.contains(session))
      fail("behind the end of its session: " + entry);
  }
}

void EtcdWorld::check_applied(Node& node, Position position, std::string_view entry) {
  if (position.value == 0 || position.value > truth_.size()) return fail("applied past the log");
  const std::size_t place = position.value - 1;
  if (place > node.applied.size()) return fail(node.name + " left out a position");
  if (truth_[place] != entry) return fail(node.name + " applied another entry");
  // What is before it must be the log's as well: etcd may have been put back.
  if (place > 0 && node.applied[place - 1] != truth_[place - 1])
    return fail(node.name + " went on behind a log that was put back");
  if (place < node.applied.size()) {
    if (node.applied[place] != entry) fail(node.name + " got a position again with another entry");
  } else {
    node.applied.emplace_back(entry);
  }
}

void EtcdWorld::check_lease(Node& node) {
  if (!node.log || !node.log->lease_is_valid() || restored_) return;
  const etcd::LogKeys keys(kVolume, 1);
  if (!etcd_.has(keys.session(node.name, node.incarnation)))
    fail(node.name + " takes its lease for valid, and it is not");
}

void EtcdWorld::check_result(Node& node, const Sent& sent, const Result<Position>& result) {
  if (result) {
    ++confirmed_;
    const bool there = result->value <= truth_.size() && truth_[result->value - 1] == sent.entry;
    if (!there && !restored_) fail("confirmed and not in the log: " + sent.entry);
    if (result->value > node.applied.size()) fail("confirmed before it was applied: " + sent.entry);
    return;
  }
  switch (result.error().code) {
    case Code::kBusy:
    case Code::kNoSpace:
      forbidden_.insert(sent.entry);
      if (seen_.contains(sent.entry)) fail("refused and in the log: " + sent.entry);
      break;
    case Code::kFenced:
    case Code::kShutdown:
    case Code::kStale:  // it was away while others trimmed
      break;
    case Code::kCorrupt:
      if (!restored_) fail(describe(result.error()));
      break;
    default:
      fail("an append ended with " + describe(result.error()));
  }
}

void EtcdWorld::run(int steps) {
  for (int i = 0; i < steps && problem_.empty(); ++i) {
    clock_.advance(random_.below(3 * kMillisecond));
    if (random_.one_in(20)) clock_.advance(random_.below(300 * kMillisecond));
    etcd_.tick();
    if (etcd_.has_quorum() && random_.one_in(150)) etcd_.lose_quorum();
    if (!etcd_.has_quorum() && random_.one_in(20)) etcd_.elect_leader();
    if (random_.one_in(200))
      (void)etcd_.compact(1 + static_cast<std::int64_t>(
                                  random_.below(static_cast<std::uint64_t>(etcd_.revision()))));
    Node& node = *nodes_[random_.below(nodes_.size())];
    if (random_.one_in(120)) crash(node);
    if (random_.one_in(120)) node.frozen_until_ns = clock_.boot_ns() + random_.below(12 * kSecond);
    act();
  }
}

void EtcdWorld::act() {
  if (!problem_.empty()) return;
  ++depth_;
  Node& node = *nodes_[random_.below(nodes_.size())];
  if (clock_.boot_ns() >= node.frozen_until_ns) step(node);
  for (const auto& each : nodes_) check_lease(*each);
  --depth_;
}

void EtcdWorld::step(Node& node) {
  if (!node.log) {
    if (depth_ == 1 && !node.refused) open(node);
    return;
  }
  switch (random_.below(16)) {
    case 0:
      return submit_end(node);
    case 1:
      return trim(node);
    case 2:
    case 3:
    case 4:
      return submit(node);
    case 5:
    case 6:
    case 7:
      (void)node.log->run_append();
      return collect(node);
    case 8:
    case 9:
      return keep(node);
    default:
      return follow(node, random_.one_in(6) ? 300 * kMillisecond : 0);
  }
}

void EtcdWorld::open(Node& node) {
  EtcdLogOptions options;
  options.volume = kVolume;
  options.node = node.name;
  options.incarnation = node.incarnation + 1;  // nodes share these numbers
  options.known = node.known;
  options.window = 8;
  options.batch_size_max = 4096;
  options.request_timeout_ns = 400 * kMillisecond;
  options.timeout_ns = 4 * kSecond;
  const std::uint64_t before = node.incarnation;
  node.incarnation = options.incarnation;
  auto log = EtcdLog::open(*node.client, clock_, options);
  sessions_.push_back(session_name(node.name, node.incarnation));
  if (!log) return;
  const Position applied{node.applied.size()};
  const Status started = (*log)->start(applied, [this, &node](Position p, std::string_view entry) {
    check_applied(node, p, entry);
  });
  if (!started) {
    const Code code = started.error().code;
    node.refused = restored_ && code == Code::kCorrupt;
    if (code == Code::kCorrupt && !restored_) fail(describe(started.error()));
    if (code == Code::kStale) {  // the snapshot of a peer
      node.applied = truth_;
      node.known = newest_;
    }
    return;
  }
  node.log = std::move(*log);
  if (before != 0) submit_own_end(node, before);
}

void EtcdWorld::submit_own_end(Node& node, std::uint64_t before) {
  Sent end{nullptr, "end " + session_name(node.name, before) + " own", {}};
  end.end_of = session_name(node.name, before);
  end.entry += std::to_string(names_);
  if (auto ticket = node.log->submit_end(end.entry, node.name, before)) {
    end.ticket = *ticket;
    node.sent.push_back(end);
  }
}

void EtcdWorld::crash(Node& node) {
  if (!node.log) return;
  const EtcdLogCounters c = node.log->counters();
  counters_.batches += c.batches;
  counters_.entries += c.entries;
  counters_.repeats += c.repeats;
  counters_.watches += c.watches;
  counters_.resyncs += c.resyncs;
  counters_.renewals += c.renewals;
  counters_.withheld += c.withheld;
  if (const AppliedBatch last = node.log->last_batch(); last.index != 0) node.known = last;
  node.log.reset();
  node.sent.clear();
}

void EtcdWorld::submit(Node& node) {
  for (std::uint64_t i = random_.below(4); i-- > 0;) {
    Sent sent{nullptr,
              "entry " + session_name(node.name, node.incarnation) + " " + std::to_string(++names_),
              {}};
    if (random_.one_in(10)) sent.entry += std::string(random_.below(3000), 'x');
    if (auto ticket = node.log->submit(sent.entry)) {
      sent.ticket = *ticket;
      node.sent.push_back(sent);
    }
  }
}

/// Of any session, also of one that lives: the log has to tell.
void EtcdWorld::submit_end(Node& node) {
  if (sessions_.empty()) return;
  const std::string session = sessions_[random_.below(sessions_.size())];
  if (ended_.contains(session)) return;
  const std::size_t slash = session.find('/');
  Sent sent{nullptr, "end " + session + " " + std::to_string(++names_), session};
  if (auto ticket = node.log->submit_end(sent.entry, session.substr(0, slash),
                                         std::stoull(session.substr(slash + 1)))) {
    sent.ticket = *ticket;
    node.sent.push_back(sent);
  }
}

void EtcdWorld::follow(Node& node, std::uint64_t wait_ns) {
  if (node.watching) return;
  node.watching = true;
  const Status status = node.log->run_watch(wait_ns);
  node.watching = false;
  if (!status && status.error().code == Code::kCorrupt && !restored_)
    fail(describe(status.error()));
  collect(node);
}

void EtcdWorld::keep(Node& node) {
  if (node.keeping) return;
  node.keeping = true;
  const std::uint64_t next_ns = node.log->run_keep_alive();
  node.keeping = false;
  if (next_ns != ~std::uint64_t{0} || depth_ > 1) return;
  if (node.watching || random_.one_in(2))
    crash(node);  // the daemon begins a new life
  else
    rejoin(node);
}

/// The log goes on with the next session; what it cannot go on with ends it.
void EtcdWorld::rejoin(Node& node) {
  collect(node);
  node.watching = node.keeping = true;
  const std::uint64_t before = node.incarnation++;
  const Status joined = node.log->rejoin(node.incarnation, [] { return Status{}; });
  node.watching = node.keeping = false;
  sessions_.push_back(session_name(node.name, node.incarnation));
  if (!joined) return crash(node);
  ++rejoined_;
  if (node.applied.size() < node.log->last().value) fail(node.name + " joined without the log");
  submit_own_end(node, before);
}

void EtcdWorld::trim(Node& node) {
  // Past a restore nothing is trimmed: a batch that is trimmed tells no more whether it was ours.
  if (node.trimming || restored_ || !random_.one_in(4)) return;
  node.trimming = true;
  (void)node.log->trim({random_.below(node.log->last().value + 1)});
  node.trimming = false;
}

void EtcdWorld::collect(Node& node) {
  for (std::size_t i = 0; i < node.sent.size();) {
    const auto result = node.log->take(node.sent[i].ticket);
    if (!result) {
      ++i;
      continue;
    }
    check_result(node, node.sent[i], *result);
    node.sent.erase(node.sent.begin() + static_cast<std::ptrdiff_t>(i));
  }
}

void EtcdWorld::heal() {
  etcd_.faults = {};
  etcd_.meanwhile = [] {};
  etcd_.elect_leader();
  constexpr int kRounds = 400;
  for (int round = 0; round < kRounds && problem_.empty(); ++round) {
    clock_.advance(20 * kMillisecond);
    etcd_.tick();
    ++depth_;
    for (const auto& node : nodes_) drive(*node);
    --depth_;
  }
  for (const auto& node : nodes_) {
    if (node->refused || !problem_.empty()) continue;
    if (!node->log || !node->sent.empty() || node->applied.size() != truth_.size())
      fail(node->name + " does not reach the end of the log");
    if (node->log && node->applied != truth_) fail(node->name + " has another order");
  }
  for (const auto& node : nodes_) crash(*node);
}

void EtcdWorld::drive(Node& node) {
  if (!node.log && !node.refused) open(node);
  if (!node.log) return;
  (void)node.log->run_append();
  follow(node, 0);
  collect(node);
  keep(node);
}

void EtcdWorld::take_backup() { backup_ = {etcd_.backup(), truth_.size(), seen_, ended_, newest_}; }

void EtcdWorld::restore() {
  etcd_.restore(backup_.state);
  restored_ = true;
  truth_.resize(backup_.entries);
  seen_ = backup_.seen;
  ended_ = backup_.ended;
  newest_ = backup_.newest;
}

void EtcdWorld::expect_ahead_nodes_refuse() {
  for (const auto& node : nodes_) {
    const bool ahead = node->applied.size() > truth_.size() ||
                       !std::equal(node->applied.begin(), node->applied.end(), truth_.begin());
    if (!node->log || !ahead) continue;
    bool refuses = false;
    for (int i = 0; i < 100 && !refuses; ++i) {
      const Status status = node->log->run_watch(1'500 * kMillisecond);
      const Code code = status ? Code::kTimeout : status.error().code;
      refuses = code == Code::kCorrupt || code == Code::kFenced || code == Code::kStale;
    }
    if (!refuses) fail(node->name + " goes on with a log that was put back");
  }
}

}  // namespace kvsyncfs
