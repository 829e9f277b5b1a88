#include "engine/cluster/log_generations.h"

#include <fmt/format.h>

#include <map>
#include <utility>
#include <vector>

#include "engine/cluster/volume_record_store.h"
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

constexpr std::int64_t kNodesMax = VolumeRecordStore::kNodesMax;
constexpr std::size_t kNodesPerTransaction = 100;  // of etcd's limit of 128 comparisons
constexpr std::int64_t kKeysPerDelete = 1000;

Range all(const std::string& prefix, bool keys_only) {
  return {prefix, etcd::end_of_prefix(prefix), kNodesMax + 1, 0, keys_only};
}

Result<TxnReply> look(etcd::EtcdClient& client, std::vector<etcd::Operation> ranges,
                      std::uint64_t deadline_ns) {
  Txn txn;
  txn.success = std::move(ranges);
  KVSYNCFS_ASSIGN(TxnReply reply, client.txn(txn, deadline_ns));
  if (reply.ranges.size() != txn.success.size())
    return Error(Code::kCorrupt, "etcd: an answer is missing");
  for (const RangeReply& range : reply.ranges)
    if (range.items.size() > static_cast<std::size_t>(kNodesMax))
      return Error(Code::kTooBig, fmt::format("a volume of more than {} nodes", kNodesMax));
  return reply;
}

/// That it holds what was read.
Compare unchanged(const std::string& key, const KeyValue* item) {
  return item == nullptr ? version_is(key, 0) : value_is(key, item->value);
}

Result<std::uint64_t> generation_of(const KeyValue* item) {
  if (item == nullptr) return std::uint64_t{0};
  const auto number = etcd::parse_number(item->value);
  if (!number || *number == 0) return Error(Code::kCorrupt, item->key + " in etcd: no number");
  return *number;
}

}  // namespace

LogGenerations::LogGenerations(etcd::EtcdClient& client, Clock& clock, std::string volume)
    : client_(client),
      clock_(clock),
      volume_(std::move(volume)),
      root_("/kvsyncfs/" + volume_ + "/") {}

Result<LogInEtcd> LogGenerations::read(std::uint64_t deadline_ns) {
  LogInEtcd found;
  KVSYNCFS_ASSIGN(const RangeReply named, client_.range(Range{key("generation"), {}}, deadline_ns));
  KVSYNCFS_ASSIGN(found.generation, generation_of(named.only()));
  if (found.generation == 0) return found;
  const etcd::LogKeys log(volume_, found.generation);
  const std::string durable = key("durable/");
  KVSYNCFS_ASSIGN(const TxnReply now, look(client_,
                                           {Range{log.generation(), {}}, Range{log.trim(), {}},
                                            Range{log.origin(), {}}, all(durable, false)},
                                           deadline_ns));
  KVSYNCFS_ASSIGN(const std::uint64_t still, generation_of(now.ranges[0].only()));
  if (still != found.generation) return Error(Code::kBusy, "the log of the volume begins anew");
  const KeyValue* trim = now.ranges[1].only();
  const auto trimmed = trim == nullptr ? std::nullopt : etcd::parse_trim(trim->value);
  if (!trimmed) return Error(Code::kCorrupt, "log in etcd: bad trim record");
  found.base = trimmed->position;
  if (const KeyValue* origin = now.ranges[2].only()) {
    const auto position = etcd::parse_number(origin->value);
    if (!position) return Error(Code::kCorrupt, origin->key + " in etcd: not a position");
    found.origin = Position{*position};
  }
  for (const KeyValue& item : now.ranges[3].items) {
    const auto position = etcd::parse_number(item.value);
    if (!position) return Error(Code::kCorrupt, item.key + " in etcd: not a position");
    found.durable[item.key.substr(durable.size())] = Position{*position};
  }
  return found;
}

Status LogGenerations::check_unmounted(std::uint64_t deadline_ns) {
  const std::string prefix = key("session/");
  const Range one{prefix, etcd::end_of_prefix(prefix), 1, 0, true};
  KVSYNCFS_ASSIGN(const RangeReply found, client_.range(one, deadline_ns));
  if (found.items.empty()) return {};
  const std::string rest = found.items[0].key.substr(prefix.size());
  return Error(Code::kBusy, fmt::format("node {} of volume {} is up, or was some seconds ago: all "
                                        "nodes must be unmounted",
                                        rest.substr(0, rest.find('/')), volume_));
}

