#include "engine/cluster/etcd_access.h"

#include <fmt/format.h>

#include <utility>

namespace kvsyncfs {
namespace {

constexpr std::size_t kPasswordSizeMax = 1024;

Result<std::string> read_password(Disk& disk, const std::string& path) {
  KVSYNCFS_ASSIGN(std::string text, read_small_file(disk, path, kPasswordSizeMax));
  text = text.substr(0, text.find('\n'));
  if (text.empty()) return Error(Code::kInvalid, path + ": no password in the first line");
  return text;
}

}  // namespace

Result<std::unique_ptr<etcd::GrpcClient>> connect_etcd(Disk& disk, Clock& clock,
                                                       const ClusterConfig& config) {
  etcd::GrpcOptions options;
  options.endpoints = config.endpoints;
  options.tls = config.tls;
  options.ca_file = config.ca_file;
  options.certificate_file = config.certificate_file;
  options.key_file = config.key_file;
  options.user = config.user;
  if (!config.user.empty()) {
    KVSYNCFS_ASSIGN(options.password, read_password(disk, config.password_file));
  }
  return etcd::GrpcClient::make(clock, std::move(options));
}

Error with_endpoints(const ClusterConfig& config, const Error& error) {
  return Error(error.code,
               fmt::format("etcd at {}: {}", fmt::join(config.endpoints, ","), error.detail));
}

Result<std::string> read_small_file(Disk& disk, const std::string& path, std::size_t size_max) {
  KVSYNCFS_ASSIGN(const auto file, disk.open(path, OpenMode::kRead));
  std::string bytes(size_max + 1, '\0');
  KVSYNCFS_ASSIGN(const std::size_t size,
                  file->read_at(0, {reinterpret_cast<std::byte*>(bytes.data()), bytes.size()}));
  if (size > size_max)
    return Error(Code::kTooBig, fmt::format("{}: more than {} bytes", path, size_max));
  bytes.resize(size);
  return bytes;
}

Status replace_small_file(Disk& disk, const std::string& folder, std::string_view name,
                          std::string_view bytes) {
  const std::string path = folder + "/" + std::string(name), next = path + ".new";
  {
    KVSYNCFS_ASSIGN(const auto file, disk.open(next, OpenMode::kCreateOrOpen));
    KVSYNCFS_TRY(file->truncate(0));
    KVSYNCFS_TRY(file->write_at(0, as_bytes(bytes)));
    KVSYNCFS_TRY(file->sync());
  }
  KVSYNCFS_TRY(disk.rename(next, path));
  return disk.sync_directory(folder);
}

}  // namespace kvsyncfs
