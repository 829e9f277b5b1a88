// pthread, clocks and sleeps for threads of the simulation (sim_threads.h); for all others the real
// ones. Locks stay the real ones in memory: only a wait for them is the simulation's, so that who
// asks an initializer or destroys a lock needs nothing from here. Conditions are never touched.
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>

#include "tests/sim/cluster/sim_threads.h"
#include "tests/sim/cluster/sim_threads_impl.h"

namespace {

namespace sim = kvsyncfs::sim_threads;

constexpr std::uint64_t kSecond = 1'000'000'000;

template <typename Function>
Function* real(Function*& kept, const char* name) {
  if (kept == nullptr) kept = reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
  return kept;
}
#define REAL(function)                             \
  (real(                                           \
      []() -> decltype(&function)& {               \
        static decltype(&function) kept = nullptr; \
        return kept;                               \
      }(),                                         \
      #function))

std::uint64_t to_ns(const timespec* time) {
  return static_cast<std::uint64_t>(time->tv_sec) * kSecond +
         static_cast<std::uint64_t>(time->tv_nsec);
}
std::uint64_t shown_by(clockid_t clock) {
  return clock == CLOCK_REALTIME ? sim::shown_wall_ns() : sim::shown_ns(sim::now_ns());
}

/// When a clock of the calling thread shows this.
std::uint64_t time_of(clockid_t clock, const timespec* time) {
  const std::uint64_t left_ns = to_ns(time) - std::min(to_ns(time), shown_by(clock));
  return sim::time_of(shown_by(CLOCK_MONOTONIC) + left_ns);
}
timespec to_timespec(std::uint64_t ns) {
  return {static_cast<time_t>(ns / kSecond), static_cast<long>(ns % kSecond)};
}

/// Takes a lock by `try_once` (0, EBUSY, or an error that ends it).
template <typename Try>
int take(const void* lock, std::uint64_t until_ns, Try try_once) {
  sim::pass_by();
  for (;;) {
    const int error = try_once();
    if (error == 0) ++sim::self()->locks;
    if (error != EBUSY) return error;
    if (!sim::wait(lock, until_ns)) return ETIMEDOUT;
  }
}
int try_take(int error) {
  if (error == 0) ++sim::self()->locks;
  return error;
}
int given_back(const void* lock, int error) {
  if (error != 0) return error;
  --sim::self()->locks;
  sim::wake(lock);
  return 0;
}

int wait_for(pthread_cond_t* condition, pthread_mutex_t* mutex, std::uint64_t until_ns) {
  (void)given_back(mutex, REAL(pthread_mutex_unlock)(mutex));
  const bool in_time = sim::wait(condition, until_ns);
  (void)take(mutex, sim::kForever, [&] { return REAL(pthread_mutex_trylock)(mutex); });
  return in_time ? 0 : ETIMEDOUT;
}

// A thread leaves the simulation after everything else that runs at its end: pthread calls the
// destructor of a key again as long as the key has a value, and this one's as often as it may.
struct Start {
  void* (*run)(void*);
  void* argument;
  sim::Task* task;
  int rounds = 0;
};
pthread_key_t g_last_key;

void at_thread_end(void* value) {
  auto* start = static_cast<Start*>(value);
  if (++start->rounds < 4) {  // PTHREAD_DESTRUCTOR_ITERATIONS
    (void)pthread_setspecific(g_last_key, start);
    return;
  }
  delete start;
  sim::leave();
}

void* run_thread(void* argument) {
  auto* start = static_cast<Start*>(argument);
  sim::enter(start->task);
  (void)pthread_setspecific(g_last_key, start);
  return start->run(start->argument);
}

[[gnu::constructor]] void make_key() { (void)pthread_key_create(&g_last_key, at_thread_end); }

}  // namespace

void kvsyncfs::sim_threads::answer_pthread() {}

extern "C" {

int pthread_mutex_lock(pthread_mutex_t* mutex) {
  if (!sim::self()) return REAL(pthread_mutex_lock)(mutex);
  return take(mutex, sim::kForever, [&] { return REAL(pthread_mutex_trylock)(mutex); });
}
int pthread_mutex_trylock(pthread_mutex_t* mutex) {
  const int error = REAL(pthread_mutex_trylock)(mutex);
  return sim::self() ? try_take(error) : error;
}
int pthread_mutex_clocklock(pthread_mutex_t* mutex, clockid_t clock, const timespec* until) {
  if (!sim::self()) return REAL(pthread_mutex_clocklock)(mutex, clock, until);
  return take(mutex, time_of(clock, until), [&] { return REAL(pthread_mutex_trylock)(mutex); });
}
int pthread_mutex_timedlock(pthread_mutex_t* mutex, const timespec* until) {
  if (!sim::self()) return REAL(pthread_mutex_timedlock)(mutex, until);
  return pthread_mutex_clocklock(mutex, CLOCK_REALTIME, until);
}
int pthread_mutex_unlock(pthread_mutex_t* mutex) {
  const int error = REAL(pthread_mutex_unlock)(mutex);
  return sim::self() ? given_back(mutex, error) : error;
}

int pthread_rwlock_rdlock(pthread_rwlock_t* lock) {
  if (!sim::self()) return REAL(pthread_rwlock_rdlock)(lock);
  return take(lock, sim::kForever, [&] { return REAL(pthread_rwlock_tryrdlock)(lock); });
}
int pthread_rwlock_wrlock(pthread_rwlock_t* lock) {
  if (!sim::self()) return REAL(pthread_rwlock_wrlock)(lock);
  return take(lock, sim::kForever, [&] { return REAL(pthread_rwlock_trywrlock)(lock); });
}
int pthread_rwlock_clockrdlock(pthread_rwlock_t* lock, clockid_t clock, const timespec* until) {
  if (!sim::self()) return REAL(pthread_rwlock_clockrdlock)(lock, clock, until);
  return take(lock, time_of(clock, until), [&] { return REAL(pthread_rwlock_tryrdlock)(lock); });
}
int pthread_rwlock_clockwrlock(pthread_rwlock_t* lock, clockid_t clock, const timespec* until) {
  if (!sim::self()) return REAL(pthread_rwlock_clockwrlock)(lock, clock, until);
  return take(lock, time_of(clock, until), [&] { return REAL(pthread_rwlock_trywrlock)(lock); });
}
int pthread_rwlock_timedrdlock(pthread_rwlock_t* lock, const timespec* until) {
  if (!sim::self()) return REAL(pthread_rwlock_timedrdlock)(lock, until);
  return pthread_rwlock_clockrdlock(lock, CLOCK_REALTIME, until);
}
int pthread_rwlock_timedwrlock(pthread_rwlock_t* lock, const timespec* until) {
  if (!sim::self()) return REAL(pthread_rwlock_timedwrlock)(lock, until);
  return pthread_rwlock_clockwrlock(lock, CLOCK_REALTIME, until);
}
int pthread_rwlock_tryrdlock(pthread_rwlock_t* lock) {
  const int error = REAL(pthread_rwlock_tryrdlock)(lock);
  return sim::self() ? try_take(error) : error;
}
int pthread_rwlock_trywrlock(pthread_rwlock_t* lock) {
  const int error = REAL(pthread_rwlock_trywrlock)(lock);
  return sim::self() ? try_take(error) : error;
}
int pthread_rwlock_unlock(pthread_rwlock_t* lock) {
  const int error = REAL(pthread_rwlock_unlock)(lock);
  return sim::self() ? given_back(lock, error) : error;
}

int pthread_cond_wait(pthread_cond_t* condition, pthread_mutex_t* mutex) {
  if (!sim::self()) return REAL(pthread_cond_wait)(condition, mutex);
  return wait_for(condition, mutex, sim::kForever);
}
int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock,
                           const timespec* until) {
  if (!sim::self()) return REAL(pthread_cond_clockwait)(condition, mutex, clock, until);
  return wait_for(condition, mutex, time_of(clock, until));
}
int pthread_cond_timedwait(pthread_cond_t* condition, pthread_mutex_t* mutex,
                           const timespec* until) {
  if (!sim::self()) return REAL(pthread_cond_timedwait)(condition, mutex, until);
  return wait_for(condition, mutex, time_of(CLOCK_REALTIME, until));
}
int pthread_cond_signal(pthread_cond_t* condition) {
  if (!sim::self()) return REAL(pthread_cond_signal)(condition);
  sim::wake_one(condition);
  return 0;
}
int pthread_cond_broadcast(pthread_cond_t* condition) {
  if (!sim::self()) return REAL(pthread_cond_broadcast)(condition);
  sim::wake(condition);
  return 0;
}

int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*run)(void*),
                   void* argument) {
  if (!sim::self()) return REAL(pthread_create)(thread, attributes, run, argument);
  auto* start = new Start{run, argument, sim::add_task()};
  const int error = REAL(pthread_create)(thread, attributes, run_thread, start);
  start->task->thread = *thread;
  start->task->is_over = error != 0;
  return error;
}
int pthread_join(pthread_t thread, void** result) {
  if (sim::self()) {
    const sim::Task* task = sim::find(thread);
    while (task != nullptr && !task->is_over) (void)sim::wait(task, sim::kForever);
  }
  return REAL(pthread_join)(thread, result);
}

