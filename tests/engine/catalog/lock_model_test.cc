// Random histories of locks beside a model that knows bytes and owners and nothing of ranges.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <array>
#include <map>
#include <set>

#include "tests/engine/catalog/lock_fixture.h"

namespace kvsyncfs {
namespace {

constexpr std::size_t kBytes = 10;
using Owner = std::uint64_t;

struct Wish {
  std::uint64_t id;
  Owner owner;
  LockType type;
  std::size_t start, end;
};

/// One file: for each byte who has it how.
struct ModelFile {
  std::array<std::map<Owner, LockType>, kBytes> bytes;
  std::vector<Wish> waits;

  std::set<Owner> in_the_way(const Wish& w) const {
    std::set<Owner> owners;
    for (std::size_t b = w.start; b <= w.end; ++b)
      for (const auto& [owner, type] : bytes[b])
        if (owner != w.owner && (type == LockType::kExclusive || w.type == LockType::kExclusive))
          owners.insert(owner);
    return owners;
  }
  void set(const Wish& w) {
    for (std::size_t b = w.start; b <= w.end; ++b) bytes[b][w.owner] = w.type;
  }
  void clear(Owner owner, std::size_t start, std::size_t end) {
    for (std::size_t b = start; b <= end; ++b) bytes[b].erase(owner);
  }
  std::vector<std::uint64_t> grant() {
    std::vector<std::uint64_t> ids;
    for (std::size_t i = 0; i < waits.size();) {
      if (!in_the_way(waits[i]).empty()) {
        ++i;
        continue;
      }
      set(waits[i]);
      ids.push_back(waits[i].id);
      waits.erase(waits.begin() + static_cast<std::ptrdiff_t>(i));
      i = 0;
    }
    return ids;
  }
};

struct Model {
  std::array<ModelFile, 2> ranges;
  ModelFile flock;

  bool reaches(Owner from, Owner to, std::set<Owner>& seen) const {
    if (from == to) return true;
    if (!seen.insert(from).second) return false;
    for (const ModelFile& file : ranges)
      for (const Wish& w : file.waits)
        if (w.owner == from)
          for (const Owner next : file.in_the_way(w))
            if (reaches(next, to, seen)) return true;
    return false;
  }
  bool is_deadlock(const ModelFile& file, const Wish& w) const {
    std::set<Owner> seen;
    for (const Owner first : file.in_the_way(w))
      if (reaches(first, w.owner, seen)) return true;
    return false;
  }
};

/// What numbers from RapidCheck mean: it makes them smaller and fewer where a history fails.
class Choices {
 public:
  explicit Choices(const std::vector<std::uint8_t>& numbers) : numbers_(numbers) {}
  bool done() const { return at_ >= numbers_.size(); }
  std::size_t below(std::size_t n) { return done() ? 0 : numbers_[at_++] % n; }

 private:
  const std::vector<std::uint8_t>& numbers_;
  std::size_t at_ = 0;
};

class LockHistory : public LockTest {
 public:
  void TestBody() override {}
  void run(Choices choices) {
    while (!choices.done()) {
      step(choices);
      expect_table(model_.ranges[0], f, LockKind::kPosix);
      expect_table(model_.ranges[1], g, LockKind::kPosix);
      expect_table(model_.flock, f, LockKind::kFlock);
    }
    RC_ASSERT(catalog.problems() == std::vector<std::string>{});
    const std::uint32_t digest = catalog.digest();
    catalog.reopen();
    catalog.replay();
    RC_ASSERT(catalog.digest() == digest);
  }

