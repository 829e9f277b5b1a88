// What sim_pthread.cc needs of the scheduler. Thread: as sim_threads.h says.
#pragma once

#include <pthread.h>

#include <cstdint>
#include <string>

namespace kvsyncfs::sim_threads {

struct Task {
  std::uint64_t id = 0;
  unsigned group = 0;
  std::string name;
  std::uint32_t has_turn = 0;  ///< a futex: the one thing that threads tell each other
  bool is_ready = true, is_over = false, timed_out = false;
  const void* waits_for = nullptr;
  std::uint64_t until_ns = ~std::uint64_t{0};
  int locks = 0;  ///< that it holds
  pthread_t thread{};
};

/// Links pthread's twins into the binary: weak references to pthread alone do not.
void answer_pthread();
/// The calling thread's; null: it is not part of the simulation.
Task* self();
/// Somebody else may go on here.
void pass_by();
/// One who waits for `what`, by chance, or nobody.
void wake_one(const void* what);
/// The next thread of the simulation; it gets its turn once its thread calls enter().
Task* add_task();
void enter(Task* task);  ///< as the first of the new thread
void leave();            ///< as the last of it
Task* find(pthread_t thread);

}  // namespace kvsyncfs::sim_threads
