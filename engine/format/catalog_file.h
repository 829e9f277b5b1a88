// A catalog that was saved to a file, for the day when the volume is to be put back to it.
// kvsyncfs-format(5), "Saved catalog".
//
// A header, pieces of records as they travel between nodes, and a piece without bytes that says
// how many came before it. Each piece's checksum begins with that of the header, so that no piece
// passes for one of another file, or for one of another place. Pure. Thread: any.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "engine/base/error.h"
#include "engine/base/ids.h"
#include "engine/env/clock.h"
#include "engine/format/superblock.h"

namespace kvsyncfs {

inline constexpr std::size_t kCatalogFileHeaderSize = 128;  ///< bytes
inline constexpr std::size_t kCatalogPieceHeaderSize = 16;  ///< bytes
inline constexpr std::size_t kCatalogPieceSizeMax = 4u << 20;

struct CatalogFileHeader {
  Uuid volume{};
  std::uint64_t generation = 0;  ///< of the log, when it was saved
  Position position;             ///< of the catalog, and of its hold
  Timestamp taken;
  std::string hold;  ///< its name, as is_cluster_name() says
  bool operator==(const CatalogFileHeader&) const = default;
};

/// Exactly kCatalogFileHeaderSize bytes.
std::string encode(const CatalogFileHeader& header);
/// Errors: kCorrupt (not such a file, or damaged), kNewerFormat.
Result<CatalogFileHeader> decode_catalog_file_header(std::string_view bytes);

/// `header`: the file's, encoded; `number`: from 0. Requires: at most kCatalogPieceSizeMax bytes.
std::string catalog_piece_header(std::string_view header, std::uint64_t number,
                                 std::string_view records);
/// How many bytes of records follow; 0: the file ends. Errors: kCorrupt (not the piece of that
/// number).
Result<std::size_t> catalog_piece_size(std::string_view piece_header, std::uint64_t number);
/// Whether piece header and records are those that were written.
bool is_catalog_piece(std::string_view header, std::string_view piece_header,
                      std::string_view records);

}  // namespace kvsyncfs
