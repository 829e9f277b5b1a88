// The counters while they count. Thread: any.
#pragma once

#include <atomic>

#include "engine/net/counters.h"

namespace kvsyncfs {

using Count = std::atomic<std::uint64_t>;

/// Relaxed: counters order nothing.
inline void count(Count& counter, std::uint64_t n = 1) {
  counter.fetch_add(n, std::memory_order_relaxed);
}

struct LivePeerCounts {
  Count messages_sent = 0, messages_received = 0, bytes_sent = 0, bytes_received = 0,
        round_trips = 0, calls = 0, reads = 0, timeouts = 0, late_replies = 0, refused_busy = 0,
        connects = 0, disconnects = 0, silences = 0, heartbeats = 0;

  PeerCounters snapshot() const {
    return {
        messages_sent, messages_received, bytes_sent,   bytes_received, round_trips, calls,
        reads,         timeouts,          late_replies, refused_busy,   connects,    disconnects,
        silences,      heartbeats};
  }
};

struct LiveCounts {
  Count accepted = 0, refused_secret = 0, refused_volume = 0, refused_identity = 0,
        refused_version = 0, refused_crowd = 0, handshake_timeouts = 0, bad_frames = 0,
        refused_tls = 0;
};

}  // namespace kvsyncfs
