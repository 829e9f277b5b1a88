// What the files of a simulated cluster's clients share. Thread: threads of the simulation.
#pragma once

#include <cstdint>

#include "engine/base/error.h"

namespace kvsyncfs {

/// The call only changes or looks at names and attributes, so that it waits for the log alone.
inline constexpr const char* kCallOfNames = "a call of names";

template <typename T>
Status status_of(const Result<T>& result) {
  return result ? Status{} : Status(result.error());
}

}  // namespace kvsyncfs
