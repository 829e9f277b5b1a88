// The transport over loopback against bare blocking sockets, turn by turn in one run, so that the
// ratio does not depend on the machine's mood. ratio of a read: its time by the bare round trip's;
// ratio of the bulk: its rate by the bare stream's.
#include <arpa/inet.h>
#include <benchmark/benchmark.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

#include "engine/env/real.h"
#include "engine/net/tcp/tcp_transport.h"

namespace kvsyncfs {
namespace {

constexpr std::size_t kRegionSize = 64u << 20;
constexpr std::size_t kQuestionSize = 64;  // what a bare asker sends

void require(bool holds) {
  if (!holds) std::abort();
}

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

/// Two blocking sockets that are connected over loopback.
class BarePair {
 public:
  BarePair() {
    const int listener = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* generic = reinterpret_cast<sockaddr*>(&address);
    require(::bind(listener, generic, size) == 0 && ::listen(listener, 1) == 0);
    require(::getsockname(listener, generic, &size) == 0);
    asker = ::socket(AF_INET, SOCK_STREAM, 0);
    require(::connect(asker, generic, size) == 0);
    server = ::accept(listener, nullptr, nullptr);
    require(server >= 0);
    ::close(listener);
    const int on = 1;
    for (const int end : {asker, server})
      require(::setsockopt(end, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) == 0);
  }
  ~BarePair() {
    ::close(asker);
    ::close(server);
  }
  BarePair(const BarePair&) = delete;
  BarePair& operator=(const BarePair&) = delete;

  int asker = -1, server = -1;
};

bool receive_all(int end, std::byte* out, std::size_t size) {
  while (size > 0) {
    const ssize_t got = ::recv(end, out, size, 0);
    if (got <= 0) return false;
    out += got;
    size -= static_cast<std::size_t>(got);
  }
  return true;
}

bool send_all(int end, const std::byte* bytes, std::size_t size) {
  while (size > 0) {
    const ssize_t sent = ::send(end, bytes, size, MSG_NOSIGNAL);
    if (sent <= 0) return false;
    bytes += sent;
    size -= static_cast<std::size_t>(sent);
  }
  return true;
}

/// Answers each question with so many bytes of a large memory, as a bare server would.
class BareServer {
 public:
  BareServer(const AlignedBuffer& memory, std::size_t answer_size)
      : thread_([this, &memory, answer_size] {
          std::byte question[kQuestionSize];
          std::mt19937_64 random(1);
          while (receive_all(pair_.server, question, sizeof question)) {
            const std::size_t at = random() % (memory.size() - answer_size + 1);
            if (!send_all(pair_.server, memory.data() + at, answer_size)) break;
          }
        }) {}
  ~BareServer() {
    ::shutdown(pair_.asker, SHUT_RDWR);
    thread_.join();
  }

  void ask() {
    const std::byte question[kQuestionSize] = {};
    require(send_all(pair_.asker, question, sizeof question));
  }
  void take(MutableBytes out) { require(receive_all(pair_.asker, out.data(), out.size())); }

