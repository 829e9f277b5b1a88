#include "engine/net/tcp/tls.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/x509.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>

namespace kvsyncfs {
namespace {

constexpr std::size_t kRecordSizeMax = 16u << 10;  // of TLS

// The library's own socket would let a signal kill the process where the peer is gone.

int socket_of(BIO* bio) {
  return static_cast<int>(reinterpret_cast<std::intptr_t>(BIO_get_data(bio)));
}

int finish(BIO* bio, ssize_t result, int retry_flag) {
  BIO_clear_retry_flags(bio);
  if (result < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR))
    BIO_set_flags(bio, retry_flag | BIO_FLAGS_SHOULD_RETRY);
  return static_cast<int>(result);
}

int write_socket(BIO* bio, const char* bytes, int size) {
  const auto count = static_cast<std::size_t>(size);
  return finish(bio, ::send(socket_of(bio), bytes, count, MSG_NOSIGNAL | MSG_DONTWAIT),
                BIO_FLAGS_WRITE);
}

int read_socket(BIO* bio, char* bytes, int size) {
  return finish(bio, ::recv(socket_of(bio), bytes, static_cast<std::size_t>(size), MSG_DONTWAIT),
                BIO_FLAGS_READ);
}

long control_socket(BIO*, int command, long, void*) { return command == BIO_CTRL_FLUSH ? 1 : 0; }

const BIO_METHOD* socket_method() {
  static BIO_METHOD* const method = [] {
    BIO_METHOD* made = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "node");
    BIO_meth_set_write(made, write_socket);
    BIO_meth_set_read(made, read_socket);
    BIO_meth_set_ctrl(made, control_socket);
    return made;
  }();
  return method;
}

std::string reason() {
  const char* text = ERR_reason_error_string(ERR_peek_last_error());
  return text != nullptr ? text : "unknown failure";
}

Error bad_file(const char* option, const std::string& file) {
  return Error(Code::kInvalid, std::string(option) + "=" + file + ": " + reason());
}

/// What the other nodes are going to say of the certificate, if they have the same authority.
Status verify_own(SSL_CTX* context, const TlsFiles& files) {
  STACK_OF(X509)* chain = nullptr;
  SSL_CTX_get0_chain_certs(context, &chain);
  X509_STORE_CTX* verdict = X509_STORE_CTX_new();
  const bool is_good = verdict != nullptr &&
                       X509_STORE_CTX_init(verdict, SSL_CTX_get_cert_store(context),
                                           SSL_CTX_get0_certificate(context), chain) == 1 &&
                       X509_verify_cert(verdict) == 1;
  const int why = verdict != nullptr ? X509_STORE_CTX_get_error(verdict) : X509_V_ERR_OUT_OF_MEM;
  X509_STORE_CTX_free(verdict);
  if (is_good) return {};
  return Error(Code::kInvalid, "tls_cert=" + files.certificate_file + ": not good by tls_ca=" +
                                   files.ca_file + ": " + X509_verify_cert_error_string(why));
}

}  // namespace

Result<std::unique_ptr<TlsContext>> TlsContext::load(const TlsFiles& files) {
  ERR_clear_error();
  std::unique_ptr<TlsContext> made(new TlsContext(SSL_CTX_new(TLS_method())));
  SSL_CTX* context = made->get();
  if (context == nullptr) return Error(Code::kNoMemory, "TLS: " + reason());
  SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION);
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_num_tickets(context, 0);  // a node that comes back proves itself anew
  SSL_CTX_set_read_ahead(context, 1);
  SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  // Frames say where they end, so an end without a farewell cuts nothing off unnoticed.
  SSL_CTX_set_options(context, SSL_OP_IGNORE_UNEXPECTED_EOF);
  if (SSL_CTX_use_certificate_chain_file(context, files.certificate_file.c_str()) != 1)
    return bad_file("tls_cert", files.certificate_file);
  if (SSL_CTX_use_PrivateKey_file(context, files.key_file.c_str(), SSL_FILETYPE_PEM) != 1 ||
      SSL_CTX_check_private_key(context) != 1)
    return bad_file("tls_key", files.key_file);
  if (SSL_CTX_load_verify_file(context, files.ca_file.c_str()) != 1)
    return bad_file("tls_ca", files.ca_file);
  KVSYNCFS_TRY(verify_own(context, files));
  return made;
}

