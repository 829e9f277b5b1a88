#include "fs/options.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "engine/base/size_text.h"
#include "engine/format/cluster_config.h"

namespace kvsyncfs {

namespace {

// For mount(8), systemd and init scripts, or what holds anyway.
constexpr std::array kForOthers = {"defaults",
                                   "_netdev",
                                   "nofail",
                                   "noauto",
                                   "auto",
                                   "user",
                                   "nouser",
                                   "users",
                                   "nousers",
                                   "owner",
                                   "noowner",
                                   "group",
                                   "nogroup",
                                   "relatime",
                                   "diratime",
                                   "nomand",
                                   "norelatime",
                                   "strictatime",
                                   "loud",
                                   "nodiratime",
                                   "allow_other",
                                   "silent",
                                   "default_permissions"};
// Flags that the kernel itself enforces, in pairs: the later one of a pair
// wins.
constexpr std::array<std::array<std::string_view, 2>, 5> kForKernel = {{
    {"dev", "nodev"},
    {"suid", "nosuid"},
    {"exec", "noexec"},
    {"async", "sync"},
    {"", "dirsync"},
}};

template <typename List>
bool contains(const List& list, std::string_view word) {
  return std::find(list.begin(), list.end(), word) != list.end();
}

Status apply_value(MountOptions& options, std::string_view name, std::string_view value,
                   const std::string& word) {
  const auto size_into = [&](std::uint64_t& target) -> Status {
    const auto size = parse_size_text(value);
    if (!size || size->bytes == 0) return Error(Code::kInvalid, "option " + word + ": not a size");
    target = size->bytes;
    return {};
  };
  if (name == "cache_size") return size_into(options.cache_size_bytes);
  const auto seconds_into = [&](std::uint64_t& seconds, std::uint64_t max) -> Status {
    const auto [end, error] = std::from_chars(value.begin(), value.end(), seconds);
    if (error == std::errc{} && end == value.end() && seconds >= 1 && seconds <= max) return {};
    return Error(Code::kInvalid,
                 fmt::format("option {}: not a number of seconds from 1 to {}", word, max));
  };
  if (name == "write_buffer") {
    KVSYNCFS_TRY(size_into(options.write_buffer_bytes));
    if (options.write_buffer_bytes < (1u << 20))
      return Error(Code::kInvalid, "option " + word + ": below 1M");
    return {};
  }
  if (name == "log_size") {
    KVSYNCFS_TRY(size_into(options.log_size_bytes));
    if (options.log_size_bytes < (256u << 10))
      return Error(Code::kInvalid, "option " + word + ": below 256K");
    return {};
  }
  if (name == "timeout") return seconds_into(options.timeout_s, 3600);
  if (name == "heal_delay") return seconds_into(options.heal_delay_s, 30 * 86400);
  if (name == "scrub_period") {
    options.scrub_period_s = 0;
    return value == "0" ? Status{} : seconds_into(options.scrub_period_s, 366 * 86400);
  }
  if (name == "log_level") {
    constexpr std::array kLevels = {"trace", "debug", "info", "warn", "error", "off"};
    if (!contains(kLevels, value))
      return Error(Code::kInvalid,
                   "option " + word + ": not one of trace, debug, info, warn, error, off");
    options.log_level = value;
    return {};
  }
  if (name == "listen" || name == "metrics") {
    const auto parsed = parse_host_port(value);
    if (!parsed) return Error(Code::kInvalid, "option " + word + ": not ADDRESS:PORT");
    (name == "listen" ? options.listen : options.metrics) = value;
    return {};
  }
  if (name == "tls_cert" || name == "tls_key" || name == "tls_ca") {
    if (!value.starts_with('/'))  // the daemon has another working folder
      return Error(Code::kInvalid, "option " + word + ": not an absolute path");
    (name == "tls_cert"  ? options.tls_certificate
     : name == "tls_key" ? options.tls_key
                         : options.tls_authority) = value;
    return {};
  }
  if (name == "subtype" && value != "kvsyncfs")
    return Error(Code::kInvalid, "option " + word + ": can only be kvsyncfs");
  if (name == "fsname") options.fsname = value;
  if (name == "fsname" || name == "subtype" || name == "comment" || name.starts_with("x-"))
    return {};
  return Error(Code::kInvalid, "unknown option " + word);
}

/// False if the word is no flag of the kernel's.
bool set_kernel_flag(MountOptions& options, std::string_view word) {
  for (const auto& pair : kForKernel) {
    if (!contains(pair, word)) continue;
    std::erase_if(options.kernel_options, [&](const auto& old) { return contains(pair, old); });
    options.kernel_options.emplace_back(word);
    return true;
  }
  return false;
}

Status apply_word(MountOptions& options, const std::string& word) {
  if (const std::size_t equals = word.find('='); equals != std::string::npos)
    return apply_value(options, std::string_view(word).substr(0, equals),
                       std::string_view(word).substr(equals + 1), word);
  if (word.empty() || word.starts_with("x-")) return {};
  if (word == "remount")
    return Error(Code::kUnsupported, "only the kernel can remount: mount -i -o remount,... MNT");
  if (word == "ro" || word == "rw") {
    options.read_only = word == "ro";
  } else if (word == "noatime" || word == "atime") {
    options.atime = word == "atime";
  } else if (!set_kernel_flag(options, word) && !contains(kForOthers, word)) {
    return Error(Code::kInvalid, "unknown option " + word);
  }
  return {};
}

Status apply_list(MountOptions& options, std::string_view list) {
  while (!list.empty()) {
    const std::size_t comma = std::min(list.find(','), list.size());
    KVSYNCFS_TRY(apply_word(options, std::string(list.substr(0, comma))));
    list.remove_prefix(std::min(comma + 1, list.size()));
  }
  return {};
}

}  // namespace

Result<MountOptions> parse_mount_options(const std::vector<std::string>& arguments) {
  MountOptions options;
  std::vector<std::string> paths;
  bool only_paths = false;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& a = arguments[i];
    if (only_paths || a.empty() || a[0] != '-' || a == "-")
      paths.push_back(a);
    else if (a == "--")
      only_paths = true;
    else if (a == "-f")
      options.foreground = true;
    else if (a == "-d")
      options.debug = options.foreground = true;
    else if (a == "--no-mount")
      options.no_mount = true;
    else if (a == "-r")
      options.read_only = true;
    else if (a == "-w" || a == "-n" || a == "-s" || a == "-v")
      continue;  // of mount(8)
    else if (a == "-h" || a == "--help")
      options.help = true;
    else if (a == "-V" || a == "--version")
      options.version = true;
    else if (a == "-o" && i + 1 < arguments.size())
      KVSYNCFS_TRY(apply_list(options, arguments[++i]));
    else if (a.starts_with("-o") && a.size() > 2)
      KVSYNCFS_TRY(apply_list(options, std::string_view(a).substr(2)));
    else
      return Error(Code::kInvalid, "unknown argument " + a);
  }
  if (options.help || options.version) return options;
  if (options.no_mount && paths.size() != 1)
    return Error(Code::kInvalid, "--no-mount needs one path, a store; see kvsyncfs --help");
  if (!options.no_mount && paths.size() != 2)
    return Error(Code::kInvalid, "needs two paths, a store and a mount point; see kvsyncfs --help");
  const auto none = [](const auto&... texts) { return (texts.empty() && ...); };
  const auto all = [](const auto&... texts) { return (!texts.empty() && ...); };
  if (!none(options.tls_certificate, options.tls_key, options.tls_authority) &&
      !all(options.tls_certificate, options.tls_key, options.tls_authority))
    return Error(Code::kInvalid, "tls_cert, tls_key and tls_ca need each other");
  options.store = paths[0];
  if (!options.no_mount) options.mountpoint = paths[1];
  return options;
}