/// Only its version counts, and that grows by one.
Status LogGenerations::raise_node_count(std::uint64_t ids, std::uint64_t deadline_ns) {
  if (ids > static_cast<std::uint64_t>(kNodesMax))
    return Error(Code::kTooBig, fmt::format("node id {} in volume {}", ids, volume_));
  for (;;) {
    KVSYNCFS_ASSIGN(const RangeReply found,
                    client_.range(Range{key("node_count"), {}}, deadline_ns));
    const std::int64_t given = found.only() == nullptr ? 0 : found.only()->version;
    if (given >= static_cast<std::int64_t>(ids)) return {};
    Txn txn;
    txn.compares = {version_is(key("node_count"), given)};
    txn.success = {Put{key("node_count"), {}}};
    const auto reply = client_.txn(txn, deadline_ns);
    if (!reply && reply.error().code != Code::kTimeout) return reply.error();
    if (clock_.boot_ns() >= deadline_ns) return Error(Code::kTimeout, "node ids in etcd");
  }
}

/// False: it is not known whether it happened, or somebody was faster; look again.
Result<bool> LogGenerations::try_to_begin(const NewLog& log, std::uint64_t deadline_ns) {
  const etcd::LogKeys keys(volume_, log.generation);
  const std::string node = key("nodes/") + log.node, nodes = key("nodes/"), lives = keys.life({});
  const std::string removal = removal_key(volume_, log.record.id, log.node);
  KVSYNCFS_ASSIGN(const TxnReply now,
                  look(client_,
                       {Range{keys.generation(), {}}, Range{key("volume"), {}}, Range{node, {}},
                        Range{removal, {}}, all(nodes, true), all(lives, false)},
                       deadline_ns));
  KVSYNCFS_ASSIGN(const std::uint64_t present, generation_of(now.ranges[0].only()));
  if (present == log.generation) return true;
  if (present != log.former)
    return Error(Code::kBusy,
                 fmt::format("the log of volume {} has begun anew meanwhile", volume_));
  const KeyValue* volume = now.ranges[1].only();
  if (volume != nullptr) {
    KVSYNCFS_ASSIGN(const VolumeRecord record, decode_volume_record(volume->value));
    if (record.uuid != log.volume.uuid)
      return Error(Code::kExists, fmt::format("etcd has another volume of the name {}", volume_));
  }
  const KeyValue* own = now.ranges[2].only();
  if (own != nullptr) {
    KVSYNCFS_ASSIGN(const NodeRecord record, decode_node_record(own->value));
    if (record.store != log.record.store || record.id != log.record.id)
      return Error(Code::kStale,
                   fmt::format("node {} of volume {} is another store", log.node, volume_));
  }
  if (now.ranges[3].only() != nullptr)
    return Error(Code::kStale,
                 fmt::format("node {} was removed from volume {}", log.node, volume_));

  std::map<std::string, std::int64_t> versions;  // of the keys of the lives
  for (const KeyValue& item : now.ranges[4].items)
    versions[keys.life(item.key.substr(nodes.size()))] = 0;
  for (const KeyValue& item : now.ranges[5].items) versions[item.key] = item.version;
  if (versions.size() > kNodesPerTransaction)
    return Error(Code::kTooBig, fmt::format("volume {} has {} nodes", volume_, versions.size()));

  Txn txn;
  txn.compares = {unchanged(keys.generation(), now.ranges[0].only()),
                  unchanged(key("volume"), volume), unchanged(node, own), version_is(removal, 0)};
  for (const auto& [life, version] : versions) txn.compares.push_back(version_is(life, version));
  txn.success = {Put{keys.generation(), std::to_string(log.generation)},
                 Put{keys.trim(), etcd::to_text(etcd::TrimRecord{0, log.base})},
                 Put{keys.origin(), std::to_string(log.origin.value)}};
  if (volume == nullptr) txn.success.push_back(Put{key("volume"), encode(log.volume)});
  if (own == nullptr) txn.success.push_back(Put{node, encode(log.record)});
  for (const char* gone : {"session/", "durable/", "keep/", "members/"})
    txn.success.push_back(Delete{key(gone), etcd::end_of_prefix(key(gone))});
  KVSYNCFS_TRY(check_unmounted(deadline_ns));  // a life that begins from now on has a new version
  const auto reply = client_.txn(txn, deadline_ns);
  if (!reply && reply.error().code != Code::kTimeout) return reply.error();
  return reply && reply->succeeded;
}

