#include "fs/request_server.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/json.hpp>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <list>
#include <thread>
#include <utility>
#include <vector>

#include "fs/answer_runner.h"
#include "fs/quiet_thread.h"

namespace kvsyncfs {
namespace {

using SteadyClock = std::chrono::steady_clock;
constexpr std::chrono::seconds kPatience{2};
constexpr std::size_t kClientsMax = 16;
constexpr std::size_t kClientsOfRoot = 4;
constexpr std::size_t kRequestSizeMax = 64;
constexpr std::size_t kAdminSizeMax = 32u << 10;  // a path with each byte of it escaped

std::string failure_json(std::string_view reason) {
  return boost::json::serialize(boost::json::object{{"ok", false}, {"error", reason}}) + "\n";
}

std::string barrier_json(const Status& status) {
  return status ? "{\"ok\":true}\n" : failure_json(describe(status.error()));
}

/// One connection: reads a line, perhaps waits for a runner, writes the answer.
struct Client {
  int fd;
  bool is_root;
  SteadyClock::time_point deadline = SteadyClock::now() + kPatience;
  std::string request = {};
  AnswerRunner* runner = nullptr;  ///< that it waits for
  std::uint64_t ticket = 0;        ///< of that one
  std::string answer = {};
  std::size_t sent = 0;
  bool is_done = false;

  /// A waiting client is only watched for its end, which poll always reports.
  short events() const {
    if (!answer.empty()) return POLLOUT;
    return waits() ? short{0} : short{POLLIN};
  }
  bool waits() const { return runner != nullptr; }
  std::size_t request_size_max() const {
    return is_root && request.starts_with('{') ? kAdminSizeMax : kRequestSizeMax;
  }
  void reply(std::string text) {
    answer = std::move(text);
    deadline = SteadyClock::now() + kPatience;
    runner = nullptr;
  }
  void wait_for(AnswerRunner& answers) {
    runner = &answers;
    ticket = answers.request(request.substr(0, request.find('\n')));
  }
  void receive() {
    std::array<char, kRequestSizeMax + 1> part;
    const ssize_t size = ::recv(fd, part.data(), part.size(), 0);
    if (size > 0) request.append(part.data(), static_cast<std::size_t>(size));
    if (size == 0 || (size < 0 && errno != EAGAIN && errno != EINTR)) is_done = true;
  }
  void send() {
    const ssize_t size =
        ::send(fd, answer.data() + sent, answer.size() - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (size > 0) {
      sent += static_cast<std::size_t>(size);
      deadline = SteadyClock::now() + kPatience;
    }
    if (sent == answer.size() || (size < 0 && errno != EAGAIN && errno != EINTR)) is_done = true;
  }
};

bool is_root(int fd) {
  ucred peer{};
  socklen_t size = sizeof(peer);
  return ::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.uid == 0;
}

}  // namespace

class RequestServer::Impl {
 public:
  Impl(int listener, int heartbeat, RequestHandlers handlers)
      : listener_(listener),
        heartbeat_(heartbeat),
        handlers_(std::move(handlers)),
        barriers_([this](std::string_view) { return barrier_json(handlers_.barrier()); }),
        answers_(handlers_.admin) {}
  ~Impl() {
    if (thread_.joinable()) {
      barriers_.stop();
      answers_.stop();
      thread_.join();
    }
    for (const Client& client : clients_) ::close(client.fd);
  }

  Status start() {
    KVSYNCFS_TRY(barriers_.start());
    KVSYNCFS_TRY(answers_.start());
    return start_quiet_thread(thread_, [this] { run(); });
  }

 private:
  void run() {
    auto next_tick = SteadyClock::now();
    while (!barriers_.is_stopped()) {
      if (SteadyClock::now() >= next_tick) {
        handlers_.tick();
        next_tick = SteadyClock::now() + std::chrono::milliseconds(kTickMs);
      }
      std::vector<pollfd> polled = {{barriers_.event_fd(), POLLIN, 0},
                                    {heartbeat_, POLLIN, 0},
                                    {SteadyClock::now() < rest_until_ ? -1 : listener_, POLLIN, 0},
                                    {answers_.event_fd(), POLLIN, 0}};
      for (const Client& client : clients_) polled.push_back({client.fd, client.events(), 0});
      if (::poll(polled.data(), polled.size(), wait_ms(next_tick)) < 0) continue;
      if (polled[1].revents != 0) beat();
      auto client = clients_.begin();
      for (std::size_t i = 4; i < polled.size(); ++i, ++client) {
        if (polled[i].revents != 0) serve(*client);
      }
      if (polled[0].revents != 0) finish(barriers_);
      if (polled[3].revents != 0) finish(answers_);
      if (polled[2].revents != 0) accept();
      drop_clients();
    }
  }

