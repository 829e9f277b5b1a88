// What clients did to one attribute or extended attribute of a file, and whether it can have
// happened: the order of order_search.h. Pure. Thread: values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/base/error.h"
#include "tests/sim/cluster/order_search.h"

namespace kvsyncfs {

/// kAdd: only where there is none; kReplace: only where there is one.
enum class RegisterCall { kSet, kAdd, kReplace, kRemove, kRead };

struct RegisterOp {
  RegisterCall call = RegisterCall::kRead;
  unsigned node = 0;
  std::uint64_t value = 0;  ///< that it gets, or that was seen; 0: none
  std::uint64_t begin_ns = 0, end_ns = kNoAnswer;
  Code code{};  ///< where a change was refused
};
inline bool is_read(const RegisterOp& op) { return op.call == RegisterCall::kRead; }
std::string to_text(const RegisterOp& op);

/// Empty, or why the history cannot have happened, from `value` on.
std::string check_register(const std::string& name, std::uint64_t value,
                           const std::vector<RegisterOp>& ops);

}  // namespace kvsyncfs
