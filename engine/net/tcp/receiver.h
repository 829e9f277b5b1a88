// The receiving half of a connection: bytes in, checked frames out; no sockets, so that a test can
// feed it anything. Bodies go straight to where the sink wants them.
//
// Invariants: holds one small buffer and one head, whatever comes in; believes no size before the
// checksum of its header; frames come in the order of their sequence numbers, each once.
// Thread: one, the loop.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "engine/format/frame.h"

namespace kvsyncfs {

class FrameSink {
 public:
  virtual ~FrameSink() = default;
  /// A good header came. Returns where its body goes: exactly body_size bytes, or none for a body
  /// that is to be dropped. An error ends the connection.
  virtual Result<MutableBytes> begin_frame(const FrameHeader& header) = 0;
  /// The frame is complete and its checksum right. `code` is that of the trailer, 0 = whole. An
  /// error ends the connection.
  virtual Status take_frame(const FrameHeader& header, std::string head, std::uint16_t code) = 0;
};

class Receiver {
 public:
  explicit Receiver(FrameSink& sink) : sink_(&sink), buffer_(kStrangerBufferSize) {}

  /// The peer is known: more memory for it, between frames.
  void grow() { buffer_.resize(kBufferSize); }

  /// Where the next bytes from the socket go, first room first; the second may be empty.
  std::array<MutableBytes, 2> room();
  /// `size` bytes were put into the room. Errors end the connection: kCorrupt, kNewerFormat, and
  /// those of the sink.
  Status received(std::size_t size);
  /// The place of the body that is coming in must not be written any more: the rest is dropped.
  void drop_body() { place_ = {}; }

 private:
  static constexpr std::size_t kStrangerBufferSize = 1024;
  static constexpr std::size_t kBufferSize = 16384;  // small: a body's start is copied out of it

  enum class Part : unsigned char { kHeader, kHead, kBody, kTrailer };

  Status step(bool* waits);
  Status begin(bool* waits);
  void take_head();
  void take_body();
  Status finish(bool* waits);
  void enter_part();
  bool is_direct() const { return part_ == Part::kBody && !place_.empty() && begin_ == end_; }
  std::string_view buffered() const {
    return {reinterpret_cast<const char*>(buffer_.data()) + begin_, end_ - begin_};
  }

  FrameSink* sink_;
  std::vector<std::byte> buffer_;
  std::size_t begin_ = 0, end_ = 0;
  Part part_ = Part::kHeader;
  std::uint64_t sequence_ = 0;  // of the last frame
  FrameHeader header_;
  std::string head_;
  MutableBytes place_;  // what is left of it
  std::uint32_t body_left_ = 0;
  std::uint32_t checksum_ = 0;
};

}  // namespace kvsyncfs