TlsStream::TlsStream(const TlsContext& context, int socket, Side side)
    : ssl_(SSL_new(context.get())) {
  BIO* bio = BIO_new(socket_method());
  BIO_set_data(bio, reinterpret_cast<void*>(static_cast<std::intptr_t>(socket)));
  BIO_set_init(bio, 1);
  SSL_set_bio(ssl_, bio, bio);
  if (side == Side::kDialer)
    SSL_set_connect_state(ssl_);
  else
    SSL_set_accept_state(ssl_);
}

Status TlsStream::failure() const {
  std::lock_guard lock(mutex_);
  return failure_;
}

int TlsStream::explain(int result) {
  const int saved = errno;
  const int error = SSL_get_error(ssl_, result);
  if (error == SSL_ERROR_SSL && failure_) {
    const long verdict = SSL_get_verify_result(ssl_);
    const std::string why =
        verdict != X509_V_OK ? X509_verify_cert_error_string(verdict) : reason();
    failure_ = Error(Code::kAccess, "TLS: " + why);
  }
  ERR_clear_error();
  errno = error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE ? EAGAIN
          : error == SSL_ERROR_SSL                                      ? EPROTO
          : saved == 0 || saved == EAGAIN                               ? ECONNRESET
                                                                        : saved;
  return error;
}

TlsStream::Step TlsStream::shake_hands() {
  std::lock_guard lock(mutex_);
  ERR_clear_error();
  const int result = SSL_do_handshake(ssl_);
  if (result == 1) {
    is_ready_ = true;
    return Step::kDone;
  }
  switch (explain(result)) {
    case SSL_ERROR_WANT_READ:
      return Step::kWantsRead;
    case SSL_ERROR_WANT_WRITE:
      return Step::kWantsWrite;
    default:
      return Step::kFailed;
  }
}

std::size_t TlsStream::receive_into(MutableBytes room, int* result) {
  std::size_t taken = 0;
  while (taken < room.size()) {
    std::size_t part = 0;
    *result = SSL_read_ex(ssl_, room.data() + taken, room.size() - taken, &part);
    if (*result != 1) break;
    taken += part;
  }
  return taken;
}

ssize_t TlsStream::receive(const std::array<MutableBytes, 2>& room) {
  std::lock_guard lock(mutex_);
  ERR_clear_error();
  int result = 1;
  std::size_t taken = receive_into(room[0], &result);
  if (result == 1) taken += receive_into(room[1], &result);
  if (taken > 0) return static_cast<ssize_t>(taken);  // what ended it is met again
  return explain(result) == SSL_ERROR_ZERO_RETURN ? 0 : -1;
}

/// What stands there, up to a record: small parts are put together, a large one stays in its place.
Bytes TlsStream::gather(std::span<const iovec> parts, std::size_t offset) {
  gathered_.clear();
  for (const iovec& part : parts) {
    if (offset >= part.iov_len) {
      offset -= part.iov_len;
      continue;
    }
    const auto* begin = static_cast<const std::byte*>(part.iov_base) + offset;
    const std::size_t size = part.iov_len - offset;
    offset = 0;
    if (gathered_.empty() && size >= kRecordSizeMax) return {begin, kRecordSizeMax};
    gathered_.insert(gathered_.end(), begin,
                     begin + std::min(size, kRecordSizeMax - gathered_.size()));
    if (gathered_.size() == kRecordSizeMax) break;
  }
  return gathered_;
}

ssize_t TlsStream::send(std::span<const iovec> parts) {
  std::lock_guard lock(mutex_);
  ERR_clear_error();
  for (std::size_t sent = 0;;) {
    // After a record that did not go out, the same bytes come again, perhaps with more behind them.
    const Bytes bytes = gather(parts, sent);
    if (bytes.empty()) return static_cast<ssize_t>(sent);
    std::size_t part = 0;
    const int result = SSL_write_ex(ssl_, bytes.data(), bytes.size(), &part);
    sent += part;
    if (result == 1) continue;
    explain(result);
    return sent > 0 ? static_cast<ssize_t>(sent) : -1;
  }
}

}  // namespace kvsyncfs