 private:
  void step(Choices& choices) {
    const std::size_t which = choices.below(4), what = choices.below(12);
    const LockKind kind = which == 3 ? LockKind::kFlock : LockKind::kPosix;
    const InodeId inode = which == 1 ? g : f;
    ModelFile& file = which == 3 ? model_.flock : model_.ranges[which == 1];
    Wish w{0, choices.below(6), LockType(1 + choices.below(2)), 0, kBytes - 1};
    if (kind == LockKind::kPosix) {
      w.start = choices.below(kBytes);
      w.end = w.start + choices.below(kBytes - w.start);
    }
    if (what < 7) {
      acquire_both(file, inode, kind, w, choices.below(3) != 0);
    } else if (what < 10) {
      file.clear(w.owner, w.start, w.end);
      const auto result = release(w.owner, inode, w.start, end_of(kind, w), kind);
      RC_ASSERT(granted(result) == file.grant());
    } else if (what == 10 && !file.waits.empty()) {
      const Wish gone = file.waits[choices.below(file.waits.size())];
      std::erase_if(file.waits, [&](const Wish& other) { return other.id == gone.id; });
      RC_ASSERT(!code(cancel(gone.owner, inode, gone.id, kind)));
    } else if (what == 11) {
      end_both(choices.below(2) == 0 ? kA : kB);
    }
  }

  void acquire_both(ModelFile& file, InodeId inode, LockKind kind, Wish w, bool wait) {
    const auto result = acquire(w.owner, inode, w.type, w.start, end_of(kind, w), wait, kind);
    std::optional<Code> expected;
    if (file.in_the_way(w).empty()) {
      file.set(w);
    } else if (!wait) {
      expected = Code::kWouldBlock;
    } else if (kind == LockKind::kPosix && model_.is_deadlock(file, w)) {
      expected = Code::kDeadlock;
    } else {
      if (kind == LockKind::kFlock) file.clear(w.owner, w.start, w.end);
      w.id = result.wait;
      RC_ASSERT(w.id != 0u);
      file.waits.push_back(w);
    }
    RC_ASSERT(code(result) == expected);
    RC_ASSERT((result.wait == 0) == (w.id == 0));
    if (!expected) RC_ASSERT(granted(result) == file.grant());
  }

  void end_both(NodeId node) {
    std::vector<std::uint64_t> expected;
    const auto is_its = [&](Owner owner) { return node_of(owner) == node; };
    // The order of the files, and of a file its flocks first.
    for (ModelFile* file : {&model_.flock, &model_.ranges[0], &model_.ranges[1]}) {
      for (auto& byte : file->bytes) std::erase_if(byte, [&](auto& b) { return is_its(b.first); });
      std::erase_if(file->waits, [&](const Wish& w) { return is_its(w.owner); });
      for (const std::uint64_t id : file->grant()) expected.push_back(id);
    }
    RC_ASSERT(granted(end(node)) == expected);
    join(node);
  }

  static std::uint64_t end_of(LockKind kind, const Wish& w) {
    return kind == LockKind::kFlock ? kLockEndMax : w.end;
  }

  void expect_table(const ModelFile& file, InodeId inode, LockKind kind) {
    const LockTable now = table(inode, kind);
    std::array<std::map<Owner, LockType>, kBytes> bytes;
    for (std::size_t i = 0; i < now.held.size(); ++i) {
      const FileLock& lock = now.held[i];
      for (std::size_t b = lock.start; b <= lock.end && b < kBytes; ++b)
        RC_ASSERT(bytes[b].emplace(lock.owner.number, lock.type).second);
      if (i == 0) continue;
      const FileLock& last = now.held[i - 1];  // what touches and is alike is one
      RC_ASSERT(last.owner != lock.owner || last.type != lock.type || last.end + 1 < lock.start);
    }
    RC_ASSERT(bytes == file.bytes);
    RC_ASSERT(now.waits.size() == file.waits.size());
    for (std::size_t i = 0; i < now.waits.size(); ++i)
      RC_ASSERT(now.waits[i].id == file.waits[i].id);
  }

  Model model_;
};

RC_GTEST_PROP(LockModel, AnyHistoryOfLocksFollowsTheModel, ()) {
  const auto numbers = *rc::gen::resize(600, rc::gen::arbitrary<std::vector<std::uint8_t>>());
  LockHistory().run(Choices(numbers));
}

}  // namespace
}  // namespace kvsyncfs
