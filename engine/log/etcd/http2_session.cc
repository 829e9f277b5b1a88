#include "engine/log/etcd/http2_session.h"

#include <fmt/format.h>
#include <nghttp2/nghttp2.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <new>

#include "engine/log/etcd/grpc_connection.h"

namespace kvsyncfs::etcd {
namespace {

constexpr std::size_t kHeadSize = 5;  // gRPC's: compressed or not, size
constexpr std::int32_t kWindow = 16 << 20;
constexpr std::size_t kHeaderMax = 4096;
constexpr std::size_t kTakenMax = 1 << 20;  // of a stream's answers, kept in memory at most

nghttp2_nv header(std::string_view name, std::string_view value) {
  const auto bytes = [](std::string_view text) {
    return reinterpret_cast<std::uint8_t*>(const_cast<char*>(text.data()));
  };
  return {bytes(name), bytes(value), name.size(), value.size(), NGHTTP2_NV_FLAG_NONE};
}

std::string head_of(std::uint32_t size) {
  std::string head(1, '\0');
  for (int shift = 24; shift >= 0; shift -= 8) head.push_back(static_cast<char>(size >> shift));
  return head;
}

std::string percent_decoded(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    unsigned value = 0;
    if (text[i] == '%' && i + 2 < text.size() &&
        std::from_chars(text.data() + i + 1, text.data() + i + 3, value, 16).ec == std::errc{}) {
      out.push_back(static_cast<char>(value));
      i += 2;
    } else {
      out.push_back(text[i]);
    }
  }
  return out;
}

}  // namespace

/// nghttp2's own, with the session as their last argument.
struct Http2Session::Callbacks {
  static int on_header(nghttp2_session*, const nghttp2_frame* frame, const std::uint8_t* name,
                       std::size_t name_size, const std::uint8_t* value, std::size_t value_size,
                       std::uint8_t, void* user) {
    auto& self = *static_cast<Http2Session*>(user);
    if (frame->hd.stream_id != self.stream_) return 0;
    const std::string_view key(reinterpret_cast<const char*>(name), name_size);
    const std::string_view text(reinterpret_cast<const char*>(value),
                                std::min(value_size, kHeaderMax));
    if (key == ":status") self.http_status_ = text;
    if (key == "grpc-status") self.grpc_status_ = text;
    if (key == "grpc-message") self.grpc_message_ = text;
    return 0;
  }

  static int on_data(nghttp2_session*, std::uint8_t, std::int32_t stream, const std::uint8_t* data,
                     std::size_t size, void* user) {
    auto& self = *static_cast<Http2Session*>(user);
    if (stream != self.stream_) return 0;
    if (size > kAnswerMax - self.answer_.size()) return NGHTTP2_ERR_CALLBACK_FAILURE;
    try {
      self.answer_.append(reinterpret_cast<const char*>(data), size);
    } catch (const std::bad_alloc&) {
      return NGHTTP2_ERR_CALLBACK_FAILURE;
    }
    return 0;
  }

  static int on_close(nghttp2_session*, std::int32_t stream, std::uint32_t error, void* user) {
    auto& self = *static_cast<Http2Session*>(user);
    if (stream != self.stream_) return 0;
    self.stream_ = 0;
    self.reset_ = error;
    return 0;
  }

  /// What this side complains about is no HTTP/2, or not of this call.
  static int on_sent(nghttp2_session*, const nghttp2_frame* frame, void* user) {
    auto& self = *static_cast<Http2Session*>(user);
    if (frame->hd.type == NGHTTP2_GOAWAY && frame->goaway.error_code != NGHTTP2_NO_ERROR)
      self.is_broken_ = true;
    if (frame->hd.type == NGHTTP2_RST_STREAM) self.is_broken_ = true;
    self.sent_ping_ = frame->hd.type == NGHTTP2_PING;
    return 0;
  }

  static ssize_t read_request(nghttp2_session*, std::int32_t, std::uint8_t* out, std::size_t size,
                              std::uint32_t* flags, nghttp2_data_source* source, void*) {
    auto& self = *static_cast<Http2Session*>(source->ptr);
    std::size_t done = 0;
    for (std::string_view* part : {&self.head_left_, &self.request_}) {
      const std::size_t count = std::min(size - done, part->size());
      std::memcpy(out + done, part->data(), count);
      part->remove_prefix(count);
      done += count;
    }
    const bool all = self.head_left_.empty() && self.request_.empty();
    if (all && !self.is_stream_) *flags |= NGHTTP2_DATA_FLAG_EOF;
    if (done == 0 && all && self.is_stream_) return NGHTTP2_ERR_DEFERRED;
    return static_cast<ssize_t>(done);
  }
};

