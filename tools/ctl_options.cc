#include "tools/ctl_options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <utility>

#include "engine/base/size_text.h"

namespace kvsyncfs {
namespace {

constexpr std::int64_t kSecondsMax = 366 * 86'400;

struct Word {
  const char* word;
  CtlCommand command;
  const char* argument;  ///< what it needs; empty: nothing
  const char* summary;
};
constexpr Word kCommands[] = {
    {"nodes", CtlCommand::kNodes, "", "the nodes of the volume: which are up, where, how large"},
    {"remove", CtlCommand::kRemove, "NODE", "take a node that is lost for good out of the volume"},
    {"drain", CtlCommand::kDrain, "NODE", "make its copies elsewhere, until it has none"},
    {"evict", CtlCommand::kEvict, "NODE", "send it away, until --cancel calls it back"},
    {"maintenance", CtlCommand::kMaintenance, "NODE", "its absence is planned; --for, --end"},
    {"rotate-secret", CtlCommand::kRotateSecret, "", "another secret for the volume, in two steps"},
    {"reseed-log", CtlCommand::kReseedLog, "", "begin the log anew: etcd lost it, or was put back"},
    {"take-catalog", CtlCommand::kTakeCatalog, "", "give the catalog up for another node's; --yes"},
    {"restore-catalog", CtlCommand::kRestoreCatalog, "FILE", "put the volume back to a snapshot"},
    {"flush", CtlCommand::kFlush, "", "wait until all that was written here is durable"},
    {"locate", CtlCommand::kLocate, "PATH", "where the bytes of a file are"},
    {"verify", CtlCommand::kVerify, "PATH", "read all copies of a file, mend bad ones"},
    {"pull", CtlCommand::kPull, "PATH", "bring a file into this node's memory"},
    {"scrub", CtlCommand::kScrub, "", "read all copies of this node, mend bad ones"},
    {"heal", CtlCommand::kHeal, "", "what lacks copies, and how fast they are made"},
    {"lost", CtlCommand::kLost, "", "files with bytes that no live node has"},
    {"snapshot-catalog", CtlCommand::kSnapshotCatalog, "FILE", "save all names; keep all bytes"},
    {"snapshots", CtlCommand::kSnapshots, "", "what is kept for snapshots, and until when"},
    {"release-snapshot", CtlCommand::kReleaseSnapshot, "NAME", "keep nothing for it any more"},
};

Result<std::uint64_t> parse_rate(std::string_view text) {
  const auto size = parse_size_text(text);
  if (!size) return Error(Code::kInvalid, "--rate: " + size.error().detail);
  if (size->bytes == 0) return Error(Code::kInvalid, fmt::format("--rate: '{}' is no rate", text));
  return size->bytes;
}

/// What a command does not take must not be given.
Status check_options(const CLI::App& app, const CtlOptions& options) {
  struct Rule {
    const char* option;
    CtlCommand command;
  };
  constexpr Rule kRules[] = {{"--for", CtlCommand::kMaintenance},
                             {"--end", CtlCommand::kMaintenance},
                             {"--cancel", CtlCommand::kDrain},
                             {"--force", CtlCommand::kRemove},
                             {"--cancel", CtlCommand::kEvict},
                             {"--force", CtlCommand::kReseedLog},
                             {"--dry-run", CtlCommand::kReseedLog},
                             {"--yes", CtlCommand::kTakeCatalog},
                             {"--cancel", CtlCommand::kRotateSecret},
                             {"--finish", CtlCommand::kRotateSecret},
                             {"--now", CtlCommand::kHeal},
                             {"--rate", CtlCommand::kHeal},
                             {"--for", CtlCommand::kSnapshotCatalog},
                             {"--name", CtlCommand::kSnapshotCatalog},
                             {"--force", CtlCommand::kRestoreCatalog},
                             {"--dry-run", CtlCommand::kRestoreCatalog}};
  for (const Rule& rule : kRules) {
    const bool is_taken = std::any_of(std::begin(kRules), std::end(kRules), [&](const Rule& other) {
      return std::string_view(other.option) == rule.option && options.command == other.command;
    });
    if (app.count(rule.option) > 0 && !is_taken)
      return Error(Code::kInvalid, fmt::format("{}: the command takes none", rule.option));
  }
  if (options.command == CtlCommand::kMaintenance && app.count("--for") + app.count("--end") != 1)
    return Error(Code::kInvalid, "maintenance needs --for TIME or --end");
  if (options.cancel && options.finish)
    return Error(Code::kInvalid, "rotate-secret takes one of --finish and --cancel");
  if (options.command == CtlCommand::kTakeCatalog && !options.yes)
    return Error(Code::kInvalid, "take-catalog gives up what only this node has, and needs --yes");
  return {};
}

}  // namespace

Result<std::int64_t> parse_duration(std::string_view text) {
  std::int64_t number = 0;
  const char* end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, number);
  const std::string_view unit(parsed.ptr, static_cast<std::size_t>(end - parsed.ptr));
  constexpr std::pair<std::string_view, std::int64_t> kUnits[] = {
      {"", 1}, {"s", 1}, {"m", 60}, {"h", 3600}, {"d", 86'400}};
  for (const auto& [name, seconds] : kUnits)
    if (parsed.ec == std::errc{} && unit == name && number > 0 && number <= kSecondsMax / seconds)
      return number * seconds;
  return Error(Code::kInvalid, fmt::format("'{}' is no time: 90s, 30m, 2h, 1d", text));
}

Result<CtlOptions> parse_ctl_options(std::vector<std::string> arguments) {
  CtlOptions options;
  std::string command, length, rate;
  CLI::App app;
  app.set_help_flag();
  app.add_flag("-h,--help", options.help);
  app.add_flag("-V,--version", options.version);
  app.add_flag("--json", options.json);
  app.add_flag("--now", options.now);
  app.add_flag("--force", options.force);
  app.add_flag("--dry-run", options.dry_run);
  app.add_flag("--yes", options.yes);
  app.add_flag("--cancel", options.cancel);
  app.add_flag("--end", options.cancel);
  app.add_flag("--finish", options.finish);
  app.add_option("--for", length);
  app.add_option("--rate", rate);
  app.add_option("--name", options.name);
  app.add_option("STORE", options.store);
  app.add_option("COMMAND", command);
  app.add_option("ARGUMENT", options.argument);
  try {
    std::reverse(arguments.begin(), arguments.end());  // the order in which CLI11 takes them
    app.parse(arguments);
  } catch (const CLI::ParseError& error) {
    return Error(Code::kInvalid, error.what());
  }
  if (options.help || options.version) return options;
  if (options.store.empty()) return Error(Code::kInvalid, "no store is named");
  if (command.empty()) return Error(Code::kInvalid, "no command is given");
  const auto* const known = std::find_if(std::begin(kCommands), std::end(kCommands),
                                         [&](const Word& word) { return command == word.word; });
  if (known == std::end(kCommands))
    return Error(Code::kInvalid, fmt::format("'{}' is no command", command));
  options.command = known->command;
  KVSYNCFS_TRY(check_options(app, options));
  if (!length.empty()) {
    KVSYNCFS_ASSIGN(options.seconds, parse_duration(length));
  }
  if (!rate.empty()) {
    KVSYNCFS_ASSIGN(options.rate_bytes, parse_rate(rate));
  }
  const std::string needed = known->argument;
  if (needed.empty() && !options.argument.empty())
    return Error(Code::kInvalid, fmt::format("'{}': {} takes none", options.argument, command));
  if (!needed.empty() && options.argument.empty())
    return Error(Code::kInvalid, fmt::format("{} needs a {}", command, needed));
  return options;
}

std::string ctl_help() {
  std::string commands;
  for (const Word& word : kCommands)
    commands +=
        fmt::format("  {:<22} {}\n", fmt::format("{} {}", word.word, word.argument), word.summary);
  return "usage: kvsyncfs-ctl STORE|MOUNT COMMAND [ARGUMENT] [OPTION]...\n\n"
         "Looks after a node of a cluster, and after the volume that it is of.\n\n" +
         commands +
         R"(
  --for TIME       maintenance: how long it may take: 90s, 30m, 2h, 1d;
                   snapshot-catalog: how long its bytes are kept, else 30d
  --end            maintenance: it is over
  --cancel         drain: the node stays; evict: it may come back; rotate-secret: all as it was
  --finish         rotate-secret: from now on only the next secret counts
  --name NAME      snapshot-catalog: what to call it, else as the file
  --dry-run        reseed-log: tell what the node and etcd have, change nothing;
                   restore-catalog: read the file, tell what would be lost
  --force          remove: also if bytes are lost with the node;
                   reseed-log: also where etcd or another node has more than this one;
                   restore-catalog: also where bytes are gone
  --yes            take-catalog: what only this node has is given up
  --rate SIZE      heal: bytes a second that each node may copy: 100M
  --now            heal: nodes that are away now are not waited for
  --json           one JSON document instead of a table
  -h, --help       this text
  -V, --version    the version

Exit status: 0 done; 1 not done, one line on standard error says why; 2 wrong usage.
)";
}

}  // namespace kvsyncfs
