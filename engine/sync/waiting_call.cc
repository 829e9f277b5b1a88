#include "engine/sync/waiting_call.h"

namespace kvsyncfs {

WaitingCall::WaitingCall(Transport& transport, NodeId peer, Call call) {
  call.done = [state = state_](Result<Reply> result) {
    std::lock_guard lock(state->mutex);
    state->result.emplace(std::move(result));
    state->done.notify_all();
  };
  if (const Status accepted = transport.call(peer, std::move(call)); !accepted)
    state_->result.emplace(accepted.error());
}

const Result<Reply>& WaitingCall::wait() {
  std::unique_lock lock(state_->mutex);
  state_->done.wait(lock, [this] { return state_->result.has_value(); });
  return *state_->result;
}

}  // namespace kvsyncfs
