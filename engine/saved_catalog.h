// Makes a volume's catalog of one that was saved: names, attributes and extents as they were then,
// with where their segments are now. ARCHITECTURE.md, "A saved catalog holds its segments".
// Thread: one.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <unordered_set>
#include <vector>

#include "engine/catalog/catalog.h"
#include "engine/env/disk.h"
#include "engine/format/catalog_file.h"

namespace kvsyncfs {

/// What is true of the volume now, whichever catalog it goes on with.
struct PresentVolume {
  Position position;  ///< of the log's last entry
  std::map<SegmentId, SegmentRecord> segments;
  Holds holds;
};

struct RestoredCatalog {
  Position position;
  std::uint64_t records = 0;
  std::vector<std::string> lost;  ///< paths, printable, of files with bytes that are gone; in order
  std::uint64_t lost_files = 0;   ///< with those that have no path
};

/// A file with a saved catalog, from its beginning on.
class SavedCatalogFile {
 public:
  /// Errors: those of decode_catalog_file_header() and of Disk, with the path.
  static Result<std::unique_ptr<SavedCatalogFile>> open(Disk& disk, const std::string& path);

  const CatalogFileHeader& header() const { return header_; }
  std::uint64_t size_bytes() const { return size_bytes_; }
  std::uint64_t read_bytes() const { return at_; }
  /// Empty: that was all. Errors: kCorrupt (damaged, cut off, or something follows), kIo.
  Result<std::string> next_piece();

 private:
  SavedCatalogFile(std::unique_ptr<File> file, std::string path)
      : file_(std::move(file)), path_(std::move(path)) {}
  Result<std::string> read(std::size_t size);

  const std::unique_ptr<File> file_;
  const std::string path_;
  std::string encoded_header_;
  CatalogFileHeader header_;
  std::uint64_t size_bytes_ = 0, at_ = 0, pieces_ = 0;
};

/// Makes the catalog in the folder of `into`, in place of what is there; durable when it returns.
/// Segments that the volume has no more lose their files their bytes. Errors: those of next_piece()
/// and of CatalogBuilder.
Result<RestoredCatalog> restore_saved_catalog(
    Disk& disk, SavedCatalogFile& saved, const CatalogOptions& into, const PresentVolume& present,
    const std::function<void(std::uint64_t done, std::uint64_t total)>& progress);

}  // namespace kvsyncfs
