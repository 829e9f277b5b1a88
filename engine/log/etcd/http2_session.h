// HTTP/2 of one client, without a socket: bytes that came go in, bytes to send come out. It carries
// one gRPC call at a time. Over nghttp2. Thread: one at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "engine/base/error.h"

struct nghttp2_session;

namespace kvsyncfs::etcd {

struct Http2Call {
  std::string_view scheme, authority, method, token;
  std::string_view message;  ///< borrowed until the call has ended
  bool is_stream = false;    ///< the request stays open, as a watch wants it
};

class Http2Session {
 public:
  Http2Session();
  ~Http2Session();
  Http2Session(const Http2Session&) = delete;
  Http2Session& operator=(const Http2Session&) = delete;

  /// Errors: kIo (this connection takes no more), kNoMemory.
  Status start(const Http2Call& call);
  /// What is to be sent now; empty: nothing. Answers to pings are kept apart. Errors: kNoMemory.
  Result<std::string> take_output();
  bool has_pongs() const { return !pongs_.empty(); }
  /// To be sent between two outputs.
  std::string take_pongs() { return std::exchange(pongs_, {}); }
  /// Errors: kCorrupt (no HTTP/2, or an answer that is too large).
  Status feed(std::string_view bytes);

  /// Or nothing can come of it any more, since the other side does not speak HTTP/2.
  bool call_has_ended() const { return stream_ == 0 || is_broken_; }
  /// The other side takes another call.
  bool usable() const;
  /// The next whole message of the answer, without gRPC's head. False: there is none yet. Errors:
  /// kCorrupt.
  Result<bool> take_message(std::string* message);
  /// Of a call that has ended: gRPC's status and what it says. Errors: kIo (reset), kCorrupt (no
  /// status).
  Result<std::int64_t> status(std::string* text) const;

 private:
  struct Callbacks;

  nghttp2_session* session_ = nullptr;
  std::string head_;                      // gRPC's, of the request's message
  std::string_view head_left_, request_;  // what is not sent of the two
  bool is_stream_ = false;
  std::int32_t stream_ = 0;  // 0: none
  std::string answer_;
  std::size_t taken_ = 0;  // bytes of answer_
  std::string http_status_, grpc_status_, grpc_message_;
  std::uint32_t reset_ = 0;
  bool is_broken_ = false;  // the other side does not speak HTTP/2
  bool sent_ping_ = false;  // the frame that was taken last is one
  std::string pongs_;
};

}  // namespace kvsyncfs::etcd
