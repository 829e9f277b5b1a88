// Threads for the loops of a node: the real twin of TaskRunner. Thread: any; stop() once at a time.
#pragma once

#include <memory>

#include "engine/cluster_seams.h"
#include "engine/env/clock.h"

namespace kvsyncfs {

class TaskThreads final : public TaskRunner {
 public:
  explicit TaskThreads(Clock& clock);
  ~TaskThreads() override;

  void start(std::string_view name, std::function<std::uint64_t()> step) override;
  void stop() override;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace kvsyncfs
