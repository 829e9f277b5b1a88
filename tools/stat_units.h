// Numbers as people read them. A value that the daemon does not tell is "n/a", never 0.
// Thread: values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace kvsyncfs {

std::string human_bytes(std::optional<std::uint64_t> bytes);  ///< 512 B, 1.5 KiB, 23 MiB
std::string human_count(std::optional<std::uint64_t> count);  ///< 99999, 1.23 M
std::string human_rate(std::optional<double> per_second);     ///< 0.5, 1234, 1.23 M
std::string human_time(std::optional<std::uint64_t> ns);      ///< 950 ns, 12.3 us, 1.5 s
std::string human_duration(std::uint64_t ns);                 ///< 5 s, 3 min 20 s, 2 d 4 h
/// Never "100 %" unless it is all, and never "0 %" unless it is nothing.
std::string human_percent(double share);

}  // namespace kvsyncfs
