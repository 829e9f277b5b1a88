#include "engine/format/log_generation.h"

#include <cassert>

#include "engine/base/checksum.h"
#include "engine/format/codec.h"

namespace kvsyncfs {
namespace {

constexpr int kDrawnBits = 32;
constexpr std::uint64_t kDrawnMask = (1ull << kDrawnBits) - 1;

constexpr std::string_view kMagic = "KVGN";
constexpr std::uint32_t kVersion = 1, kVersionWithFolder = 2;
constexpr std::size_t kCheckedOffset = 4;  ///< the checksum covers everything from here on

bool in_range(const StoreGeneration& state) {
  return state.generation != 0 && state.next != state.generation &&
         (state.next != 0) == (state.base.value != 0) && state.folder <= 2 &&
         (state.folder == 0 || state.next != 0);
}

}  // namespace

std::uint64_t generation_after(std::uint64_t former, std::uint64_t random) {
  return (((former >> kDrawnBits) + 1) << kDrawnBits) | (random & kDrawnMask);
}

std::uint64_t generation_count(std::uint64_t generation) { return (generation >> kDrawnBits) + 1; }

Position generation_base(Position newest, std::uint64_t generation) {
  const std::uint64_t rows = newest.value / kPositionsPerGeneration + 1;
  return {rows * kPositionsPerGeneration + (generation & kDrawnMask)};
}

std::uint64_t incarnations_before(std::uint64_t generation) {
  return generation >> kDrawnBits << kDrawnBits;
}

std::string encode(const StoreGeneration& state) {
  assert(in_range(state));
  std::string body;
  Writer writer(body);
  writer.raw(kMagic);
  writer.u32(state.folder == 0 ? kVersion : kVersionWithFolder);
  writer.u32(state.folder);
  writer.u64(state.volume_tag);
  writer.u64(state.generation);
  writer.u64(state.next);
  writer.u64(state.base.value);
  std::string bytes;
  Writer(bytes).u32(crc32c(as_bytes(body)));
  return bytes + body;
}

Result<StoreGeneration> decode_store_generation(std::string_view bytes) {
  const auto bad = [](const char* why) { return Error(Code::kCorrupt, why); };
  if (bytes.size() != kGenerationFileSize) return bad("generation of the log: bad size");
  Reader reader(bytes);
  const std::uint32_t checksum = reader.u32();
  if (reader.raw(kMagic.size()) != kMagic) return bad("generation of the log: no magic");
  if (crc32c(as_bytes(bytes.substr(kCheckedOffset))) != checksum)
    return bad("generation of the log: bad checksum");
  const std::uint32_t version = reader.u32();
  if (version != kVersion && version != kVersionWithFolder)
    return Error(Code::kNewerFormat, "generation of the log");
  StoreGeneration state;
  state.folder = reader.u32();
  state.volume_tag = reader.u64();
  state.generation = reader.u64();
  state.next = reader.u64();
  state.base.value = reader.u64();
  if (!reader.done() || !in_range(state) || (version == kVersion) != (state.folder == 0))
    return bad("generation of the log: field out of range");
  return state;
}

}  // namespace kvsyncfs
