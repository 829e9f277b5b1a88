// The daemon's command line and mount options. Pure. Thread: one.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/base/error.h"

namespace kvsyncfs {

struct MountOptions {
  std::string store, mountpoint;
  bool foreground = false;  ///< -f
  bool debug = false;       ///< -d: foreground, and every FUSE request on stderr
  bool no_mount = false;    ///< --no-mount: serves the other nodes only; there is no mount point
  bool help = false, version = false;
  bool read_only = false;
  bool atime = true;                   ///< relatime; noatime turns it off
  std::uint64_t timeout_s = 15;        ///< for waits; the watchdog gives the daemon twice that
  std::uint64_t cache_size_bytes = 0;  ///< 0: an eighth of the memory, at most 4 GiB
  std::uint64_t write_buffer_bytes = 64u << 20;
  std::uint64_t heal_delay_s = 600;  ///< of a cluster: a node that is away for longer is replaced
  std::uint64_t scrub_period_s = 7 * 86'400;  ///< 0: never
  std::uint64_t log_size_bytes = 1u << 30;    ///< of a cluster: entries that the log may hold
  std::string log_level = "info";
  std::string listen;  ///< of a cluster's node, "address:port"; empty: as the store says
  /// Of a cluster's node: files for TLS between nodes; all or none.
  std::string tls_certificate, tls_key, tls_authority;
  std::string metrics;                      ///< "address:port" for Prometheus; empty: nowhere
  std::string fsname;                       ///< what mount(8) shows as the source; empty: the store
  std::vector<std::string> kernel_options;  ///< for mount(2): nodev, nosuid, noexec, sync, ...
};

/// `arguments` without the program's name: STORE MNT, or --no-mount STORE, and
/// [-o OPTION,...] [-f] [-d] [--help] [--version]. Words of /etc/fstab that are for others (nofail,
/// _netdev, x-*, ...) are accepted and dropped. Errors: kInvalid, naming the
/// option.
Result<MountOptions> parse_mount_options(const std::vector<std::string>& arguments);

/// The sizes fit into a machine with so much memory. Errors: kNoMemory, naming the option.
Status check_sizes(const MountOptions& options, std::uint64_t memory_bytes);

std::string mount_help();

}  // namespace kvsyncfs
