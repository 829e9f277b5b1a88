// What clients did to the names of one directory, and whether it can have happened (P1).
//
// The changes must fit one order, each somewhere between its call and its return. A read is
// answered by a node from its own catalog: it sees every change that returned before it began, and
// what an earlier read on that node saw; two reads on two nodes may see a change that is under way
// one before the other. A change that ended in no clear answer happened at some time after its
// call, or never. The search is Wing and Gong's, with a memory of the states that led nowhere.
// Pure. Thread: values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/base/error.h"

namespace kvsyncfs {

inline constexpr std::size_t kGroupNames = 3;
inline constexpr std::uint64_t kNoAnswer = ~std::uint64_t{0};

enum class NameCall { kCreate, kUnlink, kRename, kRenameNew, kExchange, kLink, kLookup };

struct NameOp {
  NameCall call = NameCall::kLookup;
  unsigned node = 0;
  std::size_t a = 0, b = 0;  ///< names; link: `b` is the new one
  std::uint64_t token = 0;   ///< of the file that is made, linked, or was seen
  std::uint64_t begin_ns = 0, end_ns = kNoAnswer;
  Code code{};  ///< where it failed for good; Code{}: it did not
};
std::string to_text(const NameOp& op);

/// Empty, or why the history cannot have happened. Reads without an answer are not part of it.
std::string check_names(const std::vector<NameOp>& ops);

}  // namespace kvsyncfs
