// A volume that is put back to a saved catalog, over simulated disks and a simulated etcd: what it
// has then, what refuses it, and that no crash and no fault of etcd leaves a third state.
#include "engine/cluster/etcd_access.h"
#include "engine/format/codec.h"
#include "engine/saved_catalog.h"
#include "tests/sim/reseed_fixture.h"
#include "tests/sim/seeds.h"

namespace kvsyncfs {
namespace {

const std::string kFile = "/saved";
constexpr NodeId kA{1}, kB{2}, kC{3};

/// Node a follows the log that the tests write as b, who is never seen.
class RestoreTest : public ReseedTest {
 protected:
  /// The log of etcd gets the transaction, the catalog of a with it.
  std::vector<CommandResult> change(std::vector<Command> commands, bool reaches_a = true) {
    EtcdLogOptions options;
    options.volume = "v";
    options.node = "b";
    options.generation = logs().read(deadline()).value().generation;
    options.incarnation = next_incarnation(*client_, clock_, "v", "b", options.generation).value();
    auto log = EtcdLog::open(*client_, clock_, options);
    EXPECT_TRUE(log) << describe(log.error());
    std::vector<CommandResult> results;
    Disk& disk = *nodes_["a"].disk;
    auto catalog = Catalog::open(disk, catalog_of(disk)).value();
    EXPECT_TRUE((*log)->start(catalog->applied(), [&](Position position, std::string_view entry) {
      if (reaches_a) results = catalog->apply(position, decode_transaction(entry).value()).value();
    }));
    EXPECT_TRUE((*log)->append(encode(Transaction{std::move(commands)})));
    EXPECT_TRUE((*log)->leave());
    EXPECT_TRUE(catalog->begin_checkpoint() && catalog->finish_checkpoint());
    return results;
  }
  CommandResult run(Command command) { return change({std::move(command)}).at(0); }
  InodeId file(const std::string& name, SegmentId segment) {
    CreateFilledCommand create{kRootInode, name, 0100644, 0, 0, 0, {1, 0}, {}};
    create.extents = {{0, 5000, segment, 4096}};
    return run(std::move(create)).inode;
  }
  SegmentId segment() { return run(OpenPlacedSegmentCommand{kA, {kA, kB}}).segment; }
  void seal(SegmentId segment) { run(SealSegmentCommand{segment, 12'288}); }

  /// Takes a hold of that name, and the catalog's records at its position into a file.
  void save(const std::string& name, const std::string& path = kFile) {
    run(HoldSegmentsCommand{name, {1, 0}, {2, 0}});
    Disk& disk = *nodes_["a"].disk;
    const auto catalog = Catalog::open(disk, catalog_of(disk)).value();
    const auto snapshot = catalog->snapshot().value();
    CatalogFileHeader header;
    header.volume = nodes_["a"].superblock.uuid;
    header.generation = kFirstGeneration;
    header.position = snapshot->position();
    header.hold = name;
    const std::string encoded = encode(header);
    std::string bytes = encoded, last;
    for (std::uint64_t number = 0;; ++number) {
      const std::string piece = snapshot->records_after(last, 200).value();
      bytes += catalog_piece_header(encoded, number, piece) + piece;
      if (piece.empty()) break;
      for (Reader in(piece); in.left() > 0;) {
        const std::uint32_t key_size = in.u32(), value_size = in.u32();
        last = std::string(in.raw(key_size));
        in.raw(value_size);
      }
    }
    write(bytes, path);
  }
  void write(const std::string& bytes, const std::string& path) {
    Disk& disk = *nodes_["a"].disk;
    const auto out = disk.open(path, OpenMode::kCreateOrOpen).value();
    ASSERT_TRUE(out->truncate(0) && out->write_at(0, as_bytes(bytes)) && out->sync());
    ASSERT_TRUE(disk.sync_directory("/"));
  }
  std::string saved() { return read_small_file(*nodes_["a"].disk, kFile, 1 << 20).value(); }

  /// "f" is in the file, "g" came later; then the copies moved.
  void fill_and_save() {
    first_ = segment();
    file("f", first_);
    seal(first_);
    open_ = segment();
    file("o", open_);
    save("monday");
    later_ = segment();
    file("g", later_);
    seal(later_);
    run(UnlinkCommand{kRootInode, "f", false, {3, 0}});
    const InodeId orphan = catalog()->orphans()->at(0);
    run(ReclaimCommand{orphan});
    run(UnlinkCommand{kRootInode, "o", false, {3, 0}});
    EXPECT_EQ(run(DeleteSegmentCommand{first_}).status.error().code, Code::kBusy);
    run(SetHoldersCommand{first_, kB, {kB, kC}});
  }
  Result<ReseedReport> restore(RestoreOptions options = {}) {
    if (options.file.empty()) options.file = kFile;
    return restore_catalog(*nodes_["a"].disk, clock_, random_, *client_, kStore, options);
  }
  std::unique_ptr<Catalog> catalog() {
    Disk& disk = *nodes_["a"].disk;
    return Catalog::open(disk, catalog_of(disk)).value();
  }
  bool has(const std::string& name) { return catalog()->lookup(kRootInode, name).has_value(); }
  void expect_whole() {
    const auto opened = catalog();
    CatalogCheckOptions check;
    check.report = [](const std::string& line) { ADD_FAILURE() << line; };
    EXPECT_EQ(opened->check(check).value(), 0u);
  }
  void expect_as_saved() {
    EXPECT_TRUE(has("f") && has("o") && !has("g"));
    const auto opened = catalog();
    EXPECT_EQ(opened->segment(first_)->holders, (std::vector<NodeId>{kB, kC})) << "as it is now";
    EXPECT_EQ(opened->segment(first_)->live_bytes, 5000u) << "as it was then";
    EXPECT_FALSE(opened->segment(later_)) << "nothing refers to it";
    expect_whole();
  }
  void expect_unchanged_by(const std::function<Result<ReseedReport>()>& call, Code code,
                           const std::string& words) {
    const std::int64_t revision = etcd_->revision();
    const std::uint32_t digest = catalog()->digest().value();
    const auto done = call();
    ASSERT_FALSE(done) << words;
    EXPECT_EQ(done.error().code, code) << describe(done.error());
    EXPECT_NE(describe(done.error()).find(words), std::string::npos) << describe(done.error());
    EXPECT_EQ(etcd_->revision(), revision);
    EXPECT_EQ(catalog()->digest().value(), digest);
  }

  SegmentId first_, open_, later_;
};

TEST_F(RestoreTest, NamesAreThoseOfThenAndCopiesWhereTheyAreNow) {
  fill_and_save();
  const auto done = restore();
  ASSERT_TRUE(done) << describe(done.error());
  EXPECT_TRUE(done->is_begun && done->lost.empty());
  EXPECT_EQ(done->generation, 2u);
  const auto followed = mount("a");
  ASSERT_TRUE(followed) << describe(followed.error());
  EXPECT_TRUE(followed->has_catalog);
  EXPECT_EQ(position_of("a"), logs().read(deadline()).value().base);
  expect_as_saved();
  EXPECT_TRUE(catalog()->holds().contains("monday"));
  EXPECT_EQ(run(DeleteSegmentCommand{first_}).status.error().code, Code::kBusy);
  EXPECT_GT(segment(), later_) << "no id comes twice";
}

TEST_F(RestoreTest, TheRestOfTheLogTellsWhereCopiesAre) {
  fill_and_save();
  change({SetHoldersCommand{first_, kA, {kA, kC}}}, false);
  const Position before = position_of("a");
  ASSERT_TRUE(restore());
  EXPECT_GT(position_of("a"), before);
  EXPECT_EQ(catalog()->segment(first_)->holders, (std::vector<NodeId>{kA, kC}));
}

TEST_F(RestoreTest, OthersGiveTheirCatalogsUpOrAreKeptOut) {
  fill_and_save();
  bring_to("c", position_of("a").value);
  ASSERT_TRUE(restore());
  expect_kept_out("c", "take-catalog");
  ASSERT_TRUE(give_catalog_up(*nodes_["c"].disk, kStore));
  EXPECT_FALSE(mount("c").value().has_catalog);
}

TEST_F(RestoreTest, ALookChangesNothing) {
  fill_and_save();
  const std::int64_t revision = etcd_->revision();
  const auto look = restore({"", true});
  ASSERT_TRUE(look) << describe(look.error());
  EXPECT_FALSE(look->is_begun);
  EXPECT_EQ(etcd_->revision(), revision);
  EXPECT_TRUE(has("g") && !has("f"));
}

TEST_F(RestoreTest, FilesThatAreNotWholeAreRefused) {
  fill_and_save();
  const std::string whole = saved();
  const auto call = [this] { return restore({"/bad"}); };
  expect_unchanged_by([this] { return restore({"/none"}); }, Code::kNotFound, "/none");
  for (std::size_t size = 0; size < whole.size(); size += 37) {
    SCOPED_TRACE(size);
    write(whole.substr(0, size), "/bad");
    expect_unchanged_by(call, Code::kCorrupt, "/bad");
  }
  for (std::size_t at = 0; at < whole.size(); at += 41) {
    SCOPED_TRACE(at);
    std::string flipped = whole;
    flipped[at] = static_cast<char>(flipped[at] ^ 16);
    write(flipped, "/bad");
    expect_unchanged_by(call, Code::kCorrupt, "/bad");
  }
  write(whole + "x", "/bad");
  expect_unchanged_by(call, Code::kCorrupt, "follows its end");
}

TEST_F(RestoreTest, TheFileOfAnotherVolumeIsRefused) {
  fill_and_save();
  CatalogFileHeader header = decode_catalog_file_header(saved().substr(0, 128)).value();
  header.volume[3] ^= 1;
  write(encode(header), "/other");
  expect_unchanged_by([this] { return restore({"/other"}); }, Code::kInvalid, "another volume");
}

TEST_F(RestoreTest, ACatalogThatDoesNotFollowTheLogIsRefused) {
  fill_and_save();
  bring_to("a", position_of("a").value + 5);
  expect_unchanged_by([this] { return restore(); }, Code::kStale, "not the one");
}

TEST_F(RestoreTest, FilesWhoseBytesAreGoneAreNamedAndGivenUpOnlyByForce) {
  fill_and_save();
  const Position held = catalog()->holds().at("monday").position;
  run(ReleaseHoldCommand{"monday", held});
  ASSERT_TRUE(run(DeleteSegmentCommand{first_}).status);
  expect_unchanged_by([this] { return restore(); }, Code::kExists, "1 files");
  expect_unchanged_by([this] { return restore(); }, Code::kExists, "/f");
  const auto done = restore({"", false, true});
  ASSERT_TRUE(done) << describe(done.error());
  EXPECT_EQ(done->lost, std::vector<std::string>{"/f"});
  EXPECT_TRUE(has("f") && has("o") && !has("g"));
  expect_whole();
}

TEST_F(RestoreTest, ASegmentThatWasSealedShorterLosesItsFileBytes) {
  fill_and_save();
  run(SealSegmentCommand{open_, 8192});
  expect_unchanged_by([this] { return restore(); }, Code::kExists, "/o");
}

TEST_F(RestoreTest, ALaterSnapshotCanStillBeGoneForwardTo) {
  fill_and_save();
  save("tuesday", "/tuesday");
  ASSERT_TRUE(restore());
  EXPECT_TRUE(has("f") && !has("g"));
  EXPECT_EQ(catalog()->segment(later_)->live_bytes, 0u) << "kept by the later hold";
  expect_whole();
  const auto done = restore({"/tuesday"});
  ASSERT_TRUE(done) << describe(done.error());
  EXPECT_TRUE(!has("f") && has("g"));
  expect_whole();
}

/// The power goes at each step in turn; afterwards the volume is the one before or the one that was
/// saved, whole either way, and another call ends what was begun.
TEST_F(RestoreTest, ACrashAtAnyStepLeavesTheOldVolumeOrTheSavedOne) {
  fill_and_save();
  const auto backup = etcd_->backup();
  const std::unique_ptr<SimDisk> before = std::move(nodes_["a"].disk);
  const std::uint64_t stride = share_of(10) == 10 ? 1 : 7;
  bool was_new = false, was_cut = true;
  for (std::uint64_t step = 1; was_cut; step += stride) {
    SCOPED_TRACE(step);
    ASSERT_LT(step, 2000u);
    etcd_->restore(backup);
    std::unique_ptr<SimDisk>& disk = nodes_["a"].disk;
    disk = before->after_crash(0);
    disk->stop_at(disk->changes() + step);
    const auto done = restore();
    was_cut = disk->stopped();
    EXPECT_EQ(done.has_value(), !was_cut);
    disk = disk->after_crash(step);
    const bool is_new = logs().read(deadline()).value().generation != kFirstGeneration;
    EXPECT_TRUE(is_new || !was_new) << "a later crash leaves no less";
    was_new = is_new;
    const auto followed = mount("a");
    ASSERT_TRUE(followed) << describe(followed.error());
    EXPECT_TRUE(followed->has_catalog);
    if (is_new) {
      expect_as_saved();
      continue;
    }
    EXPECT_TRUE(has("g") && !has("f"));
    ASSERT_TRUE(restore());
    expect_as_saved();
  }
  EXPECT_TRUE(was_new);
}

TEST_F(RestoreTest, AnEtcdThatLosesAnswersEndsUpWithTheSavedVolume) {
  fill_and_save();
  const auto backup = etcd_->backup();
  const std::unique_ptr<SimDisk> before = std::move(nodes_["a"].disk);
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(seed);
    new_etcd();
    etcd_->restore(backup);
    nodes_["a"].disk = before->after_crash(0);
    etcd_->faults.lost_answer = etcd_->faults.lost_request = 16;
    etcd_->faults.late_request = 16;
    auto done = restore();
    for (int tries = 0; !done && tries < 200; ++tries) done = restore();
    ASSERT_TRUE(done) << describe(done.error());
    clock_.advance(100 * kSecond);
    etcd_->tick();
    etcd_->faults = {};
    const auto followed = mount("a");
    ASSERT_TRUE(followed) << describe(followed.error());
    EXPECT_TRUE(followed->has_catalog);
    expect_as_saved();
  }
}

}  // namespace
}  // namespace kvsyncfs
