// The sending half of a connection: frames in, bytes into the socket, without blocking.
//
// Any thread may push a frame, and the thread that pushed may send at once, which saves a change of
// threads: it takes the turn, sends what is there and gives the turn back. Whoever pushes
// while another one has the turn leaves the sending to it. No lock is held while it sends.
// Invariant: frames leave in the order of their sequence numbers.
#pragma once

#include <sys/uio.h>

#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "engine/format/frame.h"
#include "engine/net/tcp/live_counts.h"
#include "engine/net/tcp/regions.h"
#include "engine/net/tcp/tls.h"

namespace kvsyncfs {

/// A frame to be sent: its body comes from `body`, or from a region.
struct OutFrame {
  FrameType type = FrameType::kPing;
  std::uint16_t kind = 0;
  std::uint64_t request = 0;
  std::uint32_t timeout_us = 0;
  std::string head;
  Payload body;
  std::optional<ReadRange> region;
  std::shared_ptr<const void> token;  ///< dropped when the frame is sent: gives credits back
};

/// The frame that says why a connection is not wanted.
OutFrame refuse_frame(const Error& why);

class Sender {
 public:
  explicit Sender(const Regions& regions) : regions_(regions) {}

  /// Where bytes are counted from now on. Before any other thread knows the connection.
  void set_counts(std::shared_ptr<LivePeerCounts> counts) { counts_ = std::move(counts); }

  /// Thread: any.
  void push(OutFrame frame);
  /// True: the caller has the turn and must call send(). Thread: any.
  bool take_turn();

  enum class Outcome : unsigned char {
    kIdle,     ///< all is sent, the turn is given back
    kMore,     ///< there is more; others should have a chance, then call send() again
    kBlocked,  ///< call send() again when the socket is writable
    kBroken,   ///< the connection is dead; the turn is never given back
  };
  /// Through `tls`, if there is one. Only who has the turn, one at a time.
  Outcome send(int socket, TlsStream* tls = nullptr);

  /// Drops what was not sent. Frames that are being sent go with the sender.
  void clear();

 private:
  struct Sending {
    std::string prefix;  // header and head
    OutFrame frame;
    std::uint32_t body_size = 0, made = 0;  // bytes of the body: all, staged so far
    std::uint32_t checksum = 0;             // of head and body so far
    std::uint16_t code = 0;                 // of the trailer
    std::string trailer_bytes;
    bool has_begun = false;
    std::uint64_t end = 0;  // of the frame, in the stream of all bytes
  };

  bool fetch();  // from queue_ to sending_; false: nothing there, the turn is given back
  void stage_frames();
  bool stage_body(Sending& sending);  // false: no room now
  void stage(const void* bytes, std::size_t size);
  void consume(std::size_t size);

  const Regions& regions_;
  std::shared_ptr<LivePeerCounts> counts_;  // shared with the peer's other connections

  std::mutex mutex_;  // a leaf
  std::deque<Sending> queue_;
  std::uint64_t sequence_ = 0;
  bool is_turn_taken_ = false;

  // Of who has the turn.
  std::deque<Sending> sending_;  // its elements stay where they are: staged bytes lie in them
  std::size_t next_ = 0;         // of sending_, not wholly staged
  std::vector<iovec> staged_;
  std::size_t first_staged_ = 0;
  std::uint64_t staged_bytes_ = 0, stream_staged_ = 0, stream_sent_ = 0;
  AlignedBuffer bounce_;  // region bytes are checksummed and sent from here: the owner may write
  std::size_t bounce_used_ = 0;
};

}  // namespace kvsyncfs
