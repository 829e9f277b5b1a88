#include "tests/sim/cluster/seed_process.h"

#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

namespace kvsyncfs {
namespace {

int g_report = -1;  // the pipe of this process

void report(const SeedRun& run) {
  const std::string text = run.problem + '\0' + run.notes;
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t count = write(g_report, text.data() + done, text.size() - done);
    if (count <= 0) _exit(4);
    done += static_cast<std::size_t>(count);
  }
}

/// One thread runs at a time: to hand the turn on is cheap on one processor and dear between two.
void stay_on_one_processor() {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(sched_getcpu(), &set);
  static_cast<void>(sched_setaffinity(0, sizeof set, &set));
}

[[noreturn]] void be_the_child(const std::function<SeedRun()>& run, unsigned seconds) {
  stay_on_one_processor();
  alarm(seconds);
  report(run());
  std::fflush(nullptr);
  _exit(0);
}

std::string read_all(int file) {
  std::string text;
  char bytes[4096];
  for (ssize_t count; (count = read(file, bytes, sizeof bytes)) > 0;)
    text.append(bytes, static_cast<std::size_t>(count));
  close(file);
  return text;
}

}  // namespace

SeedRun run_in_process(const std::function<SeedRun()>& run, unsigned seconds) {
  int ends[2];
  if (pipe(ends) != 0) return {"no pipe", {}};
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child < 0) return {"no process", {}};
  if (child == 0) {
    close(ends[0]);
    g_report = ends[1];
    be_the_child(run, seconds);
  }
  close(ends[1]);
  const std::string text = read_all(ends[0]);
  int status = 0;
  if (waitpid(child, &status, 0) != child) return {"lost the process", {}};
  SeedRun result;
  const auto split = text.find('\0');
  result.problem = text.substr(0, split);
  if (split != std::string::npos) result.notes = text.substr(split + 1);
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM) result.problem = "no end in real time";
  if (status != 0 && result.problem.empty())
    result.problem = "the process ended with status " + std::to_string(status);
  return result;
}

bool tells_more() {
  static const bool tells = std::getenv("KVSYNCFS_SIM_TELL") != nullptr;
  return tells;
}

void end_process(const std::string& problem) {
  report({problem, {}});
  std::fflush(nullptr);
  _exit(1);
}

}  // namespace kvsyncfs
