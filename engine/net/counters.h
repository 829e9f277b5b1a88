// What a transport counts. Totals since its start. Thread: values.
#pragma once

#include <cstdint>

#include "engine/base/ids.h"

namespace kvsyncfs {

/// Both directions with one peer. Messages are requests, reads and replies; heartbeats and the
/// handshake are not among them, so a test can hold the messages that an operation costs.
struct PeerCounters {
  std::uint64_t messages_sent = 0;
  std::uint64_t messages_received = 0;
  std::uint64_t bytes_sent = 0;      ///< of all frames
  std::uint64_t bytes_received = 0;  ///< of all frames
  std::uint64_t round_trips = 0;     ///< calls and reads that were answered
  std::uint64_t calls = 0;           ///< accepted from here
  std::uint64_t reads = 0;           ///< accepted from here
  std::uint64_t timeouts = 0;        ///< deadlines that passed
  std::uint64_t late_replies = 0;    ///< replies that nobody waited for any more
  std::uint64_t refused_busy = 0;    ///< calls and reads beyond the queue's bounds
  std::uint64_t connects = 0;
  std::uint64_t disconnects = 0;
  std::uint64_t silences = 0;    ///< disconnects because nothing was heard
  std::uint64_t heartbeats = 0;  ///< pings that were answered
};

struct PeerStatus {
  NodeId node;
  Incarnation incarnation;
  bool is_up = false;                        ///< this node can ask it
  std::uint64_t round_trip_ns = 0;           ///< of the last heartbeat; 0 = none yet
  std::uint64_t queued_calls = 0;            ///< not sent yet, now
  std::uint64_t queued_bytes = 0;            ///< of their heads and bodies
  std::uint64_t outstanding_calls = 0;       ///< sent and not answered
  std::uint64_t outstanding_read_bytes = 0;  ///< that the peer may send without being asked again
  PeerCounters counts;
};

struct TransportCounters {
  std::uint64_t accepted = 0;            ///< connections
  std::uint64_t refused_secret = 0;      ///< a proof was wrong
  std::uint64_t refused_volume = 0;      ///< another volume
  std::uint64_t refused_identity = 0;    ///< own id, older life, another node wanted, no member
  std::uint64_t refused_version = 0;     ///< another major version
  std::uint64_t refused_crowd = 0;       ///< too many connections
  std::uint64_t handshake_timeouts = 0;  ///< strangers who did not finish in time
  std::uint64_t bad_frames = 0;          ///< connections closed for what came in
  std::uint64_t outstanding_read_bytes_max = 0;  ///< most that was asked for at one time
  std::uint64_t refused_tls = 0;                 ///< a certificate was not trusted, or no TLS came
};

}  // namespace kvsyncfs
