// A catalog on its way from one node to another: over a network in memory, onto a disk that a crash
// takes at every moment.
#include "engine/catalog_snapshots.h"

#include <gtest/gtest.h>

#include "engine/catalog_folder.h"
#include "engine/format/peer_message.h"
#include "engine/snapshot_fetch.h"
#include "tests/engine/sync/loop_transport.h"
#include "tests/lib/state_table.h"
#include "tests/sim/sim_disk.h"
#include "tests/sim/sim_etcd.h"

namespace kvsyncfs {
namespace {

constexpr std::uint64_t kSecond = 1'000'000'000;
constexpr const char* kStore = "/store";

CatalogOptions options_in(const std::string& directory) {
  CatalogOptions options;
  options.directory = directory;
  options.block_cache_bytes = options.memtable_bytes = 1u << 20;
  return options;
}

/// A node that has the log's catalog, and the way of another one to it.
class CatalogSnapshotsTest : public ::testing::Test {
 protected:
  CatalogSnapshotsTest() {
    EXPECT_TRUE(format_etcd_log(*client, clock, "v", 1, {}));
    EXPECT_TRUE(disk.make_directory(kStore));
    EXPECT_TRUE(Catalog::format(disk, options_in("/store/catalog"), 0, 0, {}));
    auto opened = Catalog::open(disk, options_in("/store/catalog"));
    EXPECT_TRUE(opened);
    catalog = std::move(*opened);
    EtcdLogOptions options;
    options.volume = "v";
    options.node = "n1";
    options.incarnation = 1;
    auto log_opened = EtcdLog::open(*client, clock, options);
    EXPECT_TRUE(log_opened);
    log = std::move(*log_opened);
    EXPECT_TRUE(log->start({}, [this](Position position, std::string_view entry) {
      const auto transaction = decode_transaction(entry);
      ASSERT_TRUE(transaction);
      ASSERT_TRUE(catalog->apply(position, *transaction));
    }));
    snapshots = std::make_unique<CatalogSnapshots>(*catalog, *log, clock);
    EXPECT_TRUE(giver.start({[this](Incoming request, Responder responder) {
                               ++requests;
                               if (meanwhile) meanwhile();
                               auto answer = snapshots->answer(request);
                               if (answer && spoil) spoil(*answer);
                               responder.reply(std::move(answer));
                             },
                             [](const PeerEvent&) {},
                             {},
                             {}}));
  }
  void create(const std::string& name) {
    CreateCommand command;
    command.parent = kRootInode;
    command.name = name;
    command.mode = 0100644;
    ASSERT_TRUE(log->append(encode(Transaction{{command}, {}})));
  }
  void fill(int count) {
    for (int i = 0; i < count; ++i) create("file" + std::to_string(i));
  }
  Result<FetchedCatalog> fetch(Disk& into, Position at_least = {}) {
    const CatalogOptions options = options_in("/store/catalog.2");
    SnapshotFetch fetch(taker, clock, into, options, kSecond, tell);
    return fetch.from({1}, at_least);
  }
  std::uint32_t digest_of(Disk& of, const std::string& directory) {
    const auto opened = Catalog::open(of, options_in(directory));
    EXPECT_TRUE(opened) << describe(opened.error());
    return opened ? (*opened)->digest().value() : 0;
  }

