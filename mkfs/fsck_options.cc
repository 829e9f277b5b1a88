#include "mkfs/fsck_options.h"

#include <CLI/CLI.hpp>
#include <algorithm>

namespace kvsyncfs {
namespace {

bool is_number(const std::string& word) {
  return !word.empty() && word.find_first_not_of("0123456789-") == word.npos;
}

/// fsck(8) hands on where e2fsck(8) would tell its progress: -C, -C0 or -C 5. Our bar is where the
/// terminal is.
void drop_progress_option(std::vector<std::string>& arguments) {
  for (auto it = arguments.begin(); it != arguments.end();) {
    if (*it == "-C") {
      it = arguments.erase(it);
      if (it != arguments.end() && is_number(*it)) it = arguments.erase(it);
    } else {
      it = it->starts_with("-C") && is_number(it->substr(2)) ? arguments.erase(it) : it + 1;
    }
  }
}

}  // namespace

Result<FsckOptions> parse_fsck_options(std::vector<std::string> arguments) {
  FsckOptions options;
  bool keep = false, ignored = false;
  CLI::App app;
  app.set_help_flag();
  app.add_flag("-h,--help", options.help);
  app.add_flag("-V,--version", options.version);
  app.add_flag("-r,--repair,-a,-p,-y", options.repair);
  app.add_flag("-n", keep);
  app.add_flag("-f,-v", ignored);
  app.add_flag("-s,--scrub", options.scrub);
  app.add_flag("-j,--json", options.json);
  app.add_flag("-q,--quiet", options.quiet);
  app.add_option("STORE", options.store);
  drop_progress_option(arguments);
  try {
    std::reverse(arguments.begin(), arguments.end());  // as CLI11 takes them
    app.parse(arguments);
  } catch (const CLI::ParseError& error) {
    return Error(Code::kInvalid, error.what());
  }
  if (options.help || options.version) return options;
  if (keep && options.repair) return Error(Code::kInvalid, "-n and --repair exclude each other");
  if (options.store.empty()) return Error(Code::kInvalid, "STORE is missing");
  return options;
}

std::string fsck_help() {
  return R"(Usage: fsck.kvsyncfs [OPTION ...] STORE
Checks a kvsyncfs store that is not mounted.

  -r, --repair    repair what can be repaired (also -a, -p, -y; without it nothing is changed)
  -s, --scrub     read and verify every page of file data
  -j, --json      print the result as JSON
  -q, --quiet     print problems only
  -V, --version   print the version
  -h, --help      print this

Exit status: 0 no errors, 1 errors corrected, 4 errors left, 8 operational error, 16 usage.
)";
}

}  // namespace kvsyncfs
