// Saved catalogs from bytes that nobody vouches for: a header that is accepted encodes to what it
// was decoded from, and no piece claims more than a piece may have.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "engine/base/bytes.h"
#include "engine/base/checksum.h"
#include "engine/format/catalog_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace kvsyncfs;
  std::string bytes(reinterpret_cast<const char*>(data), size);
  static_cast<void>(decode_catalog_file_header(bytes));
  const auto piece = catalog_piece_size(std::string_view(bytes).substr(0, 16), 0);
  if (piece && *piece > kCatalogPieceSizeMax) std::abort();
  if (bytes.size() < 4) return 0;
  const std::uint32_t checksum = crc32c(as_bytes(std::string_view(bytes).substr(4)));
  for (std::size_t i = 0; i < 4; ++i) bytes[i] = static_cast<char>(checksum >> (8 * i));
  const Result<CatalogFileHeader> decoded = decode_catalog_file_header(bytes);
  if (decoded && encode(*decoded) != bytes) std::abort();
  return 0;
}
