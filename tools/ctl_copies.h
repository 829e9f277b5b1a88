// What `kvsyncfs-ctl STORE verify`, `scrub`, `heal` and `lost` print. Pure. Thread: values.
#pragma once

#include <boost/json.hpp>
#include <cstdint>
#include <string>
#include <string_view>

namespace kvsyncfs {

/// A line for each bad copy in a daemon's answer, with the files that nothing could mend.
std::string bad_copies_text(const boost::json::object& answer);
/// Bad copies that stay.
std::uint64_t left_bad(const boost::json::object& answer);

/// Bytes that have to be copied, to make up for lost copies and to empty nodes.
std::uint64_t heal_bytes_left(const boost::json::object& report);
/// Of a daemon's answer to "heal". `bytes_per_second`: how fast that becomes less; 0: not known.
std::string heal_text(const boost::json::object& report, double bytes_per_second);

/// Why a node is not to be removed: of a daemon's answer to "last_copies", one line. Empty: nothing
/// goes with it.
std::string last_copies_text(const std::string& node, const boost::json::object& answer);

/// Of a daemon's answer to "lost".
std::string lost_text(const boost::json::object& lost);

}  // namespace kvsyncfs
