// The thread sanitizer of gcc 12 does not know pthread_mutex_clocklock(), by which libstdc++ takes a
// timed_mutex until a point of the steady clock: it would tell of an unlock without a lock, and take
// what such a mutex guards for races. It knows pthread_mutex_timedlock(), so a build with the
// sanitizer waits by that. Thread: any.
#include <pthread.h>
#include <time.h>

enum { kNanosecondsPerSecond = 1000000000 };

int pthread_mutex_clocklock(pthread_mutex_t* mutex, clockid_t clock, const struct timespec* until) {
  struct timespec now, end;
  clock_gettime(clock, &now);
  clock_gettime(CLOCK_REALTIME, &end);
  end.tv_sec += until->tv_sec - now.tv_sec;
  end.tv_nsec += until->tv_nsec - now.tv_nsec;
  if (end.tv_nsec < 0) {
    end.tv_nsec += kNanosecondsPerSecond;
    --end.tv_sec;
  } else if (end.tv_nsec >= kNanosecondsPerSecond) {
    end.tv_nsec -= kNanosecondsPerSecond;
    ++end.tv_sec;
  }
  return pthread_mutex_timedlock(mutex, &end);
}
