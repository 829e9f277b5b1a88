// Proof that a node knows the secret of the volume, without showing it. Pure. Thread: any.
#pragma once

#include <string_view>

#include "engine/format/frame.h"
#include "engine/format/superblock.h"

namespace kvsyncfs {

/// Each side proves in its own words, so that a proof cannot be sent back to its maker.
enum class Side : unsigned char { kDialer, kAcceptor };

/// HMAC-SHA256 with the secret over the side's words and the two heads as they were sent: volume,
/// both nodes, both incarnations, both nonces, both versions. Source: kvsyncfs-protocol(7),
/// "Handshake".
Proof make_proof(std::string_view secret, Side side, std::string_view hello_head,
                 std::string_view challenge_head);

/// Takes the same time wherever they differ. `b` of another size is another proof.
bool equal_proofs(const Proof& a, std::string_view b);

/// HMAC-SHA256 with the secret over "kvsyncfs volume check" and the volume's UUID: may be shown,
/// and tells a wrong secret. Source: kvsyncfs-format(5), "Cluster".
Proof make_secret_check(std::string_view secret, const Uuid& volume);
/// Names a secret where two are known: the first 8 bytes of its check.
std::uint64_t secret_id(std::string_view secret, const Uuid& volume);

}  // namespace kvsyncfs
