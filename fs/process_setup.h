// What makes a process fit to be the daemon below a file system. Thread: one,
// before others start.
#pragma once

#include <string>
#include <vector>

namespace kvsyncfs {

/// The kernel writes dirty pages of the mount through this process when memory
/// is short: it must not be the first one to be killed, nor wait for its own
/// mount; and its memory is what the options say. Returns what could not be had, a line each.
std::vector<std::string> harden_process();

}  // namespace kvsyncfs
