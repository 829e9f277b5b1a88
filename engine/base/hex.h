// Bytes as lower-case hex digits, for what travels as text. Thread: any.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace kvsyncfs {

std::string to_hex(std::string_view bytes);
/// Nothing: not pairs of such digits.
std::optional<std::string> from_hex(std::string_view text);

}  // namespace kvsyncfs
