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

Connection::Connection(tcp::socket socket, const Regions& regions, ConnectionOwner& owner)
    : socket_(std::move(socket)),
      descriptor_(socket_.native_handle()),
      owner_(&owner),
      receiver_(owner),
      sender_(regions) {
  boost::system::error_code ignored;  // a socket that refuses either is merely slower
  socket_.set_option(tcp::no_delay(true), ignored);
  socket_.non_blocking(true, ignored);
}

void Connection::start() { receive(); }

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
  if (sender_.take_turn()) use_turn();
}

void Connection::use_turn() {
  switch (sender_.send(descriptor_)) {
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
        self->fail(Error(Code::kDisconnected, "the peer closed the connection"));
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

void Connection::receive() {
  const auto self = shared_from_this();  // a frame may make the owner let go
  for (std::size_t taken = 0; taken < kReceiveTurnSizeMax;) {
    const auto room = receiver_.room();
    iovec parts[2] = {{room[0].data(), room[0].size()}, {room[1].data(), room[1].size()}};
    msghdr message{};
    message.msg_iov = parts;
    message.msg_iovlen = 2;
    const ssize_t result = ::recvmsg(descriptor_, &message, MSG_DONTWAIT);
    if (result < 0 && errno == EINTR) continue;
    if (result < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return wait_readable();
    if (result < 0) return fail(Error(Code::kDisconnected, std::strerror(errno)));
    if (result == 0) return fail(Error(Code::kDisconnected, "the peer closed the connection"));
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

void Connection::fail(const Error& why) {
  if (!is_open()) return;
  ConnectionOwner* owner = owner_;
  close();
  owner->on_closed(why);
}

}  // namespace kvsyncfs
