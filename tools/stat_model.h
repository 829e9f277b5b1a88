// What a daemon answered, as values. A field that an older or newer daemon does not have is missing
// here too, and shown as not known. Thread: values.
#pragma once

#include <boost/json.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/error.h"

namespace kvsyncfs {

using Count = std::optional<std::uint64_t>;

struct OperationStats {
  std::string name;
  Count count, errors, p50_ns, p99_ns, p999_ns, max_ns;
};

/// Reads of pages up to a moment of the daemon's life.
struct HitSample {
  std::uint64_t uptime_ns = 0, hits = 0, misses = 0;
  bool operator==(const HitSample&) const = default;
};

class StatDocument {
 public:
  /// Errors: kCorrupt (not JSON, not an object, or no uptime and process id in it).
  static Result<StatDocument> parse(std::string_view text);

  const boost::json::object& json() const { return json_; }
  /// Two answers with the same process id and a growing uptime are of one life of one daemon.
  std::uint64_t pid() const { return pid_; }
  std::uint64_t uptime_ns() const { return uptime_ns_; }
  std::string text(std::string_view name) const;                      ///< empty if missing
  Count number(std::string_view group, std::string_view name) const;  ///< of "engine" or "space"
  std::vector<std::string> words(std::string_view name) const;        ///< a list of strings
  std::vector<OperationStats> operations() const;                     ///< in the daemon's order
  std::optional<HitSample> hits() const;                              ///< now
  /// What the daemon remembers of earlier moments, the oldest first.
  std::vector<HitSample> history() const;

 private:
  boost::json::object json_;
  std::uint64_t pid_ = 0;
  std::uint64_t uptime_ns_ = 0;
};

}  // namespace kvsyncfs
