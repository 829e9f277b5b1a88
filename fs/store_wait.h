// Taking a store whose last daemon may still be ending. Thread: one.
#pragma once

#include <chrono>
#include <string>

#include "engine/base/error.h"
#include "engine/env/store_lock.h"

namespace kvsyncfs {

/// A daemon that was unmounted by the kernel alone writes what it holds before it lets the lock go:
/// as long as nothing mounts the store, its lock is waited for, up to `patience`. Errors: those of
/// StoreLock::take(); kBusy at once where the store is mounted.
Result<StoreLock> take_store(const std::string& store, std::chrono::seconds patience);

}  // namespace kvsyncfs
