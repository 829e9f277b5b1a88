#include "engine/net/tcp/handshake.h"

#include <algorithm>

#include "engine/net/auth.h"

namespace kvsyncfs {
namespace {

Error not_its_turn(const FrameHeader& header) {
  return Error(Code::kCorrupt, "handshake: message " +
                                   std::to_string(static_cast<int>(header.type)) +
                                   " is not expected now");
}

Error wrong_secret() { return Error(Code::kAccess, "wrong secret of the volume"); }

Error same_identity(NodeId node) {
  return Error(Code::kExists, "node " + std::to_string(node.value) +
                                  " is at both ends: two nodes with one identity");
}

Error wrong_node(NodeId wanted, NodeId found) {
  return Error(Code::kStale, "node " + std::to_string(found.value) + " answers where node " +
                                 std::to_string(wanted.value) + " was looked for");
}

std::string make_hello(const LocalIdentity& self, NodeId wanted, const Nonce& nonce) {
  Hello hello;
  hello.volume = self.volume;
  hello.node = self.node;
  hello.wanted = wanted;
  hello.incarnation = self.incarnation;
  hello.nonce = nonce;
  hello.secret_id = secret_id(self.secrets.front(), self.volume);
  return encode(hello);
}

/// The one that is named, else the one that all nodes have.
const std::string& secret_for(const LocalIdentity& self, std::uint64_t id) {
  for (const std::string& secret : self.secrets)
    if (secret_id(secret, self.volume) == id) return secret;
  return self.secrets.back();
}

std::string make_challenge(const LocalIdentity& self, const Nonce& nonce) {
  Challenge challenge;
  challenge.node = self.node;
  challenge.incarnation = self.incarnation;
  challenge.nonce = nonce;
  return encode(challenge);
}

std::string_view as_text(const Proof& proof) {
  return {reinterpret_cast<const char*>(proof.data()), proof.size()};
}

constexpr std::size_t kProofSize = std::tuple_size_v<Proof>;

}  // namespace

DialerHandshake::DialerHandshake(const LocalIdentity& self, NodeId wanted, const Nonce& nonce)
    : self_(self), wanted_(wanted), hello_head_(make_hello(self, wanted, nonce)) {}

Result<HandshakeStep> DialerHandshake::on_frame(const FrameHeader& header, std::string_view head) {
  if (header.type == FrameType::kRefuse) return refusal(header, head);
  if (header.type == FrameType::kChallenge && !has_proved_) return on_challenge(head);
  if (header.type == FrameType::kWelcome && has_proved_) {
    KVSYNCFS_ASSIGN(welcome_, decode_welcome(head));
    HandshakeStep step;
    step.is_done = true;
    return step;
  }
  return not_its_turn(header);
}

Result<HandshakeStep> DialerHandshake::on_challenge(std::string_view head) {
  if (head.size() < kProofSize) return Error(Code::kCorrupt, "challenge: too short");
  const std::string_view proof = head.substr(0, kProofSize);
  head.remove_prefix(kProofSize);
  KVSYNCFS_ASSIGN(const Challenge challenge, decode_challenge(head));
  if (challenge.node == self_.node) return same_identity(self_.node);
  const auto secret =
      std::find_if(self_.secrets.begin(), self_.secrets.end(), [&](const std::string& each) {
        return equal_proofs(make_proof(each, Side::kAcceptor, hello_head_, head), proof);
      });
  if (secret == self_.secrets.end()) return wrong_secret();
  if (challenge.node != wanted_) return wrong_node(wanted_, challenge.node);
  peer_ = {challenge.node, challenge.incarnation, std::min(challenge.minor, kProtocolMinor)};
  has_proved_ = true;
  HandshakeStep step;
  step.answer = FrameType::kProof;
  step.head = as_text(make_proof(*secret, Side::kDialer, hello_head_, head));
  return step;
}

AcceptorHandshake::AcceptorHandshake(const LocalIdentity& self, const Nonce& nonce)
    : self_(self), challenge_head_(make_challenge(self, nonce)) {}

Result<HandshakeStep> AcceptorHandshake::on_frame(const FrameHeader& header,
                                                  std::string_view head) {
  if (header.type == FrameType::kRefuse) return refusal(header, head);
  if (header.type == FrameType::kHello && hello_head_.empty()) return on_hello(head);
  if (header.type == FrameType::kProof && !hello_head_.empty()) {
    if (!equal_proofs(make_proof(secret_, Side::kDialer, hello_head_, challenge_head_), head))
      return wrong_secret();
    return HandshakeStep{FrameType::kWelcome, encode(self_.grants), true};
  }
  return not_its_turn(header);
}

Result<HandshakeStep> AcceptorHandshake::on_hello(std::string_view head) {
  KVSYNCFS_ASSIGN(const Hello hello, decode_hello(head));
  if (hello.volume != self_.volume) return Error(Code::kNotFound, "another volume is served here");
  if (hello.node == self_.node) return same_identity(self_.node);
  if (hello.wanted != self_.node) return wrong_node(hello.wanted, self_.node);
  hello_head_ = head;
  secret_ = secret_for(self_, hello.secret_id);
  peer_ = {hello.node, hello.incarnation, std::min(hello.minor, kProtocolMinor)};
  HandshakeStep step;
  step.answer = FrameType::kChallenge;
  step.head = as_text(make_proof(secret_, Side::kAcceptor, hello_head_, challenge_head_));
  step.head += challenge_head_;
  return step;
}

Error refusal(const FrameHeader& header, std::string_view head) {
  std::string text(head.substr(0, kErrorTextSizeMax));
  std::replace_if(
      text.begin(), text.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
  return Error(from_wire(header.kind), "refused by the peer: " + text);
}

std::string error_head(const Error& error) { return error.detail.substr(0, kErrorTextSizeMax); }

}  // namespace kvsyncfs
