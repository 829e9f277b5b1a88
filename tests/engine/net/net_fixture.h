// Nodes on loopback in one process, each with a thread for its loop, and things to wait for. Every
// wait ends after kPatience, which no test comes near unless it fails.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "engine/env/real.h"
#include "engine/net/tcp/tcp_transport.h"

namespace kvsyncfs {

inline constexpr auto kPatience = std::chrono::seconds(30);
inline constexpr std::uint64_t kSecondNs = 1'000'000'000;

/// Values that arrive on another thread, in order.
template <typename T>
class Inbox {
 public:
  void put(T value) {
    std::lock_guard lock(mutex_);  // until the end: who takes the value may destroy this
    values_.push_back(std::move(value));
    changed_.notify_all();
  }
  /// The next one; fails the test and returns nothing if none comes.
  std::optional<T> take() {
    std::unique_lock lock(mutex_);
    if (!changed_.wait_for(lock, kPatience, [this] { return !values_.empty(); })) {
      ADD_FAILURE() << "nothing arrived";
      return std::nullopt;
    }
    std::optional<T> value(std::move(values_.front()));
    values_.pop_front();
    return value;
  }
  bool is_empty() {
    std::lock_guard lock(mutex_);
    return values_.empty();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<T> values_;
};

struct Request {
  Incoming incoming;
  Responder responder;
};

inline VolumeUuid test_volume() {
  VolumeUuid volume{};
  for (std::size_t i = 0; i < volume.size(); ++i) volume[i] = static_cast<std::uint8_t>(i);
  return volume;
}

inline TcpOptions test_options(std::uint64_t node) {
  TcpOptions options;
  options.node = {node};
  options.incarnation = {1};
  options.volume = test_volume();
  options.secret = "a secret of sufficient size";
  options.listen = "127.0.0.1:0";
  options.silence_ns = 20 * kSecondNs;  // a sanitizer may hold up a loop for long
  options.backoff_min_ns = kSecondNs / 200;
  options.backoff_max_ns = kSecondNs / 20;
  return options;
}

/// One node. Its requests wait in `requests` unless a handler is given.
class TestNode {
 public:
  using Handler = std::function<void(Incoming, Responder)>;

  explicit TestNode(const TcpOptions& options, Handler handler = nullptr) {
    transport_ = make_tcp_transport(*clock_, *random_, options).value();
    TransportHandlers handlers;
    handlers.on_request = handler ? std::move(handler) : [this](Incoming in, Responder out) {
      requests.put(Request{std::move(in), std::move(out)});
    };
    handlers.admit = [this](NodeId node, Incarnation) -> Status {
      if (node.value == outcast) return Error(Code::kNotPermitted, "no member");
      return {};
    };
    handlers.on_peer = [this](const PeerEvent& event) { events.put(event); };
    handlers.on_refused = [this](const std::string&, const Error& why) { refusals.put(why); };
    transport_->start(std::move(handlers)).value();
    thread_ = std::thread([this] { transport_->run(); });
  }
  ~TestNode() { stop(); }

  /// As a crash is seen by others: all connections close.
  void stop() {
    if (!thread_.joinable()) return;
    transport_->stop();
    thread_.join();
  }

  TcpTransport& operator*() { return *transport_; }
  TcpTransport* operator->() { return transport_.get(); }
  std::string address() const { return "127.0.0.1:" + std::to_string(transport_->port()); }
  std::uint64_t now_ns() { return clock_->boot_ns(); }

  /// Connects to another one and waits until it is up.
  void join(std::uint64_t node, const std::string& address) {
    transport_->set_peer({node}, {address}).value();
    const auto event = events.take();
    ASSERT_TRUE(event && event->is_up) << (event ? describe(event->why) : "");
  }

  PeerStatus peer(std::uint64_t node) {
    for (const PeerStatus& status : transport_->peers())
      if (status.node.value == node) return status;
    return {};
  }

  std::atomic<std::uint64_t> outcast = 0;  ///< a node that is not let in
  Inbox<PeerEvent> events;
  Inbox<Error> refusals;
  Inbox<Request> requests;

 private:
  std::unique_ptr<Clock> clock_ = make_real_clock();
  std::unique_ptr<Random> random_ = make_real_random();
  std::unique_ptr<TcpTransport> transport_;
  std::thread thread_;
};

/// A copy that lives until it is sent.
inline Payload kept(Bytes bytes) {
  if (bytes.empty()) return {};
  const auto copy = std::make_shared<AlignedBuffer>(bytes.size());
  std::memcpy(copy->data(), bytes.data(), bytes.size());
  return {copy->bytes(), copy};
}

/// A call on its way; the answer waits in it.
class Asked {
 public:
  Status call(TestNode& from, std::uint64_t to, std::string head, Bytes body = {},
              MutableBytes reply_body = {}, std::uint64_t timeout_ns = 30 * kSecondNs) {
    Call call;
    call.kind = 7;
    call.head = std::move(head);
    call.body = kept(body);
    call.reply_body = reply_body;
    call.deadline_ns = from.now_ns() + timeout_ns;
    call.done = [answers = answers_](Result<Reply> reply) { answers->put(std::move(reply)); };
    return from->call({to}, std::move(call));
  }
  Status read(TestNode& from, std::uint64_t to, RegionKey key, std::uint64_t offset,
              MutableBytes out, std::uint64_t timeout_ns = 30 * kSecondNs) {
    RegionRead read;
    read.key = key;
    read.offset = offset;
    read.out = out;
    read.deadline_ns = from.now_ns() + timeout_ns;
    read.done = [answers = answers_, size = out.size()](Status status) {
      answers->put(status ? Result<Reply>(Reply{"", size}) : Result<Reply>(status.error()));
    };
    return from->read({to}, std::move(read));
  }
  Result<Reply> answer() {
    auto answer = answers_->take();
    return answer ? std::move(*answer) : Result<Reply>(Error(Code::kIo, "no answer at all"));
  }
  Code error() {
    const auto result = answer();
    EXPECT_FALSE(result) << "an answer instead of an error";
    return result ? Code::kIo : result.error().code;
  }
  bool is_done() { return !answers_->is_empty(); }

 private:
  std::shared_ptr<Inbox<Result<Reply>>> answers_ = std::make_shared<Inbox<Result<Reply>>>();
};

template <typename AnyRequest>
void answer_with(AnyRequest&& request, std::string head, Bytes body = {}) {
  request.responder.reply(Answer{std::move(head), kept(body)});
}

inline AlignedBuffer noise(std::size_t size, unsigned seed = 1) {
  AlignedBuffer buffer(size);
  std::mt19937_64 random(seed);
  for (std::size_t i = 0; i < size; ++i) buffer.data()[i] = static_cast<std::byte>(random());
  return buffer;
}

inline bool same(Bytes a, Bytes b) { return std::equal(a.begin(), a.end(), b.begin(), b.end()); }

}  // namespace kvsyncfs
