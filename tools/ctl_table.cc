#include "tools/ctl_table.h"

#include <fmt/format.h>

#include <algorithm>

namespace kvsyncfs {

namespace json = boost::json;

std::string table(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const auto& row : rows) {
    for (std::size_t i = 0; i + 1 < row.size(); ++i)
      text += fmt::format("{:<{}}  ", row[i], widths[i]);
    text += row.empty() ? "\n" : row.back() + "\n";
  }
  return text;
}

std::uint64_t number_in(const json::object& object, std::string_view name) {
  const json::value* value = object.if_contains(name);
  json::error_code none;
  const auto number = value != nullptr ? value->to_number<std::uint64_t>(none) : 0;
  return none ? 0 : number;
}

std::string text_in(const json::object& object, std::string_view name) {
  const json::value* value = object.if_contains(name);
  return value != nullptr && value->is_string() ? std::string(value->get_string()) : std::string();
}

bool flag_in(const json::object& object, std::string_view name) {
  const json::value* value = object.if_contains(name);
  return value != nullptr && value->is_bool() && value->get_bool();
}

const json::array& list_in(const json::object& object, std::string_view name) {
  static const json::array kNone;
  const json::value* value = object.if_contains(name);
  return value != nullptr && value->is_array() ? value->get_array() : kNone;
}

std::vector<const json::object*> objects_in(const json::object& object, std::string_view name) {
  std::vector<const json::object*> objects;
  for (const json::value& value : list_in(object, name))
    if (value.is_object()) objects.push_back(&value.get_object());
  return objects;
}

NodeNames::NodeNames(const json::object& document) : nodes_(objects_in(document, "nodes")) {}

const json::object* NodeNames::find(std::uint64_t id) const {
  const auto found = std::find_if(nodes_.begin(), nodes_.end(), [id](const json::object* node) {
    return number_in(*node, "id") == id;
  });
  return found == nodes_.end() ? nullptr : *found;
}

bool NodeNames::lives(std::uint64_t id) const {
  const json::object* node = find(id);
  return node != nullptr && flag_in(*node, "lives");
}

std::string NodeNames::of(std::uint64_t id) const {
  const json::object* node = find(id);
  std::string name = node != nullptr ? text_in(*node, "name") : "";
  if (name.empty()) name = fmt::format("node {}", id);
  return lives(id) ? name : name + " (away)";
}

}  // namespace kvsyncfs
