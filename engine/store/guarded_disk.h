// A disk whose calls are made a second time when a full disk refused them and room could be made.
// Thread: as the disk below it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "engine/env/disk.h"

namespace kvsyncfs {

class RoomMaker {
 public:
  virtual ~RoomMaker() = default;
  /// A mark of what was done so far.
  virtual std::uint64_t mark() const = 0;
  /// True: there is more room than at that mark.
  virtual bool make_room(std::uint64_t mark) = 0;
};

/// Both outlive the disk and its files.
std::unique_ptr<Disk> make_guarded_disk(Disk& below, RoomMaker& maker);

}  // namespace kvsyncfs
