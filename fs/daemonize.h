// Runs the daemon's work in the background and returns its verdict to the
// caller of mount(8). Thread: one.
#pragma once

#include <functional>
#include <string>

namespace kvsyncfs {

/// What the daemon tells its parent, once: mounted, or why not.
class Verdict {
 public:
  explicit Verdict(int pipe_fd) : fd_(pipe_fd) {}
  Verdict(const Verdict&) = delete;
  Verdict& operator=(const Verdict&) = delete;
  ~Verdict();
  /// The mount is ready: the parent prints the warning, if there is one, and
  /// exits with 0; the standard streams go to /dev/null.
  void ready(const std::string& warning);
  /// The parent prints the line and exits with 1.
  void failed(const std::string& line);

 private:
  void tell(char word, const std::string& line);

  int fd_;  // -1: in the foreground, or said already
};

/// Runs `work` in a detached child (or right here, in the foreground) and
/// returns the exit status for the caller: in the parent as soon as the verdict
/// is there; in the child what `work` returns. Nothing may be open or running
/// before.
int run_daemon(bool foreground, const std::function<int(Verdict&)>& work);

}  // namespace kvsyncfs
