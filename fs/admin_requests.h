// The requests of kvsyncfs-ctl to a daemon as JSON, one object a line: "do" names what is asked,
// the rest are its arguments. The answer is an object with "ok", and either "error" (one line) or
// what was asked. Bytes of paths and names that are not UTF-8 travel as they are. Thread: any.
//
//   {"do":"locate","path":P,"offset":N}         FileLocation
//   {"do":"warm","path":P,"offset":N}           WarmStep
//   {"do":"verify","path":P,"offset":N}         VerifyStep
//   {"do":"scrub","segment":N,"page":N}         ScrubStep
//   {"do":"heal"}                               HealReport
//   {"do":"heal_rate","bytes":N}                nothing more
//   {"do":"heal_now"}                           nothing more
//   {"do":"last_copies","node":N}               SegmentShare
//   {"do":"lost"}                               LostFiles
//   {"do":"save_catalog","name":S,"seconds":N}  SavedCatalog
//   {"do":"saved_records","snapshot":N,"after":HEX}  SavedPiece, in hex
//   {"do":"release_hold","name":S}              nothing more
//   {"do":"holds"}                              a list of HoldView
#pragma once

#include <string>
#include <string_view>

#include "engine/engine_admin.h"

namespace kvsyncfs {

/// One line.
std::string answer_admin(EngineAdmin& admin, std::string_view request);

}  // namespace kvsyncfs
