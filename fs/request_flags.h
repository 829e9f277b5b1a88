// What the kernel says in a request and libfuse 3.14 does not hand to the
// handler: whether this write, truncation or open has to take the set-user-ID
// and set-group-ID bits away, and what of newer kernels INIT offers.
//
// The thread that reads a request from the device also runs its handler, so the
// words of the last request read by a thread are those of the handler it runs.
// Thread: any, each sees its own.
#pragma once

#include <cstddef>
#include <cstdint>

namespace kvsyncfs {

/// Remembers the request of `size` bytes that this thread has just read from
/// /dev/fuse.
void note_request(const void* request, std::size_t size);

/// The kernel asks this thread's request to clear the bits: its caller lacks
/// CAP_FSETID.
bool request_kills_privileges();

/// This thread's request is an INIT whose kernel maps files also where they are opened to bypass
/// its pages, and keeps both in step.
bool request_offers_direct_mappings();
/// Its bit in `flags2` of INIT, which linux/fuse.h has since 6.6.
inline constexpr std::uint32_t kDirectMappings2 = 1u << 4;

}  // namespace kvsyncfs
