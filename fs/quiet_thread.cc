#include "fs/quiet_thread.h"

#include <pthread.h>
#include <signal.h>

#include <string>
#include <system_error>
#include <utility>

namespace kvsyncfs {

namespace {

class NoSignals {
 public:
  NoSignals() {
    sigset_t all;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~NoSignals() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  NoSignals(const NoSignals&) = delete;
  NoSignals& operator=(const NoSignals&) = delete;

 private:
  sigset_t before_;
};

}  // namespace

Status start_quiet_thread(std::thread& thread, std::function<void()> run) {
  const NoSignals inherited;
  try {
    thread = std::thread(std::move(run));
  } catch (const std::system_error& error) {
    return Error(Code::kNoMemory, std::string("cannot start a thread: ") + error.what());
  }
  return {};
}

}  // namespace kvsyncfs
