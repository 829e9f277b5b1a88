#include "engine/cluster/durable_positions.h"

#include <fmt/format.h>

#include <utility>

#include "engine/log/etcd/log_keys.h"

namespace kvsyncfs {
namespace {

constexpr std::uint64_t kGeneration = 1;  // of the log; there is no other one yet

}  // namespace

LeastDurable least_durable(const std::vector<NamedNode>& nodes, const PositionMap& durable,
                           Position trimmed) {
  LeastDurable least;
  for (const NamedNode& node : nodes) {
    const auto told = durable.find(node.name);
    if (told == durable.end() && trimmed > Position{}) continue;
    const Position position = told == durable.end() ? Position{} : told->second;
    if (least.node.empty() || position < least.position) least = {position, node.name};
  }
  return least;
}

bool trims_log(const ClusterMap& members, NodeId node) {
  return !members.members.empty() && members.members.front().id == node;
}

DurablePositions::DurablePositions(etcd::EtcdClient& client, const std::string& volume)
    : client_(client), volume_(volume), prefix_(fmt::format("/kvsyncfs/{}/durable/", volume)) {}

Status DurablePositions::announce(const std::string& node, Incarnation incarnation,
                                  Position position, std::uint64_t deadline_ns) {
  const std::string session = etcd::LogKeys(volume_, kGeneration).session(node, incarnation.value);
  etcd::Txn txn;  // "the session is gone" can be asked with one compare, that it is there cannot
  txn.compares = {etcd::version_is(session, 0)};
  txn.failure = {etcd::Put{prefix_ + node, std::to_string(position.value)}};
  KVSYNCFS_ASSIGN(const etcd::TxnReply reply, client_.txn(txn, deadline_ns));
  return reply.succeeded ? Error(Code::kFenced, fmt::format("node {}: session {} has ended", node,
                                                            incarnation.value))
                         : Status{};
}

Result<Position> DurablePositions::trimmed(std::uint64_t deadline_ns) {
  const etcd::Range record{etcd::LogKeys(volume_, kGeneration).trim(), {}};
  KVSYNCFS_ASSIGN(const etcd::RangeReply found, client_.range(record, deadline_ns));
  const auto trim = found.items.size() == 1 ? etcd::parse_trim(found.items[0].value) : std::nullopt;
  if (!trim) return Error(Code::kCorrupt, "log in etcd: bad trim record");
  return trim->position;
}

Result<PositionMap> DurablePositions::read(std::uint64_t deadline_ns) {
  const etcd::Range all{prefix_, etcd::end_of_prefix(prefix_), VolumeRecordStore::kNodesMax + 1};
  KVSYNCFS_ASSIGN(const etcd::RangeReply found, client_.range(all, deadline_ns));
  if (found.items.size() > static_cast<std::size_t>(VolumeRecordStore::kNodesMax))
    return Error(Code::kTooBig, fmt::format("volume {}: too many durable positions", volume_));
  PositionMap positions;
  for (const etcd::KeyValue& item : found.items) {
    const auto number = etcd::parse_number(item.value);
    if (!number || item.key.size() < prefix_.size())
      return Error(Code::kCorrupt, item.key + " in etcd: not a position");
    positions[item.key.substr(prefix_.size())] = Position{*number};
  }
  return positions;
}

}  // namespace kvsyncfs
