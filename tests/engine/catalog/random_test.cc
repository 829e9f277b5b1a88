// Random histories: a model of names and bytes beside the catalog, a second catalog that replays,
// and fsck now and then. The same seed gives the same history.
#include <algorithm>
#include <map>
#include <random>
#include <vector>

#include "tests/engine/catalog/catalog_fixture.h"

namespace kvsyncfs {
namespace {

constexpr std::uint64_t kBytesMax = 400;  // of a file

/// Where one byte of a file comes from. Segment 0 with `reserved`: fallocated; neither: a hole.
struct Source {
  SegmentId segment;
  std::uint64_t offset = 0;
  bool reserved = false;
  bool operator==(const Source&) const = default;
};

class History {
 public:
  explicit History(std::uint64_t seed) : random_(seed) {
    directories_.push_back(kRootInode);
    open_segment();
  }

  void step() {
    static constexpr void (History::*kSteps[])() = {
        &History::create,       &History::make_directory, &History::link,    &History::unlink,
        &History::rename,       &History::write,          &History::write,   &History::write_many,
        &History::cut,          &History::allocate,       &History::clone,   &History::move,
        &History::open_segment, &History::delete_segment, &History::reclaim, &History::set_xattr};
    (this->*kSteps[below(std::size(kSteps))])();
  }

  void expect_model() {
    for (const auto& [id, bytes] : files_) expect_bytes(id, bytes);
    for (InodeId d : directories_) {
      std::map<std::string, InodeId> listed, wanted;
      for (const Dentry& e : catalog->list(d, 0, 10000).value()) listed[e.name] = e.inode;
      for (const auto& [place, inode] : names_)
        if (place.first == d) wanted[place.second] = inode;
      EXPECT_EQ(listed, wanted);
    }
    EXPECT_EQ(catalog.problems(), std::vector<std::string>{});
  }

  TestCatalog catalog;

 private:
  using Place = std::pair<InodeId, std::string>;

  std::uint64_t below(std::uint64_t n) { return random_() % n; }
  template <typename T>
  const T& any(const std::vector<T>& items) {
    return items[below(items.size())];
  }
  Place place() { return {any(directories_), std::string(1, static_cast<char>('a' + below(8)))}; }
  InodeId any_file() {
    if (files_.empty()) return {999};
    return std::next(files_.begin(), static_cast<std::ptrdiff_t>(below(files_.size())))->first;
  }

  void create() {
    Place p = place();
    CommandResult r = catalog.run(catalog.creation(p.first, p.second, kRegular | 0644));
    ASSERT_EQ(r.status.has_value(), !names_.contains(p));
    if (!r.status) return;
    names_[p] = r.inode;
    files_[r.inode].assign(kBytesMax, Source{});
  }
  void make_directory() {
    Place p = place();
    CommandResult r = catalog.run(catalog.creation(p.first, p.second, kDirectory | 0755));
    ASSERT_EQ(r.status.has_value(), !names_.contains(p));
    if (!r.status) return;
    names_[p] = r.inode;
    directories_.push_back(r.inode);
  }
  void link() {
    Place p = place();
    InodeId id = any_file();
    if (catalog.run(LinkCommand{id, p.first, p.second, catalog.now()}).status) names_[p] = id;
  }
  void unlink() {
    Place p = place();
    const bool directory = below(2) == 0;
    CommandResult r = catalog.run(UnlinkCommand{p.first, p.second, directory, catalog.now()});
    if (!r.status) return;
    names_.erase(p);
    if (directory) std::erase(directories_, r.inode);
    if (r.orphaned) orphans_.push_back(r.inode);
  }
  void rename() {
    Place from = place(), to = place();
    auto mode = static_cast<RenameMode>(below(3));
    CommandResult r = catalog.run(
        RenameCommand{from.first, from.second, to.first, to.second, mode, catalog.now()});
    if (!r.status) return;
    auto source = names_.find(from), target = names_.find(to);
    ASSERT_NE(source, names_.end());
    if (target != names_.end() && source->second == target->second) return;
    if (mode == RenameMode::kExchange) {
      std::swap(source->second, target->second);
      return;
    }
    if (r.orphaned) {
      std::erase(directories_, r.replaced);
      orphans_.push_back(r.replaced);
    }
    names_[to] = r.inode;
    names_.erase(from);
  }

