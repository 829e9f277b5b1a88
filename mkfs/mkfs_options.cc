#include "mkfs/mkfs_options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "engine/format/superblock.h"

namespace kvsyncfs {
namespace {

struct Words {
  std::string size, uuid;
};

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
)";
}

}  // namespace kvsyncfs
