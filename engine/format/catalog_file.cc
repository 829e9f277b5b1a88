#include "engine/format/catalog_file.h"

#include <cassert>

#include "engine/base/checksum.h"
#include "engine/format/cluster_config.h"
#include "engine/format/codec.h"
#include "engine/format/timestamp_codec.h"

namespace kvsyncfs {
namespace {

constexpr std::string_view kMagic = "KVSC";
constexpr std::uint32_t kVersion = 1;
constexpr std::size_t kCheckedOffset = 4;  ///< the checksums cover what follows them
constexpr std::size_t kNameRoom = 64;

bool in_range(const CatalogFileHeader& header) {
  return header.generation != 0 && header.position.value != 0 && is_cluster_name(header.hold);
}

std::uint32_t piece_checksum(std::string_view header, std::string_view checked,
                             std::string_view records) {
  const std::uint32_t first = crc32c(as_bytes(header.substr(0, kCheckedOffset)));
  return crc32c(as_bytes(records), crc32c(as_bytes(checked), first));
}

}  // namespace

std::string encode(const CatalogFileHeader& header) {
  assert(in_range(header));
  std::string body;
  Writer writer(body);
  writer.raw(kMagic);
  writer.u32(kVersion);
  writer.u32(static_cast<std::uint32_t>(header.hold.size()));
  writer.raw({reinterpret_cast<const char*>(header.volume.data()), header.volume.size()});
  writer.u64(header.generation);
  writer.u64(header.position.value);
  put_time(writer, header.taken);
  writer.u32(0);
  writer.raw(header.hold);
  writer.raw(std::string(kNameRoom - header.hold.size(), '\0'));
  std::string bytes;
  Writer(bytes).u32(crc32c(as_bytes(body)));
  return bytes + body;
}

Result<CatalogFileHeader> decode_catalog_file_header(std::string_view bytes) {
  const auto bad = [](const char* why) { return Error(Code::kCorrupt, why); };
  if (bytes.size() != kCatalogFileHeaderSize) return bad("saved catalog: cut off in its header");
  Reader reader(bytes);
  const std::uint32_t checksum = reader.u32();
  if (reader.raw(kMagic.size()) != kMagic) return bad("not a saved catalog");
  if (crc32c(as_bytes(bytes.substr(kCheckedOffset))) != checksum)
    return bad("saved catalog: its header has a bad checksum");
  if (reader.u32() != kVersion) return Error(Code::kNewerFormat, "saved catalog");
  const std::uint32_t name_size = reader.u32();
  CatalogFileHeader header;
  const std::string_view uuid = reader.raw(header.volume.size());
  for (std::size_t i = 0; i < uuid.size(); ++i)
    header.volume[i] = static_cast<Uuid::value_type>(uuid[i]);
  header.generation = reader.u64();
  header.position.value = reader.u64();
  header.taken = get_time(reader);
  const std::uint32_t zero = reader.u32();
  const std::string_view name = reader.raw(kNameRoom);
  if (!reader.done() || name_size > kNameRoom || zero != 0 ||
      name.find_first_not_of('\0', name_size) != std::string_view::npos)
    return bad("saved catalog: a field of its header is out of range");
  header.hold = name.substr(0, name_size);
  if (!in_range(header)) return bad("saved catalog: a field of its header is out of range");
  return header;
}

std::string catalog_piece_header(std::string_view header, std::uint64_t number,
                                 std::string_view records) {
  assert(records.size() <= kCatalogPieceSizeMax);
  std::string checked;
  Writer writer(checked);
  writer.u32(static_cast<std::uint32_t>(records.size()));
  writer.u64(number);
  std::string bytes;
  Writer(bytes).u32(piece_checksum(header, checked, records));
  return bytes + checked;
}

Result<std::size_t> catalog_piece_size(std::string_view piece_header, std::uint64_t number) {
  Reader reader(piece_header);
  reader.u32();
  const std::size_t size = reader.u32();
  const std::uint64_t told = reader.u64();
  if (!reader.done()) return Error(Code::kCorrupt, "saved catalog: cut off");
  if (told != number || size > kCatalogPieceSizeMax)
    return Error(Code::kCorrupt, "saved catalog: damaged");
  return size;
}

bool is_catalog_piece(std::string_view header, std::string_view piece_header,
                      std::string_view records) {
  Reader reader(piece_header);
  return reader.u32() == piece_checksum(header, piece_header.substr(kCheckedOffset), records);
}

}  // namespace kvsyncfs
