#include "tools/ctl_nodes.h"

#include <fmt/format.h>

#include <boost/json.hpp>

#include "tools/ctl_table.h"
#include "tools/stat_units.h"

namespace kvsyncfs {
namespace {

namespace json = boost::json;

using Row = std::vector<std::string>;

std::string state_of(const ClusterNode& node, const SegmentsLeft& left) {
  std::string state = node.member ? "member" : "away";
  if (node.is_evicted) state += ", evicted";
  if (node.is_maintained) state += ", maintenance";
  if (!node.is_draining) return state;
  const auto known = left.find(node.record.id);
  return state + (known == left.end() ? ", draining"
                  : known->second == 0
                      ? ", drained"
                      : fmt::format(", draining ({} segments left)", known->second));
}

Row row_of(const ClusterConfig& config, const ClusterNode& node, const SegmentsLeft& left) {
  const auto or_dash = [](const std::string& text) { return text.empty() ? "-" : text; };
  Row row = {node.name + (node.name == config.node ? "*" : ""),
             std::to_string(node.record.id.value),
             or_dash(node.record.rack),
             state_of(node, left),
             "-",
             "-",
             "-",
             "-"};
  if (!node.member) return row;
  row[4] = or_dash(fmt::format("{}", fmt::join(node.member->addresses, ",")));
  row[5] = human_bytes(node.member->capacity_bytes);
  row[6] = human_bytes(node.member->free_bytes);
  row[7] = or_dash(node.member->version);
  return row;
}

}  // namespace

std::string nodes_table(const ClusterConfig& config, const std::vector<ClusterNode>& nodes,
                        const SegmentsLeft& left) {
  std::vector<Row> rows = {
      {"NODE", "ID", "RACK", "STATE", "ADDRESSES", "CAPACITY", "FREE", "VERSION"}};
  for (const ClusterNode& node : nodes) rows.push_back(row_of(config, node, left));
  return table(rows);
}

std::string nodes_json(const ClusterConfig& config, const std::vector<ClusterNode>& nodes,
                       const SegmentsLeft& left) {
  json::array list;
  for (const ClusterNode& node : nodes) {
    json::object item{{"name", node.name},
                      {"id", node.record.id.value},
                      {"rack", node.record.rack},
                      {"created_seconds", node.record.created.seconds},
                      {"this", node.name == config.node},
                      {"state", node.member ? "member" : "away"},
                      {"draining", node.is_draining},
                      {"evicted", node.is_evicted},
                      {"maintenance", node.is_maintained}};
    if (const auto known = left.find(node.record.id); known != left.end())
      item["segments_left"] = known->second;
    if (node.member) {
      item["addresses"] = json::array(node.member->addresses.begin(), node.member->addresses.end());
      item["capacity_bytes"] = node.member->capacity_bytes;
      item["free_bytes"] = node.member->free_bytes;
      item["version"] = node.member->version;
    }
    list.push_back(std::move(item));
  }
  return json::serialize(json::object{{"volume", config.volume}, {"nodes", std::move(list)}}) +
         "\n";
}

}  // namespace kvsyncfs
