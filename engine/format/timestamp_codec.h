// How a Timestamp lies in records and commands: seconds i64, nanoseconds u32. Thread: any.
#pragma once

#include "engine/env/clock.h"
#include "engine/format/codec.h"

namespace kvsyncfs {

inline void put_time(Writer& w, const Timestamp& t) {
  w.i64(t.seconds);
  w.u32(t.nanoseconds);
}

/// Fails the reader when the nanoseconds are no fraction of a second.
inline Timestamp get_time(Reader& r) {
  Timestamp t;
  t.seconds = r.i64();
  t.nanoseconds = r.u32();
  if (t.nanoseconds > 999'999'999) r.fail();
  return t;
}

}  // namespace kvsyncfs
