// What carries messages and bytes between the nodes of a volume: the seam behind which TCP, RDMA
// and the simulator's network stand.
//
// A peer is named by its NodeId; where it is reached is the caller's to say. Two verbs move
// everything: call() sends a head and a body and brings a reply, read() brings bytes of a region
// that the peer registered, without a handler there. Both bring bulk bytes straight into the
// caller's buffer.
//
// Invariants
// 1. A call or read that was accepted (Status ok) ends in exactly one done(), at the latest at its
//    deadline, whatever the peer does. One that was refused has no done().
// 2. `out` and `reply_body` are written only between the call and its done().
// 3. A Payload's bytes are read until its `keep` is dropped, which may be after done().
// 4. What is queued and unanswered is bounded, for each peer and for all; beyond the bounds calls
//    are refused with kBusy. A peer that is slow, full or gone never holds up another one.
// 5. The transport never sends a message twice. A caller who does must put a request number of its
//    own into the head, if the message changes anything.
// 6. Nobody is heard before each side has proved that it knows the secret of the volume.
//
// Threads: every method may be called from any thread, handlers and done() included. Handlers and
// done() run on the transport's loop, one at a time, and hold up all other messages: they do not
// block, and hand what takes longer to a queue of their own. That queue needs no bound of its own:
// there are never more unanswered requests than the credits of all peers.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/bytes.h"
#include "engine/base/error.h"
#include "engine/base/ids.h"
#include "engine/net/counters.h"

namespace kvsyncfs {

using RegionKey = StrongId<struct RegionTag>;  ///< names a registered region; never given again

inline constexpr std::size_t kMessageHeadSizeMax = 64u << 10;  ///< bytes
inline constexpr std::size_t kTransferSizeMax = 8u << 20;      ///< bytes of a body or of a read

/// Bytes that are sent from where they are. `keep` is whatever keeps them there, shared because the
/// caller may go on with them; null for bytes that outlive the transport.
struct Payload {
  Bytes bytes;
  std::shared_ptr<const void> keep;
};

struct Reply {
  std::string head;
  std::size_t body_size = 0;  ///< bytes that are in reply_body
};

/// A request to a peer. What `kind` and `head` mean is the upper room's.
struct Call {
  std::uint16_t kind = 0;
  std::string head;             ///< up to kMessageHeadSizeMax
  Payload body;                 ///< up to kTransferSizeMax
  MutableBytes reply_body;      ///< room for the reply's body, up to kTransferSizeMax; may be empty
  std::uint64_t deadline_ns{};  ///< of Clock::boot_ns
  /// Errors: what the handler there answered; kTimeout, kDisconnected (a change may have happened);
  /// kUnreachable, kShutdown (nothing was sent); kRange (reply_body is too small); kCorrupt (the
  /// answer was damaged on its way).
  std::function<void(Result<Reply>)> done;
};

/// Bytes `offset` to `offset + out.size()` of the peer's region. As with RDMA they may be torn
/// where the owner writes meanwhile: a page carries a checksum of its own.
struct RegionRead {
  RegionKey key;
  std::uint64_t offset = 0;
  MutableBytes out;  ///< 1 byte to kTransferSizeMax
  std::uint64_t deadline_ns{};
  /// Errors: kStale (no such region any more), kInvalid (beyond the region), and those of
  /// Call::done but kRange.
  std::function<void(Status)> done;
};

/// A request of a peer, as its handler gets it.
struct Incoming {
  NodeId peer;
  Incarnation incarnation;
  std::uint16_t kind = 0;
  std::string head;
  AlignedBuffer body;
  std::uint64_t deadline_ns{};  ///< when the asker gives up, of this node's Clock::boot_ns
};

struct Answer {
  std::string head;
  Payload body;
};

/// The right to answer one request, once, from any thread. Dropped unanswered it answers kShutdown.
/// If the asker is gone meanwhile the answer is dropped.
class Responder {
 public:
  explicit Responder(std::function<void(Result<Answer>)> send) : send_(std::move(send)) {}
  Responder(Responder&& other) noexcept : send_(std::exchange(other.send_, nullptr)) {}
  Responder& operator=(Responder&& other) noexcept {
    std::swap(send_, other.send_);  // one that was here is dropped with `other`
    return *this;
  }
  ~Responder() {
    if (send_) send_(Error(Code::kShutdown, "request was dropped"));
  }
  /// An error's text is cut to 256 bytes. An Answer beyond the limits of a Call becomes kTooBig.
  void reply(Result<Answer> answer) { std::exchange(send_, nullptr)(std::move(answer)); }

 private:
  std::function<void(Result<Answer>)> send_;
};

/// A change of what is known of a peer. `down` is a suspicion, not a verdict: the peer was silent
/// for a second (kTimeout), its connection broke (kDisconnected), it cannot be reached
/// (kUnreachable), or one side refused the other (see kvsyncfs-protocol(7), "Errors").
struct PeerEvent {
  NodeId node;
  bool is_up = false;
  Incarnation incarnation;  ///< of the life that is up
  Error why;                ///< where it is down
};

struct TransportHandlers {
  std::function<void(Incoming, Responder)> on_request;
  /// Once per change; a peer that stays down for the same reason is not told again.
  std::function<void(const PeerEvent&)> on_peer;
  /// Whether a node that proved itself may connect to this one; empty = every node. The error is
  /// sent to it; kNotPermitted for one that is no member.
  std::function<Status(NodeId, Incarnation)> admit;
  /// Somebody came who was not let in: from where, and the one clear error.
  std::function<void(const std::string& address, const Error& why)> on_refused;
};

class Transport {
 public:
  virtual ~Transport() = default;

  /// Once, before anything else: begins to accept and to dial. Errors: kBusy (somebody listens
  /// there), kInvalid (the address), kIo, kAccess.
  virtual Status start(TransportHandlers handlers) = 0;

  /// Says where a peer is reached; a peer that is new is dialed at once and kept connected, one
  /// that moved is dialed anew. `addresses` are tried in turn; their form is the maker's. Errors:
  /// kInvalid (an address, none, or this node's own id), kShutdown.
  virtual Status set_peer(NodeId node, const std::vector<std::string>& addresses) = 0;
  /// Forgets a peer, soon: calls to it end with kDisconnected, and its connection to this node is
  /// closed. It may come back unless `admit` refuses it.
  virtual void remove_peer(NodeId node) = 0;

  /// Sends a request. While a peer is being reached for the first time, it waits. While the peer is
  /// down it fails at once, so that a caller can go to another one.
  /// Errors: kBusy (the peer's queue is full), kUnreachable (down, or no such peer), kTooBig
  /// (beyond a limit), kTimeout (the deadline has passed), kShutdown.
  [[nodiscard]] virtual Status call(NodeId peer, Call call) = 0;
  /// Reads from a region of a peer. Errors: those of call().
  [[nodiscard]] virtual Status read(NodeId peer, RegionRead read) = 0;

  /// Lets every peer read `memory`, until unregister_region() returns.
  /// Errors: kNoMemory (too many regions).
  virtual Result<RegionKey> register_region(Bytes memory) = 0;
  /// After its return nothing reads the memory. Reads on their way end with kStale. An unknown key
  /// is ignored.
  virtual void unregister_region(RegionKey key) = 0;

  /// One line for each peer that is set or connected to this node, by node id.
  virtual std::vector<PeerStatus> peers() const = 0;
  virtual TransportCounters counters() const = 0;
};

}  // namespace kvsyncfs
