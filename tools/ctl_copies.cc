#include "tools/ctl_copies.h"

#include <fmt/format.h>

#include "tools/ctl_table.h"
#include "tools/stat_units.h"

namespace kvsyncfs {
namespace {

namespace json = boost::json;

const json::object& part(const json::object& object, std::string_view name) {
  static const json::object kNone;
  const json::value* value = object.if_contains(name);
  return value != nullptr && value->is_object() ? value->get_object() : kNone;
}

std::string share_text(const json::object& share) {
  const std::uint64_t segments = number_in(share, "segments");
  return segments == 0 ? "nothing"
                       : fmt::format("{} segment{}, {}", segments, segments == 1 ? "" : "s",
                                     human_bytes(number_in(share, "bytes")));
}

std::string names_in(const json::object& object, std::string_view list) {
  std::string names;
  for (const json::object* node : objects_in(object, list)) {
    const std::string name = text_in(*node, "name");
    names += (names.empty() ? "" : ", ") +
             (name.empty() ? fmt::format("node {}", number_in(*node, "id")) : name);
  }
  return names;
}

std::string paths_text(const json::object& object) {
  std::string text;
  for (const json::value& path : list_in(object, "paths"))
    if (path.is_string()) text += fmt::format("  {}\n", std::string_view(path.get_string()));
  return text;
}

}  // namespace

std::string bad_copies_text(const json::object& answer) {
  const NodeNames names(answer);
  std::string text;
  for (const json::object* copy : objects_in(answer, "bad")) {
    const std::uint64_t node = number_in(*copy, "node"), page = number_in(*copy, "page"),
                        count = number_in(*copy, "count");
    text += fmt::format("{}segment {} {}: {}; {}\n", node == 0 ? "" : names.of(node) + ": ",
                        number_in(*copy, "segment"),
                        count == 0 ? fmt::format("from page {}", page)
                                   : fmt::format("pages {} to {}", page, page + count - 1),
                        text_in(*copy, "why"),
                        flag_in(*copy, "mended") ? "mended from another copy" : "not mended");
    text += paths_text(*copy);
  }
  return text;
}

std::uint64_t left_bad(const json::object& answer) {
  std::uint64_t left = 0;
  for (const json::object* copy : objects_in(answer, "bad"))
    if (!flag_in(*copy, "mended")) ++left;
  return left;
}

std::uint64_t heal_bytes_left(const json::object& report) {
  std::uint64_t left = number_in(part(report, "at_risk"), "bytes");
  for (const json::object* node : objects_in(report, "leaving"))
    left += number_in(part(*node, "left"), "bytes");
  return left;
}

std::string heal_text(const json::object& report, double bytes_per_second) {
  const json::object& lost = part(report, "lost");
  std::string text = fmt::format("at risk: {}", share_text(part(report, "at_risk")));
  if (number_in(part(report, "at_risk"), "segments") > 0)
    text += fmt::format(" to copy; {} are due now", number_in(report, "due_segments"));
  text += fmt::format("\nwithout a live copy: {}{}\n", share_text(lost),
                      number_in(lost, "segments") > 0 ? "; kvsyncfs-ctl lost names the files" : "");
  for (const json::object* node : objects_in(report, "leaving"))
    text += fmt::format("drained: {}: {} left\n", text_in(*node, "name"),
                        share_text(part(*node, "left")));
  if (const std::string away = names_in(report, "away"); !away.empty())
    text += fmt::format("away: {}; replaced after {}\n", away,
                        human_duration(number_in(report, "delay_ns")));
  if (const std::string planned = names_in(report, "maintained"); !planned.empty())
    text += fmt::format("absence is planned: {}\n", planned);
  text += fmt::format("copied by this node: {}; at most {}/s on each node\n",
                      human_bytes(number_in(report, "healed_bytes")),
                      human_bytes(number_in(report, "rate_bytes")));
  if (bytes_per_second <= 0) return text;
  const double seconds = static_cast<double>(heal_bytes_left(report)) / bytes_per_second;
  return text +
         fmt::format("{}/s now, about {} left\n",
                     human_bytes(static_cast<std::uint64_t>(bytes_per_second)),
                     human_duration(static_cast<std::uint64_t>(seconds + 1) * 1'000'000'000));
}

std::string last_copies_text(const std::string& node, const json::object& answer) {
  const json::object& last = part(answer, "last");
  if (number_in(last, "segments") == 0) return {};
  return fmt::format(
      "node {} has {} without a live copy elsewhere: kvsyncfs-ctl lost names the "
      "files; mount it once more, or give these bytes up with --force",
      node, share_text(last));
}

std::string lost_text(const json::object& lost) {
  if (number_in(part(lost, "lost"), "segments") == 0) return "nothing is lost\n";
  std::string text = share_text(part(lost, "lost"));
  const NodeNames names(lost);
  std::string holders;
  for (const json::object* node : objects_in(lost, "nodes"))
    holders += (holders.empty() ? "" : ", ") + names.of(number_in(*node, "id"));
  if (!holders.empty()) text += ", held by " + holders;
  text += "\n" + paths_text(lost);
  if (const std::uint64_t removed = number_in(lost, "without_path"); removed > 0)
    text += fmt::format("  and {} without a name\n", removed);
  return flag_in(lost, "cut") ? text + "  and more\n" : text;
}

}  // namespace kvsyncfs
