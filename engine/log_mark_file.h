// The file STORE/log-mark (format/log_mark.h), as a whole. Thread: any; one call at a time.
#pragma once

#include <optional>
#include <string>

#include "engine/env/disk.h"
#include "engine/format/log_mark.h"

namespace kvsyncfs {

/// Takes the place of the mark that is there, or leaves that as it is; durable when it returns.
/// Errors: those of Disk and File.
Status store_log_mark(Disk& disk, const std::string& store, const LogMark& mark);

/// Nothing: the store has none. Errors: kTooBig, those of decode_log_mark, of Disk and of File.
Result<std::optional<LogMark>> load_log_mark(Disk& disk, const std::string& store);

}  // namespace kvsyncfs
