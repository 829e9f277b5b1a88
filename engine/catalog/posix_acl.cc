#include "engine/catalog/posix_acl.h"

#include "engine/format/codec.h"

namespace kvsyncfs {

namespace {

constexpr std::uint32_t kAclVersion = 2;
constexpr std::uint16_t kUserObject = 0x01, kUser = 0x02, kGroupObject = 0x04, kGroup = 0x08,
                        kMask = 0x10, kOther = 0x20;
constexpr std::uint32_t kPermissionBits = 0777;

AclEntry* find(Acl& acl, std::uint16_t tag) {
  for (AclEntry& e : acl)
    if (e.tag == tag) return &e;
  return nullptr;
}

/// Which mode bits an entry of this tag stands for, as a shift; the mask takes the group's place.
int shift_of(std::uint16_t tag) {
  if (tag == kUserObject) return 6;
  return tag == kOther ? 0 : 3;
}

bool extends_mode(const Acl& acl) {
  for (const AclEntry& e : acl)
    if (e.tag == kUser || e.tag == kGroup || e.tag == kMask) return true;
  return false;
}

/// Each tag in ascending order, the objects exactly once, named entries only with a mask.
bool well_formed(const Acl& acl) {
  std::uint16_t last = 0;
  bool named = false, mask = false;
  int objects = 0;
  for (const AclEntry& e : acl) {
    if (e.permissions > 7) return false;
    const bool repeats = e.tag == kUser || e.tag == kGroup;
    if (e.tag < last || (e.tag == last && !repeats)) return false;
    last = e.tag;
    if (repeats) {
      named = true;
    } else if (e.tag == kMask) {
      mask = true;
    } else if (e.tag == kUserObject || e.tag == kGroupObject || e.tag == kOther) {
      ++objects;
    } else {
      return false;
    }
    if (repeats && e.id == 0xffffffff) return false;
  }
  return objects == 3 && (mask || !named);
}

}  // namespace

Result<Acl> parse_acl(std::string_view bytes) {
  Reader r(bytes);
  if (r.u32() != kAclVersion || r.left() % 8 != 0) return Code::kInvalid;
  Acl acl;
  acl.reserve(r.left() / 8);
  while (r.left() != 0) {
    AclEntry& e = acl.emplace_back();
    e.tag = r.u16();
    e.permissions = r.u16();
    e.id = r.u32();
  }
  if (!acl.empty() && !well_formed(acl)) return Code::kInvalid;
  return acl;
}

std::string encode_acl(const Acl& acl) {
  std::string out;
  Writer w(out);
  w.u32(kAclVersion);
  for (const AclEntry& e : acl) {
    w.u16(e.tag);
    w.u16(e.permissions);
    w.u32(e.id);
  }
  return out;
}

bool mask_acl_at_create(Acl& acl, std::uint32_t& mode) {
  const AclEntry* mask = find(acl, kMask);
  for (AclEntry& e : acl) {
    const bool decides = e.tag == kUserObject || e.tag == kOther || e.tag == kMask ||
                         (e.tag == kGroupObject && mask == nullptr);
    if (!decides) continue;
    const int shift = shift_of(e.tag);
    e.permissions = static_cast<std::uint16_t>(e.permissions & mode >> shift & 7);
    mode = (mode & ~(7u << shift)) | static_cast<std::uint32_t>(e.permissions) << shift;
  }
  return extends_mode(acl);
}

void change_acl_mode(Acl& acl, std::uint32_t mode) {
  const std::uint16_t group = find(acl, kMask) != nullptr ? kMask : kGroupObject;
  for (AclEntry& e : acl)
    if (e.tag == kUserObject || e.tag == kOther || e.tag == group)
      e.permissions = static_cast<std::uint16_t>(mode >> shift_of(e.tag) & 7);
}

bool set_mode_from_acl(const Acl& acl, std::uint32_t& mode) {
  std::uint32_t bits = 0;
  for (const AclEntry& e : acl) {
    if (e.tag == kMask) bits &= ~070u;
    if (e.tag != kUser && e.tag != kGroup)
      bits |= static_cast<std::uint32_t>(e.permissions) << shift_of(e.tag);
  }
  mode = (mode & ~kPermissionBits) | bits;
  return extends_mode(acl);
}

}  // namespace kvsyncfs
