// What `kvsyncfs-ctl STORE locate PATH` prints. Pure. Thread: values.
#pragma once

#include <boost/json.hpp>
#include <string>

namespace kvsyncfs {

/// Of a daemon's answer to "locate", with all extents: a line on the file, and one for each extent.
std::string location_table(const std::string& path, const boost::json::object& location);

}  // namespace kvsyncfs