  int wait_ms(SteadyClock::time_point next_tick) const {
    auto end = next_tick;
    if (rest_until_ > SteadyClock::now()) end = std::min(end, rest_until_);
    for (const Client& client : clients_) {
      if (!client.waits()) end = std::min(end, client.deadline);
    }
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - SteadyClock::now());
    return static_cast<int>(std::clamp<std::int64_t>(left.count(), 0, kTickMs));
  }

  void beat() {
    std::array<char, kRequestSizeMax> bytes;
    const ssize_t size = ::recv(heartbeat_, bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (size > 0) {
      ::send(heartbeat_, bytes.data(), static_cast<std::size_t>(size), MSG_NOSIGNAL | MSG_DONTWAIT);
    } else if (size == 0 || (errno != EAGAIN && errno != EINTR)) {
      heartbeat_ = -1;  // nobody listens any more
    }
  }

  void accept() {
    const int fd = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0) {
      // Without descriptors the listener stays readable: look again later.
      if (errno == EMFILE || errno == ENFILE || errno == ENOMEM) {
        rest_until_ = SteadyClock::now() + kPatience;
      }
      return;
    }
    const bool root = is_root(fd);
    if (clients_.size() >= (root ? kClientsMax : kClientsMax - kClientsOfRoot)) {
      ::close(fd);
    } else {
      clients_.push_back({.fd = fd, .is_root = root});
    }
  }

  void serve(Client& client) {
    if (!client.answer.empty()) return client.send();
    if (client.waits()) {
      client.runner->cancel(client.ticket);
      client.is_done = true;  // gone before its answer was
      return;
    }
    client.receive();
    const std::size_t end = client.request.find('\n');
    if (end != std::string::npos && end <= client.request_size_max()) {
      answer(client, std::string_view(client.request).substr(0, end));
    } else if (client.request.size() > client.request_size_max()) {
      client.reply(failure_json("the request is too long"));
    }
  }

  void answer(Client& client, std::string_view request) {
    if (request == "ping") {
      client.reply(fmt::format("{{\"ok\":true,\"pid\":{}}}\n", ::getpid()));
    } else if (request == "stats") {
      client.reply(handlers_.stats() + "\n");
    } else if (request == "barrier" && !client.is_root) {
      client.reply(failure_json("only root may ask for a barrier"));
    } else if (request == "barrier") {
      client.wait_for(barriers_);
    } else if (request.starts_with('{') && client.is_root) {
      client.wait_for(answers_);
    } else if (request.starts_with('{')) {
      client.reply(failure_json("only root may ask that"));
    } else {
      client.reply(failure_json("unknown request; there are ping, stats, barrier"));
    }
  }

  void finish(AnswerRunner& runner) {
    for (AnswerRunner::Completion& done : runner.take_completions()) {
      for (Client& client : clients_)
        if (client.runner == &runner && client.ticket == done.ticket)
          client.reply(std::move(done.answer));
    }
  }

  void drop_clients() {
    const auto now = SteadyClock::now();
    std::erase_if(clients_, [now](const Client& client) {
      const bool drops = client.is_done || (!client.waits() && now >= client.deadline);
      if (drops) ::close(client.fd);
      return drops;
    });
  }

  const int listener_;
  int heartbeat_;
  const RequestHandlers handlers_;
  AnswerRunner barriers_, answers_;
  std::list<Client> clients_;
  SteadyClock::time_point rest_until_;
  std::thread thread_;
};

RequestServer::RequestServer(int listener, int heartbeat, RequestHandlers handlers)
    : impl_(std::make_unique<Impl>(listener, heartbeat, std::move(handlers))) {}
RequestServer::~RequestServer() = default;

Status RequestServer::start() { return impl_->start(); }
void RequestServer::stop() { impl_.reset(); }

}  // namespace kvsyncfs
