// Tables and documents of kvsyncfs-ctl. Pure. Thread: values.
#pragma once

#include <boost/json.hpp>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace kvsyncfs {

/// The cells in columns, two blanks between them; all rows have as many cells.
std::string table(const std::vector<std::vector<std::string>>& rows);

// Fields of what a daemon answered. One that is missing or of another kind is empty, 0 or false.
std::uint64_t number_in(const boost::json::object& object, std::string_view name);
std::string text_in(const boost::json::object& object, std::string_view name);
bool flag_in(const boost::json::object& object, std::string_view name);
const boost::json::array& list_in(const boost::json::object& object, std::string_view name);
/// Of a list: each element that is an object.
std::vector<const boost::json::object*> objects_in(const boost::json::object& object,
                                                   std::string_view name);

/// Names of nodes, given by their numbers in the list `nodes` of a document; "beta (away)" where
/// that does not live, "node 3" where the name is not known.
class NodeNames {
 public:
  explicit NodeNames(const boost::json::object& document);
  std::string of(std::uint64_t id) const;
  bool lives(std::uint64_t id) const;

 private:
  const boost::json::object* find(std::uint64_t id) const;
  std::vector<const boost::json::object*> nodes_;
};

}  // namespace kvsyncfs