 private:
  BarePair pair_;
  std::thread thread_;
};

class Node {
 public:
  explicit Node(std::uint64_t id) {
    TcpOptions options;
    options.node = {id};
    options.incarnation = {1};
    options.secret = "a secret of sufficient size";
    options.listen = "127.0.0.1:0";
    transport_ = make_tcp_transport(*clock_, *random_, options).value();
    transport_->start({}).value();
    thread_ = std::thread([this] { transport_->run(); });
  }
  ~Node() {
    transport_->stop();
    thread_.join();
  }
  TcpTransport* operator->() { return transport_.get(); }
  std::uint64_t deadline_ns() { return clock_->boot_ns() + 15'000'000'000; }

 private:
  std::unique_ptr<Clock> clock_ = make_real_clock();
  std::unique_ptr<Random> random_ = make_real_random();
  std::unique_ptr<TcpTransport> transport_;
  std::thread thread_;
};

/// Counts answers; the asker waits for one at a time.
class Answers {
 public:
  void put(const Status& status) {
    require(status.has_value());
    std::lock_guard lock(mutex_);
    ++count_;
    changed_.notify_one();
  }
  void take() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return count_ > 0; });
    --count_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int count_ = 0;
};

class World {
 public:
  World() : memory_(kRegionSize) {
    std::fill_n(memory_.data(), memory_.size(), std::byte{1});
    key_ = server_->register_region(memory_.bytes()).value();
    asker_->set_peer({2}, {"127.0.0.1:" + std::to_string(server_->port())}).value();
  }
  void ask(MutableBytes out) {
    RegionRead read;
    read.key = key_;
    read.offset = random_() % (memory_.size() / kPageSize - out.size() / kPageSize + 1) * kPageSize;
    read.out = out;
    read.deadline_ns = asker_.deadline_ns();
    read.done = [this](Status status) { answers_.put(status); };
    require(asker_->read({2}, std::move(read)).has_value());
  }
  void wait() { answers_.take(); }
  const AlignedBuffer& memory() const { return memory_; }

 private:
  AlignedBuffer memory_;
  Answers answers_;
  std::mt19937_64 random_{1};
  RegionKey key_;
  Node server_{2}, asker_{1};
};

void read_4_kib(benchmark::State& state) {
  constexpr int kTurn = 200;
  World world;
  BareServer bare(world.memory(), kPageSize);
  AlignedBuffer out(kPageSize);
  double ours_s = 0, bare_s = 0;
  for (auto _ : state) {
    auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < kTurn; ++i) {
      bare.ask();
      bare.take(out.bytes());
    }
    bare_s += seconds_since(begin);
    begin = std::chrono::steady_clock::now();
    for (int i = 0; i < kTurn; ++i) {
      world.ask(out.bytes());
      world.wait();
    }
    const double turn_s = seconds_since(begin);
    ours_s += turn_s;
    state.SetIterationTime(turn_s);
  }
  const double count = static_cast<double>(state.iterations()) * kTurn;
  state.counters["us"] = ours_s / count * 1e6;
  state.counters["bare_us"] = bare_s / count * 1e6;
  state.counters["ratio"] = ours_s / bare_s;
}
BENCHMARK(read_4_kib)->UseManualTime();

void read_bulk(benchmark::State& state) {
  constexpr std::size_t kTurn = 256;  // MiB
  constexpr std::size_t kAhead = 6;
  constexpr std::size_t kSize = 1u << 20;
  World world;
  BareServer bare(world.memory(), kSize);
  std::vector<AlignedBuffer> outs;
  for (std::size_t i = 0; i < kAhead; ++i) outs.emplace_back(kSize);
  double ours_s = 0, bare_s = 0;
  for (auto _ : state) {
    auto begin = std::chrono::steady_clock::now();
    for (std::size_t i = 0; i < kTurn + kAhead; ++i) {
      if (i < kTurn) bare.ask();
      if (i >= kAhead) bare.take(outs[i % kAhead].bytes());
    }
    bare_s += seconds_since(begin);
    begin = std::chrono::steady_clock::now();
    for (std::size_t i = 0; i < kTurn + kAhead; ++i) {
      if (i >= kAhead) world.wait();
      if (i < kTurn) world.ask(outs[i % kAhead].bytes());
    }
    const double turn_s = seconds_since(begin);
    ours_s += turn_s;
    state.SetIterationTime(turn_s);
  }
  const double mib = static_cast<double>(state.iterations()) * static_cast<double>(kTurn);
  state.counters["mib_per_s"] = mib / ours_s;
  state.counters["bare_mib_per_s"] = mib / bare_s;
  state.counters["ratio"] = bare_s / ours_s;
}
BENCHMARK(read_bulk)->UseManualTime();

}  // namespace
}  // namespace kvsyncfs

BENCHMARK_MAIN();