  SimClock clock;
  SimEtcd etcd{clock, 1};
  std::unique_ptr<etcd::EtcdClient> client = etcd.client();
  SimDisk disk;
  std::unique_ptr<Catalog> catalog;
  std::unique_ptr<EtcdLog> log;
  std::unique_ptr<CatalogSnapshots> snapshots;
  LoopNet net;
  LoopTransport giver{net, {1}}, taker{net, {2}};
  std::function<void()> meanwhile;
  std::function<void(Answer&)> spoil;
  std::size_t requests = 0;
  const std::function<void(std::string_view)> tell = [](std::string_view) {};
};

TEST_F(CatalogSnapshotsTest, TheCatalogOfOnePositionArrivesWhileItGoesOn) {
  fill(300);
  const std::uint32_t before = catalog->digest().value();
  int later = 0;
  meanwhile = [&] {
    if (requests > 1) create("later" + std::to_string(later++));
  };
  const auto fetched = fetch(disk);
  ASSERT_TRUE(fetched) << describe(fetched.error());
  EXPECT_GT(later, 0);
  EXPECT_EQ(fetched->position, Position{300});
  EXPECT_EQ(fetched->batch.index, 300u);
  EXPECT_FALSE(fetched->batch.key.empty());
  EXPECT_EQ(digest_of(disk, "/store/catalog.2"), before);
  EXPECT_NE(catalog->digest().value(), before);
}

TEST_F(CatalogSnapshotsTest, AnEarlierCatalogThanAskedForIsNotGiven) {
  fill(5);
  EXPECT_EQ(fetch(disk, {6}).error().code, Code::kBusy);
  EXPECT_TRUE(fetch(disk, {5}));
}

TEST_F(CatalogSnapshotsTest, APieceThatWasDamagedOnItsWayIsRefused) {
  fill(50);
  const auto flip = std::make_shared<std::string>();
  spoil = [flip](Answer& answer) {
    if (answer.body.bytes.empty()) return;
    const Bytes body = answer.body.bytes;
    flip->assign(reinterpret_cast<const char*>(body.data()), body.size());
    (*flip)[flip->size() / 2] ^= 1;
    answer.body = {as_bytes(*flip), flip};
  };
  EXPECT_EQ(fetch(disk).error().code, Code::kCorrupt);
  spoil = {};
  EXPECT_TRUE(fetch(disk)) << "another try begins anew";
}

TEST_F(CatalogSnapshotsTest, APieceOfAnotherPlaceIsRefused) {
  fill(50);
  std::optional<Answer> first;
  spoil = [&first](Answer& answer) {
    if (answer.body.bytes.empty()) return;
    if (!first) first = answer;
    answer.head = encode(SnapshotPiece{0});
  };
  EXPECT_EQ(fetch(disk).error().code, Code::kCorrupt);
  const Bytes bytes = first->body.bytes;
  EXPECT_NE(snapshot_checksum({1, ""}, bytes), snapshot_checksum({1, "x"}, bytes));
  EXPECT_NE(snapshot_checksum({1, ""}, bytes), snapshot_checksum({2, ""}, bytes));
}

TEST_F(CatalogSnapshotsTest, ASnapshotThatNobodyAsksForIsLetGo) {
  fill(50);
  meanwhile = [&] {
    if (requests != 2) return;
    clock.advance(61 * kSecond);
    snapshots->drop_idle();
  };
  EXPECT_EQ(fetch(disk).error().code, Code::kStale);
}

TEST_F(CatalogSnapshotsTest, ANodeHasOneSnapshotAtATime) {
  fill(50);
  bool again = false;
  meanwhile = [&] {
    if (requests != 2 || again) return;
    again = true;
    Incoming other;
    other.peer = {2};
    other.kind = static_cast<std::uint16_t>(PeerRequest::kOpenSnapshot);
    other.head = encode(SnapshotWanted{});
    EXPECT_TRUE(snapshots->answer(other));
  };
  EXPECT_EQ(fetch(disk).error().code, Code::kStale);
}

TEST_F(CatalogSnapshotsTest, APeerThatIsDownIsAnError) {
  net.down.insert({1});
  EXPECT_EQ(fetch(disk).error().code, Code::kUnreachable);
}

/// The taker's store is a disk of its own with a catalog of 0 entries.
class CatalogTaken : public CatalogSnapshotsTest {
 protected:
  static std::unique_ptr<SimDisk> new_store() {
    auto store = std::make_unique<SimDisk>();
    EXPECT_TRUE(store->make_directory(kStore));
    EXPECT_TRUE(Catalog::format(*store, options_in("/store/catalog"), 0, 0, {}));
    EXPECT_TRUE(store->sync_directory(kStore));
    EXPECT_TRUE(store->sync_directory("/"));
    return store;
  }
  /// In the order in which the engine does it.
  Status take(SimDisk& store) {
    KVSYNCFS_ASSIGN(const std::string former, catalog_folder(store, kStore));
    KVSYNCFS_TRY(fetch(store));
    KVSYNCFS_TRY(swap_catalog_folders(store, kStore));
    return remove_catalog(store, former);
  }
};

TEST_F(CatalogTaken, ACrashLeavesTheOldCatalogOrTheNewOneAndWhatIsLeftGoes) {
  fill(20);
  const std::uint32_t wanted = catalog->digest().value();
  std::uint64_t changes = 0;
  {
    const auto store = new_store();
    const std::uint64_t before = store->changes();
    ASSERT_TRUE(take(*store));
    changes = store->changes() - before;
  }
  std::size_t kept = 0, taken = 0;
  for (std::uint64_t n = 1; n <= changes; ++n) {
    const auto store = new_store();
    store->stop_at(store->changes() + n);
    (void)take(*store);
    for (std::uint64_t seed = 1; seed <= 3; ++seed) {
      const auto after = store->after_crash(seed);
      const auto folder = catalog_folder(*after, kStore);
      ASSERT_TRUE(folder);
      const auto opened = Catalog::open(*after, options_in(*folder));
      ASSERT_TRUE(opened) << "change " << n << ": " << describe(opened.error());
      const Position applied = (*opened)->applied();
      ASSERT_TRUE(applied == Position{0} || applied == Position{20}) << applied.value;
      ++(applied == Position{0} ? kept : taken);
      if (applied != Position{0}) {
        EXPECT_EQ((*opened)->digest().value(), wanted);
      }
      const auto spare = spare_catalog_folder(*after, kStore);
      ASSERT_TRUE(spare);
      ASSERT_TRUE(remove_catalog(*after, *spare)) << "change " << n;
    }
  }
  EXPECT_GT(kept, 0u);
  EXPECT_GT(taken, 0u);
}

TEST_F(CatalogTaken, ADoubtStaysUntilTheCatalogIsTrustedAgain) {
  const auto store = new_store();
  EXPECT_FALSE(*is_catalog_doubted(*store, kStore));
  EXPECT_TRUE(trust_catalog_folder(*store, kStore));
  ASSERT_TRUE(doubt_catalog_folder(*store, kStore));
  ASSERT_TRUE(doubt_catalog_folder(*store, kStore)) << "a second time";
  store->crash(1);
  EXPECT_TRUE(*is_catalog_doubted(*store, kStore));
  ASSERT_TRUE(trust_catalog_folder(*store, kStore));
  store->crash(2);
  EXPECT_FALSE(*is_catalog_doubted(*store, kStore));
}

TEST_F(CatalogTaken, TheFoldersChangePlacesEachTime) {
  const auto store = new_store();
  for (const char* folder : {"/store/catalog", "/store/catalog.2", "/store/catalog"}) {
    EXPECT_EQ(*catalog_folder(*store, kStore), folder);
    EXPECT_NE(*spare_catalog_folder(*store, kStore), folder);
    ASSERT_TRUE(swap_catalog_folders(*store, kStore));
  }
}

/// A store whose catalog is at position 0, while the log begins later.
class CatalogTakenByState : public CatalogTaken {
 protected:
  void run(StateRow& row) {
    const auto store = new_store();
    if (row.state == "partial") (void)fire(*store, "broken fetch");
    if (row.state == "whole") (void)fire(*store, "fetch");
    if (row.state == "taken" || row.state == "follows") (void)fire(*store, "fetch and take");
    if (row.state == "follows") (void)fire(*store, "mount");
    row.result = fire(*store, row.event);
    row.next = state_of(*store);
  }

