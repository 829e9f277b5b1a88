// The command line of kvsyncfs-ctl. Pure. Thread: values.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/error.h"

namespace kvsyncfs {

enum class CtlCommand {
  kNodes,  ///< asks etcd, as the next ones
  kRemove,
  kDrain,
  kEvict,
  kMaintenance,
  kRotateSecret,  ///< reads and writes the store as well
  kReseedLog,     ///< changes the store and etcd, as the next two; nobody may have the store
  kTakeCatalog,
  kRestoreCatalog,
  kFlush,  ///< asks the daemon, as the next ones
  kLocate,
  kVerify,
  kPull,
  kScrub,
  kHeal,
  kLost,
  kSnapshotCatalog,
  kSnapshots,
  kReleaseSnapshot,
};

struct CtlOptions {
  std::string store;  ///< or its mount
  CtlCommand command = CtlCommand::kNodes;
  std::string argument;  ///< PATH, NODE, FILE or NAME, of a command that takes one
  std::string name;      ///< snapshot-catalog; empty: that of the file
  bool json = false, help = false, version = false;
  bool now = false;              ///< heal
  bool force = false;            ///< remove, reseed-log, restore-catalog
  bool dry_run = false;          ///< reseed-log, restore-catalog
  bool yes = false;              ///< take-catalog
  bool cancel = false;           ///< drain, evict, rotate-secret, and the end of a maintenance
  bool finish = false;           ///< rotate-secret
  std::int64_t seconds = 0;      ///< maintenance, snapshot-catalog
  std::uint64_t rate_bytes = 0;  ///< heal, a second; 0: as it is
};

/// "90", "90s", "30m", "2h", "1d"; whole seconds. Errors: kInvalid.
Result<std::int64_t> parse_duration(std::string_view text);

/// `arguments` without the program's name. Errors: kInvalid, naming the argument.
Result<CtlOptions> parse_ctl_options(std::vector<std::string> arguments);

std::string ctl_help();

}  // namespace kvsyncfs
