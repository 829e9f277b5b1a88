#include "tests/lib/state_table.h"

#include <algorithm>
#include <fstream>
#include <map>
#include <utility>

namespace kvsyncfs {

namespace {

constexpr std::size_t kColumns = 4;

std::vector<std::string> split(const std::string& text, const std::string& by) {
  std::vector<std::string> parts;
  std::size_t begin = 0;
  for (std::size_t at; (at = text.find(by, begin)) != text.npos; begin = at + by.size())
    parts.push_back(text.substr(begin, at - begin));
  parts.push_back(text.substr(begin));
  return parts;
}

/// Cells of one row; a cell between T{ and T} goes on over lines.
std::vector<std::string> read_cells(std::istream& in, std::string line) {
  std::vector<std::string> cells = split(line, "\t");
  while (cells.back() == "T{") {
    std::string text;
    while (std::getline(in, line) && line.rfind("T}", 0) != 0)
      text += (text.empty() ? "" : " ") + line;
    cells.back() = text;
    std::vector<std::string> rest = split(line, "\t");
    cells.insert(cells.end(), rest.begin() + 1, rest.end());
  }
  return cells;
}

std::vector<std::string> expand(const std::string& cell, const std::vector<std::string>& known) {
  std::vector<std::string> names;
  for (const std::string& name : split(cell, ", ")) {
    if (name.rfind("any ", 0) != 0) {
      names.push_back(name);
      continue;
    }
    const std::string end = name.substr(3);
    for (const std::string& other : known)
      if (other.size() >= end.size() &&
          other.compare(other.size() - end.size(), end.npos, end) == 0)
        names.push_back(other);
  }
  return names;
}

bool has(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

std::vector<StateRow> load_state_table(const std::string& page, const std::string& heading) {
  std::ifstream in(page);
  std::string line;
  while (std::getline(in, line) && line != ".Ss " + heading) {
  }
  while (std::getline(in, line) && line != "state\tevent\tnext\tresult") {
  }
  std::vector<StateRow> rows;
  while (std::getline(in, line) && line != ".TE") {
    std::vector<std::string> cells = read_cells(in, line);
    cells.resize(kColumns);
    rows.push_back({cells[0], cells[1], cells[2], cells[3]});
  }
  return rows;
}

std::vector<std::string> compare(const std::vector<StateRow>& table, const StateMachine& machine) {
  std::vector<std::string> faults;
  std::map<std::pair<std::string, std::string>, int> seen;
  for (const StateRow& written : table) {
    for (const std::string& state : expand(written.state, machine.states)) {
      for (const std::string& event : expand(written.event, machine.events)) {
        const std::string name = state + " / " + event;
        if (!has(machine.states, state) || !has(machine.events, event)) {
          faults.push_back(name + ": nothing reaches it");
          continue;
        }
        if (++seen[{state, event}] > 1) faults.push_back(name + ": has two rows");
        StateRow row{state, event, "", ""};
        machine.run(row);
        if (row.next != written.next || row.result != written.result)
          faults.push_back(name + ": gives " + row.next + ", " + row.result + ", not " +
                           written.next + ", " + written.result);
      }
    }
  }
  for (const std::string& state : machine.states)
    for (const std::string& event : machine.events)
      if (!seen.contains({state, event})) faults.push_back(state + " / " + event + ": has no row");
  return faults;
}

}  // namespace kvsyncfs
