// The records of a catalog at one position, as they travel to another node, and a catalog made of
// them. A piece is whole records in key order, each u32 size of the key, u32 size of the value,
// key, value; whoever carries a piece sees to its checksum.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "engine/base/error.h"
#include "engine/base/ids.h"
#include "engine/catalog/catalog.h"
#include "engine/env/disk.h"

namespace kvsyncfs {

/// Stays as it is while the catalog goes on; goes before the catalog does. Thread: any.
class CatalogSnapshot {
 public:
  virtual ~CatalogSnapshot() = default;
  /// All records are those that the catalog had when this was applied, and nothing later.
  virtual Position position() const = 0;
  virtual std::uint64_t estimated_records() const = 0;
  /// Records whose keys come after `key` (empty: from the first), of `size_max` bytes together or
  /// one that is larger; empty: there are none. Errors: kIo, kCorrupt.
  virtual Result<std::string> records_after(std::string_view key, std::size_t size_max) const = 0;
};

/// Makes a catalog from the pieces of a snapshot. It is one only after finish(): what is there
/// before, or after a crash, is of no use. Thread: one.
class CatalogBuilder {
 public:
  virtual ~CatalogBuilder() = default;
  /// `options.directory` is not there or empty. Errors: kExists, kNoSpace, kIo.
  static Result<std::unique_ptr<CatalogBuilder>> make(Disk& disk, const CatalogOptions& options);

  /// Pieces in their order. Errors: kCorrupt (torn, or not in the order of keys), kNoSpace, kIo.
  virtual Status add(std::string_view piece) = 0;
  /// Of the last record: what to ask for next.
  virtual const std::string& last_key() const = 0;
  virtual std::uint64_t records() const = 0;
  /// Everything durable, and opened once as a catalog. Returns its position. Errors: kCorrupt (no
  /// whole catalog), kNoSpace, kIo.
  virtual Result<Position> finish() = 0;
};

struct CatalogLook {
  Position applied;      ///< up to there it has the log
  NodeId greatest_node;  ///< of those that its sessions and segments name
};
/// Of a catalog that nobody has open; changes nothing. Errors: those of Catalog::open; kCorrupt (it
/// ends within an entry).
Result<CatalogLook> look_at_catalog(Disk& disk, CatalogOptions options);

/// A catalog that nobody has open goes on behind a later position, where all sessions have ended,
/// as if that were an entry of the log; durable when it returns. Errors: those of Catalog::open;
/// kCorrupt (it ends within an entry), kInvalid (it is there or beyond), kNoSpace.
Status move_catalog(Disk& disk, const CatalogOptions& options, Position position);

/// Removes what is in the folder, and the folder; nothing happens where there is none. Errors:
/// those of Disk.
Status remove_catalog(Disk& disk, const std::string& directory);

}  // namespace kvsyncfs
