// How a simulated disk dies, and what it leaves.
#include <cassert>

#include "tests/sim/sim_disk.h"

namespace kvsyncfs {

void SimDisk::forget_faults() {
  ++generation_;
  stopped_ = false;
  stop_at_.reset();
  fail_read_.reset();
  failing_changes_.clear();
}

void SimDisk::kill() {
  std::lock_guard lock(mutex_);
  forget_faults();
}

void SimDisk::crash(std::uint64_t seed) {
  std::lock_guard lock(mutex_);
  survive(*this, seed);
  forget_faults();
}

std::unique_ptr<SimDisk> SimDisk::after_crash(std::uint64_t seed) const {
  std::lock_guard lock(mutex_);
  auto disk = std::make_unique<SimDisk>(capacity_);
  disk->survive(*this, seed);
  disk->changes_ = changes_;
  return disk;
}

void SimDisk::survive(const SimDisk& from, std::uint64_t seed) {
  SimRandom random(seed);
  Names names = from.durable_names_;
  const bool in_order = random.one_in(2);  // as a journal keeps them, or each by itself
  const std::size_t prefix = random.below(from.pending_names_.size() + 1);
  for (std::size_t i = 0; i < from.pending_names_.size(); ++i) {
    const bool kept = in_order ? i < prefix : random.one_in(2);
    if (kept) apply_name(names, from.pending_names_[i]);
  }
  drop_lost_folders(names);

  // One disk keeps most of what it had in flight, another one hardly anything.
  const std::uint64_t sector_size = random.one_in(2) ? 512 : 4096;
  const std::uint64_t lost_of_8 = random.below(9);
  for (auto& [path, node] : names) {  // in the order of names: the same for the same seed
    auto survivor = std::make_shared<Node>();
    survivor->directory = node->directory;
    survivor->durable = node->durable;
    for (const SimChange& change : node->pending) {
      if (random.below(8) >= lost_of_8) apply_some(survivor->durable, change, sector_size, random);
    }
    survivor->current = survivor->durable;
    node = std::move(survivor);
  }
  names_ = names;
  durable_names_ = std::move(names);
  pending_names_.clear();
}

void SimDisk::drop_lost_folders(Names& names) {
  for (auto it = names.begin(); it != names.end();) {  // a folder comes before what is in it
    if (has_directory(names, parent(it->first)))
      ++it;
    else
      it = names.erase(it);
  }
}

std::uint64_t SimDisk::changes() const {
  std::lock_guard lock(mutex_);
  return changes_;
}

void SimDisk::stop_at(std::uint64_t change) {
  std::lock_guard lock(mutex_);
  stop_at_ = change;
}

bool SimDisk::stopped() const {
  std::lock_guard lock(mutex_);
  return stopped_;
}

void SimDisk::fail_change(std::uint64_t change, Code code) {
  std::lock_guard lock(mutex_);
  failing_changes_[change] = code;
}

void SimDisk::fail_read(std::uint64_t count) {
  std::lock_guard lock(mutex_);
  assert(count > 0);
  fail_read_ = count;
}

void SimDisk::set_capacity(std::uint64_t bytes) {
  std::lock_guard lock(mutex_);
  capacity_ = bytes;
}

std::uint64_t SimDisk::used() const {
  std::lock_guard lock(mutex_);
  return used_bytes();
}

void SimDisk::flip(const std::string& path, std::uint64_t offset, unsigned char mask) {
  std::lock_guard lock(mutex_);
  Node& node = *names_.at(normal(path));
  assert(offset < node.current.size());
  std::byte byte;
  node.current.read(offset, {&byte, 1});
  byte ^= std::byte{mask};
  node.current.write(offset, {&byte, 1});
  // For good: no sync and no crash brings the old byte back.
  if (offset < node.durable.size()) node.durable.write(offset, {&byte, 1});
  for (SimChange& change : node.pending) {
    if (change.kind == SimChange::Kind::kWrite && offset >= change.offset &&
        offset < change.offset + change.bytes.size())
      change.bytes[offset - change.offset] = static_cast<char>(byte);
  }
}

}  // namespace kvsyncfs
