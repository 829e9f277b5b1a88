#include "tools/ctl_options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>

namespace kvsyncfs {
namespace {

struct Word {
  const char* word;
  CtlCommand command;
  const char* argument;  ///< what it needs; empty: nothing
  const char* summary;
};
constexpr Word kCommands[] = {
    {"nodes", CtlCommand::kNodes, "", "the nodes of the volume: which are up, where, how large"},
    {"remove", CtlCommand::kRemove, "NODE", "take a node that is lost for good out of the volume"},
    {"flush", CtlCommand::kFlush, "", "wait until all that was written here is durable"},
    {"locate", CtlCommand::kLocate, "PATH", "where the bytes of a file are"},
};

}  // namespace

Result<CtlOptions> parse_ctl_options(std::vector<std::string> arguments) {
  CtlOptions options;
  std::string command;
  CLI::App app;
  app.set_help_flag();
  app.add_flag("-h,--help", options.help);
  app.add_flag("-V,--version", options.version);
  app.add_flag("--json", options.json);
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
        fmt::format("  {:<16} {}\n", fmt::format("{} {}", word.word, word.argument), word.summary);
  return "usage: kvsyncfs-ctl STORE|MOUNT COMMAND [ARGUMENT] [OPTION]...\n\n"
         "Looks after a node of a cluster, and after the volume that it is of.\n\n" +
         commands +
         R"(
  --json           one JSON document instead of a table
  -h, --help       this text
  -V, --version    the version

Exit status: 0 done; 1 not done, one line on standard error says why; 2 wrong usage.
)";
}

}  // namespace kvsyncfs
