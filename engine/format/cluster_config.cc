#include "engine/format/cluster_config.h"

#include <algorithm>
#include <boost/json.hpp>
#include <cassert>
#include <charconv>
#include <new>
#include <optional>

namespace kvsyncfs {
namespace {

namespace json = boost::json;

constexpr std::size_t kTextMax = 4096;  ///< bytes of one string, as a path may have
constexpr std::size_t kHostMax = 255;

std::string to_hex(std::string_view bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const char c : bytes) {
    text += kDigits[static_cast<unsigned char>(c) >> 4];
    text += kDigits[static_cast<unsigned char>(c) & 15];
  }
  return text;
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

std::optional<std::string> from_hex(std::string_view text) {
  if (text.size() % 2 != 0) return std::nullopt;
  std::string bytes;
  for (std::size_t i = 0; i < text.size(); i += 2) {
    const int high = hex_digit(text[i]), low = hex_digit(text[i + 1]);
    if (high < 0 || low < 0) return std::nullopt;
    bytes += static_cast<char>(high * 16 + low);
  }
  return bytes;
}

/// Takes the fields of one object. The first that does not fit is the error; what is taken after it
/// is of no use, so callers look once, at the end.
class Fields {
 public:
  Fields(std::string_view what, std::string_view text) : what_(what) { parse(text); }

  std::string text(std::string_view name) {
    const json::value* value = find(name);
    const json::string* string = value != nullptr ? value->if_string() : nullptr;
    if (string == nullptr || string->size() > kTextMax) return fail(name), std::string();
    return std::string(std::string_view(*string));
  }
  std::string name(std::string_view name) {
    std::string taken = text(name);
    require(is_cluster_name(taken), name);
    return taken;
  }
  std::string optional_name(std::string_view name) {
    std::string taken = text(name);
    require(taken.empty() || is_cluster_name(taken), name);
    return taken;
  }
  std::uint64_t number(std::string_view name, std::uint64_t min, std::uint64_t max) {
    const json::value* value = find(name);
    boost::system::error_code error;
    const auto taken = value != nullptr && value->is_number()
                           ? value->to_number<std::uint64_t>(error)
                           : (fail(name), 0);
    require(!error && taken >= min && taken <= max, name);
    return taken;
  }
  std::uint32_t number32(std::string_view name, std::uint32_t min, std::uint32_t max) {
    return static_cast<std::uint32_t>(number(name, min, max));
  }
  bool boolean(std::string_view name) {
    const json::value* value = find(name);
    const bool* taken = value != nullptr ? value->if_bool() : nullptr;
    require(taken != nullptr, name);
    return taken != nullptr && *taken;
  }
  Uuid uuid(std::string_view name) {
    const auto taken = parse_uuid(text(name));
    require(taken.has_value(), name);
    return taken ? *taken : Uuid{};
  }
  Timestamp created() {
    const json::value* value = find("created_seconds");
    boost::system::error_code error;
    Timestamp taken;
    if (value == nullptr || !value->is_number()) {
      fail("created_seconds");
    } else {
      taken.seconds = value->to_number<std::int64_t>(error);
      require(!error, "created_seconds");
    }
    taken.nanoseconds = number32("created_nanoseconds", 0, 999'999'999);
    return taken;
  }
  std::vector<std::string> texts(std::string_view name, std::size_t count_max) {
    const json::value* value = find(name);
    const json::array* array = value != nullptr ? value->if_array() : nullptr;
    std::vector<std::string> taken;
    if (array == nullptr || array->size() > count_max) return fail(name), taken;
    for (const json::value& item : *array) {
      const json::string* string = item.if_string();
      if (string == nullptr || string->size() > kTextMax) return fail(name), taken;
      taken.emplace_back(std::string_view(*string));
    }
    return taken;
  }

  bool has(std::string_view name) const { return find(name) != nullptr; }
  void require(bool holds, std::string_view name) {
    if (!holds) fail(name);
  }
  Status status() const { return error_ ? Status(*error_) : Status(); }

