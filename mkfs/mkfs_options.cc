#include "mkfs/mkfs_options.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "engine/format/superblock.h"

namespace kvsyncfs {
namespace {

struct Words {
  std::string size, uuid;
  ClusterOptions cluster;
};

void declare_cluster(CLI::App& app, ClusterOptions& cluster) {
  ClusterConfig& config = cluster.format.config;
  app.add_option("--volume", config.volume);
  app.add_option("--cluster", cluster.address);
  app.add_option("--replicas", cluster.format.replicas);
  app.add_option("--node", config.node);
  app.add_option("--rack", config.rack);
  app.add_option("--listen", config.listen);
  app.add_flag("--join", cluster.format.join);
  app.add_option("--secret", cluster.secret_file);
  app.add_option("--user", config.user);
  app.add_option("--password-file", config.password_file);
  app.add_option("--ca", config.ca_file);
  app.add_option("--cert", config.certificate_file);
  app.add_option("--key", config.key_file);
}

void declare(CLI::App& app, MkfsOptions& options, Words& words) {
  app.set_help_flag();
  app.add_flag("-h,--help", options.help);
  app.add_flag("-V,--version", options.version);
  app.add_option("-s,--size", words.size);
  app.add_option("-L,--label", options.label);
  app.add_option("-U,--uuid", words.uuid);
  app.add_flag("-f,--force", options.force);
  app.add_flag("-q,--quiet", options.quiet);
  app.add_option("STORE", options.store);
  declare_cluster(app, words.cluster);
}

Status check_label(const std::string& label) {
  if (label.size() > kLabelSizeMax)
    return Error(Code::kInvalid,
                 fmt::format("--label: {} bytes, at most {}", label.size(), kLabelSizeMax));
  const auto is_control = [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; };
  if (std::any_of(label.begin(), label.end(), is_control))
    return Error(Code::kInvalid, "--label: control character");
  return {};
}

Error wrong(const std::string& what) { return Error(Code::kInvalid, what); }

/// Options that make sense only with others, or never with them.
Status check_together(const CLI::App& app, bool tls) {
  constexpr const char* kPairs[][2] = {
      {"--volume", "--cluster"},     {"--cluster", "--volume"},    {"--replicas", "--volume"},
      {"--node", "--volume"},        {"--rack", "--volume"},       {"--listen", "--volume"},
      {"--join", "--volume"},        {"--join", "--secret"},       {"--secret", "--join"},
      {"--user", "--volume"},        {"--ca", "--volume"},         {"--cert", "--volume"},
      {"--key", "--volume"},         {"--cert", "--key"},          {"--key", "--cert"},
      {"--user", "--password-file"}, {"--password-file", "--user"}};
  for (const auto& [option, needed] : kPairs)
    if (app.count(option) > 0 && app.count(needed) == 0)
      return wrong(fmt::format("{} needs {}", option, needed));
  for (const char* option : {"--replicas", "--uuid"})
    if (app.count("--join") > 0 && app.count(option) > 0)
      return wrong(fmt::format("{} is the volume's, which --join finds made", option));
  for (const char* option : {"--ca", "--cert", "--key"})
    if (app.count(option) > 0 && !tls)
      return wrong(fmt::format("{} needs --cluster etcds://... (TLS)", option));
  return {};
}

/// An address that other nodes can dial: numeric, of one host.
Status check_listen(const std::string& listen) {
  const auto parsed = parse_host_port(listen);
  if (!parsed || parsed->port == 0) return wrong("--listen: '" + listen + "' is not ADDRESS:PORT");
  in_addr v4{};
  in6_addr v6{};
  const bool is_v4 = inet_pton(AF_INET, parsed->host.c_str(), &v4) == 1;
  const bool is_v6 = inet_pton(AF_INET6, parsed->host.c_str(), &v6) == 1;
  if (!is_v4 && !is_v6) return wrong("--listen: '" + parsed->host + "' is not a numeric address");
  if ((is_v4 && v4.s_addr == INADDR_ANY) || (is_v6 && IN6_IS_ADDR_UNSPECIFIED(&v6)))
    return wrong("--listen: the other nodes cannot dial " + parsed->host);
  return {};
}

Status check_cluster(const CLI::App& app, ClusterOptions& cluster) {
  ClusterConfig& config = cluster.format.config;
  const auto address = parse_cluster_address(cluster.address);
  KVSYNCFS_TRY(check_together(app, address && address->tls));
  if (app.count("--volume") == 0) return {};
  if (!address) return wrong("--cluster: " + address.error().detail);
  config.endpoints = address->endpoints;
  config.tls = address->tls;
  const std::pair<const char*, const std::string&> names[] = {
      {"--volume", config.volume}, {"--node", config.node}, {"--rack", config.rack}};
  for (const auto& [option, name] : names)
    if (app.count(option) > 0 && !is_cluster_name(name))
      return wrong(fmt::format("{}: '{}' is not 1 to {} of A-Z a-z 0-9 . _ -", option, name,
                               kClusterNameMax));
  if (cluster.format.replicas == 0 || cluster.format.replicas > kReplicasMax)
    return wrong(
        fmt::format("--replicas: {}, may be 1 to {}", cluster.format.replicas, kReplicasMax));
  if (app.count("--listen") > 0) return check_listen(config.listen);
  return {};
}

}  // namespace

Result<MkfsOptions> parse_mkfs_options(std::vector<std::string> arguments) {
  MkfsOptions options;
  Words words;
  CLI::App app;
  declare(app, options, words);
  try {
    std::reverse(arguments.begin(), arguments.end());  // as CLI11 takes them
    app.parse(arguments);
  } catch (const CLI::ParseError& error) {
    return Error(Code::kInvalid, error.what());
  }
  if (options.help || options.version) return options;
  if (options.store.empty()) return Error(Code::kInvalid, "STORE is missing");
  if (app.count("--size") > 0) {
    auto size = parse_size_text(words.size);
    if (!size) return Error(Code::kInvalid, "--size: " + size.error().detail);
    options.size = *size;
    options.size_given = true;
  }
  if (app.count("--uuid") > 0) {
    auto uuid = parse_uuid(words.uuid);
    if (!uuid) return Error(Code::kInvalid, "--uuid: " + uuid.error().detail);
    options.uuid = *uuid;
  }
  KVSYNCFS_TRY(check_label(options.label));
  KVSYNCFS_TRY(check_cluster(app, words.cluster));
  words.cluster.format.force = options.force;
  if (app.count("--volume") > 0) options.cluster = std::move(words.cluster);
  return options;
}

std::string mkfs_help() {
  return R"(Usage: mkfs.kvsyncfs [OPTION ...] STORE
Makes the folder STORE a kvsyncfs store, to be mounted with mount -t fuse.kvsyncfs STORE MOUNTPOINT.

  -s, --size SIZE    space for file data: bytes, 512M, 10G, 1.5T, or a share of the free space, 50%
                     (default: 80% of the free space)
  -L, --label TEXT   a name of up to 64 bytes
  -U, --uuid UUID    identity of the volume (default: random)
  -f, --force        replace a store that is there; everything in it is lost
  -q, --quiet        say nothing if all goes well
  -V, --version      print the version
  -h, --help         print this

A node of a cluster, which keeps a volume on the stores of several machines:

      --volume NAME  the volume; it is made, with this store as its first node
      --cluster etcd://HOST:PORT[,HOST:PORT...]
                     the etcd that has the volume's log; etcds:// for TLS
      --replicas N   nodes that hold each piece of data, 1 to 8 (default: 2)
      --join         the volume is there; this store becomes another node of it
      --secret FILE  with --join: the volume's secret, a copy of what lies in the first STORE/secret
      --node NAME    this node (default: the host's name)
      --rack NAME    where it stands; copies go to different racks
      --listen ADDRESS:PORT
                     where the other nodes find it (default: the host's first address, port 7420)
      --user NAME --password-file FILE
                     who it is for etcd
      --ca FILE      with etcds: PEM, whom etcd's certificate must come from (default: the system's)
      --cert FILE --key FILE
                     with etcds: PEM, this node's certificate for etcd
)";
}

}  // namespace kvsyncfs
