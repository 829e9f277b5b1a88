// The generations of a volume's log. A log begins anew, with the catalog of one node, when etcd's
// data was lost or put back. ARCHITECTURE.md, "A log begins anew with one node's catalog". Layouts:
// kvsyncfs-format(5), "Cluster". Pure. Thread: any.
//
// Invariants: no two beginnings have the same number, though nobody counts them together: half of
// its bits are drawn. No position is given in two generations, as long as fewer than
// kPositionsPerGeneration entries come in one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "engine/base/error.h"
#include "engine/base/ids.h"

namespace kvsyncfs {

inline constexpr std::uint64_t kFirstGeneration = 1;
inline constexpr std::uint64_t kPositionsPerGeneration = 1ull << 36;
inline constexpr std::string_view kGenerationFile = "generation";
inline constexpr std::size_t kGenerationFileSize = 48;  ///< bytes

/// The number of a log that follows those of `former`; `random`: 64 bits.
std::uint64_t generation_after(std::uint64_t former, std::uint64_t random);
/// For people: 1, 2, ... of a number.
std::uint64_t generation_count(std::uint64_t generation);
/// The position before its first entry, beyond all of the generation that has `newest`.
Position generation_base(Position newest, std::uint64_t generation);
/// No life of a node in an earlier generation had a greater incarnation.
std::uint64_t incarnations_before(std::uint64_t generation);

/// File STORE/generation: which log the catalog follows, and one that is being begun. A store
/// without the file follows the first one.
struct StoreGeneration {
  std::uint64_t volume_tag = 0;
  std::uint64_t generation = kFirstGeneration;
  std::uint64_t next = 0;  ///< 0: none is being begun
  Position base;           ///< of next; 0 if there is none
  /// The folder with the catalog with which next begins, 1 or 2; 0: the one that is in use.
  std::uint32_t folder = 0;
  bool operator==(const StoreGeneration&) const = default;
};
/// Exactly kGenerationFileSize bytes.
std::string encode(const StoreGeneration& state);
/// Takes the whole of `bytes`. Errors: kCorrupt (size, magic, checksum, a field out of its range),
/// kNewerFormat.
Result<StoreGeneration> decode_store_generation(std::string_view bytes);

}  // namespace kvsyncfs
