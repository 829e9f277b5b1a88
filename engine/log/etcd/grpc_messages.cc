#include "engine/log/etcd/grpc_messages.h"

#include <fmt/format.h>

#include <algorithm>
#include <new>
#include <variant>

#include "engine/log/etcd/protobuf.h"

namespace kvsyncfs::etcd {
namespace {

ProtoWriter to_proto(const Range& range) {
  ProtoWriter out;
  out.bytes(1, range.key);
  out.bytes(2, range.end);
  out.number(3, range.limit);
  out.number(4, range.revision);
  out.number(8, range.keys_only ? 1 : 0);
  return out;
}

ProtoWriter to_proto(const Operation& operation) {
  ProtoWriter out;
  if (const auto* range = std::get_if<Range>(&operation)) {
    out.always_bytes(1, to_proto(*range).text());
    return out;
  }
  ProtoWriter inner;
  if (const auto* put = std::get_if<Put>(&operation)) {
    inner.bytes(1, put->key);
    inner.bytes(2, put->value);
    inner.number(3, put->lease);
    out.always_bytes(2, inner.text());
    return out;
  }
  const auto& erase = std::get<Delete>(operation);
  inner.bytes(1, erase.key);
  inner.bytes(2, erase.end);
  out.always_bytes(3, inner.text());
  return out;
}

ProtoWriter to_proto(const Compare& compare) {
  enum : std::int64_t { kEqual = 0, kLess = 2, kVersion = 0, kValue = 3 };
  const bool is_version = compare.target == Compare::Target::kVersion;
  ProtoWriter out;
  out.number(1, compare.relation == Compare::Relation::kEqual ? kEqual : kLess);
  out.number(2, is_version ? kVersion : kValue);
  out.bytes(3, compare.key);
  if (is_version)
    out.always_number(4, compare.version);
  else
    out.always_bytes(7, compare.value);
  return out;
}

template <typename Values>
void add_all(ProtoWriter* out, std::uint32_t field, const Values& values) {
  for (const auto& value : values) out->always_bytes(field, to_proto(value).text());
}

Error nonsense(std::string_view what) {
  return Error(Code::kCorrupt, fmt::format("etcd: an answer to {} that makes no sense", what));
}

/// Decoding only allocates what the text holds, which may still be too much.
template <typename Decode>
auto guarded(Decode decode) -> decltype(decode()) try {
  return decode();
} catch (const std::bad_alloc&) {
  return Error(Code::kNoMemory, "etcd: an answer");
}

/// 0: there is none.
std::int64_t revision_of(std::string_view header, bool* ok) {
  ProtoReader reader(header);
  std::int64_t revision = 0;
  while (reader.next())
    if (reader.field() == 3) revision = reader.number();
  *ok = *ok && reader.ok();
  return revision;
}

bool read_key_value(std::string_view text, KeyValue* item) {
  ProtoReader reader(text);
  while (reader.next()) {
    if (reader.field() == 1) item->key = reader.bytes();
    if (reader.field() == 3) item->mod_revision = reader.number();
    if (reader.field() == 4) item->version = reader.number();
    if (reader.field() == 5) item->value = reader.bytes();
    if (reader.field() == 6) item->lease = reader.number();
  }
  return reader.ok();
}

/// False: it does not fit. The revision is 0 where no header has one.
bool read_range(std::string_view text, RangeReply* reply) {
  ProtoReader reader(text);
  bool ok = true;
  while (ok && reader.next()) {
    if (reader.field() == 1) reply->revision = revision_of(reader.bytes(), &ok);
    if (reader.field() == 3) reply->more = reader.flag();
    if (reader.field() == 4) reply->count = reader.number();
    if (reader.field() != 2) continue;
    KeyValue& item = reply->items.emplace_back();
    ok = read_key_value(reader.bytes(), &item) && !item.key.empty() && item.version > 0 &&
         item.mod_revision > 0;
  }
  return ok && reader.ok() && reply->count >= static_cast<std::int64_t>(reply->items.size());
}

/// What of a transaction's answers belongs to a Range.
bool read_answer(std::string_view text, RangeReply* reply) {
  ProtoReader reader(text);
  while (reader.next())
    if (reader.field() == 1) return read_range(reader.bytes(), reply) && reader.ok();
  return false;
}

struct LeaseText {
  Lease lease;
  bool ok = false;
};
LeaseText read_lease(std::string_view text) {
  ProtoReader reader(text);
  LeaseText out;
  while (reader.next()) {
    if (reader.field() == 2) out.lease.id = reader.number();
    if (reader.field() == 3) out.lease.ttl_s = reader.number();
  }
  out.ok = reader.ok() && out.lease.id != 0;
  return out;
}

bool read_event(std::string_view text, KeyValue* item) {
  ProtoReader reader(text);
  bool there = false, put = true;
  while (reader.next()) {
    if (reader.field() == 1) put = reader.number() == 0;
    if (reader.field() == 2) there = read_key_value(reader.bytes(), item);
  }
  return reader.ok() && there && put;
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

}  // namespace

std::string encode_range(const Range& range) { return to_proto(range).text(); }

std::string encode_txn(const Txn& txn) {
  ProtoWriter out;
  add_all(&out, 1, txn.compares);
  add_all(&out, 2, txn.success);
  add_all(&out, 3, txn.failure);
  return out.text();
}

std::string encode_grant(std::int64_t ttl_s) {
  ProtoWriter out;
  out.number(1, ttl_s);
  return out.text();
}

std::string encode_lease(std::int64_t lease) {
  ProtoWriter out;
  out.number(1, lease);
  return out.text();
}

std::string encode_compact(std::int64_t revision) {
  ProtoWriter out;
  out.number(1, revision);
  return out.text();
}

std::string encode_watch(const WatchRequest& request) {
  constexpr char kNoDelete = 1;
  ProtoWriter create;
  create.bytes(1, request.key);
  create.bytes(2, request.end);
  create.number(3, request.start_revision);
  create.always_bytes(5, {&kNoDelete, 1});  // filters
  create.number(8, 1);                      // may come in fragments
  ProtoWriter out;
  out.always_bytes(1, create.text());
  return out.text();
}

std::string encode_login(std::string_view user, std::string_view password) {
  ProtoWriter out;
  out.bytes(1, user);
  out.bytes(2, password);
  return out.text();
}

Result<RangeReply> parse_range(std::string_view text) {
  return guarded([&]() -> Result<RangeReply> {
    RangeReply reply;
    if (!read_range(text, &reply) || reply.revision <= 0) return nonsense("a range");
    return reply;
  });
}

Result<TxnReply> parse_txn(std::string_view text, const Txn& txn) {
  return guarded([&]() -> Result<TxnReply> {
    TxnReply reply;
    std::vector<std::string_view> answers;
    ProtoReader reader(text);
    bool ok = true;
    while (ok && reader.next()) {
      if (reader.field() == 1) reply.revision = revision_of(reader.bytes(), &ok);
      if (reader.field() == 2) reply.succeeded = reader.flag();
      if (reader.field() == 3) answers.push_back(reader.bytes());
    }
    const auto& branch = reply.succeeded ? txn.success : txn.failure;
    if (!ok || !reader.ok() || reply.revision <= 0 || answers.size() != branch.size())
      return nonsense("a transaction");
    for (std::size_t i = 0; i < branch.size(); ++i) {
      if (!std::holds_alternative<Range>(branch[i])) continue;
      RangeReply& found = reply.ranges.emplace_back();
      if (!read_answer(answers[i], &found)) return nonsense("a transaction");
      found.revision = reply.revision;
    }
    return reply;
  });
}

Result<Lease> parse_grant(std::string_view text) {
  const LeaseText read = read_lease(text);
  if (!read.ok || read.lease.ttl_s <= 0) return nonsense("a lease");
  return read.lease;
}

Result<Lease> parse_keep_alive(std::string_view text) {
  const LeaseText read = read_lease(text);
  if (!read.ok || read.lease.ttl_s < 0) return nonsense("a renewal");
  if (read.lease.ttl_s == 0) return Error(Code::kNotFound, "etcd: the lease is gone");
  return read.lease;
}

Result<std::string> parse_login(std::string_view text) {
  ProtoReader reader(text);
  std::string token;
  while (reader.next())
    if (reader.field() == 2) token = reader.bytes();
  const bool fits =
      std::all_of(token.begin(), token.end(), [](char c) { return c > 32 && c < 127; });
  if (!reader.ok() || token.empty() || !fits) return nonsense("a login");
  return token;
}

Status parse_empty(std::string_view text) {
  ProtoReader reader(text);
  while (reader.next()) {
  }
  return reader.ok() ? Status{} : Status(nonsense("a request"));
}

Result<WatchBatch> parse_watch(std::string_view text, bool* created) {
  *created = false;
  return guarded([&]() -> Result<WatchBatch> {
    WatchBatch batch;
    ProtoReader reader(text);
    bool ok = true, canceled = false, compacted = false;
    std::string_view reason;
    while (ok && reader.next()) {
      if (reader.field() == 3) *created = reader.flag();
      if (reader.field() == 4) canceled = reader.flag();
      if (reader.field() == 5) compacted = reader.number() != 0;
      if (reader.field() == 6) reason = reader.bytes();
      if (reader.field() == 11) ok = read_event(reader.bytes(), &batch.puts.emplace_back());
    }
    if (!ok || !reader.ok()) return nonsense("a watch");
    if (compacted) return Error(Code::kStale, "etcd: compacted");
    if (canceled) return Error(Code::kIo, fmt::format("etcd: watch canceled: {}", reason));
    return batch;
  });
}

Error refusal(std::int64_t status, std::string_view message, bool* token_expired) {
  constexpr std::size_t kMessageMax = 200;
  *token_expired = false;
  const Code code = code_of(status, message, token_expired);
  return Error(code, fmt::format("etcd: {}", message.substr(0, kMessageMax)));
}

}  // namespace kvsyncfs::etcd
