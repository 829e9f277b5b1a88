// Every row of the state tables of segments in kvsyncfs-protocol(7): the catalog is brought into
// the row's state, the event comes, and state and result are looked at.
#include "tests/engine/catalog/catalog_fixture.h"
#include "tests/lib/state_table.h"

namespace kvsyncfs {
namespace {

constexpr NodeId kOwner{7}, kHolder{8}, kOther{9};
constexpr std::uint64_t kLength = 2 * kPageSize;

void expect_table(const std::string& heading, const StateMachine& machine) {
  const auto table = load_state_table(KVSYNCFS_PROTOCOL_PAGE, heading);
  EXPECT_FALSE(table.empty()) << "no table below " << heading;
  EXPECT_EQ(compare(table, machine), std::vector<std::string>{}) << heading;
}

std::string result_of(const CommandResult& result, const std::string& good) {
  if (!result.status) return std::to_string(static_cast<int>(result.status.error().code));
  return good;
}

/// A segment of one node with a copy at another one, and one file that may have bytes in it.
class SealMachine {
 public:
  SealMachine() { file_ = catalog_.file("f"); }
  void run(StateRow& row) {
    if (row.state != "none") fire("Open");
    if (row.state == "used" || row.state == "sealed used") fire("write");
    if (row.state == "sealed" || row.state == "sealed used" || row.state == "gone") fire("Seal");
    if (row.state == "gone") fire("Delete");
    row.result = fire(row.event);
    row.next = state();
    EXPECT_EQ(catalog_.problems(), std::vector<std::string>{});
  }

 private:
  std::string fire(const std::string& event) {
    if (event == "Open") {
      const auto opened = catalog_.run(OpenPlacedSegmentCommand{kOwner, {kOwner, kHolder}});
      if (segment_ == kNoSegment) segment_ = opened.segment;
      return result_of(opened, "segment");
    }
    if (event == "write")
      return result_of(catalog_.run(catalog_.write(file_, {{0, kPageSize, segment_, kPageSize}})),
                       "-");
    if (event == "overwrite") return result_of(catalog_.run(catalog_.resize(file_, 0)), "-");
    if (event == "Seal") return result_of(catalog_.run(SealSegmentCommand{segment_, kLength}), "-");
    if (event == "other Seal")
      return result_of(catalog_.run(SealSegmentCommand{segment_, 2 * kLength}), "-");
    if (event == "SetHolders")
      return result_of(catalog_.run(SetHoldersCommand{segment_, kHolder, {kHolder, kOther}}), "-");
    return result_of(catalog_.run(DeleteSegmentCommand{segment_}), "-");
  }
  std::string state() {
    if (segment_ == kNoSegment) return "none";
    const auto record = catalog_->segment(segment_);
    if (!record) return "gone";
    const bool is_used = record->live_bytes != 0;
    if (record->state == SegmentState::kOpen) return is_used ? "used" : "open";
    EXPECT_TRUE(record->length == kLength || record->length == 2 * kLength);
    return is_used ? "sealed used" : "sealed";
  }

  TestCatalog catalog_;
  InodeId file_;
  SegmentId segment_ = kNoSegment;
};

TEST(SegmentTables, EveryRowOfSealIsAsItIsWritten) {
  expect_table("Seal",
               {{"none", "open", "used", "sealed", "sealed used", "gone"},
                {"Open", "write", "overwrite", "Seal", "other Seal", "SetHolders", "Delete"},
                [](StateRow& row) { SealMachine().run(row); }});
}

/// Bytes of a file in a sealed segment that the cleaner empties.
class CleanMachine {
 public:
  CleanMachine() {
    file_ = catalog_.file("f");
    clone_ = catalog_.file("g");
    for (SegmentId* segment : {&victim_, &target_, &fresh_})
      *segment = catalog_.run(OpenPlacedSegmentCommand{kOwner, {kOwner, kHolder}}).segment;
    catalog_.run(catalog_.write(file_, {in(victim_)}));
    catalog_.run(SealSegmentCommand{victim_, kLength});
  }
  void run(StateRow& row) {
    if (row.state == "shared" || row.state == "other's") fire("clone");
    if (row.state == "other's") fire("Move");
    if (row.state == "moved" || row.state == "gone") fire("Move");
    if (row.state == "overwritten") fire("write");
    if (row.state == "gone") fire("Delete");
    row.result = fire(row.event);
    row.next = state();
    EXPECT_EQ(catalog_.problems(), std::vector<std::string>{});
  }

 private:
  static Extent in(SegmentId segment) { return {0, kPageSize, segment, kPageSize}; }
  std::string fire(const std::string& event) {
    if (event == "Move") {
      const auto moved =
          catalog_.run(MoveExtentsCommand{{{file_, in(victim_), target_, kPageSize}}});
      return result_of(moved, moved.moved_bytes != 0 ? "moves" : "-");
    }
    if (event == "write") return result_of(catalog_.run(catalog_.write(file_, {in(fresh_)})), "-");
    if (event == "clone")
      return result_of(
          catalog_.run(CloneRangeCommand{file_, clone_, 0, 0, kPageSize, catalog_.now()}), "-");
    return result_of(catalog_.run(DeleteSegmentCommand{victim_}), "-");
  }
  std::string state() {
    const auto victim = catalog_->segment(victim_);
    if (!victim) return "gone";
    const SegmentId where = catalog_.extents(file_).at(0).segment;
    if (victim->live_bytes == 2 * kPageSize) return "shared";
    if (victim->live_bytes == kPageSize) return where == victim_ ? "live" : "other's";
    return where == target_ ? "moved" : "overwritten";
  }

  TestCatalog catalog_;
  InodeId file_, clone_;
  SegmentId victim_, target_, fresh_;
};

TEST(SegmentTables, EveryRowOfCleanIsAsItIsWritten) {
  expect_table("Clean", {{"live", "shared", "other's", "moved", "overwritten", "gone"},
                         {"Move", "write", "clone", "Delete"},
                         [](StateRow& row) { CleanMachine().run(row); }});
}

}  // namespace
}  // namespace kvsyncfs
