#include "engine/cluster/volume_record_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "engine/cluster/node_orders.h"
#include "engine/log/etcd/log_keys.h"

namespace kvsyncfs {

using etcd::Compare;
using etcd::Delete;
using etcd::KeyValue;
using etcd::Put;
using etcd::Range;
using etcd::RangeReply;
using etcd::Txn;
using etcd::TxnReply;
using etcd::value_is;
using etcd::version_is;

namespace {

constexpr std::uint64_t kFirstGeneration = 1;

}  // namespace

std::string removal_key(const std::string& volume, NodeId node, const std::string& name) {
  return fmt::format("/kvsyncfs/{}/removed/{:016x}/{}", volume, node.value, name);
}

VolumeRecordStore::VolumeRecordStore(etcd::EtcdClient& client, Clock& clock, std::string volume)
    : client_(client),
      clock_(clock),
      volume_(std::move(volume)),
      root_("/kvsyncfs/" + volume_ + "/") {}

Error VolumeRecordStore::no_volume() const {
  return Error(Code::kNotFound, "volume " + volume_ + " in etcd");
}

Error VolumeRecordStore::no_node(const std::string& node) const {
  return Error(Code::kNotFound, fmt::format("node {} of volume {} in etcd", node, volume_));
}

Error VolumeRecordStore::was_mounted(const std::string& node) const {
  return Error(Code::kBusy, fmt::format("node {} of volume {} was mounted once", node, volume_));
}

Error VolumeRecordStore::was_removed(const std::string& node) const {
  return Error(Code::kStale,
               fmt::format("node {} was removed from volume {}: make a new store with "
                           "mkfs.kvsyncfs --join in place of this one",
                           node, volume_));
}

Error VolumeRecordStore::node_exists(const std::string& node) const {
  return Error(Code::kExists, fmt::format("node {} exists in volume {}", node, volume_));
}

Result<VolumeRecord> VolumeRecordStore::volume(std::uint64_t deadline_ns) {
  KVSYNCFS_ASSIGN(const RangeReply found, client_.range(Range{key("volume"), {}}, deadline_ns));
  const KeyValue* item = found.only();
  if (item == nullptr) return no_volume();
  return decode_volume_record(item->value);
}

Status VolumeRecordStore::change(const VolumeRecord& from, const VolumeRecord& to,
                                 std::uint64_t deadline_ns) {
  Txn txn;
  txn.compares = {value_is(key("volume"), encode(from))};
  txn.success = {Put{key("volume"), encode(to)}};
  txn.failure = {Range{key("volume"), {}}};
  KVSYNCFS_ASSIGN(const TxnReply reply, client_.txn(txn, deadline_ns));
  if (reply.succeeded) return {};
  const KeyValue* present = reply.ranges.size() == 1 ? reply.ranges[0].only() : nullptr;
  if (present != nullptr && present->value == encode(to)) return {};
  return Error(Code::kBusy, fmt::format("volume {} has changed meanwhile", volume_));
}

Status VolumeRecordStore::tell_secret(const std::string& node, std::uint64_t id,
                                      std::uint64_t deadline_ns) {
  Txn txn;
  txn.success = {Put{secret_key(node), std::to_string(id)}};
  const auto reply = client_.txn(txn, deadline_ns);
  return reply ? Status{} : Status(reply.error());
}

/// A value that this version cannot read is no secret's id.
Result<std::map<std::string, std::uint64_t>> VolumeRecordStore::told_secrets(
    std::uint64_t deadline_ns) {
  const std::string prefix = secret_key("");
  KVSYNCFS_ASSIGN(const std::vector<KeyValue> items, all(prefix, deadline_ns));
  std::map<std::string, std::uint64_t> told;
  for (const KeyValue& item : items) {
    std::uint64_t& id = told[item.key.substr(prefix.size())];
    const char* end = item.value.data() + item.value.size();
    if (std::from_chars(item.value.data(), end, id).ptr != end) id = 0;
  }
  return told;
}

Result<NodeRecord> VolumeRecordStore::node(const std::string& name, std::uint64_t deadline_ns) {
  KVSYNCFS_ASSIGN(const RangeReply found, client_.range(Range{node_key(name), {}}, deadline_ns));
  const KeyValue* item = found.only();
  if (item == nullptr) return no_node(name);
  return decode_node_record(item->value);
}

Result<std::vector<KeyValue>> VolumeRecordStore::all(const std::string& prefix,
                                                     std::uint64_t deadline_ns) {
  const Range range{prefix, etcd::end_of_prefix(prefix), kNodesMax + 1};
  KVSYNCFS_ASSIGN(RangeReply found, client_.range(range, deadline_ns));
  if (found.more || found.items.size() > static_cast<std::size_t>(kNodesMax))
    return Error(Code::kTooBig, fmt::format("volume {}: more than {} nodes", volume_, kNodesMax));
  return std::move(found.items);
}

Result<std::vector<NamedNode>> VolumeRecordStore::decode_nodes(
    const std::string& prefix, const std::vector<KeyValue>& items) const {
  std::vector<NamedNode> found;
  for (const KeyValue& item : items) {
    auto record = decode_node_record(item.value);
    if (!record) return Error(record.error().code, item.key + ": " + record.error().detail);
    found.push_back({item.key.substr(prefix.size()), std::move(*record)});
  }
  std::sort(found.begin(), found.end(),
            [](const NamedNode& a, const NamedNode& b) { return a.record.id < b.record.id; });
  return found;
}

Result<std::vector<NamedNode>> VolumeRecordStore::nodes(std::uint64_t deadline_ns) {
  const std::string prefix = key("nodes/");
  KVSYNCFS_ASSIGN(const std::vector<KeyValue> items, all(prefix, deadline_ns));
  return decode_nodes(prefix, items);
}

Result<std::vector<NamedNode>> VolumeRecordStore::removed(std::uint64_t deadline_ns) {
  const std::string prefix = key("removed/");
  KVSYNCFS_ASSIGN(const std::vector<KeyValue> items, all(prefix, deadline_ns));
  KVSYNCFS_ASSIGN(auto found, decode_nodes(prefix, items));
  for (NamedNode& node : found) node.name.erase(0, node.name.rfind('/') + 1);  // the id before it
  return found;
}

/// A sending without an answer may have done it, now or later: the next one tells by its failure.
Status VolumeRecordStore::create(const VolumeRecord& record, const std::string& node,
                                 NodeRecord first, std::uint64_t deadline_ns) {
  const etcd::LogKeys log(volume_, kFirstGeneration);
  first.id = {1};
  Txn txn;
  txn.compares = {version_is(key("volume"), 0), version_is(key("node_count"), 0),
                  version_is(node_key(node), 0), version_is(log.count(), 0),
                  value_is(log.generation(), std::to_string(kFirstGeneration))};
  txn.success = {Put{key("volume"), encode(record)}, Put{key("node_count"), {}},
                 Put{node_key(node), encode(first)}};
  txn.failure = {Range{key("volume"), {}}, Range{node_key(node), {}}};
  Result<TxnReply> reply = client_.txn(txn, deadline_ns);
  while (!reply && reply.error().code == Code::kTimeout && clock_.boot_ns() < deadline_ns)
    reply = client_.txn(txn, deadline_ns);
  if (!reply) return reply.error();
  if (reply->succeeded) return {};
  if (reply->ranges.size() != 2) return Error(Code::kCorrupt, "etcd: an answer is missing");
  const KeyValue* ours = reply->ranges[1].only();
  if (ours != nullptr && ours->value == encode(first)) return {};
  if (reply->ranges[0].only() != nullptr)
    return Error(Code::kExists, "volume " + volume_ + " in etcd");
  return Error(Code::kExists,
               fmt::format("volume {} has no record in etcd, but {} is not empty", volume_, root_));
}

Result<NodeId> VolumeRecordStore::add(const VolumeRecord& volume, const std::string& node,
                                      NodeRecord record, std::uint64_t deadline_ns) {
  Error last(Code::kTimeout, "registration of node " + node);
  while (clock_.boot_ns() < deadline_ns) {
    Txn look;
    look.success = {Range{key("node_count"), {}}, Range{node_key(node), {}}};
    KVSYNCFS_ASSIGN(const TxnReply now, client_.txn(look, deadline_ns));
    if (now.ranges.size() != 2) return Error(Code::kCorrupt, "etcd: an answer is missing");
    if (const KeyValue* there = now.ranges[1].only()) {
      KVSYNCFS_ASSIGN(const NodeRecord present, decode_node_record(there->value));
      if (present.store != record.store) return node_exists(node);
      return present.id;  // an earlier sending did it
    }
    const KeyValue* count = now.ranges[0].only();
    const std::int64_t given = count == nullptr ? 0 : count->version;
    if (given >= kNodesMax)
      return Error(Code::kTooBig, fmt::format("volume {} has had {} nodes", volume_, kNodesMax));
    record.id = {static_cast<std::uint64_t>(given) + 1};
    Txn txn;
    txn.compares = {value_is(key("volume"), encode(volume)), version_is(key("node_count"), given),
                    version_is(node_key(node), 0)};
    txn.success = {Put{key("node_count"), {}}, Put{node_key(node), encode(record)}};
    txn.failure = {Range{key("volume"), {}}};
    const Result<TxnReply> reply = client_.txn(txn, deadline_ns);
    if (!reply && reply.error().code != Code::kTimeout) return reply.error();
    if (reply && reply->succeeded) return record.id;
    if (!reply) {
      last = reply.error();
      continue;
    }
    const KeyValue* present = reply->ranges.size() == 1 ? reply->ranges[0].only() : nullptr;
    if (present == nullptr || present->value != encode(volume)) return no_volume();
  }
  return last;
}

Status VolumeRecordStore::check_unused(const std::string& node, std::uint64_t deadline_ns) {
  const etcd::LogKeys log(volume_, kFirstGeneration);
  KVSYNCFS_ASSIGN(const RangeReply found, client_.range(Range{log.life(node), {}}, deadline_ns));
  return found.items.empty() ? Status() : was_mounted(node);
}

Status VolumeRecordStore::check_unused(std::uint64_t deadline_ns) {
  const std::string lives = etcd::LogKeys(volume_, kFirstGeneration).life({});
  KVSYNCFS_ASSIGN(const std::vector<KeyValue> lived, all(lives, deadline_ns));
  return lived.empty() ? Status() : was_mounted(lived[0].key.substr(lives.size()));
}

Result<NodeId> VolumeRecordStore::replace(const std::string& node, NodeRecord record,
                                          std::uint64_t deadline_ns) {
  const etcd::LogKeys log(volume_, kFirstGeneration);
  KVSYNCFS_ASSIGN(const RangeReply found, client_.range(Range{node_key(node), {}}, deadline_ns));
  const KeyValue* item = found.only();
  if (item == nullptr) return no_node(node);
  KVSYNCFS_ASSIGN(const NodeRecord present, decode_node_record(item->value));
  record.id = present.id;
  Txn txn;
  txn.compares = {value_is(item->key, item->value), version_is(log.life(node), 0)};
  txn.success = {Put{item->key, encode(record)}};
  KVSYNCFS_ASSIGN(const TxnReply reply, client_.txn(txn, deadline_ns));
  if (!reply.succeeded) return was_mounted(node);
  return record.id;
}

Result<VolumeRecord> VolumeRecordStore::confirm(const ClusterConfig& config,
                                                std::uint64_t deadline_ns) {
  Txn look;
  look.success = {Range{key("volume"), {}}, Range{node_key(config.node), {}},
                  Range{removal_key(volume_, config.id, config.node), {}}};
  KVSYNCFS_ASSIGN(const TxnReply now, client_.txn(look, deadline_ns));
  if (now.ranges.size() != look.success.size())
    return Error(Code::kCorrupt, "etcd: an answer is missing");
  const KeyValue* volume = now.ranges[0].only();
  const KeyValue* node = now.ranges[1].only();
  if (volume == nullptr) return no_volume();
  if (now.ranges[2].only() != nullptr) return was_removed(config.node);
  if (node == nullptr) return no_node(config.node);
  KVSYNCFS_ASSIGN(const NodeRecord record, decode_node_record(node->value));
  if (record.store != config.store || record.id != config.id)
    return Error(Code::kStale, fmt::format("node {} of volume {} is another store: {}", config.node,
                                           volume_, uuid_text(record.store)));
  return decode_volume_record(volume->value);
}

/// That no session lives is asked of the last life's key: a later one begins with another.
Result<NodeId> VolumeRecordStore::remove(const std::string& node, std::uint64_t deadline_ns) {
  const etcd::LogKeys log(volume_, kFirstGeneration);
  Txn look;
  look.success = {Range{node_key(node), {}}, Range{log.life(node), {}},
                  Range{key("nodes/"), etcd::end_of_prefix(key("nodes/")), 2, 0, true}};
  KVSYNCFS_ASSIGN(const TxnReply now, client_.txn(look, deadline_ns));
  if (now.ranges.size() != look.success.size())
    return Error(Code::kCorrupt, "etcd: an answer is missing");
  const KeyValue* item = now.ranges[0].only();
  const KeyValue* life = now.ranges[1].only();
  if (item == nullptr) return no_node(node);
  if (now.ranges[2].items.size() < 2)
    return Error(Code::kInvalid,
                 fmt::format("node {} is the only one of volume {}", node, volume_));
  KVSYNCFS_ASSIGN(const NodeRecord record, decode_node_record(item->value));
  Txn txn;
  txn.compares = {value_is(item->key, item->value),
                  version_is(log.life(node), life == nullptr ? 0 : life->version)};
  if (life != nullptr) txn.compares.push_back(version_is(life->value, 0));
  txn.success = {Delete{item->key, {}}, Delete{key("durable/") + node, {}},
                 Delete{secret_key(node), {}},
                 Put{removal_key(volume_, record.id, node), item->value}};
  for (const std::string& order : order_keys(volume_, node))
    txn.success.push_back(Delete{order, {}});
  KVSYNCFS_ASSIGN(const TxnReply reply, client_.txn(txn, deadline_ns));
  if (reply.succeeded) return record.id;
  return Error(Code::kBusy, fmt::format("node {} of volume {} is up, or was some seconds ago: its "
                                        "session has not ended",
                                        node, volume_));
}

/// A node that comes meanwhile changes the count; one that is there must not be mounted meanwhile.
Status VolumeRecordStore::remove_unused(std::uint64_t deadline_ns) {
  constexpr std::size_t kNodesPerTransaction = 100;  // of etcd's limit of 128 comparisons
  const etcd::LogKeys log(volume_, kFirstGeneration);
  KVSYNCFS_ASSIGN(const RangeReply count, client_.range(Range{key("node_count"), {}}, deadline_ns));
  KVSYNCFS_TRY(check_unused(deadline_ns));
  const std::string prefix = key("nodes/");
  KVSYNCFS_ASSIGN(const std::vector<KeyValue> nodes, all(prefix, deadline_ns));
  if (nodes.size() > kNodesPerTransaction)
    return Error(Code::kTooBig, fmt::format("volume {} has {} nodes", volume_, nodes.size()));
  Txn txn;
  const KeyValue* counted = count.only();
  txn.compares = {version_is(key("node_count"), counted == nullptr ? 0 : counted->version)};
  for (const KeyValue& node : nodes)
    txn.compares.push_back(version_is(log.life(node.key.substr(prefix.size())), 0));
  txn.success = {Delete{root_, etcd::end_of_prefix(root_)}};
  KVSYNCFS_ASSIGN(const TxnReply reply, client_.txn(txn, deadline_ns));
  if (!reply.succeeded)
    return Error(Code::kBusy, fmt::format("volume {} has changed meanwhile", volume_));
  return {};
}

}  // namespace kvsyncfs
