// What an operator wants of the nodes of a volume, told in etcd, so that it reaches all of them and
// outlives the node that was told.
//
//   /kvsyncfs/<volume>/orders/drain/<node>         empty: its copies are to be made elsewhere
//   /kvsyncfs/<volume>/orders/maintenance/<node>   empty, leased: its absence is planned that long
//
//   /kvsyncfs/<volume>/orders/replace/<node>       decimal, a session's id: it does not come back
//
//   /kvsyncfs/<volume>/orders/evict/<node>         empty: it has no session, and begins none
//
//   /kvsyncfs/<volume>/orders/rate                 decimal: bytes a second that healing may copy
//
// The lease of a maintenance is the only clock that counts; nobody compares two. A name is any
// node's; who reads one that is no node ignores it. Thread: any; nothing is held between calls.
//
// Errors of every call: kTooBig (more orders than nodes can have), those of EtcdClient.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "engine/base/error.h"
#include "engine/env/clock.h"
#include "engine/log/etcd/etcd_client.h"

namespace kvsyncfs {

struct NodeOrders {
  std::set<std::string> draining, maintained;     ///< names
  std::map<std::string, std::uint64_t> replaced;  ///< name -> session that ended
  std::optional<std::uint64_t> heal_rate_bytes;   ///< a second
  std::set<std::string> evicted;
  bool operator==(const NodeOrders&) const = default;
};

/// Keys of what may have been ordered of a node; they go with it, or the next one of that name
/// would be drained from its birth.
std::vector<std::string> order_keys(const std::string& volume, const std::string& node);

/// While it is there no life of the node begins.
std::string eviction_key(const std::string& volume, const std::string& node);

class NodeOrderStore {
 public:
  /// The client outlives it. Requires a volume's name (log_keys.h).
  NodeOrderStore(etcd::EtcdClient& client, Clock& clock, const std::string& volume);

  /// A key that says nothing to this version is left out.
  Result<NodeOrders> read(std::uint64_t deadline_ns);

  Status drain(const std::string& node, std::uint64_t deadline_ns);
  Status end_drain(const std::string& node, std::uint64_t deadline_ns);
  /// Takes the place of an earlier one. Errors: kInvalid (0 s).
  Status begin_maintenance(const std::string& node, std::int64_t seconds,
                           std::uint64_t deadline_ns);
  Status end_maintenance(const std::string& node, std::uint64_t deadline_ns);
  /// The node's session appends nothing from now on, and is over when its lease is. Errors:
  /// kTimeout (its lives change all the time).
  Status evict(const std::string& node, std::uint64_t deadline_ns);
  Status end_eviction(const std::string& node, std::uint64_t deadline_ns);
  Status replace(const std::string& node, std::uint64_t session, std::uint64_t deadline_ns);
  Status set_heal_rate(std::uint64_t bytes_per_second, std::uint64_t deadline_ns);

 private:
  Status change(etcd::Operation operation, std::uint64_t deadline_ns);

  Result<bool> try_to_evict(const std::string& node, std::uint64_t deadline_ns);

  etcd::EtcdClient& client_;
  Clock& clock_;
  const std::string volume_, prefix_;
};

}  // namespace kvsyncfs
