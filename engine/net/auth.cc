#include "engine/net/auth.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <cassert>
#include <string>

#include "engine/format/codec.h"

namespace kvsyncfs {
namespace {

Proof hmac_sha256(std::string_view secret, std::string_view text) {
  Proof proof{};
  unsigned size = 0;
  const unsigned char* made =
      HMAC(EVP_sha256(), secret.data(), static_cast<int>(secret.size()),
           reinterpret_cast<const unsigned char*>(text.data()), text.size(), proof.data(), &size);
  assert(made != nullptr && size == proof.size());  // fails only without SHA-256 or memory
  static_cast<void>(made);
  return proof;
}

}  // namespace

Proof make_proof(std::string_view secret, Side side, std::string_view hello_head,
                 std::string_view challenge_head) {
  std::string text = side == Side::kDialer ? "kvsyncfs dialer" : "kvsyncfs acceptor";
  Writer writer(text);
  writer.blob(hello_head);
  writer.blob(challenge_head);
  return hmac_sha256(secret, text);
}

bool equal_proofs(const Proof& a, std::string_view b) {
  return b.size() == a.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

Proof make_secret_check(std::string_view secret, const Uuid& volume) {
  std::string text = "kvsyncfs volume check";
  text.append(volume.begin(), volume.end());
  return hmac_sha256(secret, text);
}

std::uint64_t secret_id(std::string_view secret, const Uuid& volume) {
  const Proof check = make_secret_check(secret, volume);
  std::uint64_t id = 0;
  for (std::size_t i = 0; i < 8; ++i) id |= std::uint64_t{check[i]} << (8 * i);
  return id;
}

}  // namespace kvsyncfs
