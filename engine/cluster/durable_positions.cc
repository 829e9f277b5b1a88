#include "engine/cluster/durable_positions.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "engine/log/etcd/log_keys.h"

namespace kvsyncfs {
namespace {

Result<PositionMap> positions_of(const etcd::RangeReply& found, const std::string& prefix) {
  PositionMap positions;
  for (const etcd::KeyValue& item : found.items) {
    const auto number = etcd::parse_number(item.value);
    if (!number || item.key.size() < prefix.size())
      return Error(Code::kCorrupt, item.key + " in etcd: not a position");
    positions[item.key.substr(prefix.size())] = Position{*number};
  }
  return positions;
}

std::set<std::string> names_of(const etcd::RangeReply& found, const std::string& prefix) {
  std::set<std::string> names;
  for (const etcd::KeyValue& item : found.items) names.insert(item.key.substr(prefix.size()));
  return names;
}

Result<Position> trimmed_of(const etcd::RangeReply& found) {
  const auto trim = found.items.size() == 1 ? etcd::parse_trim(found.items[0].value) : std::nullopt;
  if (!trim) return Error(Code::kCorrupt, "log in etcd: bad trim record");
  return trim->position;
}

}  // namespace

LogLimit log_limit(const LogNeeds& needs, std::size_t copies) {
  LogLimit limit;
  const auto take = [&limit](Position position, const std::string& node) {
    if (limit.node.empty() || position < limit.position) limit = {position, node};
  };
  const auto durable_of = [&needs](const std::string& node) {
    const auto told = needs.durable.find(node);
    return told == needs.durable.end() ? Position{} : told->second;
  };
  for (const auto& [node, position] : needs.kept) take(position, node);
  std::vector<std::pair<Position, std::string>> all;
  for (const std::string& node : needs.nodes) {
    all.emplace_back(durable_of(node), node);
    if (needs.up.contains(node) && !needs.kept.contains(node)) take(all.back().first, node);
  }
  std::sort(all.rbegin(), all.rend());
  const std::size_t least = std::min(copies, all.size());
  if (least > 0) take(all[least - 1].first, all[least - 1].second);
  return limit;
}

bool trims_log(const ClusterMap& members, NodeId node) {
  return !members.members.empty() && members.members.front().id == node;
}

DurablePositions::DurablePositions(etcd::EtcdClient& client, const std::string& volume,
                                   std::uint64_t generation)
    : client_(client),
      volume_(volume),
      root_(fmt::format("/kvsyncfs/{}/", volume)),
      generation_(generation) {}

Status DurablePositions::announce(const std::string& node, Incarnation incarnation,
                                  Position position, std::uint64_t deadline_ns) {
  const std::string session = etcd::LogKeys(volume_, generation_).session(node, incarnation.value);
  etcd::Txn txn;  // "the session is gone" can be asked with one compare, that it is there cannot
  txn.compares = {etcd::version_is(session, 0)};
  txn.failure = {etcd::Put{key("durable/") + node, std::to_string(position.value)}};
  KVSYNCFS_ASSIGN(const etcd::TxnReply reply, client_.txn(txn, deadline_ns));
  return reply.succeeded ? Error(Code::kFenced, fmt::format("node {}: session {} has ended", node,
                                                            incarnation.value))
                         : Status{};
}

Status DurablePositions::keep(const std::string& node, std::int64_t lease, Position position,
                              std::uint64_t deadline_ns) {
  etcd::Txn txn;
  txn.success = {etcd::Put{key("keep/") + node, std::to_string(position.value), lease},
                 etcd::Put{key("keep_count"), {}}};
  KVSYNCFS_TRY(client_.txn(txn, deadline_ns));
  return {};
}

Status DurablePositions::let_go(const std::string& node, std::uint64_t deadline_ns) {
  etcd::Txn txn;
  txn.success = {etcd::Delete{key("keep/") + node, {}}};
  KVSYNCFS_TRY(client_.txn(txn, deadline_ns));
  return {};
}

Result<LogNeeds> DurablePositions::needs(std::uint64_t deadline_ns) {
  constexpr auto kNodesMax = VolumeRecordStore::kNodesMax;
  const auto all = [&](const char* name, bool keys_only) {
    return etcd::Range{key(name), etcd::end_of_prefix(key(name)), kNodesMax + 1, 0, keys_only};
  };
  etcd::Txn look;
  look.success = {etcd::Range{etcd::LogKeys(volume_, generation_).trim(), {}},
                  etcd::Range{key("keep_count"), {}},
                  all("nodes/", true),
                  all("members/", true),
                  all("durable/", false),
                  all("keep/", false)};
  KVSYNCFS_ASSIGN(const etcd::TxnReply reply, client_.txn(look, deadline_ns));
  if (reply.ranges.size() != look.success.size())
    return Error(Code::kCorrupt, "etcd: an answer is missing");
  for (const etcd::RangeReply& range : reply.ranges)
    if (range.items.size() > static_cast<std::size_t>(kNodesMax))
      return Error(Code::kTooBig, fmt::format("volume {}: more than {} nodes", volume_, kNodesMax));
  LogNeeds needs;
  KVSYNCFS_ASSIGN(needs.trimmed, trimmed_of(reply.ranges[0]));
  needs.keep_version = reply.ranges[1].items.empty() ? 0 : reply.ranges[1].items[0].version;
  needs.nodes = names_of(reply.ranges[2], key("nodes/"));
  needs.up = names_of(reply.ranges[3], key("members/"));
  KVSYNCFS_ASSIGN(needs.durable, positions_of(reply.ranges[4], key("durable/")));
  KVSYNCFS_ASSIGN(needs.kept, positions_of(reply.ranges[5], key("keep/")));
  return needs;
}

etcd::Compare DurablePositions::no_marker_since(const LogNeeds& needs) const {
  return etcd::version_is(key("keep_count"), needs.keep_version);
}

Result<Position> DurablePositions::trimmed(std::uint64_t deadline_ns) {
  const etcd::Range record{etcd::LogKeys(volume_, generation_).trim(), {}};
  KVSYNCFS_ASSIGN(const etcd::RangeReply found, client_.range(record, deadline_ns));
  return trimmed_of(found);
}

}  // namespace kvsyncfs
