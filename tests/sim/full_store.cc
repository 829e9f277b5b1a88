#include "tests/sim/full_store.h"

#include <algorithm>
#include <cstring>
#include <optional>

namespace kvsyncfs {
namespace {

constexpr std::uint64_t kWritePagesMax = 4;

void fill_page(std::byte* page, std::uint64_t number, std::uint32_t version) {
  const std::uint64_t word = (number + 1) << 32 | version;
  for (std::size_t at = 0; at < kPageSize; at += sizeof word)
    std::memcpy(page + at, &word, sizeof word);
}

/// The version of a page's bytes; nothing where they are none.
std::optional<std::uint32_t> version_of(const std::byte* page, std::uint64_t number) {
  std::uint64_t word = 0;
  std::memcpy(&word, page, sizeof word);
  if (std::memcmp(page, page + sizeof word, kPageSize - sizeof word) != 0) return std::nullopt;
  if (word == 0) return 0;
  if (word >> 32 != number + 1) return std::nullopt;
  return static_cast<std::uint32_t>(word);
}

}  // namespace

FullStore::FullStore(std::unique_ptr<SimDisk> disk, std::uint64_t seed)
    : disk_(std::move(disk)), random_(seed), source_(seed) {
  options_.store = EngineWorld::kStore;
  options_.cache_size_bytes = 1 << 20;
  options_.write_buffer_bytes = 1 << 20;
  options_.warn = [this](std::string_view text) {
    const bool is_torn_tail = text.ends_with("are dropped");  // as a crash leaves it
    if (!disk_->stopped() && problem_.empty() && !is_torn_tail)
      problem_ = "warning: " + std::string(text);
  };
}

FullStore::~FullStore() {
  options_.warn = [](auto) {};
  if (disk_) disk_->stop_at(disk_->changes() + 1);
}

bool FullStore::did(const char* call, const Status& status) {
  if (status && problem_.empty()) return true;
  if (!disk_->stopped() && problem_.empty())
    problem_ = std::string(call) + ": " + describe(status.error());
  return false;
}

bool FullStore::open() {
  auto opened = Engine::open(*disk_, clock_, source_, options_);
  if (!did("open", opened ? Status{} : Status(opened.error()))) return false;
  engine_ = std::move(*opened);
  auto entry = engine_->lookup(kRootInode, "file");
  if (!entry && newest_.empty()) {
    NewNode node;
    node.mode = 0100644;
    entry = engine_->create(kRootInode, "file", node);
    if (entry) entry->attributes.size = 0;
    if (!did("sync", engine_->sync_all())) return false;
  }
  if (!did("lookup", entry ? Status{} : Status(entry.error()))) return false;
  file_ = entry->inode;
  const std::uint64_t found_pages = entry->attributes.size / kPageSize;
  const auto durable_end = std::find(durable_.begin(), durable_.end(), 0u);
  if (entry->attributes.size % kPageSize != 0 || found_pages > newest_.size() ||
      found_pages < static_cast<std::uint64_t>(durable_end - durable_.begin()))
    problem_ = "a size that the file never had since the last sync";
  newest_.resize(found_pages);
  durable_.resize(found_pages);
  return verify();
}

bool FullStore::verify() {
  AlignedBuffer buffer(64 * kPageSize);
  for (std::uint64_t page = 0; page < newest_.size() && problem_.empty(); page += 64) {
    const auto count = std::min<std::uint64_t>(64, newest_.size() - page);
    const auto read =
        engine_->read(file_, page * kPageSize, buffer.bytes().first(count * kPageSize));
    if (!did("read", read ? Status{} : Status(read.error()))) return false;
    for (std::uint64_t i = 0; i < count; ++i) {
      const auto version = version_of(buffer.data() + i * kPageSize, page + i);
      if (!version || *version < durable_[page + i] || *version > newest_[page + i])
        problem_ = "page " + std::to_string(page + i) + ": version " +
                   (version ? std::to_string(*version) : "none") + ", durable " +
                   std::to_string(durable_[page + i]) + ", newest " +
                   std::to_string(newest_[page + i]);
      // What is there now is what the next crash may not go behind, once it is synced.
      else
        newest_[page + i] = *version;
    }
  }
  return problem_.empty();
}

bool FullStore::write(std::uint64_t page, std::uint64_t count, Code* refused) {
  AlignedBuffer buffer(count * kPageSize);
  if (newest_.size() < page + count) {
    newest_.resize(page + count);
    durable_.resize(page + count);
  }
  for (std::uint64_t i = 0; i < count; ++i)
    fill_page(buffer.data() + i * kPageSize, page + i, ++newest_[page + i]);
  const Status written = engine_->write(file_, page * kPageSize, buffer.bytes());
  if (!written) {
    for (std::uint64_t i = 0; i < count; ++i) --newest_[page + i];
    while (!newest_.empty() && newest_.back() == 0) {
      newest_.pop_back();
      durable_.pop_back();
    }
    if (refused && !disk_->stopped()) {
      *refused = written.error().code;
      return false;
    }
  }
  return did("write", written);
}

bool FullStore::sync() {
  if (!did("sync", engine_->sync(file_))) return false;
  durable_ = newest_;
  return true;
}

bool FullStore::fill(unsigned percent) {
  const auto space = engine_->space();
  if (!did("space", space ? Status{} : Status(space.error()))) return false;
  const std::uint64_t pages = space->total_bytes / 100 * percent / kPageSize;
  while (newest_.size() < pages)
    if (!write(newest_.size(), std::min<std::uint64_t>(16, pages - newest_.size()))) return false;
  return sync();
}

bool FullStore::fill_up() {
  Code refused = Code::kInvalid;
  std::uint64_t count = 16;
  for (;;) {
    if (write(newest_.size(), count, &refused)) continue;
    if (disk_->stopped()) return false;
    if (refused != Code::kNoSpace) problem_ = "refused otherwise than for want of space";
    if (!problem_.empty() || count == 1) return problem_.empty();
    count = 1;
  }
}

bool FullStore::overwrite(int writes) {
  for (int i = 0; i < writes; ++i) {
    const std::uint64_t count = 1 + random_.below(kWritePagesMax);
    if (!write(random_.below(newest_.size() - count + 1), count)) return false;
    if (random_.one_in(20) && !sync()) return false;
    if (random_.one_in(10)) {
      clock_.advance(random_.one_in(30) ? 61'000'000'000 : 500'000'000);
      engine_->run_background();
      if (disk_->stopped() || !problem_.empty()) return false;
    }
  }
  return true;
}

bool FullStore::empty() {
  if (!did("unlink", engine_->unlink(kRootInode, "file"))) return false;
  if (!did("sync", engine_->sync_all())) return false;
  const auto space = engine_->space();
  if (engine_->counters().live_bytes != 0 || !space || space->free_bytes != space->total_bytes)
    problem_ = "the space of a removed file is not back";
  newest_.clear();
  durable_.clear();
  return problem_.empty();
}

bool FullStore::close() {
  if (!did("close", engine_->close())) return false;
  durable_ = newest_;
  engine_.reset();
  return true;
}

void FullStore::crash(std::uint64_t seed) {
  auto left = disk_->after_crash(seed);
  kill();
  disk_ = std::move(left);
}

void FullStore::kill() {
  if (!disk_->stopped()) disk_->stop_at(disk_->changes() + 1);
  engine_.reset();
  disk_->kill();
}

std::unique_ptr<FullStore> FullStore::copy(std::uint64_t seed) const {
  auto other = std::make_unique<FullStore>(disk_->after_crash(0), seed);
  other->newest_ = newest_;
  other->durable_ = durable_;
  return other;
}

}  // namespace kvsyncfs
