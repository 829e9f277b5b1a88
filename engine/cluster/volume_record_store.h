// The permanent records of a volume and its nodes in etcd.
//
//   /kvsyncfs/<volume>/volume         VolumeRecord
//   /kvsyncfs/<volume>/node_count     empty; its version counts the ids that were given
//   /kvsyncfs/<volume>/nodes/<name>   NodeRecord
//   /kvsyncfs/<volume>/removed/<id>/<name>   NodeRecord of a node that was taken out for good
//
//   /kvsyncfs/<volume>/secrets/<name>   decimal, the id of the newest secret that the node has
//
// A volume comes with its first node, in one transaction, so a volume without nodes is never seen,
// and each further node with its id in one. A transaction of which the outcome is not known is
// looked for before it is sent again, by the UUID of the node's store. Thread: any; nothing is held
// between calls. Texts: format/cluster_config.h.
//
// Errors of every call, beside those it tells: kCorrupt and kNewerFormat (a record), those of
// EtcdClient. kTimeout of a change: it may have been carried out.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "engine/base/error.h"
#include "engine/base/ids.h"
#include "engine/env/clock.h"
#include "engine/format/cluster_config.h"
#include "engine/log/etcd/etcd_client.h"

namespace kvsyncfs {

struct NamedNode {
  std::string name;
  NodeRecord record;
};

/// Key of what is left in etcd of a node that was removed: no life of the node begins while it is
/// there. Ids are never given again, names are.
std::string removal_key(const std::string& volume, NodeId node, const std::string& name);

class VolumeRecordStore {
 public:
  static constexpr std::int64_t kNodesMax = 1024;  ///< of a volume

  /// Client and clock outlive it. Requires is_cluster_name(volume).
  VolumeRecordStore(etcd::EtcdClient& client, Clock& clock, std::string volume);

  /// Errors: kNotFound, naming the volume.
  Result<VolumeRecord> volume(std::uint64_t deadline_ns);
  /// Errors: kNotFound, naming node and volume.
  Result<NodeRecord> node(const std::string& name, std::uint64_t deadline_ns);
  /// The volume's record is `to` when it returns, if it was `from`. Errors: kBusy (it was not).
  Status change(const VolumeRecord& from, const VolumeRecord& to, std::uint64_t deadline_ns);
  /// What the node that runs tells of itself, and what all told. Errors: kTooBig.
  Status tell_secret(const std::string& node, std::uint64_t id, std::uint64_t deadline_ns);
  Result<std::map<std::string, std::uint64_t>> told_secrets(std::uint64_t deadline_ns);
  /// In the order of ids. Errors: kTooBig (more than kNodesMax).
  Result<std::vector<NamedNode>> nodes(std::uint64_t deadline_ns);

  /// Those that were removed, by id. Errors: kTooBig (more than kNodesMax).
  Result<std::vector<NamedNode>> removed(std::uint64_t deadline_ns);

  /// What a store must see before it is used: its volume, and that its node is this store. Errors:
  /// kNotFound (volume or node), kStale (the node is another store, or was removed).
  Result<VolumeRecord> confirm(const ClusterConfig& config, std::uint64_t deadline_ns);

  /// Makes the volume with `node`, whose id is 1 whatever it says. The log must be there, of
  /// generation 1 and unused. Errors: kExists (the volume, or keys of one without a record).
  Status create(const VolumeRecord& record, const std::string& node, NodeRecord first,
                std::uint64_t deadline_ns);
  /// Adds a node to the volume whose record is `volume` and tells the id that it got. Errors:
  /// kExists (the name), kNotFound (no such volume any more), kTooBig.
  Result<NodeId> add(const VolumeRecord& volume, const std::string& node, NodeRecord record,
                     std::uint64_t deadline_ns);

  /// Takes a node out for good: its record and its durable position go, and the removal's own
  /// record comes, in one transaction. Its id is not given again, its name can be. Returns the
  /// node's id. Errors: kNotFound, kBusy (a session of it lives, or it began a life meanwhile),
  /// kInvalid (it is the only node).
  Result<NodeId> remove(const std::string& node, std::uint64_t deadline_ns);

  // A volume or node that was never mounted holds nothing, so another one may take its place.

  /// No life of the node ever began. Errors: kBusy (it was mounted once).
  Status check_unused(const std::string& node, std::uint64_t deadline_ns);
  /// No life of any node ever began. Errors: kBusy, naming a node.
  Status check_unused(std::uint64_t deadline_ns);
  /// Gives an unused node to another store; it keeps its id. Errors: kNotFound, kBusy.
  Result<NodeId> replace(const std::string& node, NodeRecord record, std::uint64_t deadline_ns);
  /// Removes an unused volume with its log and nodes, and what is left of one without a record.
  /// Errors: kBusy (it is used or changes), kTooBig (more than 100 nodes).
  Status remove_unused(std::uint64_t deadline_ns);

 private:
  std::string key(std::string_view name) const { return root_ + std::string(name); }
  std::string node_key(std::string_view node) const { return key("nodes/") + std::string(node); }
  std::string secret_key(const std::string& node) const { return key("secrets/") + node; }
  Result<std::vector<NamedNode>> decode_nodes(const std::string& prefix,
                                              const std::vector<etcd::KeyValue>& items) const;
  Result<std::vector<etcd::KeyValue>> all(const std::string& prefix, std::uint64_t deadline_ns);
  Error no_volume() const;
  Error no_node(const std::string& node) const;
  Error node_exists(const std::string& node) const;
  Error was_mounted(const std::string& node) const;
  Error was_removed(const std::string& node) const;

  etcd::EtcdClient& client_;
  Clock& clock_;
  const std::string volume_, root_;
};

}  // namespace kvsyncfs
