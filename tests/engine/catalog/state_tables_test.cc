// Every row of the state tables of kvsyncfs-protocol(7) that the catalog's commands make: the
// catalog is brought into the row's state, the event comes, and state and result are looked at.
#include "tests/engine/catalog/catalog_fixture.h"
#include "tests/lib/state_table.h"

namespace kvsyncfs {
namespace {

constexpr NodeId kNode{7};
constexpr std::uint64_t kEarlier = 4, kSame = 5, kLater = 6;  // incarnations

void expect_table(const std::string& heading, const StateMachine& machine) {
  const auto table = load_state_table(KVSYNCFS_PROTOCOL_PAGE, heading);
  EXPECT_FALSE(table.empty()) << "no table below " << heading;
  EXPECT_EQ(compare(table, machine), std::vector<std::string>{}) << heading;
}

std::string result_of(const CommandResult& result, const std::string& good) {
  if (!result.status) return std::to_string(static_cast<int>(result.status.error().code));
  return good;
}

JoinCommand join(std::uint64_t incarnation) { return {kNode, {incarnation}, 0, 5000}; }
EndCommand end(std::uint64_t incarnation) { return {kNode, {incarnation}}; }
Origin from(std::uint64_t incarnation, std::uint64_t request) {
  return {kNode, {incarnation}, request};
}

/// The node's session: `kSame` is its incarnation, and request 10 its last.
class SessionMachine {
 public:
  void run(StateRow& row) {
    if (row.state != "none") catalog_.run(join(kSame));
    if (row.state != "none") catalog_.run(catalog_.resize(kRootInode, 0), from(kSame, 10));
    if (row.state == "ended") catalog_.run(end(kSame));
    row.result = fire(row.event);
    row.next = state();
    EXPECT_EQ(catalog_.problems(), std::vector<std::string>{});
  }

 private:
  std::string state() {
    const auto sessions = catalog_->sessions();
    if (sessions.empty()) return "none";
    return sessions.at(kNode).lives() ? "lives" : "ended";
  }
  std::string fire(const std::string& event) {
    const std::string kind = event.substr(event.find(' ') + 1),
                      which = event.substr(0, event.find(' '));
    if (kind == "request") {
      const Origin origin =
          which == "foreign" ? from(kLater, 11) : from(kSame, which == "had" ? 10 : 11);
      return result_of(catalog_.run(catalog_.creation(kRootInode, "a", kRegular), origin),
                       "applied");
    }
    const std::uint64_t incarnation = which == "earlier" ? kEarlier
                                      : which == "later" ? kLater
                                                         : kSame;
    const CommandResult result =
        kind == "Join" ? catalog_.run(join(incarnation)) : catalog_.run(end(incarnation));
    return result_of(result, result.session == SessionId{} ? "-" : "session");
  }

  TestCatalog catalog_;
};

TEST(StateTables, EveryRowOfSessionIsAsItIsWritten) {
  expect_table("Session", {{"none", "lives", "ended"},
                           {"same Join", "later Join", "earlier Join", "same End", "later End",
                            "earlier End", "new request", "had request", "foreign request"},
                           [](StateRow& row) { SessionMachine().run(row); }});
}

/// Whether a change that was applied waits for the node.
class AcknowledgementMachine {
 public:
  void run(StateRow& row) {
    if (row.state != "none" && row.state != "not asked") catalog_.run(join(kSame));
    if (row.state == "ended") catalog_.run(end(kSame));
    if (row.state == "asked" || row.state == "not asked") change();
    if (row.event == "change") change();
    if (row.event == "Join") catalog_.run(join(kSame));
    if (row.event == "End") catalog_.run(end(kSame));
    row.next = state();
    row.result = row.next == "asked" ? "waits" : "-";
  }

 private:
  void change() {
    catalog_.apply({});
    if (changed_.value == 0) changed_ = catalog_->applied();
  }
  std::string state() {
    const auto sessions = catalog_->sessions();
    if (changed_.value != 0)
      return !sessions.empty() && must_acknowledge(sessions.at(kNode), changed_) ? "asked"
                                                                                 : "not asked";
    if (sessions.empty()) return "none";
    return sessions.at(kNode).lives() ? "lives" : "ended";
  }

  TestCatalog catalog_;
  Position changed_;
};

TEST(StateTables, EveryRowOfAcknowledgementIsAsItIsWritten) {
  expect_table("Acknowledgement", {{"none", "lives", "ended", "asked", "not asked"},
                                   {"change", "Join", "End"},
                                   [](StateRow& row) { AcknowledgementMachine().run(row); }});
}

/// An inode with one name, in a cluster of one session.
class OrphanMachine {
 public:
  OrphanMachine() {
    catalog_.run(join(kSame));
    inode_ = catalog_.file("f");
  }
  void run(StateRow& row) {
    if (row.state != "named") fire("unlink");
    if (row.state == "held") fire("Holds");
    if (row.state == "free" || row.state == "gone") fire("Releases");
    if (row.state == "gone") fire("Reclaim");
    row.result = fire(row.event);
    row.next = state();
    EXPECT_EQ(catalog_.problems(), std::vector<std::string>{});
  }