Http2Session::Http2Session() {
  nghttp2_session_callbacks* callbacks = nullptr;
  if (nghttp2_session_callbacks_new(&callbacks) != 0) throw std::bad_alloc();
  nghttp2_session_callbacks_set_on_header_callback(callbacks, Callbacks::on_header);
  nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, Callbacks::on_data);
  nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, Callbacks::on_close);
  nghttp2_session_callbacks_set_on_frame_send_callback(callbacks, Callbacks::on_sent);
  const int made = nghttp2_session_client_new(&session_, callbacks, this);
  nghttp2_session_callbacks_del(callbacks);
  if (made != 0) throw std::bad_alloc();
  const std::array<nghttp2_settings_entry, 2> settings{
      {{NGHTTP2_SETTINGS_ENABLE_PUSH, 0}, {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, kWindow}}};
  nghttp2_submit_settings(session_, NGHTTP2_FLAG_NONE, settings.data(), settings.size());
  nghttp2_session_set_local_window_size(session_, NGHTTP2_FLAG_NONE, 0, kWindow);
}

Http2Session::~Http2Session() { nghttp2_session_del(session_); }

Status Http2Session::start(const Http2Call& call) {
  const std::array<nghttp2_nv, 7> headers{
      header(":method", "POST"),    header(":scheme", call.scheme),
      header(":path", call.method), header(":authority", call.authority),
      header("te", "trailers"),     header("content-type", "application/grpc"),
      header("token", call.token),
  };
  head_ = head_of(static_cast<std::uint32_t>(call.message.size()));
  head_left_ = head_;
  request_ = call.message;
  is_stream_ = call.is_stream;
  answer_.clear();
  taken_ = 0;
  for (std::string* text : {&http_status_, &grpc_status_, &grpc_message_}) text->clear();
  reset_ = NGHTTP2_NO_ERROR;
  nghttp2_data_provider body{};
  body.source.ptr = this;
  body.read_callback = Callbacks::read_request;
  const std::size_t count = headers.size() - (call.token.empty() ? 1 : 0);
  const std::int32_t stream =
      nghttp2_submit_request(session_, nullptr, headers.data(), count, &body, nullptr);
  if (stream == NGHTTP2_ERR_NOMEM) return Error(Code::kNoMemory, "etcd: a call");
  if (stream < 0) return Error(Code::kIo, fmt::format("etcd: {}", nghttp2_strerror(stream)));
  stream_ = stream;
  return {};
}

Result<std::string> Http2Session::take_output() {
  std::string out;
  for (;;) {
    const std::uint8_t* bytes = nullptr;
    sent_ping_ = false;
    const ssize_t size = nghttp2_session_mem_send(session_, &bytes);  // one frame
    if (size < 0) return Error(Code::kNoMemory, "etcd: a frame");
    if (size == 0) return out;
    std::string& to = sent_ping_ ? pongs_ : out;
    to.append(reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(size));
  }
}

Status Http2Session::feed(std::string_view bytes) {
  const ssize_t taken = nghttp2_session_mem_recv(
      session_, reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
  if (taken == NGHTTP2_ERR_NOMEM) return Error(Code::kNoMemory, "etcd: an answer");
  if (taken < 0)
    return Error(Code::kCorrupt,
                 fmt::format("etcd: no answer: {}", nghttp2_strerror(static_cast<int>(taken))));
  return {};
}

bool Http2Session::usable() const {
  return !is_broken_ && nghttp2_session_check_request_allowed(session_) != 0;
}

Result<bool> Http2Session::take_message(std::string* message) {
  const std::string_view left = std::string_view(answer_).substr(taken_);
  if (left.size() < kHeadSize) return false;
  std::uint64_t size = 0;
  for (std::size_t i = 1; i < kHeadSize; ++i) size = size << 8 | static_cast<std::uint8_t>(left[i]);
  if (left[0] != 0 || size > kAnswerMax)
    return Error(Code::kCorrupt, "etcd: an answer that is compressed or too large");
  if (left.size() - kHeadSize < size) return false;
  *message = left.substr(kHeadSize, size);
  taken_ += kHeadSize + size;
  if (taken_ == answer_.size() || taken_ > kTakenMax) {
    answer_.erase(0, taken_);
    taken_ = 0;
  }
  return true;
}

Result<std::int64_t> Http2Session::status(std::string* text) const {
  if (is_broken_) return Error(Code::kCorrupt, "etcd: an answer that is no HTTP/2");
  if (reset_ != NGHTTP2_NO_ERROR && grpc_status_.empty())
    return Error(Code::kIo, fmt::format("etcd: the call was reset: {}", reset_));
  std::int64_t number = 0;
  const char* const end = grpc_status_.data() + grpc_status_.size();
  const auto [stop, error] = std::from_chars(grpc_status_.data(), end, number);
  if (http_status_ != "200" || error != std::errc{} || stop != end)
    return Error(Code::kCorrupt, fmt::format("etcd: HTTP status {}", http_status_));
  *text = percent_decoded(grpc_message_);
  return number;
}

}  // namespace kvsyncfs::etcd
