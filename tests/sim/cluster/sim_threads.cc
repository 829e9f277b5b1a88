#include "tests/sim/cluster/sim_threads.h"

#include <execinfo.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <map>
#include <memory>
#include <random>
#include <vector>

#include "tests/sim/cluster/sim_threads_impl.h"

namespace kvsyncfs::sim_threads {
namespace {

constexpr std::uint64_t kBeginNs = 1'000'000'000;
constexpr std::uint64_t kTurnNs =
    200;  // what a turn takes, so that a loop that polls comes to an end

constexpr std::uint64_t kWallBeginNs = 1'700'000'000'000'000'000;  // at boot
constexpr std::uint64_t kMillion = 1'000'000;
constexpr std::uint64_t kShownMaxNs = kForever / 4;  // no run comes as far

struct GroupClock {
  std::int64_t rate_ppm = 0, wall_ahead_ns = 0;
  /// How much of the clock's time goes by in a million of time.
  std::uint64_t rate() const { return static_cast<std::uint64_t>(1'000'000 + rate_ppm); }
};

struct Scheduler {
  explicit Scheduler(std::uint64_t seed) : random(seed) {
    constexpr std::uint64_t kOneIn[] = {3, 12, 50, 200};
    pass_one_in = kOneIn[random() % 4];
  }
  std::mt19937_64 random;
  std::uint64_t pass_one_in;  // of the places where somebody else may go on
  std::uint64_t now_ns = kBeginNs, turns = 0, turn_limit = kForever;
  std::vector<std::unique_ptr<Task>> tasks;
  std::map<unsigned, std::uint64_t> frozen_until_ns;
  std::map<unsigned, GroupClock> clocks;
  int waiting_for_locks = 0;
  bool is_telling = false;  // each thread that gets a turn tells its place
  std::uint32_t places_told = 0;
  void (*told)(const std::string&) = nullptr;
};

Scheduler* g_scheduler = nullptr;
thread_local Task* t_self = nullptr;

void futex(std::uint32_t* word, int operation, std::uint32_t value) {
  syscall(SYS_futex, word, operation | FUTEX_PRIVATE_FLAG, value, nullptr, nullptr, 0);
}

void tell_place() {
  std::array<void*, 32> frames;
  if (t_self == nullptr) return;
  const int count = backtrace(frames.data(), static_cast<int>(frames.size()));
  std::fprintf(stderr, "thread %llu of group %u %s%s\n",
               static_cast<unsigned long long>(t_self->id), t_self->group, t_self->name.c_str(),
               t_self->is_ready ? ", could run" : "");
  backtrace_symbols_fd(frames.data(), count, 2);
}

void await_turn(Task* task) {
  for (;;) {
    while (__atomic_load_n(&task->has_turn, __ATOMIC_ACQUIRE) == 0)
      futex(&task->has_turn, FUTEX_WAIT, 0);
    __atomic_store_n(&task->has_turn, 0, __ATOMIC_RELAXED);
    if (!g_scheduler->is_telling) return;
    tell_place();
    __atomic_add_fetch(&g_scheduler->places_told, 1, __ATOMIC_RELEASE);
  }
}

void give_turn(Task* task) {
  __atomic_store_n(&task->has_turn, 1, __ATOMIC_RELEASE);
  futex(&task->has_turn, FUTEX_WAKE, 1);
}

/// Ends the process.
[[noreturn]] void end(const char* why) {
  Scheduler& s = *g_scheduler;
  std::fprintf(stderr, "%s at %.6f s after %llu turns\n", why, static_cast<double>(s.now_ns) / 1e9,
               static_cast<unsigned long long>(s.turns));
  s.is_telling = true;
  tell_place();
  for (const auto& task : s.tasks) {
    if (task->is_over || task.get() == t_self) continue;
    const std::uint32_t before = s.places_told;
    give_turn(task.get());
    while (__atomic_load_n(&s.places_told, __ATOMIC_ACQUIRE) == before) syscall(SYS_sched_yield);
  }
  if (s.told) s.told(why);
  _exit(3);
}

bool is_frozen(const Scheduler& s, const Task& task) {
  const auto until = s.frozen_until_ns.find(task.group);
  return until != s.frozen_until_ns.end() && until->second > s.now_ns && task.locks == 0;
}

/// When a task could run that cannot now.
std::uint64_t could_run_ns(const Scheduler& s, const Task& task) {
  const std::uint64_t ready_ns = task.is_ready ? s.now_ns : task.until_ns;
  const auto until = s.frozen_until_ns.find(task.group);
  if (until == s.frozen_until_ns.end() || task.locks != 0 || ready_ns == kForever) return ready_ns;
  return std::max(ready_ns, until->second);
}

Task* choose() {
  Scheduler& s = *g_scheduler;
  ++s.turns;
  s.now_ns += kTurnNs;
  if (s.turns > s.turn_limit) end("no end");
  for (;;) {
    static std::vector<Task*> ready;
    ready.clear();
    std::uint64_t next_ns = kForever;
    for (const auto& task : s.tasks) {
      if (task->is_over) continue;
      if (!task->is_ready && task->until_ns <= s.now_ns) task->is_ready = task->timed_out = true;
      if (task->is_ready && !is_frozen(s, *task))
        ready.push_back(task.get());
      else
        next_ns = std::min(next_ns, could_run_ns(s, *task));
    }
    if (!ready.empty()) return ready[s.random() % ready.size()];
    if (next_ns == kForever) end("deadlock");
    s.now_ns = std::max(s.now_ns, next_ns);
  }
}

/// The calling thread has said why it stops.
void hand_on() {
  Task* me = t_self;
  Task* next = choose();
  if (next == me) return;
  give_turn(next);
  await_turn(me);
}

void become_ready(Task& task) {
  task.is_ready = true;
  task.waits_for = nullptr;
  task.until_ns = kForever;
}

}  // namespace

Task* self() { return t_self; }

void begin(std::uint64_t seed) {
  answer_pthread();
  g_scheduler = new Scheduler(seed);  // for as long as the process
  t_self = add_task();
  t_self->name = "main";
}

bool is_part() { return t_self != nullptr; }
std::uint64_t now_ns() { return g_scheduler->now_ns; }

void set_clock_rate(unsigned group, std::int64_t rate_ppm) {
  g_scheduler->clocks[group].rate_ppm = rate_ppm;
}
void move_wall_clock(unsigned group, std::int64_t by_ns) {
  g_scheduler->clocks[group].wall_ahead_ns += by_ns;
}
std::uint64_t shown_ns(std::uint64_t ns) {
  if (ns < kBeginNs || ns > kShownMaxNs) return ns;
  const std::uint64_t rate = g_scheduler->clocks[t_self->group].rate(), past_ns = ns - kBeginNs;
  return kBeginNs + past_ns / kMillion * rate + past_ns % kMillion * rate / kMillion;
}
std::uint64_t time_of(std::uint64_t shown) {
  if (shown < kBeginNs) return shown;
  if (shown > kShownMaxNs) return kForever;
  const std::uint64_t rate = g_scheduler->clocks[t_self->group].rate(), past_ns = shown - kBeginNs;
  return kBeginNs + past_ns / rate * kMillion + (past_ns % rate * kMillion + rate - 1) / rate;
}
std::uint64_t shown_wall_ns() {
  return kWallBeginNs + shown_ns(now_ns()) +
         static_cast<std::uint64_t>(g_scheduler->clocks[t_self->group].wall_ahead_ns);
}

std::uint64_t turns() { return g_scheduler->turns; }
void set_turn_limit(std::uint64_t turns) { g_scheduler->turn_limit = turns; }
void on_end(void (*told)(const std::string&)) { g_scheduler->told = told; }

bool wait(const void* what, std::uint64_t until_ns) {
  Task& me = *t_self;
  me.is_ready = false;
  me.timed_out = false;
  me.waits_for = what;
  me.until_ns = until_ns;
  hand_on();
  const bool in_time = !me.timed_out;
  become_ready(me);
  return in_time;
}

void sleep_until(std::uint64_t ns) {
  if (ns > now_ns()) static_cast<void>(wait(t_self, ns));
}

void wake(const void* what) {
  for (const auto& task : g_scheduler->tasks)
    if (!task->is_ready && task->waits_for == what) become_ready(*task);
}

void wake_one(const void* what) {
  std::vector<Task*> waiting;
  for (const auto& task : g_scheduler->tasks)
    if (!task->is_ready && task->waits_for == what) waiting.push_back(task.get());
  if (!waiting.empty()) become_ready(*waiting[g_scheduler->random() % waiting.size()]);
}

void pass_by() {
  if (g_scheduler->random() % g_scheduler->pass_one_in == 0) hand_on();
}

void join_group(unsigned group, std::string name) {
  t_self->group = group;
  t_self->name = std::move(name);
}

void freeze(unsigned group, std::uint64_t until_ns) {
  g_scheduler->frozen_until_ns[group] = until_ns;
}

Task* add_task() {
  auto task = std::make_unique<Task>();
  task->id = g_scheduler->tasks.size();
  if (t_self) {
    task->group = t_self->group;
    task->name = t_self->name;
  }
  g_scheduler->tasks.push_back(std::move(task));
  return g_scheduler->tasks.back().get();
}

void enter(Task* task) {
  t_self = task;
  await_turn(task);
}

void leave() {
  Task* me = t_self;
  me->is_over = true;
  wake(me);
  t_self = nullptr;
  give_turn(choose());
}

Task* find(pthread_t thread) {
  const auto& tasks = g_scheduler->tasks;
  const auto found = std::find_if(tasks.rbegin(), tasks.rend(), [&](const auto& task) {
    return pthread_equal(task->thread, thread) != 0;
  });
  return found == tasks.rend() ? nullptr : found->get();
}

}  // namespace kvsyncfs::sim_threads
