#include "engine/format/lock_table.h"

#include "engine/format/codec.h"

namespace kvsyncfs {

namespace {

constexpr std::uint8_t kVersion = 1;
constexpr std::size_t kLockBytes = 37, kWaitBytes = 45;

void put(Writer& w, const FileLock& lock) {
  w.u64(lock.owner.session.value);
  w.u64(lock.owner.number);
  w.u8(static_cast<std::uint8_t>(lock.type));
  w.u64(lock.start);
  w.u64(lock.end);
  w.u32(lock.pid);
}

FileLock get(Reader& r) {
  FileLock lock;
  lock.owner.session.value = r.u64();
  lock.owner.number = r.u64();
  const std::uint8_t type = r.u8();
  lock.start = r.u64();
  lock.end = r.u64();
  lock.pid = r.u32();
  if (type != 1 && type != 2) r.fail();
  lock.type = static_cast<LockType>(type);
  if (lock.start > lock.end || lock.end > kLockEndMax) r.fail();
  return lock;
}

bool follows(const FileLock& lock, const FileLock& before) {
  return before.owner < lock.owner || (before.owner == lock.owner && before.end < lock.start);
}

}  // namespace

std::string encode(const LockTable& table) {
  std::string out;
  Writer w(out);
  w.u8(kVersion);
  w.u32(static_cast<std::uint32_t>(table.held.size()));
  for (const FileLock& lock : table.held) put(w, lock);
  w.u32(static_cast<std::uint32_t>(table.waits.size()));
  for (const LockWait& wait : table.waits) {
    w.u64(wait.id);
    put(w, wait.wanted);
  }
  return out;
}

Result<LockTable> decode_lock_table(std::string_view bytes) {
  Reader r(bytes);
  LockTable table;
  if (r.u8() != kVersion) r.fail();
  const std::uint32_t held = r.u32();
  if (held > r.left() / kLockBytes) r.fail();
  for (std::uint32_t i = 0; r.ok() && i < held; ++i) {
    table.held.push_back(get(r));
    if (i > 0 && !follows(table.held[i], table.held[i - 1])) r.fail();
  }
  const std::uint32_t waits = r.u32();
  if (waits > r.left() / kWaitBytes) r.fail();
  for (std::uint32_t i = 0; r.ok() && i < waits; ++i) {
    const std::uint64_t id = r.u64();
    table.waits.push_back({id, get(r)});
    if (i > 0 && id <= table.waits[i - 1].id) r.fail();
  }
  if (!r.done() || table.empty()) return Error{Code::kCorrupt, "lock table: bad field"};
  return table;
}

}  // namespace kvsyncfs