 private:
  void parse(std::string_view text) try {
    boost::system::error_code error;
    if (text.size() > kClusterTextMax) return set(Code::kCorrupt, "too large");
    json::value value = json::parse(text, error);
    if (error || !value.is_object()) return set(Code::kCorrupt, "not a JSON object");
    object_ = std::move(value.get_object());
    if (number("version", 1, ~std::uint64_t{0}) > kClusterVersion && !error_)
      set(Code::kNewerFormat, "made by a newer version");
  } catch (const std::bad_alloc&) {
    set(Code::kCorrupt, "no memory for it");
  }
  const json::value* find(std::string_view name) const { return object_.if_contains(name); }
  void fail(std::string_view name) {
    set(Code::kCorrupt, "field '" + std::string(name) + "' is missing or out of range");
  }
  void set(Code code, const std::string& detail) {
    if (!error_) error_ = Error(code, std::string(what_) + ": " + detail);
  }

  std::string_view what_;
  json::object object_;
  std::optional<Error> error_;
};

std::string finish(const json::object& object) { return json::serialize(object) + "\n"; }

void put_created(json::object& object, const Timestamp& created) {
  object["created_seconds"] = created.seconds;
  object["created_nanoseconds"] = created.nanoseconds;
}

bool is_endpoint(const std::string& text) {
  const auto parsed = parse_host_port(text);
  return parsed && parsed->port != 0;
}

std::string check_text(const VolumeRecord::SecretCheck& check) {
  return to_hex({reinterpret_cast<const char*>(check.data()), check.size()});
}

std::optional<VolumeRecord::SecretCheck> parse_check(const std::string& text) {
  VolumeRecord::SecretCheck check{};
  const auto bytes = from_hex(text);
  if (!bytes || bytes->size() != check.size()) return std::nullopt;
  std::copy(bytes->begin(), bytes->end(), check.begin());
  return check;
}

}  // namespace

std::string encode(const ClusterConfig& config) {
  json::array endpoints;
  for (const std::string& endpoint : config.endpoints) endpoints.emplace_back(endpoint);
  return finish({{"version", kClusterVersion},
                 {"volume", config.volume},
                 {"endpoints", std::move(endpoints)},
                 {"tls", config.tls},
                 {"ca_file", config.ca_file},
                 {"certificate_file", config.certificate_file},
                 {"key_file", config.key_file},
                 {"user", config.user},
                 {"password_file", config.password_file},
                 {"node", config.node},
                 {"node_id", config.id.value},
                 {"store", uuid_text(config.store)},
                 {"rack", config.rack},
                 {"listen", config.listen}});
}

std::string encode(const VolumeRecord& record) {
  json::object object{
      {"version", kClusterVersion},  {"uuid", uuid_text(record.uuid)},
      {"replicas", record.replicas}, {"segment_size_bytes", record.segment_size_bytes},
      {"uid", record.uid},           {"gid", record.gid}};
  put_created(object, record.created);
  object["secret_check"] = check_text(record.secret_check);
  if (record.next_secret_check) object["next_secret_check"] = check_text(*record.next_secret_check);
  return finish(object);
}

std::string encode(const NodeRecord& record) {
  json::object object{{"version", kClusterVersion},
                      {"id", record.id.value},
                      {"store", uuid_text(record.store)},
                      {"rack", record.rack}};
  put_created(object, record.created);
  return finish(object);
}

Result<ClusterConfig> decode_cluster_config(std::string_view text) {
  Fields fields("cluster configuration", text);
  ClusterConfig config;
  config.volume = fields.name("volume");
  config.endpoints = fields.texts("endpoints", kEndpointsMax);
  fields.require(!config.endpoints.empty() &&
                     std::all_of(config.endpoints.begin(), config.endpoints.end(), is_endpoint),
                 "endpoints");
  config.tls = fields.boolean("tls");
  config.ca_file = fields.text("ca_file");
  config.certificate_file = fields.text("certificate_file");
  config.key_file = fields.text("key_file");
  fields.require(config.certificate_file.empty() == config.key_file.empty(), "key_file");
  config.user = fields.text("user");
  config.password_file = fields.text("password_file");
  fields.require(config.user.empty() == config.password_file.empty(), "password_file");
  config.node = fields.name("node");
  config.id = {fields.number("node_id", 0, ~std::uint64_t{0})};
  config.store = fields.uuid("store");
  config.rack = fields.optional_name("rack");
  config.listen = fields.text("listen");
  fields.require(parse_host_port(config.listen).has_value(), "listen");
  KVSYNCFS_TRY(fields.status());
  return config;
}

Result<VolumeRecord> decode_volume_record(std::string_view text) {
  Fields fields("volume record", text);
  constexpr std::uint32_t kMax32 = ~std::uint32_t{0};
  VolumeRecord record;
  record.uuid = fields.uuid("uuid");
  record.replicas = fields.number32("replicas", 1, kReplicasMax);
  record.segment_size_bytes = fields.number("segment_size_bytes", kPageSize, kSegmentSizeMax);
  fields.require(record.segment_size_bytes % kPageSize == 0, "segment_size_bytes");
  record.uid = fields.number32("uid", 0, kMax32);
  record.gid = fields.number32("gid", 0, kMax32);
  record.created = fields.created();
  const auto check = parse_check(fields.text("secret_check"));
  fields.require(check.has_value(), "secret_check");
  record.secret_check = check.value_or(VolumeRecord::SecretCheck{});
  if (fields.has("next_secret_check")) {
    record.next_secret_check = parse_check(fields.text("next_secret_check"));
    fields.require(record.next_secret_check.has_value(), "next_secret_check");
  }
  KVSYNCFS_TRY(fields.status());
  return record;
}

Result<NodeRecord> decode_node_record(std::string_view text) {
  Fields fields("node record", text);
  NodeRecord record;
  record.id = {fields.number("id", 1, ~std::uint64_t{0})};
  record.store = fields.uuid("store");
  record.rack = fields.optional_name("rack");
  record.created = fields.created();
  KVSYNCFS_TRY(fields.status());
  return record;
}

bool is_cluster_name(std::string_view text) {
  constexpr std::string_view kChars =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
  return !text.empty() && text.size() <= kClusterNameMax &&
         text.find_first_not_of(kChars) == std::string_view::npos;
}

Result<HostPort> parse_host_port(std::string_view text) {
  const Error bad(Code::kInvalid, "'" + std::string(text) + "' is not HOST:PORT");
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return bad;
  std::string_view host = text.substr(0, colon);
  const std::string_view port = text.substr(colon + 1);
  const bool bracketed = host.starts_with('[') && host.ends_with(']');
  if (bracketed) host = host.substr(1, host.size() - 2);
  const bool is_char = std::all_of(host.begin(), host.end(), [&](char c) {
    return c > ' ' && c < 0x7f && c != '[' && c != ']' && c != '/' && (bracketed || c != ':');
  });
  HostPort parsed{std::string(host), 0};
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), parsed.port);
  if (host.empty() || host.size() > kHostMax || !is_char || error != std::errc{} ||
      end != port.data() + port.size())
    return bad;
  return parsed;
}

std::string encode_secret(std::string_view secret) {
  assert(secret.size() == kVolumeSecretSize);
  return to_hex(secret) + "\n";
}

Result<std::string> decode_secret(std::string_view text) {
  if (text.ends_with('\n')) text.remove_suffix(1);
  auto secret = from_hex(text);
  if (!secret || secret->size() != kVolumeSecretSize)
    return Error(Code::kInvalid, "secret: not 64 lower-case hexadecimal digits");
  return std::move(*secret);
}

}  // namespace kvsyncfs
