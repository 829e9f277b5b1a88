// What the parts of one TcpTransport have in common. Thread: as said at each member.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <limits>

#include "engine/net/tcp/handshake.h"
#include "engine/net/tcp/live_counts.h"
#include "engine/net/tcp/read_budget.h"
#include "engine/net/tcp/regions.h"
#include "engine/net/tcp/tcp_transport.h"
#include "engine/net/tcp/tls.h"

namespace kvsyncfs {

inline constexpr std::uint64_t kNever = std::numeric_limits<std::uint64_t>::max();

struct Shared {
  Shared(Clock& c, Random& r, TcpOptions o, std::unique_ptr<TlsContext> t)
      : clock{c},
        random{r},
        options(std::move(o)),
        tls(std::move(t)),
        self{options.node,
             options.incarnation,
             options.volume,
             {options.secret},
             Welcome{options.grant_calls, options.grant_bytes}},
        regions(r),
        budget(options.read_bytes_max, options.read_bytes_peer_max) {}

  Nonce make_nonce() {
    Nonce nonce;
    for (std::size_t i = 0; i < nonce.size(); ++i) {
      if (i % 8 == 0) nonce_word_ = random.next();
      nonce[i] = static_cast<std::uint8_t>(nonce_word_ >> (8 * (i % 8)));
    }
    return nonce;
  }

  Clock& clock;
  Random& random;
  const TcpOptions options;
  const std::unique_ptr<const TlsContext> tls;  // null: nothing is encrypted
  LocalIdentity self;                           // the loop's
  Regions regions;
  ReadBudget budget;
  LiveCounts counts;
  TransportHandlers handlers;  // set by start(), before any connection

  /// Has the loop look at everything at `due_ns` at the latest. Thread: any.
  std::function<void(std::uint64_t due_ns)> schedule;
  /// Budget was given back: all peers look at what waits. Thread: the loop.
  std::function<void()> pump_all;
  /// Counters of a node, the same for both connections. Null: too many nodes. Thread: any.
  std::function<std::shared_ptr<LivePeerCounts>(NodeId)> counts_of;

  boost::asio::io_context io{1};  // last: it dies first, and with it handlers that use the others

 private:
  std::uint64_t nonce_word_ = 0;  // the loop's
};

/// Counts a failed handshake, or a connection that ended by what came in. Thread: any.
void count_refusal(LiveCounts& counts, Code code);

}  // namespace kvsyncfs
