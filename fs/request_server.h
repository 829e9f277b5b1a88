// Answers one-line requests on a Unix socket: "ping", "stats", "barrier", or a JSON object, which
// asks what kvsyncfs-ctl asks (fs/admin_requests.h); each with one JSON document, then closes. A
// client that is silent for 2 s is dropped; there are at most 16, of which 4 places are for root,
// so that nobody can shut root out.
//
// Thread: start() and stop() from one thread. The server has three threads of its own: one for all
// clients, one in which barriers run, and one for JSON requests, so that a slow one holds up nobody
// else.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "engine/base/error.h"

namespace kvsyncfs {

struct RequestHandlers {
  std::function<std::string()> stats;  ///< in the clients' thread
  std::function<Status()> barrier;     ///< in the barriers' thread
  /// In a thread of its own, one at a time; the answer ends with a newline.
  std::function<std::string(std::string_view request)> admin;
  std::function<void()> tick = [] {};  ///< in the clients' thread, every kTickMs
};
inline constexpr int kTickMs = 5000;

class RequestServer {
 public:
  /// `listener` is a listening, non-blocking socket. Each byte that comes in at `heartbeat` (a
  /// connected socket, or -1) is answered with one by the clients' thread: a sign of life. Both are
  /// borrowed.
  RequestServer(int listener, int heartbeat, RequestHandlers handlers);
  ~RequestServer();  ///< as stop()
  RequestServer(const RequestServer&) = delete;
  RequestServer& operator=(const RequestServer&) = delete;

  /// Errors: kNoMemory (no descriptors or threads left).
  Status start();
  /// Waits for a barrier and a JSON request that run; who asked gets no answer. May be called
  /// again.
  void stop();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace kvsyncfs
