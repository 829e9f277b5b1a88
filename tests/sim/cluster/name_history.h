// What clients did to the names of one group, and whether it can have happened (P1): the order of
// order_search.h.
//
// A group has names in folders that stay, and each directory made below them may hold one name
// more. So names, directories and what lies in them move between folders, and one search judges
// them together. Pure. Thread: values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/base/error.h"
#include "tests/sim/cluster/order_search.h"

namespace kvsyncfs {

inline constexpr std::size_t kGroupNames = 4;

/// A create makes what its token is: a file, directory or symbolic link.
enum class NameCall { kCreate, kUnlink, kRmdir, kRename, kRenameNew, kExchange, kLink, kLookup };

enum class NodeKind : std::uint64_t { kFile, kDirectory, kSymlink };
/// Of the node that is made with this number, which is not 0; what is seen of it later.
constexpr std::uint64_t token_of(std::uint64_t number, NodeKind kind) {
  return number << 2 | static_cast<std::uint64_t>(kind);
}
constexpr NodeKind kind_of(std::uint64_t token) { return static_cast<NodeKind>(token & 3); }

struct NamePlace {
  std::size_t name = 0;         ///< of the group's, below kGroupNames; unless
  std::uint64_t directory = 0;  ///< it is the one name in the directory with this token
  bool operator==(const NamePlace&) const = default;
};

struct NameOp {
  NameCall call = NameCall::kLookup;
  unsigned node = 0;
  NamePlace a, b;           ///< link: `b` is the new one
  std::uint64_t token = 0;  ///< of what is made, linked, or was seen
  std::uint64_t begin_ns = 0, end_ns = kNoAnswer;
  Code code{};  ///< where it failed for good; Code{}: it did not
};
inline bool is_read(const NameOp& op) { return op.call == NameCall::kLookup; }
std::string to_text(const NameOp& op);

/// Empty, or why the history cannot have happened. Reads without an answer are not part of it.
std::string check_names(const std::vector<NameOp>& ops);

}  // namespace kvsyncfs