Status check_sizes(const MountOptions& options, std::uint64_t memory_bytes) {
  const std::pair<std::string_view, std::uint64_t> sizes[] = {
      {"cache_size", options.cache_size_bytes}, {"write_buffer", options.write_buffer_bytes}};
  for (const auto& [name, bytes] : sizes)
    if (bytes > memory_bytes)
      return Error(Code::kNoMemory,
                   fmt::format("option {}: {} are more than the {} of memory of this machine", name,
                               size_for_people(bytes), size_for_people(memory_bytes)));
  return {};
}

std::string mount_help() {
  return R"(usage: kvsyncfs STORE MNT [-o OPTION[,OPTION...]] [-f] [-d]
       kvsyncfs --no-mount STORE [-o OPTION[,OPTION...]] [-f]
       mount -t fuse.kvsyncfs STORE MNT [-o OPTION[,OPTION...]]

Mounts the store in the folder STORE (made by mkfs.kvsyncfs) at MNT, or serves it to the other nodes
of its cluster. Returns when it is ready.

  -d                 as -f, and print every FUSE request; no watchdog
  -f                 stay in the foreground, log to stderr
  -r                 as -o ro
  --no-mount         of a node of a cluster that only holds data: mount nothing
  -h, --help         print this
  -V, --version      print the version

Options:
  ro                 read only
  cache_size=SIZE    memory for pages read (default: an eighth of the memory, at most 4G)
  write_buffer=SIZE  memory for bytes not yet in a segment, at least 1M (default 64M)
  timeout=SECONDS    bound of each wait for other work of the daemon, 1 to 3600 (default 15);
                     a daemon without a sign of life for twice the time is cut off
  noatime            do not keep access times (default: relatime)
  log_level=LEVEL    trace, debug, info, warn, error, off (default info)
  listen=ADDR:PORT   of a node of a cluster: where the other nodes reach it (default: as
                     mkfs.kvsyncfs was told)
  tls_cert=FILE,tls_key=FILE,tls_ca=FILE
                     of a node of a cluster: TLS to the other nodes, which must have it as well
  heal_delay=SECONDS of a node of a cluster: copies that a node held which is away for longer are
                     made anew on others (default 600)
  scrub_period=SECONDS  all copies of this node are read that often, in the background, and mended
                     from other nodes (default 604800, a week; 0: never)
  metrics=ADDR:PORT  counters for Prometheus at http://ADDR:PORT/metrics (default: nowhere)
  log_size=SIZE      of a node of a cluster: entries that the log in etcd may hold, at least 256K
                     (default 1G)
  fsname=NAME        what mount(8) shows as the source (default: STORE)
  nodev, nosuid, noexec, sync, dirsync: enforced by the kernel
  allow_other, default_permissions: always on
Words of /etc/fstab for others (defaults, _netdev, nofail, noauto, user, x-..., ...) are accepted.
)";
}

}  // namespace kvsyncfs
