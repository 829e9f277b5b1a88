#include "tools/ctl_locate.h"

#include <fmt/format.h>

#include "tools/ctl_table.h"
#include "tools/stat_units.h"

namespace kvsyncfs {
namespace {

namespace json = boost::json;

/// Where a read of these bytes finds them.
std::string tier_of(const json::object& extent, const NodeNames& names) {
  if (number_in(extent, "segment") == 0) return "reserved";
  const std::uint64_t pages = number_in(extent, "pages");
  if (pages > 0 && number_in(extent, "pages_in_memory") == pages) return "memory";
  if (flag_in(extent, "here")) return "here";
  for (const json::value& holder : list_in(extent, "holders"))
    if (holder.is_int64() && names.lives(static_cast<std::uint64_t>(holder.get_int64())))
      return "peer";
  return "nowhere";
}

std::vector<std::string> row_of(const json::object& extent, const NodeNames& names) {
  const std::uint64_t owner = number_in(extent, "owner");
  std::string holders;
  for (const json::value& holder : list_in(extent, "holders"))
    holders += (holders.empty() ? "" : ",") +
               names.of(holder.is_int64() ? static_cast<std::uint64_t>(holder.get_int64()) : 0);
  const bool is_reserved = number_in(extent, "segment") == 0;
  return {std::to_string(number_in(extent, "offset")),
          std::to_string(number_in(extent, "length")),
          is_reserved ? "-" : std::to_string(number_in(extent, "segment")),
          is_reserved ? "-" : std::to_string(number_in(extent, "segment_offset")),
          owner == 0 ? "-" : names.of(owner),
          holders.empty() ? "-" : holders,
          tier_of(extent, names),
          fmt::format("{}/{}", number_in(extent, "pages_in_memory"), number_in(extent, "pages"))};
}

}  // namespace

std::string location_table(const std::string& path, const json::object& location) {
  const auto extents = objects_in(location, "extents");
  std::string text =
      fmt::format("/{}: {} bytes, inode {}, {} extent{}", path, number_in(location, "size_bytes"),
                  number_in(location, "inode"), extents.size(), extents.size() == 1 ? "" : "s");
  if (const std::uint64_t dirty = number_in(location, "dirty_bytes"); dirty > 0)
    text += fmt::format(", {} in memory and in no segment yet", human_bytes(dirty));
  text += "\n";
  if (extents.empty()) return text;
  const NodeNames names(location);
  std::vector<std::vector<std::string>> rows = {
      {"OFFSET", "LENGTH", "SEGMENT", "AT", "OWNER", "HOLDERS", "FOUND", "MEMORY"}};
  for (const json::object* extent : extents) rows.push_back(row_of(*extent, names));
  return text + table(rows);
}

}  // namespace kvsyncfs
