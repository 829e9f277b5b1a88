#include "fs/request_flags.h"

#include <linux/fuse.h>

#include <cstring>

namespace kvsyncfs {

namespace {

thread_local bool kills_privileges = false, offers_direct_mappings = false;

/// The body of a request as `Body`, zeros where the request is shorter.
template <typename Body>
Body body_of(const void* request, std::size_t size) {
  Body body{};
  if (size >= sizeof(fuse_in_header) + sizeof body)
    std::memcpy(&body, static_cast<const char*>(request) + sizeof(fuse_in_header), sizeof body);
  return body;
}

}  // namespace

void note_request(const void* request, std::size_t size) {
  kills_privileges = offers_direct_mappings = false;
  fuse_in_header header{};
  if (size < sizeof header) return;
  std::memcpy(&header, request, sizeof header);
  if (header.opcode == FUSE_WRITE) {
    const auto write = body_of<fuse_write_in>(request, size);
    kills_privileges = (write.write_flags & FUSE_WRITE_KILL_SUIDGID) != 0;
  } else if (header.opcode == FUSE_SETATTR) {
    kills_privileges = (body_of<fuse_setattr_in>(request, size).valid & FATTR_KILL_SUIDGID) != 0;
  } else if (header.opcode == FUSE_OPEN) {
    kills_privileges =
        (body_of<fuse_open_in>(request, size).open_flags & FUSE_OPEN_KILL_SUIDGID) != 0;
  } else if (header.opcode == FUSE_INIT) {
    const auto init = body_of<fuse_init_in>(request, size);
    offers_direct_mappings =
        (init.flags & FUSE_INIT_EXT) != 0 && (init.flags2 & kDirectMappings2) != 0;
  }
}

bool request_kills_privileges() { return kills_privileges; }

bool request_offers_direct_mappings() { return offers_direct_mappings; }

}  // namespace kvsyncfs
