#include "tests/sim/cluster/name_history.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bitset>
#include <unordered_set>

namespace kvsyncfs {
namespace {

constexpr std::size_t kOpsMax = 1024;
constexpr std::size_t kStatesMax = 300'000;  // beyond it a history counts as one that can be

using Names = std::array<std::uint64_t, kGroupNames>;  // file of each name; 0: none
using Done = std::bitset<kOpsMax>;

bool is_read(const NameOp& op) { return op.call == NameCall::kLookup; }

/// What the call comes to, and what the names are then.
Code carry_out(const NameOp& op, Names& names) {
  std::uint64_t& a = names[op.a];
  std::uint64_t& b = names[op.b];
  switch (op.call) {
    case NameCall::kCreate:
      if (a != 0) return Code::kExists;
      a = op.token;
      return {};
    case NameCall::kUnlink:
      if (a == 0) return Code::kNotFound;
      a = 0;
      return {};
    case NameCall::kRename:
    case NameCall::kRenameNew:
      if (a == 0) return Code::kNotFound;
      if (op.call == NameCall::kRenameNew && b != 0) return Code::kExists;
      if (a == b) return {};  // two names of one file, which stay
      b = a;
      a = 0;
      return {};
    case NameCall::kExchange:
      if (a == 0 || b == 0) return Code::kNotFound;
      std::swap(a, b);
      return {};
    case NameCall::kLink:
      if (std::find(names.begin(), names.end(), op.token) == names.end()) return Code::kNotFound;
      if (b != 0) return Code::kExists;
      b = op.token;
      return {};
    case NameCall::kLookup:
      return a == 0 ? Code::kNotFound : Code{};
  }
  return {};
}

/// Whether the answer is what the call comes to.
bool fits(const NameOp& op, Names& names) {
  Names after = names;
  const Code code = carry_out(op, after);
  if (op.end_ns == kNoAnswer) {
    if (code == Code{}) names = after;
    return code == Code{};
  }
  // Of two reasons to refuse either may be told.
  const bool refused_twice = op.call == NameCall::kLink && op.code == Code::kExists &&
                             code == Code::kNotFound && names[op.b] != 0;
  if (code != op.code && !refused_twice) return false;
  if (is_read(op) && code == Code{} && names[op.a] != op.token) return false;
  names = after;
  return true;
}

class Search {
 public:
  explicit Search(std::vector<NameOp> ops) : ops_(std::move(ops)), before_(ops_.size()) {
    for (std::size_t i = 0; i < ops_.size(); ++i) {
      if (ops_[i].end_ns != kNoAnswer) answered_.set(i);
      for (std::size_t j = 0; j < ops_.size(); ++j) {
        const bool reads = is_read(ops_[i]) && is_read(ops_[j]) && ops_[i].node != ops_[j].node;
        if (ops_[j].end_ns < ops_[i].begin_ns && !reads) before_[i].set(j);
      }
    }
  }

  bool can_be(Done done, Names names) {
    take_reads(done, names);
    if ((done & answered_) == answered_) return true;
    if (done.count() > best_.count()) best_ = done;
    if (seen_.size() > kStatesMax || !seen_.insert(key(done, names)).second)
      return seen_.size() > kStatesMax;
    for (std::size_t i = 0; i < ops_.size(); ++i) {
      if (!may_be_next(i, done)) continue;
      Names after = names;
      if (!fits(ops_[i], after)) continue;
      Done next = done;
      next.set(i);
      if (can_be(next, after)) return true;
    }
    return false;
  }

  /// What the longest order left over, in the order of the calls.
  std::string left_over() const {
    std::string text;
    for (std::size_t i = 0; i < ops_.size(); ++i)
      text += fmt::format("{} {}\n", best_[i] ? " " : "!", to_text(ops_[i]));
    return text;
  }

 private:
  bool may_be_next(std::size_t i, const Done& done) const {
    return !done[i] && (before_[i] & ~done).none();
  }
  /// A read that fits changes nothing: it may as well come first.
  void take_reads(Done& done, Names& names) const {
    for (bool more = true; more;) {
      more = false;
      for (std::size_t i = 0; i < ops_.size(); ++i) {
        if (!is_read(ops_[i]) || !may_be_next(i, done) || !fits(ops_[i], names)) continue;
        done.set(i);
        more = true;
      }
    }
  }
  static std::string key(const Done& done, const Names& names) {
    std::string key = done.to_string();
    for (const std::uint64_t name : names) key += ' ' + std::to_string(name);
    return key;
  }

  const std::vector<NameOp> ops_;
  std::vector<Done> before_;
  Done answered_, best_;
  std::unordered_set<std::string> seen_;
};

}  // namespace

std::string to_text(const NameOp& op) {
  constexpr const char* kCalls[] = {"create",   "unlink", "rename", "rename-new",
                                    "exchange", "link",   "lookup"};
  const auto end = op.end_ns == kNoAnswer
                       ? std::string("?")
                       : fmt::format("{:.6f}", static_cast<double>(op.end_ns) / 1e9);
  return fmt::format("{:.6f}-{} n{} {} {}->{} file {}: {}", static_cast<double>(op.begin_ns) / 1e9,
                     end, op.node, kCalls[static_cast<int>(op.call)], op.a, op.b, op.token,
                     op.end_ns == kNoAnswer ? "no answer"
                     : op.code == Code{}    ? "ok"
                                            : std::string(to_string(op.code)));
}

std::string check_names(const std::vector<NameOp>& ops) {
  std::vector<NameOp> counted;
  for (const NameOp& op : ops)
    if (!is_read(op) || op.end_ns != kNoAnswer) counted.push_back(op);
  std::sort(counted.begin(), counted.end(),
            [](const NameOp& a, const NameOp& b) { return a.begin_ns < b.begin_ns; });
  if (counted.size() > kOpsMax) return "more calls than the check takes";
  Search search(std::move(counted));
  if (search.can_be({}, {})) return {};
  return "names: no order explains these calls (! are left over)\n" + search.left_over();
}

}  // namespace kvsyncfs
