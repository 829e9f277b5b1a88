#include "tools/ctl_options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>

namespace kvsyncfs {
namespace {

struct Word {
  const char* word;
  CtlCommand command;
  const char* summary;
};
constexpr Word kCommands[] = {
    {"nodes", CtlCommand::kNodes, "the nodes of the volume: which are up, where, how large"},
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
  return options;
}

std::string ctl_help() {
  std::string commands;
  for (const Word& word : kCommands)
    commands += fmt::format("  {:<14} {}\n", word.word, word.summary);
  return "usage: kvsyncfs-ctl STORE COMMAND [OPTION]...\n\n"
         "Tells of the cluster that the kvsyncfs store STORE is a node of.\n\n" +
         commands +
         R"(
  --json         one JSON document instead of a table
  -h, --help     this text
  -V, --version  the version

Exit status: 0 done; 1 not done, one line on standard error says why; 2 wrong usage.
)";
}

}  // namespace kvsyncfs
