#include "engine/net/tcp/connection.h"

#include <sys/socket.h>

#include <boost/asio/post.hpp>
#include <cerrno>
#include <cstring>

namespace kvsyncfs {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;

constexpr std::size_t kReceiveTurnSizeMax = 1u << 20;  // then others have a chance

}  // namespace

Connection::Connection(tcp::socket socket, const Regions& regions, const TlsContext* tls, Side side,
                       ConnectionOwner& owner)
    : socket_(std::move(socket)),
      descriptor_(socket_.native_handle()),
      owner_(&owner),
      tls_(tls != nullptr ? std::make_unique<TlsStream>(*tls, descriptor_, side) : nullptr),
      receiver_(owner),
      sender_(regions) {
  boost::system::error_code ignored;  // a socket that refuses either is merely slower
  socket_.set_option(tcp::no_delay(true), ignored);
  socket_.non_blocking(true, ignored);
}

void Connection::start() {
  if (tls_)
    shake_hands();
  else
    receive();
}

/// What is sent before it is over waits in the queue.
void Connection::shake_hands() {
  const auto again = [self = shared_from_this()](const boost::system::error_code& error) {
    if (!error && self->is_open()) self->shake_hands();
  };
  switch (tls_->shake_hands()) {
    case TlsStream::Step::kDone:
      flush();
      return receive();
    case TlsStream::Step::kWantsRead:
      return socket_.async_wait(tcp::socket::wait_read, again);
    case TlsStream::Step::kWantsWrite:
      return socket_.async_wait(tcp::socket::wait_write, again);
    case TlsStream::Step::kFailed:
      return lose("the peer closed the connection");
  }
}

void Connection::set_peer(const std::shared_ptr<LivePeerCounts>& counts) {
  counts_ = counts;
  sender_.set_counts(counts);
  receiver_.grow();
}

void Connection::send(OutFrame frame) {
  sender_.push(std::move(frame));
  flush();
}

void Connection::flush() {
  if (tls_ && !tls_->is_ready()) return;
  if (sender_.take_turn()) use_turn();
}

void Connection::use_turn() {
  switch (sender_.send(descriptor_, tls_.get())) {
    case Sender::Outcome::kIdle:
      return;
    case Sender::Outcome::kMore:
      asio::post(socket_.get_executor(), [self = shared_from_this()] { self->use_turn(); });
      return;
    case Sender::Outcome::kBlocked:
      // The socket's waits belong to the loop, the turn goes with them.
      asio::post(socket_.get_executor(), [self = shared_from_this()] { self->wait_writable(); });
      return;
    case Sender::Outcome::kBroken:
      asio::post(socket_.get_executor(), [self = shared_from_this()] {
        // Why it is gone may still be there to be read.
        if (self->tls_ && self->is_open()) self->receive();
        self->lose("the peer closed the connection");
      });
      return;
  }
}

void Connection::wait_writable() {
  if (!is_open()) return;
  socket_.async_wait(tcp::socket::wait_write,
                     [self = shared_from_this()](const boost::system::error_code& error) {
                       if (!error && self->is_open()) self->use_turn();
                     });
}

void Connection::wait_readable() {
  socket_.async_wait(tcp::socket::wait_read,
                     [self = shared_from_this()](const boost::system::error_code& error) {
                       if (!error && self->is_open()) self->receive();
                     });
}

ssize_t Connection::read_some(const std::array<MutableBytes, 2>& room) {
  if (tls_) return tls_->receive(room);
  iovec parts[2] = {{room[0].data(), room[0].size()}, {room[1].data(), room[1].size()}};
  msghdr message{};
  message.msg_iov = parts;
  message.msg_iovlen = 2;
  return ::recvmsg(descriptor_, &message, MSG_DONTWAIT);
}

void Connection::receive() {
  const auto self = shared_from_this();  // a frame may make the owner let go
  for (std::size_t taken = 0; taken < kReceiveTurnSizeMax;) {
    const auto room = receiver_.room();
    const ssize_t result = read_some(room);
    if (result < 0 && errno == EINTR) continue;
    if (result < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return wait_readable();
    if (result < 0) return lose(std::strerror(errno));
    if (result == 0) return lose("the peer closed the connection");
    const auto size = static_cast<std::size_t>(result);
    taken += size;
    if (counts_) count(counts_->bytes_received, size);
    owner_->on_heard();
    const Status status = receiver_.received(size);
    if (!status) {
      if (auto words = owner_->last_words(status.error())) send(std::move(*words));
      return fail(status.error());
    }
    if (!is_open()) return;
    if (size < room[0].size() + room[1].size()) return wait_readable();
  }
  asio::post(socket_.get_executor(), [self] {
    if (self->is_open()) self->receive();
  });
}

void Connection::close() {
  if (!is_open()) return;
  owner_ = nullptr;
  ::shutdown(descriptor_, SHUT_RDWR);
  boost::system::error_code ignored;  // nothing waits then
  socket_.cancel(ignored);
  sender_.clear();
}

/// The connection is gone, by what TLS says, if it says something.
void Connection::lose(const char* text) {
  const Status trust = tls_ ? tls_->failure() : Status{};
  fail(trust ? Error(Code::kDisconnected, text) : trust.error());
}

void Connection::fail(const Error& why) {
  if (!is_open()) return;
  ConnectionOwner* owner = owner_;
  close();
  owner->on_closed(why);
}

}  // namespace kvsyncfs
