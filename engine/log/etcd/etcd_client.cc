#include "engine/log/etcd/etcd_client.h"

#include <utility>

namespace kvsyncfs::etcd {

Compare version_is(std::string key, std::int64_t version) {
  return {std::move(key), Compare::Target::kVersion, Compare::Relation::kEqual, version, {}};
}
Compare version_below(std::string key, std::int64_t version) {
  return {std::move(key), Compare::Target::kVersion, Compare::Relation::kLess, version, {}};
}
Compare value_is(std::string key, std::string value) {
  return {std::move(key), Compare::Target::kValue, Compare::Relation::kEqual, 0, std::move(value)};
}

std::string end_of_prefix(std::string prefix) {
  prefix.back() = static_cast<char>(static_cast<unsigned char>(prefix.back()) + 1);
  return prefix;
}

}  // namespace kvsyncfs::etcd