 private:
  static constexpr Position kTrimmed{10};

  static Position position_of(SimDisk& store) {
    const auto opened = Catalog::open(store, options_in(*catalog_folder(store, kStore)));
    EXPECT_TRUE(opened);
    return (*opened)->applied();
  }
  /// In the order in which the engine does it.
  std::string fire(SimDisk& store, const std::string& event) {
    if (event == "mount") {
      EXPECT_TRUE(remove_catalog(store, *spare_catalog_folder(store, kStore)));
      return "-";
    }
    if (position_of(store) >= kTrimmed) return "not begun";
    if (event == "broken fetch")
      spoil = [](Answer& answer) {
        if (!answer.body.bytes.empty()) answer.head = encode(SnapshotPiece{0});
      };
    const auto fetched = fetch(store, kTrimmed);
    spoil = {};
    if (!fetched) return std::to_string(static_cast<int>(fetched.error().code));
    if (event == "fetch and take") {
      EXPECT_TRUE(swap_catalog_folders(store, kStore));
    }
    return "-";
  }
  static std::string state_of(SimDisk& store) {
    const std::string spare = *spare_catalog_folder(store, kStore);
    const bool has_spare = *store.exists(spare);
    if (position_of(store) >= kTrimmed) return has_spare ? "taken" : "follows";
    if (!has_spare) return "behind";
    return Catalog::open(store, options_in(spare)) ? "whole" : "partial";
  }
};

TEST_F(CatalogTakenByState, EveryRowOfSnapshotIsAsItIsWritten) {
  fill(20);
  const auto table = load_state_table(KVSYNCFS_PROTOCOL_PAGE, "Snapshot");
  EXPECT_FALSE(table.empty());
  const StateMachine machine{{"behind", "partial", "whole", "taken", "follows"},
                             {"broken fetch", "fetch", "fetch and take", "mount"},
                             [this](StateRow& row) { run(row); }};
  EXPECT_EQ(compare(table, machine), std::vector<std::string>{});
}

}  // namespace
}  // namespace kvsyncfs
