// A call to a peer whose caller waits. Thread: any but the transport's loop.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>

#include "engine/net/transport.h"

namespace kvsyncfs {

/// One call under way, begun and waited for by the same caller. The transport ends every call at
/// its deadline, so that the wait needs no end of its own.
class WaitingCall {
 public:
  /// `call.done` is set here. An error of Transport::call is that of wait().
  WaitingCall(Transport& transport, NodeId peer, Call call);
  /// Waits: the call's buffers are the caller's.
  ~WaitingCall() { static_cast<void>(wait()); }
  WaitingCall(const WaitingCall&) = delete;
  WaitingCall& operator=(const WaitingCall&) = delete;

  /// Errors: those of Transport::call and Call::done.
  const Result<Reply>& wait();

 private:
  struct State {
    std::mutex mutex;
    std::condition_variable done;
    std::optional<Result<Reply>> result;
  };
  std::shared_ptr<State> state_ = std::make_shared<State>();
};

}  // namespace kvsyncfs
