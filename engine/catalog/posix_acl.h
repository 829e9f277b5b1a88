// POSIX access control lists in the form of linux/posix_acl_xattr.h, and how they and mode bits
// move together (acl(5), and what the kernel's own file systems do at create, chmod and setfacl).
// Thread: values, any.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/error.h"

namespace kvsyncfs {

inline constexpr std::string_view kAccessAclName = "system.posix_acl_access";
inline constexpr std::string_view kDefaultAclName = "system.posix_acl_default";

struct AclEntry {
  std::uint16_t tag = 0, permissions = 0;
  std::uint32_t id = 0;
};
using Acl = std::vector<AclEntry>;

/// Parses and checks order, permissions and the need of a mask. An empty list is valid: "no ACL".
/// Errors: kInvalid.
Result<Acl> parse_acl(std::string_view bytes);
std::string encode_acl(const Acl& acl);

/// At create: keeps in the child's ACL and in `mode` only what both allow. Returns true when the
/// ACL says more than mode bits can.
bool mask_acl_at_create(Acl& acl, std::uint32_t& mode);
/// At chmod: the ACL's owner, mask (or group) and other entries follow `mode`.
void change_acl_mode(Acl& acl, std::uint32_t mode);
/// At setfacl: `mode`'s permission bits follow the ACL. Returns true when the ACL says more than
/// mode bits can.
bool set_mode_from_acl(const Acl& acl, std::uint32_t& mode);

}  // namespace kvsyncfs
