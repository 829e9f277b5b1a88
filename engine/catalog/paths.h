// Paths of inodes, so that fsck can name a file by more than its number. Thread: any.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "engine/catalog/tables.h"

namespace kvsyncfs {

/// `text` with its control bytes and backslashes written as \xNN: names go to terminals and logs.
std::string printable(std::string_view text);

class CatalogPaths {
 public:
  /// One pass over all entries; needs memory for the names of the directories. Entries that do not
  /// decode are passed over. Errors: kIo.
  static Result<CatalogPaths> load(const Tables& tables, const std::unordered_set<InodeId>& wanted);

  /// Printable, from the root of the volume ("/a/b"); of a file with several names one of them.
  /// Empty: it was not wanted, or no chain of entries leads to it.
  std::string of(InodeId id) const;

 private:
  struct Name {
    InodeId parent;
    std::string name;
  };
  std::unordered_map<InodeId, Name> names_;
};

}  // namespace kvsyncfs
