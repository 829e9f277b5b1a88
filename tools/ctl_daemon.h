// The daemon that kvsyncfs-ctl talks to. Thread: one.
#pragma once

#include <boost/json.hpp>
#include <string>

#include "engine/base/error.h"
#include "tools/stat_target.h"

namespace kvsyncfs {

class CtlDaemon {
 public:
  /// Of a store or a mount; asks nothing yet. Errors: those of find_target().
  static Result<CtlDaemon> of(const std::string& target);

  /// The answer to {"do":what, ...}. Errors: those of ask(), naming the target; kIo with the
  /// daemon's own words; kCorrupt (no sense in the answer).
  Result<boost::json::object> ask(boost::json::object request) const;
  /// All that was written before is durable. Errors: as ask().
  Status flush() const;
  /// A path from the root of the volume, without a leading slash. What lies on the daemon's mount
  /// is meant as it is seen there, what lies on no mount as a path in the volume. Errors: kInvalid
  /// (it lies on another mount; "..").
  Result<std::string> path_in_volume(const std::string& path) const;

 private:
  CtlDaemon(Target target, std::string store)
      : target_(std::move(target)), store_(std::move(store)) {}
  Result<boost::json::object> talk(const std::string& line, int timeout_ms) const;

  Target target_;
  std::string store_;  // its folder, as the table of mounts has it
};

}  // namespace kvsyncfs
