// The maker of EngineAdmin: a part of EngineImpl, over several engine_admin*.cc.
#pragma once

#include <map>
#include <mutex>
#include <set>
#include <string>

#include "engine/engine_admin.h"
#include "engine/engine_impl.h"

namespace kvsyncfs {

class EngineImpl::Admin final : public EngineAdmin {
 public:
  explicit Admin(EngineImpl& engine) : engine_(engine) {}

  Result<FileLocation> locate(std::string_view path, std::uint64_t offset,
                              std::size_t count_max) override;

 private:
  /// A regular file. Errors: as locate().
  Result<Entry> find_file(std::string_view path);
  Result<LocatedExtent> place_of(const Extent& extent) const;
  Result<std::vector<LocatedExtent>> places_of(InodeId inode, std::uint64_t offset,
                                               std::size_t count_max) const;
  std::vector<NodeView> views_of(const std::set<NodeId>& nodes);
  /// Asks etcd for names that are not known yet. One that cannot be learned now stays empty.
  void learn_names(const std::set<NodeId>& nodes);

  EngineImpl& engine_;
  std::mutex names_mutex_;  // held over a call of etcd
  std::map<NodeId, std::string> names_;
};

}  // namespace kvsyncfs
