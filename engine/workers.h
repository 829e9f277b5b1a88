// Owns the threads that drive an engine's deferred work. Not used by the simulator, which calls
// run_background() itself. Construct after open, destroy before the engine. Thread: one.
#pragma once

#include <memory>

#include "engine/engine.h"

namespace kvsyncfs {

class Workers {
 public:
  Workers(Engine& engine, Clock& clock);
  ~Workers();  ///< stops and joins; at most one background step is waited for
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace kvsyncfs
