// The texts of etcd's JSON gateway (v3): requests from our values, our values from its answers.
//
// 64-bit numbers are decimal strings, keys and values are base64, a field that is zero is left out.
// An answer that does not fit is kCorrupt, whatever it holds; an answer that is an error becomes
// one of EtcdClient's. Pure. Thread: any.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "engine/log/etcd/etcd_client.h"

namespace kvsyncfs::etcd {

std::string range_json(const Range& range);
std::string txn_json(const Txn& txn);
std::string grant_json(std::int64_t ttl_s);
std::string lease_json(std::int64_t lease);  ///< keepalive, revoke
std::string compact_json(std::int64_t revision);
std::string watch_json(const WatchRequest& request);
std::string login_json(std::string_view user, std::string_view password);

Result<RangeReply> parse_range(std::string_view text);
/// `txn`: the request, which tells which answers have to be there.
Result<TxnReply> parse_txn(std::string_view text, const Txn& txn);
Result<Lease> parse_grant(std::string_view text);
Result<Lease> parse_keep_alive(std::string_view text);  ///< kNotFound: the lease is gone
Result<std::string> parse_login(std::string_view text);
Status parse_empty(std::string_view text);
/// One message of a watch's stream. `created`: it says that the watch stands.
Result<WatchBatch> parse_watch(std::string_view text, bool* created);

/// What the gateway says of a request that it refused. `token_expired`: log in again and repeat.
Error parse_refusal(int http_status, std::string_view text, bool* token_expired);

std::string to_base64(std::string_view bytes);
/// False: it is none.
bool from_base64(std::string_view text, std::string* bytes);

}  // namespace kvsyncfs::etcd
