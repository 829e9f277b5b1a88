// State tables of the man pages as values, so that a test can walk every row. Thread: any.
//
// A table is a tbl(1) table whose first row is `state event next result`. A cell may list several
// states or events, separated by ", "; "any x" as an event is every event that ends in "x".
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace kvsyncfs {

struct StateRow {
  std::string state, event, next, result;
};

/// The table below the heading `.Ss heading` of a page, as it stands there; empty: there is none.
std::vector<StateRow> load_state_table(const std::string& page, const std::string& heading);

/// What a test knows how to do: in each of `states` each of `events`.
struct StateMachine {
  std::vector<std::string> states, events;
  /// Brings a fresh thing into row.state, lets row.event come, and fills in `next` and `result`.
  std::function<void(StateRow& row)> run;
};

/// One line for each fault: a row of the table that the machine does not know, or whose next state
/// or result is another one; a state and event that no row or more than one row has.
std::vector<std::string> compare(const std::vector<StateRow>& table, const StateMachine& machine);

}  // namespace kvsyncfs