Status LogGenerations::begin(const NewLog& log, std::uint64_t deadline_ns) {
  KVSYNCFS_TRY(raise_node_count(log.ids_given, deadline_ns));
  for (;;) {
    KVSYNCFS_ASSIGN(const bool begun, try_to_begin(log, deadline_ns));
    if (begun) return {};
    if (clock_.boot_ns() >= deadline_ns)
      return Error(Code::kTimeout, "beginning of a log of volume " + volume_);
  }
}

Status LogGenerations::remove_log(std::uint64_t generation, std::uint64_t deadline_ns) {
  const std::string prefix = etcd::LogKeys(volume_, generation).log();
  for (;;) {
    const Range some{prefix, etcd::end_of_prefix(prefix), kKeysPerDelete, 0, true};
    KVSYNCFS_ASSIGN(const RangeReply found, client_.range(some, deadline_ns));
    if (found.items.empty()) return {};
    Txn txn;
    txn.success = {Delete{found.items.front().key, found.items.back().key + '\0'}};
    KVSYNCFS_TRY(client_.txn(txn, deadline_ns));
  }
}

Result<bool> LogGenerations::try_to_enlist(const ClusterConfig& config, std::uint64_t generation,
                                           std::uint64_t deadline_ns) {
  const std::string node = key("nodes/") + config.node, nodes = key("nodes/");
  const std::string removal = removal_key(volume_, config.id, config.node);
  const std::string number = key("generation");
  KVSYNCFS_ASSIGN(
      const TxnReply now,
      look(client_, {Range{number, {}}, Range{removal, {}}, all(nodes, false)}, deadline_ns));
  KVSYNCFS_ASSIGN(const std::uint64_t present, generation_of(now.ranges[0].only()));
  if (present != generation)
    return Error(Code::kNotFound, fmt::format("log of volume {} of that generation", volume_));
  if (now.ranges[1].only() != nullptr)
    return Error(Code::kStale,
                 fmt::format("node {} was removed from volume {}", config.node, volume_));
  for (const KeyValue& item : now.ranges[2].items) {
    KVSYNCFS_ASSIGN(const NodeRecord record, decode_node_record(item.value));
    if (item.key == node && record.store == config.store && record.id == config.id) return true;
    if (item.key == node || record.id == config.id)
      return Error(Code::kExists,
                   fmt::format("node {} with id {} is another store of volume {}",
                               item.key.substr(nodes.size()), record.id.value, volume_));
  }
  Txn txn;  // the id is below the count, so nobody is given it meanwhile
  txn.compares = {version_is(node, 0), version_is(removal, 0),
                  value_is(number, std::to_string(generation))};
  txn.success = {Put{node, encode(NodeRecord{config.id, config.store, config.rack, clock_.now()})}};
  const auto reply = client_.txn(txn, deadline_ns);
  if (!reply && reply.error().code != Code::kTimeout) return reply.error();
  return reply && reply->succeeded;
}

Status LogGenerations::enlist(const ClusterConfig& config, std::uint64_t generation,
                              std::uint64_t deadline_ns) {
  KVSYNCFS_TRY(raise_node_count(config.id.value, deadline_ns));
  for (;;) {
    KVSYNCFS_ASSIGN(const bool is_there, try_to_enlist(config, generation, deadline_ns));
    if (is_there) return {};
    if (clock_.boot_ns() >= deadline_ns)
      return Error(Code::kTimeout, "registration of node " + config.node);
  }
}

}  // namespace kvsyncfs
