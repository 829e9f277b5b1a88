// Byte layout of what nodes say to each other: the frame, and the payloads of the messages that the
// transport itself sends. Field tables, states and errors: kvsyncfs-protocol(7).
//
// A frame is a header of 48 bytes, a head, a body and, if head or body has bytes, a trailer of 8.
//
// offset  bytes  header (numbers are little-endian)
//      0      4  magic "KVSF"
//      4      2  major version of the protocol, 1
//      6      2  type
//      8      8  sequence: number of this frame in its direction of the connection, from 1
//     16      8  request: what is asked or answered; 0 elsewhere
//     24      4  bytes of the head
//     28      4  bytes of the body
//     32      2  kind: of a request; error number of an answer or refusal
//     34      2  zeros
//     36      4  microseconds that the asker still waits; 0 where nobody waits
//     40      4  zeros
//     44      4  CRC32C of bytes 0 to 43
//
// offset  bytes  trailer
//      0      4  CRC32C of head, body and bytes 4 to 7 of the trailer
//      4      2  error number: the body's source went away while it was sent
//      6      2  zeros
//
// The sizes are believed only after the header's checksum, so a reader never waits for bytes that a
// flipped bit asked for. The first 6 bytes never change, so every version can tell a newer one.
// Pure. Thread: any.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "engine/base/bytes.h"
#include "engine/base/error.h"
#include "engine/base/ids.h"

namespace kvsyncfs {

inline constexpr std::string_view kFrameMagic = "KVSF";
inline constexpr std::uint16_t kProtocolMajor = 1;  ///< another one is refused
inline constexpr std::uint16_t kProtocolMinor = 0;  ///< both sides speak the smaller one
inline constexpr std::size_t kFrameHeaderSize = 48;
inline constexpr std::size_t kFrameTrailerSize = 8;
inline constexpr std::uint32_t kFrameHeadSizeMax = 64u << 10;
inline constexpr std::uint32_t kFrameBodySizeMax = 8u << 20;
inline constexpr std::uint32_t kHandshakeHeadSizeMax = 512;  ///< all that a stranger may send
inline constexpr std::size_t kErrorTextSizeMax = 256;        ///< bytes of text of an error

enum class FrameType : std::uint16_t {
  kHello = 1,  ///< dialer: who I am, whom I want, my nonce
  kChallenge,  ///< acceptor: who I am, my proof, my nonce
  kProof,      ///< dialer: my proof
  kWelcome,    ///< acceptor: how much may be unanswered
  kRefuse,     ///< either: why not; the connection closes
  kPing,       ///< dialer: are you there
  kPong,       ///< acceptor: yes
  kRequest,    ///< dialer: something of an upper room
  kRead,       ///< dialer: bytes of a registered region
  kReply,      ///< acceptor: the answer to a request or a read
};

struct FrameHeader {
  FrameType type = FrameType::kPing;
  std::uint16_t kind = 0;
  std::uint64_t sequence = 0;
  std::uint64_t request = 0;
  std::uint32_t head_size = 0;
  std::uint32_t body_size = 0;
  std::uint32_t timeout_us = 0;
  bool operator==(const FrameHeader&) const = default;

  constexpr bool has_trailer() const { return head_size + body_size > 0; }
};

struct FrameTrailer {
  std::uint32_t checksum = 0;
  std::uint16_t code = 0;  ///< 0 or the number of a Code
  bool operator==(const FrameTrailer&) const = default;
};

/// Bytes of the whole frame.
constexpr std::size_t frame_size(const FrameHeader& header) {
  return kFrameHeaderSize + header.head_size + header.body_size +
         (header.has_trailer() ? kFrameTrailerSize : 0);
}

/// Exactly kFrameHeaderSize bytes.
std::string encode(const FrameHeader& header);
/// `bytes` has at least kFrameHeaderSize bytes; more are ignored. An accepted header obeys the
/// limits of its type. Errors: kNewerFormat (another major version), kCorrupt.
Result<FrameHeader> decode_frame_header(std::string_view bytes);

/// The trailer behind a head and body with that CRC32C.
FrameTrailer make_trailer(std::uint32_t content_checksum, std::uint16_t code);
/// Exactly kFrameTrailerSize bytes.
std::string encode(const FrameTrailer& trailer);
/// Errors: kCorrupt.
Result<FrameTrailer> decode_frame_trailer(std::string_view bytes);

using Nonce = std::array<std::uint8_t, 32>;
using Proof = std::array<std::uint8_t, 32>;
using VolumeUuid = std::array<std::uint8_t, 16>;

struct Hello {
  std::uint16_t minor = kProtocolMinor;
  VolumeUuid volume{};
  NodeId node;    ///< the dialer
  NodeId wanted;  ///< whom it means to reach
  Incarnation incarnation;
  Nonce nonce{};
  std::uint64_t secret_id = 0;  ///< of the secret that the dialer would be shown; 0: any
  bool operator==(const Hello&) const = default;
};

/// What the acceptor's proof covers, beside the Hello: all of a Challenge but the proof itself.
struct Challenge {
  std::uint16_t minor = kProtocolMinor;
  NodeId node;
  Incarnation incarnation;
  Nonce nonce{};
  bool operator==(const Challenge&) const = default;
};

struct Welcome {
  std::uint32_t calls_max = 0;  ///< unanswered requests and reads
  std::uint32_t bytes_max = 0;  ///< heads and bodies of unanswered requests
  bool operator==(const Welcome&) const = default;
};

struct ReadRange {
  std::uint64_t key = 0;
  std::uint64_t offset = 0;
  std::uint32_t length = 0;
  bool operator==(const ReadRange&) const = default;
};

// Heads of the messages. The decoders of the handshake ignore bytes at the end, which a later minor
// version may add; what proves the secret covers them too. Errors: kCorrupt.
std::string encode(const Hello& hello);
Result<Hello> decode_hello(std::string_view head);
std::string encode(const Challenge& challenge);
Result<Challenge> decode_challenge(std::string_view head);
std::string encode(const Welcome& welcome);
Result<Welcome> decode_welcome(std::string_view head);
std::string encode(const ReadRange& range);
/// Refuses bytes at the end and a length of 0 or above kFrameBodySizeMax. Errors: kCorrupt.
Result<ReadRange> decode_read_range(std::string_view head);

/// Number of a code on the wire; 0 means success.
std::uint16_t to_wire(Code code);
/// A number that this version does not know is kIo.
Code from_wire(std::uint16_t number);

}  // namespace kvsyncfs
