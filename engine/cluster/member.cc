#include "engine/cluster/member.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <iterator>
#include <new>
#include <optional>

#include "engine/format/cluster_config.h"

namespace kvsyncfs {
namespace {

namespace json = boost::json;

constexpr std::uint64_t kFormat = 1;

bool is_printable(std::string_view text) {
  return text.size() <= kMemberVersionSizeMax &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c <= '~'; });
}

/// The first field that is not as Member says, or nothing.
const char* wrong_field(const Member& member) {
  if (member.id.value == 0) return "id";
  if (!is_cluster_name(member.name)) return "name";
  if (member.incarnation.value == 0) return "incarnation";
  const bool some = !member.addresses.empty() && member.addresses.size() <= kMemberAddressesMax;
  if (!some || !std::all_of(member.addresses.begin(), member.addresses.end(), is_member_address))
    return "addresses";
  if (!member.rack.empty() && !is_cluster_name(member.rack)) return "rack";
  if (!is_printable(member.version)) return "version";
  if (member.protocol.min == 0 || member.protocol.min > member.protocol.max) return "protocol";
  const auto& features = member.features;
  if (features.size() > kMemberFeaturesMax || !std::is_sorted(features.begin(), features.end()) ||
      !std::all_of(features.begin(), features.end(), is_cluster_name))
    return "features";
  const auto& unreached = member.unreached;
  if (unreached.size() > kMemberUnreachedMax || !std::is_sorted(unreached.begin(), unreached.end()))
    return "unreached";
  return nullptr;
}

std::optional<std::uint64_t> number(const json::value* value) {
  if (value == nullptr) return std::nullopt;
  if (const auto* large = value->if_uint64()) return *large;
  if (const auto* small = value->if_int64(); small != nullptr && *small >= 0)
    return static_cast<std::uint64_t>(*small);
  return std::nullopt;
}

std::optional<std::uint64_t> number(const json::object& line, std::string_view name) {
  return number(line.if_contains(name));
}

std::optional<std::string> text(const json::value* value) {
  const json::string* found = value != nullptr ? value->if_string() : nullptr;
  if (found == nullptr) return std::nullopt;
  return std::string(found->data(), found->size());
}

/// Nothing: not a list of at most so many texts.
std::optional<std::vector<std::string>> texts_of(const json::value* value, std::size_t count_max) {
  const json::array* list = value != nullptr ? value->if_array() : nullptr;
  if (list == nullptr || list->size() > count_max) return std::nullopt;
  std::vector<std::string> texts;
  for (const json::value& entry : *list) {
    auto found = text(&entry);
    if (!found) return std::nullopt;
    texts.push_back(std::move(*found));
  }
  return texts;
}

/// None where the line has no such field: the first version told of none.
std::optional<std::vector<std::string>> features_of(const json::object& line) {
  const json::value* value = line.if_contains("features");
  return value == nullptr ? std::vector<std::string>{} : texts_of(value, kMemberFeaturesMax);
}

/// The first version's where the line has no such fields.
ProtocolRange protocol_of(const json::object& line) {
  return {number(line, "protocol_min").value_or(1), number(line, "protocol_max").value_or(1)};
}

/// Empty where there is none: an earlier version tells of no nodes. Nothing: not a list of ids.
std::optional<std::vector<NodeId>> unreached_of(const json::object& line) {
  const json::value* value = line.if_contains("unreached");
  if (value == nullptr) return std::vector<NodeId>{};
  const json::array* list = value->if_array();
  if (list == nullptr || list->size() > kMemberUnreachedMax) return std::nullopt;
  std::vector<NodeId> nodes;
  for (const json::value& entry : *list) {
    const auto id = number(&entry);
    if (!id) return std::nullopt;
    nodes.push_back(NodeId{*id});
  }
  return nodes;
}

