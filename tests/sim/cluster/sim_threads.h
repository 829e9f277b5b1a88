// Threads under simulated time: of all threads that the simulation knows only one runs at any
// moment, and a seed says which one is next.
//
// A binary that links this library has pthread's locks, conditions, thread starts, clocks and
// sleeps answered here (sim_pthread.cc), for the code of this tree and for the libraries below it
// alike. Each of them is a place where another thread may go on. Who waits hands the turn on; when
// nobody can run, the time of the next one who waits for it has come. Nobody can run and nobody
// waits for a time: that is a deadlock, and ends the process with each thread's place.
//
// So the code that is simulated runs as it is shipped, and one seed is one run, if the process does
// nothing else: begin() belongs into a process of its own (seed_process.h). The thread that calls
// begin(), and those that threads of the simulation start, are part of it. Threads before it have
// the real pthread.
//
// Threads belong to groups (the nodes of a cluster); a group can be frozen. Thread: those of the
// simulation, so one at a time: what they do between two such places happens at once.
#pragma once

#include <cstdint>
#include <string>

namespace kvsyncfs::sim_threads {

inline constexpr std::uint64_t kForever = ~std::uint64_t{0};

/// The calling thread becomes the first of the simulation, in group 0, at time 1 s.
void begin(std::uint64_t seed);
bool is_part();  ///< the calling thread is

std::uint64_t now_ns();
/// The clocks of a group's threads: `rate_ppm` millionths faster than time, counted from begin(),
/// and for the wall clock so much ahead. Each node has its own; what this header takes and tells is
/// time itself, unless it says "shown".
void set_clock_rate(unsigned group, std::int64_t rate_ppm);
void move_wall_clock(unsigned group, std::int64_t by_ns);
std::uint64_t shown_ns(std::uint64_t ns);    ///< what the calling thread's boot clock shows then
std::uint64_t time_of(std::uint64_t shown);  ///< when it shows that; far ahead: kForever
std::uint64_t shown_wall_ns();               ///< what its wall clock shows now
void sleep_until(std::uint64_t ns);
inline void sleep(std::uint64_t ns) { sleep_until(now_ns() + ns); }
/// Waits for wake(what). False: the time came first.
bool wait(const void* what, std::uint64_t until_ns);
void wake(const void* what);  ///< all who wait for it

/// Of the calling thread and of those that it starts from now on.
void join_group(unsigned group, std::string name);
/// Its threads do nothing until then; one that holds a lock first gives it back.
void freeze(unsigned group, std::uint64_t until_ns);

/// So many turns were given; two runs of a seed that differ in it are not the same.
std::uint64_t turns();
/// The simulation ends the process when it has given so many.
void set_turn_limit(std::uint64_t turns);
/// Called with the text of what ends the process (a deadlock, the limit).
void on_end(void (*told)(const std::string& why));

}  // namespace kvsyncfs::sim_threads
