// What the shared log needs of etcd v3: reads, transactions, leases, watches, compaction.
//
// The seam that lets the simulator put its own etcd under the log; the real maker is
// grpc_client.h. Every call blocks its caller, at most until `deadline_ns` (Clock::boot_ns).
//
// Invariants: 1. reads are linearizable; 2. a maker may repeat a read, but sends a change (txn,
// grant_lease, compact) at most once, unless it knows that the first was not carried out; 3. so
// kTimeout of a change means that it happened, did not, or happens later. Thread: any, save
// EtcdWatch.
//
// Errors of every call, and no others:
//   kTimeout      no answer in time, connection lost, no quorum; of a change: outcome unknown
//   kAccess       user, password, certificate or permission refused
//   kNoSpace      etcd's quota is used up; a txn may have been carried out all the same
//   kTooBig       the request is larger than etcd takes; not carried out
//   kStale        the revision was compacted away
//   kNotFound     no such lease
//   kNoSuchRange  the revision lies in the future
//   kInvalid      etcd calls the request malformed; not carried out
//   kCorrupt      the answer makes no sense; of a change: outcome unknown
//   kIo           (EtcdWatch) its connection is lost
//   kShutdown     the client was stopped
//   kNoMemory     none for the answer; of a change: outcome unknown
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "engine/base/error.h"

namespace kvsyncfs::etcd {

struct KeyValue {
  std::string key, value;
  std::int64_t mod_revision = 0;
  std::int64_t version =
      0;                   ///< changes of the key since it was created, from 1; 0: it is not there
  std::int64_t lease = 0;  ///< 0: none
};

/// Keys in [key, end) in byte order, or the one key if `end` is empty.
struct Range {
  std::string key, end;
  std::int64_t limit = 0;     ///< 0: all
  std::int64_t revision = 0;  ///< 0: now
  bool keys_only = false;
};
struct Put {
  std::string key, value;
  std::int64_t lease = 0;
};
struct Delete {
  std::string key, end;  ///< as in Range
};
using Operation = std::variant<Range, Put, Delete>;

/// A key that is not there has version 0 and equals no value.
struct Compare {
  enum class Target { kVersion, kValue };
  enum class Relation { kEqual, kLess };
  std::string key;
  Target target = Target::kVersion;
  Relation relation = Relation::kEqual;
  std::int64_t version = 0;
  std::string value;
};
Compare version_is(std::string key, std::int64_t version);
Compare version_below(std::string key, std::int64_t version);
Compare value_is(std::string key, std::string value);

/// If all compares hold the operations of `success`, else those of `failure`, at one revision. A
/// branch names a key that it changes only once (etcd's rule).
struct Txn {
  std::vector<Compare> compares;
  std::vector<Operation> success, failure;
};

struct RangeReply {
  std::int64_t revision = 0;  ///< of etcd when it answered
  std::vector<KeyValue> items;
  std::int64_t count = 0;  ///< keys in the range, whatever the limit
  bool more = false;

  /// The key of a range of one key, or null if it is not there.
  const KeyValue* only() const { return items.size() == 1 ? &items[0] : nullptr; }
};
struct TxnReply {
  std::int64_t revision = 0;
  bool succeeded = false;
  std::vector<RangeReply> ranges;  ///< of the branch's Range operations, in their order
};
struct Lease {
  std::int64_t id = 0;
  std::int64_t ttl_s = 0;
};

struct WatchRequest {
  std::string key, end;             ///< as in Range
  std::int64_t start_revision = 0;  ///< inclusive; 0: from now on
};
struct WatchBatch {
  std::vector<KeyValue> puts;  ///< in order; the changes of one revision may come in two batches
};

/// A stream of puts; deletions are not shown. Thread: one at a time.
class EtcdWatch {
 public:
  virtual ~EtcdWatch() = default;
  /// The next puts. Of the errors, only kTimeout leaves the watch usable: nothing came so far.
  virtual Result<WatchBatch> next(std::uint64_t deadline_ns) = 0;
};

class EtcdClient {
 public:
  virtual ~EtcdClient() = default;
  virtual Result<RangeReply> range(const Range& request, std::uint64_t deadline_ns) = 0;
  virtual Result<TxnReply> txn(const Txn& request, std::uint64_t deadline_ns) = 0;
  virtual Result<Lease> grant_lease(std::int64_t ttl_s, std::uint64_t deadline_ns) = 0;
  /// kNotFound: the lease is gone.
  virtual Result<Lease> keep_alive(std::int64_t lease, std::uint64_t deadline_ns) = 0;
  virtual Status revoke_lease(std::int64_t lease, std::uint64_t deadline_ns) = 0;
  /// History before `revision` may go. kStale: it had gone already.
  virtual Status compact(std::int64_t revision, std::uint64_t deadline_ns) = 0;
  virtual Result<std::unique_ptr<EtcdWatch>> watch(const WatchRequest& request,
                                                   std::uint64_t deadline_ns) = 0;
};

/// End of the range of all keys that start with `prefix`. Requires that it does not end in 0xff.
std::string end_of_prefix(std::string prefix);

}  // namespace kvsyncfs::etcd
