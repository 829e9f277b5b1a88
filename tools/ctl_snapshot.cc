#include "tools/ctl_snapshot.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <cstdio>
#include <ctime>
#include <memory>
#include <utility>

#include "engine/base/hex.h"
#include "engine/env/progress_bar.h"
#include "engine/format/catalog_file.h"
#include "engine/format/cluster_config.h"
#include "tools/ctl_table.h"
#include "tools/stat_units.h"

namespace kvsyncfs {
namespace {

namespace json = boost::json;

constexpr std::int64_t kKeepSeconds = 30 * 86'400;  // where nothing is said

std::string folder_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

Error named(const std::string& path, const Error& error) {
  return {error.code, path + (error.detail.empty() ? "" : ": " + error.detail)};
}

Error nonsense() { return {Code::kCorrupt, "the daemon answers nonsense"}; }

/// The file under another name until it is whole; goes with it where it was not.
class PartialFile {
 public:
  PartialFile(Disk& disk, std::string path) : disk_(disk), path_(std::move(path)) {}
  ~PartialFile() {
    file_.reset();
    if (!is_done_) static_cast<void>(disk_.remove(part()));
  }
  PartialFile(const PartialFile&) = delete;
  PartialFile& operator=(const PartialFile&) = delete;

  /// What a call that was killed left behind is written over.
  Status open() {
    auto opened = disk_.open(part(), OpenMode::kCreateOrOpen);
    if (!opened) return named(part(), opened.error());
    file_ = std::move(*opened);
    return file_->truncate(0);
  }
  Status append(std::string_view bytes) {
    const Status written = file_->write_at(at_, as_bytes(bytes));
    at_ += bytes.size();
    return written ? Status{} : Status(named(part(), written.error()));
  }
  Status finish() {
    KVSYNCFS_TRY(file_->sync());
    KVSYNCFS_TRY(disk_.rename(part(), path_));
    is_done_ = true;
    return disk_.sync_directory(folder_of(path_));
  }
  std::uint64_t size_bytes() const { return at_; }

 private:
  std::string part() const { return path_ + ".part"; }
  Disk& disk_;
  const std::string path_;
  std::unique_ptr<File> file_;
  std::uint64_t at_ = 0;
  bool is_done_ = false;
};

Result<CatalogFileHeader> header_of(const json::object& saved, const std::string& hold) {
  const auto uuid = parse_uuid(text_in(saved, "uuid"));
  if (!uuid) return nonsense();
  CatalogFileHeader header;
  header.volume = *uuid;
  header.generation = number_in(saved, "generation");
  header.position = {number_in(saved, "position")};
  header.taken.seconds = static_cast<std::int64_t>(number_in(saved, "taken_s"));
  header.hold = hold;
  if (header.generation == 0 || header.position.value == 0) return nonsense();
  return header;
}

Status write_pieces(const CtlDaemon& daemon, const json::object& saved, const std::string& header,
                    PartialFile& file, ProgressBar& bar) {
  std::string after;
  std::uint64_t records = 0;
  for (std::uint64_t number = 0;; ++number) {
    KVSYNCFS_ASSIGN(const json::object answer, daemon.ask({{"do", "saved_records"},
                                                           {"snapshot", saved.at("snapshot")},
                                                           {"after", after}}));
    const auto piece = from_hex(text_in(answer, "records"));
    if (!piece || piece->size() > kCatalogPieceSizeMax) return nonsense();
    KVSYNCFS_TRY(file.append(catalog_piece_header(header, number, *piece) + *piece));
    if (piece->empty()) return {};
    after = text_in(answer, "last_key");
    records += number_in(answer, "count");
    bar.show("save", records, number_in(saved, "records"));
  }
}

std::string time_text(std::uint64_t seconds) {
  return fmt::format("{:%Y-%m-%d %H:%M:%S}Z", fmt::gmtime(static_cast<std::time_t>(seconds)));
}

}  // namespace

Result<std::string> hold_name(const std::string& file, const std::string& asked) {
  const std::string name = asked.empty() ? file.substr(file.rfind('/') + 1) : asked;
  if (is_cluster_name(name)) return name;
  return Error(Code::kInvalid,
               fmt::format("'{}' is no name for a snapshot: 1 to 64 of A-Z a-z 0-9 . _ -{}", name,
                           asked.empty() ? "; --name gives it one" : ""));
}

Result<CtlAnswer> snapshot_catalog(Disk& disk, Clock& clock, const CtlDaemon& daemon,
                                   const CtlOptions& options) {
  const std::string& path = options.argument;
  KVSYNCFS_ASSIGN(const std::string hold, hold_name(path, options.name));
  KVSYNCFS_ASSIGN(const bool is_there, disk.exists(path));
  if (is_there) return Error(Code::kExists, path);
  PartialFile file(disk, path);
  KVSYNCFS_TRY(file.open());
  const std::int64_t seconds = options.seconds == 0 ? kKeepSeconds : options.seconds;
  KVSYNCFS_ASSIGN(json::object saved,
                  daemon.ask({{"do", "save_catalog"}, {"name", hold}, {"seconds", seconds}}));
  ProgressBar bar(clock, stderr, options.json);
  const Status written = [&]() -> Status {
    KVSYNCFS_ASSIGN(const CatalogFileHeader header, header_of(saved, hold));
    const std::string encoded = encode(header);
    KVSYNCFS_TRY(file.append(encoded));
    KVSYNCFS_TRY(write_pieces(daemon, saved, encoded, file, bar));
    return file.finish();
  }();
  bar.clear();
  if (!written) {
    static_cast<void>(daemon.ask({{"do", "release_hold"}, {"name", hold}}));
    return written.error();
  }
  if (!options.json)
    return CtlAnswer{fmt::format(
        "{}: volume {} at position {}, {}; its bytes are kept until {} as '{}'\n", path,
        text_in(saved, "volume"), number_in(saved, "position"), human_bytes(file.size_bytes()),
        time_text(number_in(saved, "taken_s") + static_cast<std::uint64_t>(seconds)), hold)};
  return CtlAnswer{json::serialize(json::object{{"file", path},
                                                {"name", hold},
                                                {"volume", text_in(saved, "volume")},
                                                {"position", number_in(saved, "position")},
                                                {"size_bytes", file.size_bytes()}}) +
                   "\n"};
}

std::string snapshots_text(const json::object& answer) {
  std::vector<std::vector<std::string>> rows{
      {"NAME", "TAKEN", "KEPT UNTIL", "POSITION", "SEGMENTS", "KEEPS"}};
  for (const json::object* hold : objects_in(answer, "holds"))
    rows.push_back({text_in(*hold, "name"), time_text(number_in(*hold, "taken_s")),
                    time_text(number_in(*hold, "expires_s")),
                    fmt::to_string(number_in(*hold, "position")),
                    fmt::to_string(number_in(*hold, "segments")),
                    human_bytes(number_in(*hold, "kept_bytes"))});
  return rows.size() == 1 ? "no snapshot keeps anything\n" : table(rows);
}

Result<CtlAnswer> list_snapshots(const CtlDaemon& daemon, const CtlOptions& options) {
  KVSYNCFS_ASSIGN(json::object answer, daemon.ask({{"do", "holds"}}));
  answer.erase("ok");
  return CtlAnswer{options.json ? json::serialize(answer) + "\n" : snapshots_text(answer)};
}

Result<CtlAnswer> release_snapshot(const CtlDaemon& daemon, const CtlOptions& options) {
  KVSYNCFS_TRY(daemon.ask({{"do", "release_hold"}, {"name", options.argument}}));
  return CtlAnswer{};
}

}  // namespace kvsyncfs
