// A flush whose bytes have their place in segments, and whose transactions are on their way through
// the log: what became of them may not be known when the time of the call is over.
//
// The bytes then stay in the `flushing` layer of their inodes, and nothing else of these is flushed
// before it is known: sent as a second transaction, bytes that had landed would come over what
// another node wrote since. ARCHITECTURE.md, "A flush lands once".
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "engine/format/command.h"
#include "engine/node_session.h"
#include "engine/unreferenced_appends.h"

namespace kvsyncfs {

struct SentFlush {
  enum class Fate {
    kUnknown,
    kLanded,   ///< the bytes are the catalog's; not all other nodes have said that they have them
    kDone,     ///< they have
    kRefused,  ///< no more of it has happened, nor will, than what landed before `next`
  };

  SentFlush(std::vector<Transaction> all, UnreferencedAppends::Hold append,
            std::optional<Incarnation> of)
      : transactions(std::move(all)), session(of), hold(std::move(append)) {}

  /// The last transaction was applied here: reads find the bytes in the catalog. Shared: the log's
  /// applier sets it.
  const NodeSession::LandedFlag has_landed = std::make_shared<std::atomic<bool>>(false);

  std::timed_mutex mutex;  ///< held over the log; after the flush_mutexes; guards the rest
  Fate fate = Fate::kUnknown;
  std::vector<Transaction> transactions;     ///< in order
  std::size_t next = 0;                      ///< those before it have landed
  NodeSession::SentPtr sent;                 ///< that of `next`; null: it is to be sent
  const std::optional<Incarnation> session;  ///< whose segments have the bytes; none: a lone node
  UnreferencedAppends::Hold hold;
};
using SentFlushPtr = std::shared_ptr<SentFlush>;  // shared by its inodes

}  // namespace kvsyncfs
