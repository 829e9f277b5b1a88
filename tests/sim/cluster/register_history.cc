#include "tests/sim/cluster/register_history.h"

#include <fmt/format.h>

namespace kvsyncfs {
namespace {

struct Register {
  std::uint64_t value = 0;
};

std::string key_of(const Register& now) { return std::to_string(now.value); }

bool fits(const RegisterOp& op, Register& now) {
  if (is_read(op)) return op.value == now.value;
  Code code{};
  if (op.call == RegisterCall::kAdd && now.value != 0) code = Code::kExists;
  if (op.call == RegisterCall::kReplace && now.value == 0) code = Code::kNoData;
  if (op.call == RegisterCall::kRemove && now.value == 0) code = Code::kNoData;
  if (code != (op.end_ns == kNoAnswer ? Code{} : op.code)) return false;
  if (code == Code{}) now.value = op.value;
  return true;
}

}  // namespace

std::string to_text(const RegisterOp& op) {
  constexpr const char* kCalls[] = {"set", "add", "replace", "remove", "read"};
  const auto end = op.end_ns == kNoAnswer
                       ? std::string("?")
                       : fmt::format("{:.6f}", static_cast<double>(op.end_ns) / 1e9);
  return fmt::format("{:.6f}-{} n{} {} {}{}", static_cast<double>(op.begin_ns) / 1e9, end, op.node,
                     kCalls[static_cast<int>(op.call)], op.value,
                     op.code == Code{} ? "" : fmt::format(": {}", to_string(op.code)));
}

std::string check_register(const std::string& name, std::uint64_t value,
                           const std::vector<RegisterOp>& ops) {
  const std::string why = OrderSearch<RegisterOp, Register>::why_not(ops, {value});
  return why.empty() ? why : name + ": " + why;
}

}  // namespace kvsyncfs
