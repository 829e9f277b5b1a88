// The way from a store's configuration to its etcd. Thread: any.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "engine/base/error.h"
#include "engine/env/clock.h"
#include "engine/env/disk.h"
#include "engine/format/cluster_config.h"
#include "engine/log/etcd/grpc_client.h"

namespace kvsyncfs {

/// Reads the files that the configuration names, and connects nowhere yet. The clock outlives the
/// client. Errors: kInvalid (an endpoint, a password that is empty or too long), kAccess (a
/// certificate or key), those of reading the password.
Result<std::unique_ptr<etcd::GrpcClient>> connect_etcd(Disk& disk, Clock& clock,
                                                       const ClusterConfig& config);

/// An error of an EtcdClient, with the endpoints that were asked in front.
Error with_endpoints(const ClusterConfig& config, const Error& error);

/// A small file as a whole. Errors: kTooBig, those of Disk and File.
Result<std::string> read_small_file(Disk& disk, const std::string& path, std::size_t size_max);

/// Takes the place of the file FOLDER/NAME, which a crash or a failure leaves as it was or as it is
/// to be; durable when it returns. Until then the bytes are in NAME.new. Errors: those of Disk and
/// File.
Status replace_small_file(Disk& disk, const std::string& folder, std::string_view name,
                          std::string_view bytes);

}  // namespace kvsyncfs