 private:
  std::string fire(const std::string& event) {
    CommandResult result;
    const Origin origin = from(kSame, ++request_);
    if (event == "unlink") result = catalog_.run(catalog_.unlink("f"), origin);
    if (event == "Holds") result = catalog_.run(HoldOrphansCommand{{inode_}, {}}, origin);
    if (event == "Releases") result = catalog_.run(HoldOrphansCommand{{}, {inode_}}, origin);
    if (event == "Reclaim") result = catalog_.run(ReclaimCommand{inode_}, origin);
    if (event == "End") result = catalog_.run(end(kSame));
    if (event == "Join") result = catalog_.run(JoinCommand{{8}, {1}, 0, 5000});
    return result_of(result, result.reclaimable.empty() ? "-" : "reclaimable");
  }
  std::string state() {
    if (!catalog_->inode(inode_)) return "gone";
    const auto orphan = catalog_->orphan(inode_).value();
    if (!orphan) return "named";
    if (!catalog_->reclaimable_orphans(1)->empty()) return "free";
    return orphan->holders.at(0).has_said ? "held" : "asked";
  }

  TestCatalog catalog_;
  InodeId inode_;
  std::uint64_t request_ = 0;
};

TEST(StateTables, EveryRowOfOrphanIsAsItIsWritten) {
  expect_table("Orphan", {{"named", "asked", "held", "free", "gone"},
                          {"unlink", "Holds", "Releases", "End", "Join", "Reclaim"},
                          [](StateRow& row) { OrphanMachine().run(row); }});
}

/// An owner's lock on a file; another node's owner, 1, is there with its own.
class LockMachine {
 public:
  LockMachine() {
    catalog_.run(join(kSame));
    catalog_.run(JoinCommand{kOther, {1}, 0, 5000});
    file_ = catalog_.file("f");
    second_ = catalog_.file("g");
  }
  void run(StateRow& row) {
    if (row.state == "held") fire("try");
    if (row.state == "other's" || row.state == "waiting") fire("other's try");
    if (row.state == "waiting") fire("wait");
    row.result = fire(row.event);
    row.next = state();
    EXPECT_EQ(catalog_.problems(), std::vector<std::string>{});
  }

 private:
  static constexpr NodeId kOther{8};

  AcquireLockCommand all(InodeId inode, bool wait) {
    return {inode, LockKind::kPosix, LockType::kExclusive, 1, 0, kLockEndMax, 1, wait};
  }
  std::string fire(const std::string& event) {
    const Origin own = from(kSame, ++request_);
    const Origin other{kOther, {1}, ++request_};
    if (event == "try") return said(catalog_.run(all(file_, false), own), "granted");
    if (event == "wait") return said(wait(own), "granted");
    if (event == "wait in a cycle") {
      catalog_.run(all(second_, false), own);
      catalog_.run(all(second_, true), other);
      return said(wait(from(kSame, ++request_)), "granted");
    }
    const ReleaseLockCommand release{file_, LockKind::kPosix, 1, 0, kLockEndMax};
    if (event == "release") return said(catalog_.run(release, own), "-");
    if (event == "other's release") return said(catalog_.run(release, other), "-");
    if (event == "other's try") return said(catalog_.run(all(file_, false), other), "granted");
    if (event == "cancel")
      return said(catalog_.run(CancelLockCommand{file_, LockKind::kPosix, wait_}, own), "-");
    if (event == "End") return said(catalog_.run(end(kSame)), "-");
    return said(catalog_.run(EndCommand{kOther, {1}}), "-");
  }
  CommandResult wait(const Origin& origin) {
    CommandResult result = catalog_.run(all(file_, true), origin);
    wait_ = result.wait;
    return result;
  }
  static std::string said(const CommandResult& result, const std::string& good) {
    if (!result.granted.empty()) return "grants";
    return result_of(result, result.wait != 0 ? "waits" : good);
  }
  std::string state() {
    const LockTable table = catalog_->locks(file_, LockKind::kPosix).value();
    if (!table.waits.empty()) return "waiting";
    if (table.held.empty()) return "none";
    const auto sessions = catalog_->sessions();
    return table.held[0].owner.session == sessions.at(kNode).session ? "held" : "other's";
  }

  TestCatalog catalog_;
  InodeId file_, second_;
  std::uint64_t request_ = 0, wait_ = 0;
};

TEST(StateTables, EveryRowOfLockIsAsItIsWritten) {
  expect_table("Lock", {{"none", "held", "other's", "waiting"},
                        {"try", "wait", "wait in a cycle", "release", "cancel", "End",
                         "other's try", "other's release", "other's End"},
                        [](StateRow& row) { LockMachine().run(row); }});
}

}  // namespace
}  // namespace kvsyncfs
