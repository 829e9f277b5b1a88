// What the kernel of a cluster's node keeps, and how it comes to forget it. ARCHITECTURE.md, "In a
// cluster the kernel keeps attributes, and no names".
#include <utility>

#include "engine/engine_impl.h"

namespace kvsyncfs {

Result<bool> EngineImpl::open_handle(InodeId inode) {
  if (!cluster_) return true;
  // In this order: an orphan that this node let go before has lost its name by now.
  const bool keep = cluster_->handles.open(inode);
  const auto found = attributes(inode);
  if (found && (found->link_count > 0 || cluster_->handles.may_stay(inode))) return keep;
  cluster_->handles.close(inode);
  return found ? Error(Code::kStale, "the file was removed") : found.error();
}

/// The lease is read first: where it is given up meanwhile, either all_changed() finds the inode,
/// or it is seen here.
std::uint64_t EngineImpl::keep_attributes(InodeId inode) {
  if (!cluster_) return ~std::uint64_t{0};
  const std::uint64_t until_ns = cluster_->log.lease_until_ns(), now_ns = clock_.boot_ns();
  if (!cluster_->kept_attributes.keep(inode, until_ns, now_ns)) return 0;
  return cluster_->log.lease_until_ns() >= until_ns ? until_ns - now_ns : 0;
}

void EngineImpl::set_forget_attributes(std::function<bool(InodeId)> forget) {
  if (!cluster_) return;  // nothing changes behind the kernel
  const bool is_set = static_cast<bool>(forget);
  cluster_->kept_attributes.set_forget(std::move(forget),
                                       [this](InodeId inode) { return live_.retained(inode); });
  if (is_set)
    cluster_->seams.tasks.start("kernel", [this] {
      cluster_->kept_attributes.run();
      cluster_->session.acknowledge();
      return clock_.boot_ns();
    });
}

void EngineImpl::close_handle(InodeId inode) {
  if (cluster_ && cluster_->handles.close(inode)) cluster_->lost_handles.closed(inode);
}

void EngineImpl::set_on_moved(std::function<void(InodeId, std::string_view)> on_moved) {
  if (!cluster_) return;
  std::lock_guard lock(cluster_->moved_mutex);
  cluster_->on_moved = std::move(on_moved);
}

void EngineImpl::note_moved(const RenameCommand& command, const CommandResult& result) {
  const auto tell = [this](InodeId moved, InodeId parent, const std::string& name) {
    if (!live_.retained(moved)) return;
    const auto now = catalog_->inode(moved);
    if (!now || !is_directory(*now)) return;
    std::lock_guard lock(cluster_->moved_mutex);
    if (cluster_->on_moved) cluster_->on_moved(parent, name);
  };
  tell(result.inode, command.old_parent, command.old_name);
  if (command.mode == RenameMode::kExchange)
    tell(result.replaced, command.new_parent, command.new_name);
}

}  // namespace kvsyncfs