int clock_gettime(clockid_t clock, timespec* time) noexcept {
  const bool is_cpu = clock == CLOCK_PROCESS_CPUTIME_ID || clock == CLOCK_THREAD_CPUTIME_ID;
  if (!sim::self() || is_cpu) return REAL(clock_gettime)(clock, time);
  *time = to_timespec(shown_by(clock));
  return 0;
}
int gettimeofday(timeval* time, void* zone) noexcept {
  if (!sim::self()) return REAL(gettimeofday)(time, zone);
  const timespec now = to_timespec(shown_by(CLOCK_REALTIME));
  *time = {now.tv_sec, now.tv_nsec / 1000};
  return 0;
}
int nanosleep(const timespec* length, timespec* left) {
  if (!sim::self()) return REAL(nanosleep)(length, left);
  sim::sleep_until(sim::time_of(shown_by(CLOCK_MONOTONIC) + to_ns(length)));
  return 0;
}
int clock_nanosleep(clockid_t clock, int flags, const timespec* time, timespec* left) {
  if (!sim::self()) return REAL(clock_nanosleep)(clock, flags, time, left);
  if (flags == 0) return nanosleep(time, left);
  sim::sleep_until(time_of(clock, time));
  return 0;
}
int usleep(useconds_t microseconds) {
  if (!sim::self()) return REAL(usleep)(microseconds);
  sim::sleep(std::uint64_t{microseconds} * 1000);
  return 0;
}
int sched_yield() noexcept {
  if (!sim::self()) return REAL(sched_yield)();
  sim::sleep(1);
  return 0;
}

}  // extern "C"