/// Nothing: a field is missing or of another type.
std::optional<Member> member_of(const json::object& line) {
  const auto id = number(line, "id"), incarnation = number(line, "incarnation");
  const auto capacity = number(line, "capacity_bytes"), free = number(line, "free_bytes");
  auto name = text(line.if_contains("name")), rack = text(line.if_contains("rack"));
  auto version = text(line.if_contains("version"));
  auto addresses = texts_of(line.if_contains("addresses"), kMemberAddressesMax);
  auto features = features_of(line);
  auto unreached = unreached_of(line);
  if (!id || !incarnation || !capacity || !free || !name || !rack || !version || !addresses ||
      !unreached || !features)
    return std::nullopt;
  return Member{NodeId{*id},
                std::move(*name),
                Incarnation{*incarnation},
                std::move(*addresses),
                std::move(*rack),
                *capacity,
                *free,
                std::move(*version),
                std::move(*unreached),
                protocol_of(line),
                std::move(*features),
                number(line, "beat").value_or(0)};
}

}  // namespace

Status get_on(const Member& self, const Member& other) {
  const ProtocolRange &ours = self.protocol, &theirs = other.protocol;
  const std::string who = fmt::format("node {} of version {}", other.name, other.version);
  if (ours.max < theirs.min || theirs.max < ours.min)
    return Error(Code::kNewerFormat,
                 fmt::format("{} speaks versions {} to {} of the protocol between nodes, this node "
                             "of version {} speaks {} to {}",
                             who, theirs.min, theirs.max, self.version, ours.min, ours.max));
  std::vector<std::string> differ;
  std::set_symmetric_difference(self.features.begin(), self.features.end(), other.features.begin(),
                                other.features.end(), std::back_inserter(differ));
  if (differ.empty()) return {};
  const bool is_ours =
      std::find(self.features.begin(), self.features.end(), differ[0]) != self.features.end();
  return Error(Code::kUnsupported, fmt::format("{} {} {}, which all nodes must have alike", who,
                                               is_ours ? "is without" : "has", differ[0]));
}

bool is_member_address(const std::string& text) {
  const auto parsed = parse_host_port(text);
  if (!parsed || parsed->port == 0) return false;
  in_addr v4{};
  if (inet_pton(AF_INET, parsed->host.c_str(), &v4) == 1) return v4.s_addr != INADDR_ANY;
  in6_addr v6{};
  return inet_pton(AF_INET6, parsed->host.c_str(), &v6) == 1 && !IN6_IS_ADDR_UNSPECIFIED(&v6);
}

Result<std::string> encode_member(const Member& member) {
  if (const char* wrong = wrong_field(member))
    return Error(Code::kInvalid, fmt::format("member {}: {}", member.name, wrong));
  json::array addresses;
  for (const std::string& address : member.addresses) addresses.emplace_back(address);
  json::array features;
  for (const std::string& feature : member.features) features.emplace_back(feature);
  json::array unreached;
  for (const NodeId node : member.unreached) unreached.emplace_back(node.value);
  return json::serialize(json::object{{"format", kFormat},
                                      {"id", member.id.value},
                                      {"name", member.name},
                                      {"incarnation", member.incarnation.value},
                                      {"addresses", std::move(addresses)},
                                      {"rack", member.rack},
                                      {"capacity_bytes", member.capacity_bytes},
                                      {"free_bytes", member.free_bytes},
                                      {"version", member.version},
                                      {"protocol_min", member.protocol.min},
                                      {"protocol_max", member.protocol.max},
                                      {"features", std::move(features)},
                                      {"unreached", std::move(unreached)},
                                      {"beat", member.beat}});
}

Result<Member> decode_member(std::string_view line) try {
  if (line.size() > kMemberLineSizeMax) return Error(Code::kCorrupt, "a member's line: its size");
  boost::system::error_code error;
  const json::value value = json::parse(line, error);
  const json::object* object = error ? nullptr : value.if_object();
  if (object == nullptr) return Error(Code::kCorrupt, "a member's line: no JSON object");
  const auto format = number(*object, "format");
  if (!format || *format == 0) return Error(Code::kCorrupt, "a member's line: format");
  if (*format > kFormat)
    return Error(Code::kNewerFormat, fmt::format("a member's line of format {}", *format));
  auto member = member_of(*object);
  if (!member) return Error(Code::kCorrupt, "a member's line: a field is missing");
  if (const char* wrong = wrong_field(*member))
    return Error(Code::kCorrupt, fmt::format("a member's line: {}", wrong));
  return std::move(*member);
} catch (const std::bad_alloc&) {
  return Error(Code::kNoMemory, "a member's line");
}

}  // namespace kvsyncfs
