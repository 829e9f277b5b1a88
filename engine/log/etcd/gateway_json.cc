#include "engine/log/etcd/gateway_json.h"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <algorithm>
#include <boost/json.hpp>
#include <charconv>
#include <new>
#include <variant>

namespace kvsyncfs::etcd {
namespace {

namespace json = boost::json;

json::string number(std::int64_t n) { return json::string(std::to_string(n)); }

json::object to_json(const Range& range) {
  json::object out{{"key", to_base64(range.key)}};
  if (!range.end.empty()) out["range_end"] = to_base64(range.end);
  if (range.limit != 0) out["limit"] = number(range.limit);
  if (range.revision != 0) out["revision"] = number(range.revision);
  if (range.keys_only) out["keys_only"] = true;
  return out;
}

json::object to_json(const Operation& operation) {
  if (const auto* range = std::get_if<Range>(&operation))
    return {{"request_range", to_json(*range)}};
  if (const auto* put = std::get_if<Put>(&operation)) {
    json::object out{{"key", to_base64(put->key)}, {"value", to_base64(put->value)}};
    if (put->lease != 0) out["lease"] = number(put->lease);
    return {{"request_put", std::move(out)}};
  }
  const auto& erase = std::get<Delete>(operation);
  json::object out{{"key", to_base64(erase.key)}};
  if (!erase.end.empty()) out["range_end"] = to_base64(erase.end);
  return {{"request_delete_range", std::move(out)}};
}

json::object to_json(const Compare& compare) {
  json::object out{{"key", to_base64(compare.key)},
                   {"result", compare.relation == Compare::Relation::kEqual ? "EQUAL" : "LESS"}};
  if (compare.target == Compare::Target::kVersion) {
    out["target"] = "VERSION";
    out["version"] = number(compare.version);
  } else {
    out["target"] = "VALUE";
    out["value"] = to_base64(compare.value);
  }
  return out;
}

template <typename Values>
json::array to_array(const Values& values) {
  json::array out;
  for (const auto& value : values) out.push_back(to_json(value));
  return out;
}

/// Takes fields out of an answer; after the first that does not fit, ok() is false.
class Fields {
 public:
  explicit Fields(const json::value& value) : object_(value.if_object()) { ok_ = object_; }
  explicit Fields(const json::value* value) : object_(value ? value->if_object() : nullptr) {}

  bool ok() const { return ok_; }
  bool there() const { return object_ != nullptr; }
  bool has(std::string_view name) const { return find(name) != nullptr; }
  Fields object(std::string_view name) {
    const json::value* value = find(name);
    if (value != nullptr && !value->is_object()) ok_ = false;
    return Fields(value);
  }
  const json::array* array(std::string_view name) {
    const json::value* value = find(name);
    if (value != nullptr && !value->is_array()) ok_ = false;
    return value != nullptr ? value->if_array() : nullptr;
  }
  std::int64_t number(std::string_view name) {
    const json::value* value = find(name);
    if (value == nullptr) return 0;
    if (const auto* plain = value->if_int64()) return *plain;
    const json::string* text = value->if_string();
    std::int64_t n = 0;
    if (text != nullptr) {
      const char* const end = text->data() + text->size();
      const auto [stop, error] = std::from_chars(text->data(), end, n);
      if (error == std::errc{} && stop == end) return n;
    }
    ok_ = false;
    return 0;
  }
  bool flag(std::string_view name) {
    const json::value* value = find(name);
    if (value == nullptr) return false;
    if (!value->is_bool()) ok_ = false;
    return value->is_bool() && value->get_bool();
  }
  std::string text(std::string_view name) {
    const json::value* value = find(name);
    if (value == nullptr) return {};
    if (const json::string* text = value->if_string())
      return std::string(text->data(), text->size());
    ok_ = false;
    return {};
  }
  std::string bytes(std::string_view name) {
    std::string out;
    if (!from_base64(text(name), &out)) ok_ = false;
    return out;
  }
  void merge(const Fields& other) { ok_ = ok_ && (other.ok_ || !other.there()); }