  Extent fresh_extent() {
    std::uint64_t offset = below(kBytesMax - 1);
    std::uint64_t length = 1 + below(std::min<std::uint64_t>(60, kBytesMax - offset));
    Extent e{offset, length, any(segments_), next_offset_};
    next_offset_ += length + below(3);
    return e;
  }
  void fill(std::vector<Source>& bytes, const Extent& e) {
    for (std::uint64_t i = 0; i < e.length; ++i)
      bytes[e.file_offset + i] = {e.segment, e.segment_offset + i, false};
  }
  void write_extents(std::size_t count) {
    std::vector<Extent> extents;
    for (std::size_t i = 0; i < count; ++i) extents.push_back(fresh_extent());
    InodeId id = any_file();
    if (!catalog.run(catalog.write(id, extents)).status) return;
    for (const Extent& e : extents) fill(files_[id], e);
  }
  void write() { write_extents(1); }
  void write_many() { write_extents(2 + below(5)); }
  void cut() {
    InodeId id = any_file();
    std::uint64_t size = below(kBytesMax);
    std::uint64_t old = files_.contains(id) ? catalog.inode(id).size : 0;
    if (!catalog.run(catalog.resize(id, size)).status || size > old) return;
    for (std::uint64_t i = size; i < kBytesMax; ++i) files_[id][i] = {};
  }
  void allocate() {
    InodeId id = any_file();
    std::uint64_t offset = below(kBytesMax - 1), length = 1 + below(kBytesMax - offset);
    auto mode = static_cast<AllocateMode>(below(5));
    if (!catalog.run(AllocateCommand{id, offset, length, mode, catalog.now()}).status) return;
    for (std::uint64_t i = offset; i < offset + length; ++i) {
      Source& s = files_[id][i];
      const bool hole = s == Source{};
      if (mode == AllocateMode::kPunchHole) s = {};
      if (mode >= AllocateMode::kZeroRange || (mode <= AllocateMode::kReserveKeepSize && hole))
        s = {{}, 0, true};
    }
  }
  void clone() {
    CloneRangeCommand c{any_file(),       any_file(), below(kBytesMax),
                        below(kBytesMax), 0,          catalog.now()};
    c.length = 1 + below(kBytesMax - std::max(c.source_offset, c.target_offset));
    if (!catalog.run(c).status) return;
    for (std::uint64_t i = 0; i < c.length; ++i) {
      Source s = files_[c.source][c.source_offset + i];
      files_[c.target][c.target_offset + i] = s.reserved ? Source{} : s;
    }
  }
  void move() {
    SegmentId from = any(segments_), to = any(segments_);
    auto live = catalog->segment_extents(from, 0, 1 + below(6)).value();
    MoveExtentsCommand c;
    for (const auto& [id, e] : live) {
      c.moves.push_back({id, e, to, next_offset_});
      next_offset_ += e.length;
    }
    if (!c.moves.empty() && below(3) == 0) c.moves.push_back(c.moves.front());
    CommandResult r = catalog.run(c);
    ASSERT_TRUE(r.status);
    std::uint64_t moved = 0;
    for (const auto& m : c.moves) {
      for (std::uint64_t i = 0; i < m.from.length; ++i) {
        Source& s = files_[m.inode][m.from.file_offset + i];
        if (s != Source{m.from.segment, m.from.segment_offset + i, false}) continue;
        s = {m.to_segment, m.to_offset + i, false};
        ++moved;
      }
    }
    EXPECT_EQ(r.moved_bytes, moved);
  }
  void open_segment() {
    if (segments_.size() < 6) segments_.push_back(catalog.segment());
  }
  void delete_segment() {
    if (segments_.size() < 2) return;
    SegmentId id = any(segments_);
    catalog.run(SealSegmentCommand{id, std::uint64_t{1} << 40});
    CommandResult r = catalog.run(DeleteSegmentCommand{id});
    if (r.status) std::erase(segments_, id);
  }
  void reclaim() {
    if (orphans_.empty()) return;
    InodeId id = any(orphans_);
    ASSERT_TRUE(catalog.run(ReclaimCommand{id}).status);
    std::erase(orphans_, id);
    files_.erase(id);
  }
  void set_xattr() {
    catalog.run(catalog.set_xattr(any_file(), "user." + std::to_string(below(4)), "value"));
    catalog.run(RemoveXattrCommand{any_file(), "user." + std::to_string(below(4)), catalog.now()});
  }

  void expect_bytes(InodeId id, const std::vector<Source>& bytes) {
    std::vector<Source> now(kBytesMax);
    for (const Extent& e : catalog.extents(id))
      for (std::uint64_t i = 0; i < e.length; ++i)
        now.at(e.file_offset + i) = e.segment == kNoSegment
                                        ? Source{{}, 0, true}
                                        : Source{e.segment, e.segment_offset + i, false};
    EXPECT_EQ(now == bytes, true) << "inode " << id.value;
  }

  std::mt19937_64 random_;
  std::vector<InodeId> directories_, orphans_;
  std::vector<SegmentId> segments_;
  std::map<Place, InodeId> names_;
  std::map<InodeId, std::vector<Source>> files_;
  std::uint64_t next_offset_ = 0;
};

class CatalogRandom : public ::testing::TestWithParam<std::uint64_t> {};

TEST_P(CatalogRandom, FollowsTheModelAndReplaysToTheSameBytes) {
  History history(GetParam());
  for (int round = 0; round < 5; ++round) {
    for (int i = 0; i < 300 && !::testing::Test::HasFatalFailure(); ++i) history.step();
    history.expect_model();
    if (round % 2 == 0) history.catalog.checkpoint();
  }
  const std::uint32_t digest = history.catalog.digest();
  const CatalogTotals totals = history.catalog->totals();

  TestCatalog second;
  for (const Transaction& t : history.catalog.log()) second.apply(t.commands);
  EXPECT_EQ(second.digest(), digest);

  history.catalog.reopen();
  history.catalog.replay();
  EXPECT_EQ(history.catalog.digest(), digest);
  EXPECT_EQ(history.catalog->totals().live_bytes, totals.live_bytes);
  EXPECT_EQ(history.catalog->totals().reserved_bytes, totals.reserved_bytes);
  EXPECT_EQ(history.catalog->totals().inodes, totals.inodes);
  history.expect_model();
}

INSTANTIATE_TEST_SUITE_P(Seeds, CatalogRandom, ::testing::Range<std::uint64_t>(1, 9));

}  // namespace
}  // namespace kvsyncfs
