#include "fs/process_setup.h"

#include <malloc.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>

namespace kvsyncfs {

namespace {

constexpr int kOomScore = -900;            // above nearly everybody, below what must never die
constexpr rlim_t kDescriptorsMin = 65536;  // segments are open files

bool raise_descriptors() {
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) != 0) return false;
  files.rlim_cur = files.rlim_max;  // this much needs no right
  ::setrlimit(RLIMIT_NOFILE, &files);
  if (files.rlim_max >= kDescriptorsMin) return true;
  files.rlim_cur = files.rlim_max = kDescriptorsMin;
  return ::setrlimit(RLIMIT_NOFILE, &files) == 0;
}

/// With a heap for each thread, what is freed stays in the heap of whoever had allocated it; and
/// RocksDB's blocks of 1 MiB would move into the heaps with the first one that is freed.
void share_heaps() {
  constexpr int kHeapsMax = 4, kMappedMin = 256 << 10;
  ::mallopt(M_ARENA_MAX, kHeapsMax);
  ::mallopt(M_MMAP_THRESHOLD, kMappedMin);
}

}  // namespace

std::vector<std::string> harden_process() {
  share_heaps();
  std::vector<std::string> missing;
  const auto want = [&missing](bool had, const char* what) {
    if (!had) missing.push_back(std::string(what) + ": " + std::strerror(errno));
  };
  errno = 0;
  std::ofstream score("/proc/self/oom_score_adj");
  score << kOomScore << std::flush;
  want(score.good(), "cannot lower the OOM score");
  want(::prctl(PR_SET_IO_FLUSHER, 1, 0, 0, 0) == 0, "cannot become an I/O flusher");
  want(raise_descriptors(), "cannot raise the limit of descriptors");
  // Code, static data and stack stay in memory once they were used. What is
  // mapped later (cache and buffers) is not locked: it is as large as the
  // options say, and may be swapped.
  want(::mlockall(MCL_CURRENT | MCL_ONFAULT) == 0, "cannot lock the program's memory");
  // A core dump could go to this mount.
  const rlimit no_core{0, 0};
  ::setrlimit(RLIMIT_CORE, &no_core);
  ::umask(0);  // the kernel passes the caller's with each request
  [[maybe_unused]] const int changed = ::chdir("/");
  return missing;
}

}  // namespace kvsyncfs
