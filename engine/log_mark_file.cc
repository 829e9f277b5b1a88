#include "engine/log_mark_file.h"

#include "engine/cluster/etcd_access.h"

namespace kvsyncfs {
namespace {

std::string path_of(const std::string& store, std::string_view name) {
  return store + "/" + std::string(name);
}

}  // namespace

Status store_log_mark(Disk& disk, const std::string& store, const LogMark& mark) {
  return replace_small_file(disk, store, kLogMarkFile, encode(mark));
}

Result<std::optional<LogMark>> load_log_mark(Disk& disk, const std::string& store) {
  const auto bytes = read_small_file(disk, path_of(store, kLogMarkFile), kLogMarkSizeMax);
  if (!bytes && bytes.error().code == Code::kNotFound) return std::optional<LogMark>();
  if (!bytes) return bytes.error();
  KVSYNCFS_ASSIGN(LogMark mark, decode_log_mark(*bytes));
  return std::optional<LogMark>(std::move(mark));
}

}  // namespace kvsyncfs
