// Whatever etcd answers and whatever a batch holds: decoding ends, and a batch that is accepted
// encodes to the same bytes again. The first byte chooses the part.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "engine/format/etcd_batch.h"
#include "engine/log/etcd/grpc_messages.h"
#include "engine/log/etcd/http2_session.h"
#include "engine/log/etcd/log_keys.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace kvsyncfs;
  if (size < 1) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  bool flag = false;
  etcd::Txn txn;
  txn.success = {etcd::Put{"k", "v"}, etcd::Range{"k", {}}};
  txn.failure = {etcd::Range{"s", {}}};
  switch (data[0] % 9) {
    case 0:
      if (const auto entries = decode_etcd_batch(text))
        if (encode_etcd_batch(*entries) != text) std::abort();
      break;
    case 1:
      (void)etcd::parse_range(text);
      break;
    case 2:
      (void)etcd::parse_txn(text, txn);
      break;
    case 3:
      (void)etcd::parse_watch(text, &flag);
      break;
    case 4:
      (void)etcd::parse_keep_alive(text);
      (void)etcd::parse_grant(text);
      break;
    case 5:
      (void)etcd::refusal(size % 20, text, &flag);
      (void)etcd::parse_login(text);
      break;
    case 6: {
      const etcd::LogKeys keys("v", 1);
      if (const auto name = keys.parse_batch(text))
        if (keys.parse_batch(keys.batch(*name)) != name) std::abort();
      break;
    }
    case 8: {
      etcd::Http2Session session;
      std::string answer;
      (void)session.start({"http", "etcd", "/etcdserverpb.KV/Range", {}, "request", false});
      (void)session.take_output();
      (void)session.feed(text);
      (void)session.take_output();
      (void)session.take_message(&answer);
      (void)session.status(&answer);
      break;
    }
    default:
      if (const auto trim = etcd::parse_trim(text))
        if (etcd::parse_trim(etcd::to_text(*trim)) != trim) std::abort();
  }
  return 0;
}
