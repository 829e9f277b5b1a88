#include "engine/net/tcp/call_table.h"

#include <limits>
#include <utility>

namespace kvsyncfs {

Status CallTable::add(PendingCall call) {
  const std::size_t size = call.size();
  const bool is_full =
      waiting_count_ >= calls_max_ || (waiting_count_ > 0 && waiting_bytes_ + size > bytes_max_);
  if (is_full) return Code::kBusy;
  const std::uint64_t number = ++last_number_;
  deadlines_.emplace(call.deadline_ns, number);
  waiting_.push_back(number);
  ++waiting_count_;
  waiting_bytes_ += size;
  entries_[number].call = std::move(call);
  return {};
}

bool CallTable::has_credits(const Entry& entry) const {
  if (sent_count_ == 0) return true;
  return sent_count_ < credits_.calls_max && sent_bytes_ + entry.call.size() <= credits_.bytes_max;
}

std::optional<CallTable::Sendable> CallTable::next() {
  while (!waiting_.empty() && !entries_.contains(waiting_.front())) waiting_.pop_front();
  if (waiting_.empty()) return std::nullopt;
  const std::uint64_t number = waiting_.front();
  Entry& entry = entries_.find(number)->second;
  const std::size_t out_size = entry.call.out.size();
  if (!has_credits(entry) || !budget_.try_take(outstanding_bytes_, out_size)) return std::nullopt;
  waiting_.pop_front();
  forget_waiting(entry);
  entry.is_sent = true;
  entry.sent_bytes = entry.call.size();
  entry.budget_bytes = entry.pending_bytes = out_size;
  ++sent_count_;
  sent_bytes_ += entry.sent_bytes;
  outstanding_bytes_ += out_size;
  return Sendable{number, &entry.call};
}

PendingCall* CallTable::find_sent(std::uint64_t number) {
  const auto found = entries_.find(number);
  return found != entries_.end() && found->second.is_sent ? &found->second.call : nullptr;
}

void CallTable::give_back_budget(Entry& entry) {
  if (budget_.release(std::exchange(entry.budget_bytes, 0))) released_ = true;
}

void CallTable::forget_waiting(const Entry& entry) {
  --waiting_count_;
  waiting_bytes_ -= entry.call.size();
}

void CallTable::forget_sent(Entries::iterator entry) {
  give_back_budget(entry->second);
  --sent_count_;
  sent_bytes_ -= entry->second.sent_bytes;
  outstanding_bytes_ -= entry->second.pending_bytes;
  entries_.erase(entry);
}

std::optional<Finished> CallTable::answer(std::uint64_t number, Result<Reply> result) {
  const auto found = entries_.find(number);
  if (found == entries_.end() || !found->second.is_sent) return std::nullopt;
  PendingCall& call = found->second.call;
  std::optional<Finished> finished;
  if (call.done) {
    deadlines_.erase({call.deadline_ns, number});
    finished.emplace(Finished{std::move(call.done), std::move(result)});
  }
  forget_sent(found);
  return finished;
}

std::vector<Finished> CallTable::expire(std::uint64_t now_ns,
                                        std::vector<std::uint64_t>* given_up) {
  std::vector<Finished> finished;
  while (!deadlines_.empty() && deadlines_.begin()->first <= now_ns) {
    const std::uint64_t number = deadlines_.begin()->second;
    deadlines_.erase(deadlines_.begin());
    const auto found = entries_.find(number);
    Entry& entry = found->second;
    finished.push_back({std::exchange(entry.call.done, nullptr), Error(Code::kTimeout)});
    if (entry.is_sent) {
      entry.call.out = {};
      give_back_budget(entry);
      given_up->push_back(number);
    } else {
      forget_waiting(entry);
      entries_.erase(found);
    }
  }
  return finished;
}

std::vector<Finished> CallTable::fail(const Error& sent_error, const Error& waiting_error) {
  std::vector<Finished> finished;
  for (auto& [number, entry] : entries_) {
    give_back_budget(entry);
    if (entry.call.done)
      finished.push_back({std::move(entry.call.done), entry.is_sent ? sent_error : waiting_error});
  }
  entries_.clear();
  waiting_.clear();
  deadlines_.clear();
  waiting_count_ = sent_count_ = 0;
  waiting_bytes_ = sent_bytes_ = outstanding_bytes_ = 0;
  return finished;
}

std::uint64_t CallTable::due_ns() const {
  return deadlines_.empty() ? std::numeric_limits<std::uint64_t>::max() : deadlines_.begin()->first;
}

}  // namespace kvsyncfs
