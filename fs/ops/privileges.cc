// Who keeps set-user-ID, set-group-ID and file capabilities: what the kernel leaves to the daemon.
#include <algorithm>
#include <vector>

#include "fs/ops/op.h"
#include "fs/session.h"

namespace kvsyncfs {

bool is_in_group(Op& op, gid_t group) {
  if (op.context().gid == group) return true;
  std::vector<gid_t> groups(256);
  int count = fuse_req_getgroups(op.request(), static_cast<int>(groups.size()), groups.data());
  if (count > static_cast<int>(groups.size())) {
    groups.resize(static_cast<std::size_t>(count));
    count = fuse_req_getgroups(op.request(), count, groups.data());
  }
  groups.resize(static_cast<std::size_t>(std::clamp(count, 0, static_cast<int>(groups.size()))));
  return std::find(groups.begin(), groups.end(), group) != groups.end();
}

Status clear_privileges(Op& op, InodeId inode) {
  const auto cleared = op.engine().clear_privileges(
      inode, [&op](std::uint32_t group) { return is_in_group(op, group); });
  if (!cleared) return cleared.error();
  // The kernel takes size and times for changed by such a request, but not the mode.
  if (*cleared) op.face().session->forget_attributes(inode);
  return {};
}

}  // namespace kvsyncfs
