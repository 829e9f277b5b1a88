#include "tests/sim/cluster/name_history.h"

#include <fmt/format.h>

#include <array>
#include <map>

namespace kvsyncfs {
namespace {

/// Tokens by their places; 0: nothing is there.
struct Names {
  std::array<std::uint64_t, kGroupNames> names{};
  std::map<std::uint64_t, std::uint64_t> inside;  ///< of each directory that there is

  /// Null: the directory is gone.
  std::uint64_t* at(const NamePlace& place) {
    if (place.directory == 0) return &names[place.name];
    const auto found = inside.find(place.directory);
    return found == inside.end() ? nullptr : &found->second;
  }
  bool has(std::uint64_t token) const {
    for (const std::uint64_t name : names)
      if (name == token) return true;
    for (const auto& [directory, child] : inside)
      if (child == token) return true;
    return false;
  }
  /// Whether `directory` is `above`, or lies below it.
  bool is_inside(std::uint64_t directory, std::uint64_t above) const {
    while (directory != 0 && directory != above) {
      std::uint64_t holder = 0;
      for (const auto& [candidate, child] : inside)
        if (child == directory) holder = candidate;
      directory = holder;
    }
    return directory != 0;
  }
};

bool is_folder(std::uint64_t token) { return kind_of(token) == NodeKind::kDirectory; }

Code create(const NameOp& op, Names& names) {
  std::uint64_t* a = names.at(op.a);
  if (a == nullptr) return Code::kNotFound;
  if (*a != 0) return Code::kExists;
  *a = op.token;
  if (is_folder(op.token)) names.inside[op.token] = 0;
  return {};
}

Code remove(const NameOp& op, Names& names) {
  std::uint64_t* a = names.at(op.a);
  if (a == nullptr || *a == 0) return Code::kNotFound;
  if (op.call == NameCall::kUnlink && is_folder(*a)) return Code::kIsDirectory;
  if (op.call == NameCall::kRmdir) {
    if (!is_folder(*a)) return Code::kNotDirectory;
    if (names.inside[*a] != 0) return Code::kNotEmpty;
    names.inside.erase(*a);
  }
  *a = 0;
  return {};
}

Code link(const NameOp& op, Names& names) {
  std::uint64_t* b = names.at(op.b);
  if (b == nullptr || !names.has(op.token)) return Code::kNotFound;
  if (*b != 0) return Code::kExists;
  *b = op.token;
  return {};
}

Code rename(const NameOp& op, Names& names) {
  std::uint64_t* a = names.at(op.a);
  std::uint64_t* b = names.at(op.b);
  if (a == nullptr || b == nullptr || *a == 0) return Code::kNotFound;
  if (op.call == NameCall::kRenameNew && *b != 0) return Code::kExists;
  if (op.call == NameCall::kExchange && *b == 0) return Code::kNotFound;
  if (*a == *b) return {};  // two names of one file, which stay
  if (is_folder(*a) && names.is_inside(op.b.directory, *a)) return Code::kInvalid;
  if (op.call == NameCall::kExchange) {
    if (is_folder(*b) && names.is_inside(op.a.directory, *b)) return Code::kInvalid;
    std::swap(*a, *b);
    return {};
  }
  if (*b != 0) {
    if (is_folder(*a) && !is_folder(*b)) return Code::kNotDirectory;
    if (!is_folder(*a) && is_folder(*b)) return Code::kIsDirectory;
    if (is_folder(*b) && names.inside[*b] != 0) return Code::kNotEmpty;
    if (is_folder(*b)) names.inside.erase(*b);
  }
  *b = *a;
  *a = 0;
  return {};
}

/// What the call comes to, and what the names are then.
Code carry_out(const NameOp& op, Names& names) {
  switch (op.call) {
    case NameCall::kCreate:
      return create(op, names);
    case NameCall::kUnlink:
    case NameCall::kRmdir:
      return remove(op, names);
    case NameCall::kRename:
    case NameCall::kRenameNew:
    case NameCall::kExchange:
      return rename(op, names);
    case NameCall::kLink:
      return link(op, names);
    case NameCall::kLookup:
      break;
  }
  const std::uint64_t* a = names.at(op.a);
  return a == nullptr || *a == 0 ? Code::kNotFound : Code{};
}

/// Whether the answer is what the call comes to.
bool fits(const NameOp& op, Names& names) {
  if (is_read(op)) {
    const std::uint64_t* a = names.at(op.a);
    return (op.code == Code{} ? op.token : 0) == (a == nullptr ? 0 : *a);
  }
  Names after = names;
  const Code code = carry_out(op, after);
  if (op.end_ns == kNoAnswer) {
    if (code == Code{}) names = after;
    return code == Code{};
  }
  // Of two reasons to refuse either may be told.
  const std::uint64_t* b = names.at(op.b);
  const bool refused_twice = op.call == NameCall::kLink && op.code == Code::kExists &&
                             code == Code::kNotFound && b != nullptr && *b != 0;
  if (code != op.code && !refused_twice) return false;
  names = after;
  return true;
}

std::string key_of(const Names& names) {
  std::string key;
  for (const std::uint64_t name : names.names) key += ' ' + std::to_string(name);
  for (const auto& [directory, child] : names.inside)
    key += fmt::format(" {}:{}", directory, child);
  return key;
}

std::string to_text(const NamePlace& place) {
  return place.directory == 0 ? std::to_string(place.name) : fmt::format("in {}", place.directory);
}

}  // namespace

std::string to_text(const NameOp& op) {
  constexpr const char* kCalls[] = {"create",     "unlink",   "rmdir", "rename",
                                    "rename-new", "exchange", "link",  "lookup"};
  const auto end = op.end_ns == kNoAnswer
                       ? std::string("?")
                       : fmt::format("{:.6f}", static_cast<double>(op.end_ns) / 1e9);
  return fmt::format("{:.6f}-{} n{} {} {}->{} node {}: {}", static_cast<double>(op.begin_ns) / 1e9,
                     end, op.node, kCalls[static_cast<int>(op.call)], to_text(op.a), to_text(op.b),
                     op.token,
                     op.end_ns == kNoAnswer ? "no answer"
                     : op.code == Code{}    ? "ok"
                                            : std::string(to_string(op.code)));
}

std::string check_names(const std::vector<NameOp>& ops) {
  const std::string why = OrderSearch<NameOp, Names>::why_not(ops, {});
  return why.empty() ? why : "names: " + why;
}

}  // namespace kvsyncfs
