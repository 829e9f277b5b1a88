// Whether calls of several clients fit one order of a thing that does one call at a time: the
// search of Wing and Gong, with a memory of the states that led nowhere.
//
// The changes must fit one order, each somewhere between its call and its return. A read is
// answered by a node from its own catalog: it sees every change that returned before it began, and
// what an earlier read on that node saw; two reads on two nodes may see a change that is under way
// one before the other. A change that ended in no clear answer happened at some time after its
// call, or never.
//
// `Op` has begin_ns, end_ns (kNoAnswer) and node; beside it stand is_read(op), to_text(op),
// fits(op, state), which takes the state on where the answer is what the call comes to, and
// key_of(state). Pure. Thread: values.
#pragma once

#include <algorithm>
#include <bitset>
#include <cstdint>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

namespace kvsyncfs {

inline constexpr std::uint64_t kNoAnswer = ~std::uint64_t{0};

template <typename Op, typename State>
class OrderSearch {
 public:
  static constexpr std::size_t kOpsMax = 1024;

  /// Empty, or the calls, those that no order takes in marked.
  static std::string why_not(std::vector<Op> ops, const State& begin) {
    std::erase_if(ops, [](const Op& op) { return is_read(op) && op.end_ns == kNoAnswer; });
    std::stable_sort(ops.begin(), ops.end(),
                     [](const Op& a, const Op& b) { return a.begin_ns < b.begin_ns; });
    if (ops.size() > kOpsMax) return "more calls than the check takes";
    OrderSearch search(std::move(ops));
    if (search.can_be({}, begin)) return {};
    return "no order explains these calls (! are left over)\n" + search.left_over();
  }

 private:
  using Done = std::bitset<kOpsMax>;
  static constexpr std::size_t kStatesMax = 300'000;  // beyond it a history is one that can be

  explicit OrderSearch(std::vector<Op> ops) : ops_(std::move(ops)), before_(ops_.size()) {
    for (std::size_t i = 0; i < ops_.size(); ++i) {
      if (ops_[i].end_ns != kNoAnswer) answered_.set(i);
      for (std::size_t j = 0; j < ops_.size(); ++j) {
        const bool reads = is_read(ops_[i]) && is_read(ops_[j]) && ops_[i].node != ops_[j].node;
        if (ops_[j].end_ns < ops_[i].begin_ns && !reads) before_[i].set(j);
      }
    }
  }

  bool can_be(Done done, State state) {
    take_reads(done, state);
    if ((done & answered_) == answered_) return true;
    if (done.count() > best_.count()) best_ = done;
    if (seen_.size() > kStatesMax) return true;
    if (!seen_.insert(done.to_string() + key_of(state)).second) return false;
    for (std::size_t i = 0; i < ops_.size(); ++i) {
      if (!may_be_next(i, done)) continue;
      State after = state;
      if (!fits(ops_[i], after)) continue;
      Done next = done;
      next.set(i);
      if (can_be(next, std::move(after))) return true;
    }
    return false;
  }

  bool may_be_next(std::size_t i, const Done& done) const {
    return !done[i] && (before_[i] & ~done).none();
  }
  /// A read that fits changes nothing: it may as well come first.
  void take_reads(Done& done, State& state) const {
    for (bool more = true; more;) {
      more = false;
      for (std::size_t i = 0; i < ops_.size(); ++i) {
        if (!is_read(ops_[i]) || !may_be_next(i, done) || !fits(ops_[i], state)) continue;
        done.set(i);
        more = true;
      }
    }
  }
  /// What the longest order left over, in the order of the calls.
  std::string left_over() const {
    std::string text;
    for (std::size_t i = 0; i < ops_.size(); ++i)
      text += (best_[i] ? "  " : "! ") + to_text(ops_[i]) + "\n";
    return text;
  }

  const std::vector<Op> ops_;
  std::vector<Done> before_;
  Done answered_, best_;
  std::unordered_set<std::string> seen_;
};

}  // namespace kvsyncfs
