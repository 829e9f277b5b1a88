#include "engine/cluster/node_orders.h"

#include <fmt/format.h>

#include <string_view>
#include <utility>

#include "engine/cluster/volume_record_store.h"
#include "engine/log/etcd/log_keys.h"

namespace kvsyncfs {
namespace {

constexpr std::uint64_t kGeneration = 1;  // the keys of lives are the same in each
constexpr std::int64_t kOrdersMax = 4 * VolumeRecordStore::kNodesMax + 1;
constexpr std::string_view kDrain = "drain/", kMaintenance = "maintenance/", kReplace = "replace/",
                           kEvict = "evict/", kRate = "rate";

std::string prefix_of(const std::string& volume) {
  return fmt::format("/kvsyncfs/{}/orders/", volume);
}

void take(NodeOrders& orders, std::string_view key, const std::string& value) {
  const auto named = [&key](std::string_view kind) {
    if (!key.starts_with(kind) || !etcd::is_name(key.substr(kind.size()))) return std::string();
    return std::string(key.substr(kind.size()));
  };
  const auto number = etcd::parse_number(value);
  if (const std::string node = named(kDrain); !node.empty()) orders.draining.insert(node);
  if (const std::string node = named(kMaintenance); !node.empty()) orders.maintained.insert(node);
  if (const std::string node = named(kEvict); !node.empty()) orders.evicted.insert(node);
  if (const std::string node = named(kReplace); !node.empty() && number)
    orders.replaced[node] = *number;
  if (key == kRate && number && *number > 0) orders.heal_rate_bytes = number;
}

}  // namespace

std::vector<std::string> order_keys(const std::string& volume, const std::string& node) {
  std::vector<std::string> keys;
  for (const std::string_view kind : {kDrain, kMaintenance, kReplace, kEvict})
    keys.push_back(fmt::format("{}{}{}", prefix_of(volume), kind, node));
  return keys;
}

std::string eviction_key(const std::string& volume, const std::string& node) {
  return fmt::format("{}{}{}", prefix_of(volume), kEvict, node);
}

NodeOrderStore::NodeOrderStore(etcd::EtcdClient& client, Clock& clock, const std::string& volume)
    : client_(client), clock_(clock), volume_(volume), prefix_(prefix_of(volume)) {}

Result<NodeOrders> NodeOrderStore::read(std::uint64_t deadline_ns) {
  const etcd::Range all{prefix_, etcd::end_of_prefix(prefix_), kOrdersMax + 1};
  KVSYNCFS_ASSIGN(const etcd::RangeReply found, client_.range(all, deadline_ns));
  if (found.items.size() > static_cast<std::size_t>(kOrdersMax))
    return Error(Code::kTooBig, fmt::format("volume {}: too many orders", volume_));
  NodeOrders orders;
  for (const etcd::KeyValue& item : found.items)
    if (item.key.starts_with(prefix_))
      take(orders, std::string_view(item.key).substr(prefix_.size()), item.value);
  return orders;
}

Status NodeOrderStore::change(etcd::Operation operation, std::uint64_t deadline_ns) {
  etcd::Txn txn;
  txn.success = {std::move(operation)};
  KVSYNCFS_TRY(client_.txn(txn, deadline_ns));
  return {};
}

Status NodeOrderStore::drain(const std::string& node, std::uint64_t deadline_ns) {
  return change(etcd::Put{fmt::format("{}{}{}", prefix_, kDrain, node), ""}, deadline_ns);
}

Status NodeOrderStore::end_drain(const std::string& node, std::uint64_t deadline_ns) {
  return change(etcd::Delete{fmt::format("{}{}{}", prefix_, kDrain, node), {}}, deadline_ns);
}

Status NodeOrderStore::begin_maintenance(const std::string& node, std::int64_t seconds,
                                         std::uint64_t deadline_ns) {
  if (seconds <= 0) return Error(Code::kInvalid, "a maintenance of no length");
  KVSYNCFS_ASSIGN(const etcd::Lease lease, client_.grant_lease(seconds, deadline_ns));
  return change(etcd::Put{fmt::format("{}{}{}", prefix_, kMaintenance, node), "", lease.id},
                deadline_ns);
}

Status NodeOrderStore::end_maintenance(const std::string& node, std::uint64_t deadline_ns) {
  return change(etcd::Delete{fmt::format("{}{}{}", prefix_, kMaintenance, node), {}}, deadline_ns);
}

Status NodeOrderStore::evict(const std::string& node, std::uint64_t deadline_ns) {
  while (clock_.boot_ns() < deadline_ns) {
    KVSYNCFS_ASSIGN(const bool is_done, try_to_evict(node, deadline_ns));
    if (is_done) return {};
  }
  return Error(Code::kTimeout, fmt::format("node {}: its session changes all the time", node));
}

/// The session's key keeps its lease, so that nobody ends the session while the node may believe in
/// it. Only a later life takes the key away before the lease goes, and that is asked for.
Result<bool> NodeOrderStore::try_to_evict(const std::string& node, std::uint64_t deadline_ns) {
  const std::string life_key = etcd::LogKeys(volume_, kGeneration).life(node);
  KVSYNCFS_ASSIGN(const etcd::RangeReply life,
                  client_.range(etcd::Range{life_key, {}}, deadline_ns));
  etcd::Txn txn;
  txn.compares = {etcd::version_is(life_key, life.items.empty() ? 0 : life.items[0].version)};
  txn.success = {etcd::Put{eviction_key(volume_, node), ""}};
  if (!life.items.empty()) {
    const std::string& session_key = life.items[0].value;
    KVSYNCFS_ASSIGN(const etcd::RangeReply session,
                    client_.range(etcd::Range{session_key, {}}, deadline_ns));
    if (session.items.empty())
      txn.compares.push_back(etcd::version_is(session_key, 0));
    else
      txn.success.emplace_back(
          etcd::Put{session_key, std::string(etcd::kSentAway), session.items[0].lease});
  }
  const auto done = client_.txn(txn, deadline_ns);
  if (done) return done->succeeded;
  if (done.error().code == Code::kNotFound) return false;  // the lease has gone since
  return done.error();
}

Status NodeOrderStore::end_eviction(const std::string& node, std::uint64_t deadline_ns) {
  return change(etcd::Delete{eviction_key(volume_, node), {}}, deadline_ns);
}

Status NodeOrderStore::replace(const std::string& node, std::uint64_t session,
                               std::uint64_t deadline_ns) {
  return change(etcd::Put{fmt::format("{}{}{}", prefix_, kReplace, node), std::to_string(session)},
                deadline_ns);
}

Status NodeOrderStore::set_heal_rate(std::uint64_t bytes_per_second, std::uint64_t deadline_ns) {
  return change(etcd::Put{fmt::format("{}{}", prefix_, kRate), std::to_string(bytes_per_second)},
                deadline_ns);
}

}  // namespace kvsyncfs
