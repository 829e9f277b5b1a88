// The messages of etcd's API (v3) on the wire: requests from our values, our values from its
// answers. Field numbers: etcd's rpc.proto and kv.proto.
//
// An answer that does not fit is kCorrupt, whatever it holds; a status that is an error becomes one
// of EtcdClient's. Pure. Thread: any.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "engine/log/etcd/etcd_client.h"

namespace kvsyncfs::etcd {

std::string encode_range(const Range& range);
std::string encode_txn(const Txn& txn);
std::string encode_grant(std::int64_t ttl_s);
std::string encode_lease(std::int64_t lease);  ///< keepalive, revoke
std::string encode_compact(std::int64_t revision);
std::string encode_watch(const WatchRequest& request);
std::string encode_login(std::string_view user, std::string_view password);

Result<RangeReply> parse_range(std::string_view text);
/// `txn`: the request, which tells which answers have to be there.
Result<TxnReply> parse_txn(std::string_view text, const Txn& txn);
Result<Lease> parse_grant(std::string_view text);
Result<Lease> parse_keep_alive(std::string_view text);  ///< kNotFound: the lease is gone
Result<std::string> parse_login(std::string_view text);
Status parse_empty(std::string_view text);
/// One message of a watch's stream. `created`: it says that the watch stands.
Result<WatchBatch> parse_watch(std::string_view text, bool* created);

/// What etcd says of a request that it refused, by gRPC's status and message. `token_expired`: log
/// in again and repeat.
Error refusal(std::int64_t status, std::string_view message, bool* token_expired);

}  // namespace kvsyncfs::etcd
