#include "fs/admin_requests.h"

#include <array>
#include <boost/json.hpp>
#include <cstdint>
#include <optional>
#include <vector>

#include "engine/base/hex.h"

namespace kvsyncfs {
namespace {

namespace json = boost::json;

constexpr std::size_t kExtentsMax = 4096;  // of one answer

/// The arguments of a request. One that is missing or of another kind is as if it were not given:
/// what needs it refuses its value.
class Arguments {
 public:
  explicit Arguments(const json::object& object) : object_(object) {}
  std::string_view text(const char* name) const {
    const json::value* value = object_.if_contains(name);
    return value != nullptr && value->is_string() ? std::string_view(value->get_string())
                                                  : std::string_view();
  }
  std::uint64_t number(const char* name) const {
    const json::value* value = object_.if_contains(name);
    json::error_code no_number;
    const auto number = value ? value->to_number<std::uint64_t>(no_number) : 0;
    return no_number ? 0 : number;
  }

 private:
  const json::object& object_;
};

json::array to_json(const std::vector<NodeId>& nodes) {
  json::array array;
  for (const NodeId node : nodes) array.push_back(node.value);
  return array;
}

json::array to_json(const std::vector<NodeView>& nodes) {
  json::array array;
  for (const NodeView& node : nodes)
    array.push_back(
        json::object{{"id", node.id.value}, {"name", node.name}, {"lives", node.lives}});
  return array;
}

json::object to_json(const LocatedExtent& extent) {
  return {{"offset", extent.file_offset},
          {"length", extent.length},
          {"segment", extent.segment.value},
          {"segment_offset", extent.segment_offset},
          {"sealed", extent.is_sealed},
          {"owner", extent.owner.value},
          {"holders", to_json(extent.holders)},
          {"here", extent.is_here},
          {"pages", extent.pages},
          {"pages_in_memory", extent.pages_in_memory}};
}

Result<json::object> locate(EngineAdmin& admin, const Arguments& arguments) {
  KVSYNCFS_ASSIGN(const FileLocation location,
                  admin.locate(arguments.text("path"), arguments.number("offset"), kExtentsMax));
  json::array extents;
  for (const LocatedExtent& extent : location.extents) extents.push_back(to_json(extent));
  return json::object{{"inode", location.inode.value},
                      {"size_bytes", location.size_bytes},
                      {"dirty_bytes", location.dirty_bytes},
                      {"extents", std::move(extents)},
                      {"next", location.next},
                      {"nodes", to_json(location.nodes)}};
}

Result<json::object> warm(EngineAdmin& admin, const Arguments& arguments) {
  KVSYNCFS_ASSIGN(const WarmStep step,
                  admin.warm(arguments.text("path"), arguments.number("offset")));
  return json::object{{"size_bytes", step.size_bytes},
                      {"next", step.next},
                      {"pulled_bytes", step.pulled_bytes},
                      {"memory_bytes", step.memory_bytes}};
}

json::array to_json(const std::vector<BadCopy>& bad) {
  json::array array;
  for (const BadCopy& copy : bad)
    array.push_back(json::object{{"node", copy.node.value},
                                 {"segment", copy.segment.value},
                                 {"page", copy.page},
                                 {"count", copy.count},
                                 {"why", copy.why},
                                 {"mended", copy.is_mended},
                                 {"paths", json::value_from(copy.paths)}});
  return array;
}

Result<json::object> verify(EngineAdmin& admin, const Arguments& arguments) {
  KVSYNCFS_ASSIGN(const VerifyStep step,
                  admin.verify(arguments.text("path"), arguments.number("offset")));
  return json::object{{"size_bytes", step.size_bytes},
                      {"next", step.next},
                      {"bad", to_json(step.bad)},
                      {"unchecked", to_json(step.unchecked)},
                      {"nodes", to_json(step.nodes)}};
}

Result<json::object> scrub(EngineAdmin& admin, const Arguments& arguments) {
  KVSYNCFS_ASSIGN(const ScrubStep step,
                  admin.scrub({{arguments.number("segment")}, arguments.number("page")}));
  return json::object{{"segment", step.next.segment.value}, {"page", step.next.page},
                      {"done_bytes", step.done_bytes},      {"total_bytes", step.total_bytes},
                      {"bad", to_json(step.bad)},           {"nodes", to_json(step.nodes)}};
}

json::object to_json(const SegmentShare& share) {
  return {{"segments", share.segments}, {"bytes", share.bytes}};
}

Result<json::object> heal(EngineAdmin& admin, const Arguments&) {
  KVSYNCFS_ASSIGN(const HealReport report, admin.heal());
  json::array leaving;
  for (const HealReport::Leaving& node : report.leaving)
    leaving.push_back(json::object{
        {"id", node.node.id.value}, {"name", node.node.name}, {"left", to_json(node.left)}});
  return json::object{
      {"at_risk", to_json(report.at_risk)},      {"lost", to_json(report.lost)},
      {"due_segments", report.due_segments},     {"healed_bytes", report.healed_bytes},
      {"rate_bytes", report.rate_bytes},         {"delay_ns", report.delay_ns},
      {"leaving", std::move(leaving)},           {"away", to_json(report.away)},
      {"maintained", to_json(report.maintained)}};
}

Result<json::object> heal_rate(EngineAdmin& admin, const Arguments& arguments) {
  KVSYNCFS_TRY(admin.set_heal_rate(arguments.number("bytes")));
  return json::object{};
}

Result<json::object> heal_now(EngineAdmin& admin, const Arguments&) {
  KVSYNCFS_TRY(admin.heal_now());
  return json::object{};
}

Result<json::object> last_copies(EngineAdmin& admin, const Arguments& arguments) {
  KVSYNCFS_ASSIGN(const SegmentShare last, admin.last_copies({arguments.number("node")}));
  return json::object{{"last", to_json(last)}};
}

Result<json::object> lost(EngineAdmin& admin, const Arguments&) {
  KVSYNCFS_ASSIGN(const LostFiles files, admin.lost());
  return json::object{{"lost", to_json(files.lost)},
                      {"paths", json::value_from(files.paths)},
                      {"without_path", files.without_path},
                      {"cut", files.is_cut},
                      {"nodes", to_json(files.nodes)}};
}

Result<json::object> save_catalog(EngineAdmin& admin, const Arguments& arguments) {
  KVSYNCFS_ASSIGN(const SavedCatalog saved,
                  admin.save_catalog(arguments.text("name"), arguments.number("seconds")));
  return json::object{{"snapshot", saved.snapshot},        {"volume", saved.volume},
                      {"uuid", uuid_text(saved.uuid)},     {"generation", saved.generation},
                      {"position", saved.position.value},  {"taken_s", saved.taken.seconds},
                      {"records", saved.estimated_records}};
}

Result<json::object> saved_records(EngineAdmin& admin, const Arguments& arguments) {
  const auto after = from_hex(arguments.text("after"));
  if (!after) return Error(Code::kInvalid, "a key that is not hex");
  KVSYNCFS_ASSIGN(const SavedPiece piece,
                  admin.saved_records(arguments.number("snapshot"), *after));
  return json::object{{"records", to_hex(piece.records)},
                      {"last_key", to_hex(piece.last_key)},
                      {"count", piece.count}};
}

Result<json::object> release_hold(EngineAdmin& admin, const Arguments& arguments) {
  KVSYNCFS_TRY(admin.release_hold(arguments.text("name")));
  return json::object{};
}

Result<json::object> holds(EngineAdmin& admin, const Arguments&) {
  KVSYNCFS_ASSIGN(const auto views, admin.holds());
  json::array list;
  for (const HoldView& hold : views)
    list.push_back(json::object{{"name", hold.name},
                                {"position", hold.position.value},
                                {"taken_s", hold.taken.seconds},
                                {"expires_s", hold.expires.seconds},
                                {"segments", hold.segments},
                                {"kept_bytes", hold.kept_bytes}});
  return json::object{{"holds", std::move(list)}};
}

struct Deed {
  std::string_view name;
  Result<json::object> (*act)(EngineAdmin&, const Arguments&);
};
constexpr std::array kDeeds = {
    Deed{"locate", locate},
    Deed{"warm", warm},
    Deed{"verify", verify},
    Deed{"scrub", scrub},
    Deed{"heal", heal},
    Deed{"heal_rate", heal_rate},
    Deed{"lost", lost},
    Deed{"heal_now", heal_now},
    Deed{"last_copies", last_copies},
    Deed{"save_catalog", save_catalog},
    Deed{"saved_records", saved_records},
    Deed{"release_hold", release_hold},
    Deed{"holds", holds},
};

Result<json::object> act(EngineAdmin& admin, std::string_view request) {
  json::parse_options options;
  options.allow_invalid_utf8 = true;
  json::error_code broken;
  const json::value value = json::parse(request, broken, {}, options);
  if (broken || !value.is_object()) return Error(Code::kInvalid, "the request is not JSON");
  const Arguments arguments(value.get_object());
  const std::string_view name = arguments.text("do");
  for (const Deed& deed : kDeeds)
    if (deed.name == name) return deed.act(admin, arguments);
  return Error(Code::kUnsupported, "'" + std::string(name) + "': this daemon does not know it");
}

}  // namespace

std::string answer_admin(EngineAdmin& admin, std::string_view request) {
  auto answer = act(admin, request);
  if (!answer)
    return json::serialize(json::object{{"ok", false}, {"error", describe(answer.error())}}) + "\n";
  answer->emplace("ok", true);
  return json::serialize(*answer) + "\n";
}

}  // namespace kvsyncfs