 private:
  const json::value* find(std::string_view name) const {
    return object_ != nullptr ? object_->if_contains(name) : nullptr;
  }
  const json::object* object_;
  bool ok_ = true;
};

Error nonsense(std::string_view what) {
  return Error(Code::kCorrupt, fmt::format("etcd: an answer to {} that makes no sense", what));
}

Result<json::value> parse(std::string_view text, std::string_view what) try {
  boost::system::error_code error;
  json::value value = json::parse(text, error);
  if (error || !value.is_object()) return nonsense(what);
  return value;
} catch (const std::bad_alloc&) {
  return Error(Code::kNoMemory, "etcd: an answer");
}

std::int64_t revision_of(Fields& reply) {
  Fields header = reply.object("header");
  const std::int64_t revision = header.number("revision");
  reply.merge(header);
  return revision;
}

KeyValue key_value(Fields& fields) {
  KeyValue item;
  item.key = fields.bytes("key");
  item.value = fields.bytes("value");
  item.mod_revision = fields.number("mod_revision");
  item.version = fields.number("version");
  item.lease = fields.number("lease");
  return item;
}

/// False: it does not fit.
bool read_range(Fields& fields, RangeReply* reply) {
  if (const json::array* items = fields.array("kvs")) {
    for (const json::value& value : *items) {
      Fields item(value);
      reply->items.push_back(key_value(item));
      const KeyValue& read = reply->items.back();
      if (!item.ok() || read.key.empty() || read.version <= 0 || read.mod_revision <= 0)
        return false;
    }
  }
  reply->count = fields.number("count");
  reply->more = fields.flag("more");
  return fields.ok() && reply->count >= static_cast<std::int64_t>(reply->items.size());
}

/// Numbers of gRPC's status codes.
enum GrpcCode : std::int64_t {
  kGrpcInvalidArgument = 3,
  kGrpcNotFound = 5,
  kGrpcPermissionDenied = 7,
  kGrpcResourceExhausted = 8,
  kGrpcFailedPrecondition = 9,
  kGrpcOutOfRange = 11,
  kGrpcUnauthenticated = 16,
};

Code code_of(std::int64_t grpc, std::string_view message, bool* token_expired) {
  const auto says = [&](std::string_view part) {
    return message.find(part) != std::string_view::npos;
  };
  switch (grpc) {
    case kGrpcInvalidArgument:
      *token_expired = says("auth store is old") || says("invalid auth token");
      if (*token_expired || says("authentication failed") || says("user name is empty"))
        return Code::kAccess;
      return says("too large") ? Code::kTooBig : Code::kInvalid;
    case kGrpcNotFound:
      return Code::kNotFound;
    case kGrpcUnauthenticated:
      *token_expired = true;
      return Code::kAccess;
    case kGrpcPermissionDenied:
      return Code::kAccess;
    case kGrpcResourceExhausted:
      if (says("space")) return Code::kNoSpace;
      return says("larger than max") ? Code::kTooBig : Code::kTimeout;
    case kGrpcFailedPrecondition:
      return says("authentication is not enabled") ? Code::kAccess : Code::kInvalid;
    case kGrpcOutOfRange:
      return says("compacted") ? Code::kStale : Code::kNoSuchRange;
    default:
      return Code::kTimeout;  // no leader, too busy, cut off: the change may have happened
  }
}

Error error_of(Fields& fields, bool* token_expired) {
  std::string message = fields.text("message");
  if (message.empty()) message = fields.text("error");
  const std::int64_t code = fields.has("code") ? fields.number("code") : fields.number("grpc_code");
  constexpr std::size_t kMessageMax = 200;
  message.resize(std::min(message.size(), kMessageMax));
  return Error(code_of(code, message, token_expired), "etcd: " + message);
}

/// Streams wrap what they say: {"result": ...} or {"error": ...}.
Result<Fields> unwrap(const json::value& value, std::string_view what) {
  Fields outer(value);
  if (outer.has("error")) {
    Fields error = outer.object("error");
    bool token_expired = false;
    return outer.ok() ? error_of(error, &token_expired) : nonsense(what);
  }
  Fields result = outer.object("result");
  if (!outer.ok() || !result.there()) return nonsense(what);
  return result;
}

}  // namespace

std::string range_json(const Range& range) { return json::serialize(to_json(range)); }

std::string txn_json(const Txn& txn) {
  return json::serialize(json::object{{"compare", to_array(txn.compares)},
                                      {"success", to_array(txn.success)},
                                      {"failure", to_array(txn.failure)}});
}

std::string grant_json(std::int64_t ttl_s) {
  return json::serialize(json::object{{"TTL", number(ttl_s)}});
}

std::string lease_json(std::int64_t lease) {
  return json::serialize(json::object{{"ID", number(lease)}});
}

std::string compact_json(std::int64_t revision) {
  return json::serialize(json::object{{"revision", number(revision)}});
}

std::string watch_json(const WatchRequest& request) {
  json::object create{
      {"key", to_base64(request.key)}, {"filters", json::array{"NODELETE"}}, {"fragment", true}};
  if (!request.end.empty()) create["range_end"] = to_base64(request.end);
  if (request.start_revision != 0) create["start_revision"] = number(request.start_revision);
  return json::serialize(json::object{{"create_request", std::move(create)}});
}

std::string login_json(std::string_view user, std::string_view password) {
  return json::serialize(json::object{{"name", user}, {"password", password}});
}

Result<RangeReply> parse_range(std::string_view text) {
  KVSYNCFS_ASSIGN(const json::value value, parse(text, "a range"));
  Fields fields(value);
  RangeReply reply;
  reply.revision = revision_of(fields);
  if (!read_range(fields, &reply) || reply.revision <= 0) return nonsense("a range");
  return reply;
}

Result<TxnReply> parse_txn(std::string_view text, const Txn& txn) {
  KVSYNCFS_ASSIGN(const json::value value, parse(text, "a transaction"));
  Fields fields(value);
  TxnReply reply;
  reply.revision = revision_of(fields);
  reply.succeeded = fields.flag("succeeded");
  const json::array* answers = fields.array("responses");
  const auto& branch = reply.succeeded ? txn.success : txn.failure;
  if (!fields.ok() || reply.revision <= 0 || (answers ? answers->size() : 0) != branch.size())
    return nonsense("a transaction");
  for (std::size_t i = 0; i < branch.size(); ++i) {
    if (!std::holds_alternative<Range>(branch[i])) continue;
    Fields answer((*answers)[i]);
    Fields range = answer.object("response_range");
    RangeReply found;
    found.revision = reply.revision;
    if (!answer.ok() || !range.there() || !read_range(range, &found))
      return nonsense("a transaction");
    reply.ranges.push_back(std::move(found));
  }
  return reply;
}

Result<Lease> parse_grant(std::string_view text) {
  KVSYNCFS_ASSIGN(const json::value value, parse(text, "a lease"));
  Fields fields(value);
  const Lease lease{fields.number("ID"), fields.number("TTL")};
  if (!fields.ok() || lease.id == 0 || lease.ttl_s <= 0) return nonsense("a lease");
  return lease;
}

Result<Lease> parse_keep_alive(std::string_view text) {
  KVSYNCFS_ASSIGN(const json::value value, parse(text, "a renewal"));
  KVSYNCFS_ASSIGN(Fields fields, unwrap(value, "a renewal"));
  const Lease lease{fields.number("ID"), fields.number("TTL")};
  if (!fields.ok() || lease.id == 0 || lease.ttl_s < 0) return nonsense("a renewal");
  if (lease.ttl_s == 0) return Error(Code::kNotFound, "etcd: the lease is gone");
  return lease;
}

Result<std::string> parse_login(std::string_view text) {
  KVSYNCFS_ASSIGN(const json::value value, parse(text, "a login"));
  Fields fields(value);
  std::string token = fields.text("token");
  const bool fits =
      std::all_of(token.begin(), token.end(), [](char c) { return c > 32 && c < 127; });
  if (!fields.ok() || token.empty() || !fits) return nonsense("a login");
  return token;
}

Status parse_empty(std::string_view text) {
  KVSYNCFS_TRY(parse(text, "a request"));
  return {};
}

Result<WatchBatch> parse_watch(std::string_view text, bool* created) {
  KVSYNCFS_ASSIGN(const json::value value, parse(text, "a watch"));
  KVSYNCFS_ASSIGN(Fields fields, unwrap(value, "a watch"));
  WatchBatch batch;
  *created = fields.flag("created");
  if (fields.number("compact_revision") != 0) return Error(Code::kStale, "etcd: compacted");
  if (fields.flag("canceled"))
    return Error(Code::kIo, "etcd: watch canceled: " + fields.text("cancel_reason"));
  if (const json::array* events = fields.array("events")) {
    for (const json::value& entry : *events) {
      Fields event(entry);
      Fields item = event.object("kv");
      batch.puts.push_back(key_value(item));
      const bool put = !event.has("type") || event.text("type") == "PUT";
      if (!event.ok() || !item.there() || !item.ok() || !put) return nonsense("a watch");
    }
  }
  if (!fields.ok()) return nonsense("a watch");
  return batch;
}

Error parse_refusal(int http_status, std::string_view text, bool* token_expired) {
  *token_expired = false;
  const auto value = parse(text, "a request");
  if (!value) return Error(Code::kCorrupt, fmt::format("etcd: HTTP status {}", http_status));
  Fields fields(*value);
  Fields stream = fields.object("error");
  return stream.there() ? error_of(stream, token_expired) : error_of(fields, token_expired);
}

std::string to_base64(std::string_view bytes) {
  std::string text((bytes.size() + 2) / 3 * 4 + 1, '\0');  // one byte more: it ends with a zero
  const int size = EVP_EncodeBlock(reinterpret_cast<unsigned char*>(text.data()),
                                   reinterpret_cast<const unsigned char*>(bytes.data()),
                                   static_cast<int>(bytes.size()));
  text.resize(static_cast<std::size_t>(size));
  return text;
}

bool from_base64(std::string_view text, std::string* bytes) {
  constexpr std::size_t kTextMax = std::size_t{1} << 30;
  if (text.size() % 4 != 0 || text.size() > kTextMax) return false;
  std::size_t padding = 0;
  while (padding < 2 && padding < text.size() && text[text.size() - 1 - padding] == '=') ++padding;
  if (text.substr(0, text.size() - padding).find('=') != text.npos) return false;
  bytes->resize(text.size() / 4 * 3);
  const int size = EVP_DecodeBlock(reinterpret_cast<unsigned char*>(bytes->data()),
                                   reinterpret_cast<const unsigned char*>(text.data()),
                                   static_cast<int>(text.size()));
  if (size < 0 || static_cast<std::size_t>(size) != bytes->size()) return false;
  bytes->resize(bytes->size() - padding);
  return true;
}

}  // namespace kvsyncfs::etcd
