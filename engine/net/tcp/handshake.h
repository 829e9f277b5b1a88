// The two sides of the handshake as state machines: heads of frames in, heads of frames out. No
// sockets and no clock. States, messages and errors: kvsyncfs-protocol(7), "Handshake".
//
// Errors of both: kAccess (wrong secret), kNotFound (another volume), kExists (the other side has
// this node's id), kStale (it is not the node that was wanted), kCorrupt (malformed, or not its
// turn), and what the other side refused with. Thread: one.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/format/frame.h"

namespace kvsyncfs {

struct LocalIdentity {
  NodeId node;
  Incarnation incarnation;
  VolumeUuid volume{};
  /// By which nodes of the volume prove themselves, the newest first: one, or two while it is being
  /// changed. Who has two is content with either; the dialer says which it would be shown.
  std::vector<std::string> secrets;
  Welcome grants;  ///< what this node lets a peer have unanswered
};

struct PeerIdentity {
  NodeId node;
  Incarnation incarnation;
  std::uint16_t minor = 0;  ///< version that both speak
};

/// What to do after a frame: send an answer, if there is one.
struct HandshakeStep {
  std::optional<FrameType> answer;
  std::string head;
  bool is_done = false;  ///< the other side is who it says
};

class DialerHandshake {
 public:
  DialerHandshake(const LocalIdentity& self, NodeId wanted, const Nonce& nonce);

  const std::string& hello_head() const { return hello_head_; }
  Result<HandshakeStep> on_frame(const FrameHeader& header, std::string_view head);
  const PeerIdentity& peer() const { return peer_; }
  const Welcome& welcome() const { return welcome_; }  ///< valid when done

 private:
  Result<HandshakeStep> on_challenge(std::string_view head);

  const LocalIdentity& self_;
  const NodeId wanted_;
  const std::string hello_head_;
  bool has_proved_ = false;
  PeerIdentity peer_;
  Welcome welcome_;
};

class AcceptorHandshake {
 public:
  AcceptorHandshake(const LocalIdentity& self, const Nonce& nonce);

  Result<HandshakeStep> on_frame(const FrameHeader& header, std::string_view head);
  const PeerIdentity& peer() const { return peer_; }  ///< to be believed when done

 private:
  Result<HandshakeStep> on_hello(std::string_view head);

  const LocalIdentity& self_;
  const std::string challenge_head_;
  std::string secret_;      // of both proofs
  std::string hello_head_;  // empty: none came yet
  PeerIdentity peer_;
};

/// Error of a Refuse frame. Its text is cut, and stripped of what is not printable ASCII.
Error refusal(const FrameHeader& header, std::string_view head);
/// Text of an error as it is sent.
std::string error_head(const Error& error);

}  // namespace kvsyncfs
