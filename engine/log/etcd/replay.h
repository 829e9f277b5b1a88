// Reads the batches of the log from etcd's keys, in order, at one revision.
//
// Keys stand in the order of their bases, which is the order of indexes only up to kWindow, so
// pages of keys go through a heap by revision. Which index the first has follows from the count of
// keys, since what is not trimmed is dense up to the tail. Thread: one; nothing is held between
// calls.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "engine/log/etcd/etcd_client.h"
#include "engine/log/etcd/etcd_log.h"
#include "engine/log/etcd/log_keys.h"

namespace kvsyncfs::etcd {

struct ReplayRequest {
  std::optional<std::uint64_t> after;  ///< index; nothing: all that is not trimmed
  AppliedBatch known;                  ///< must be there, or be trimmed
  std::uint64_t generation = 0;
  std::uint64_t window = kWindow;
  std::function<std::uint64_t()> deadline_ns;  ///< of each of the requests, however many
};

struct ReplayReport {
  std::int64_t revision = 0;  ///< of the reading: a watch goes on after it
  std::uint64_t tail = 0;     ///< index of the last batch
  TrimRecord trim;
};

struct ReplayVisitor {
  std::function<Status(const TrimRecord&)> begin;  ///< first, once; its error ends the reading
  std::function<Status(std::uint64_t index, const KeyValue& batch)> batch;
};

/// Errors: kStale (what follows `after` is trimmed, or another generation), kCorrupt (behind
/// `known`, other history, nonsense), kBusy (compacted meanwhile; ask again), those of EtcdClient
/// and of the visitor.
Result<ReplayReport> replay(EtcdClient& client, const LogKeys& keys, const ReplayRequest& request,
                            const ReplayVisitor& visitor);

}  // namespace kvsyncfs::etcd
