// TLS between nodes: what is carried is the same, and who has no good certificate gets nothing.
#include "engine/net/tcp/tls.h"

#include <fstream>

#include "tests/engine/net/certificates.h"
#include "tests/engine/net/raw_peer.h"
#include "tests/lib/temp_folder.h"

namespace kvsyncfs {
namespace {

class Tls : public ::testing::Test {
 protected:
  TcpOptions options(std::uint64_t node) { return with(node, authority_.issue(name(node))); }
  static TcpOptions with(std::uint64_t node, const TlsFiles& files) {
    TcpOptions options = test_options(node);
    options.tls = files;
    options.handshake_ns = 20 * kSecondNs;  // a sanitizer takes its time
    return options;
  }
  /// Trusts the nodes, but is of an authority that they do not know.
  TlsFiles of_stranger(const std::string& node) {
    Authority stranger(folder_.path(), "stranger");
    TlsFiles files = stranger.issue(node);
    const std::string both = folder_.path() + "/both.pem";
    std::ofstream out(both);
    for (const std::string& file : {stranger.ca_file(), authority_.ca_file()})
      out << std::ifstream(file).rdbuf();
    files.ca_file = both;
    return files;
  }
  static std::string name(std::uint64_t node) { return "node" + std::to_string(node); }
  static bool speaks_of_tls(const Error& error) {
    return error.detail.find("TLS: ") != std::string::npos;
  }

  TempFolder folder_;
  Authority authority_{folder_.path(), "authority"};
};

TEST_F(Tls, CarriesRequestsAndTheirBytesBothWays) {
  TestNode two(options(2));
  TestNode one(options(1));
  one.join(2, two.address());
  for (const std::size_t size : {0u, 1u, 4096u, 100'001u, 8u << 20}) {
    const AlignedBuffer question = noise(size, 1), answer = noise(size, 2);
    AlignedBuffer reply(size);
    Asked asked;
    ASSERT_TRUE(asked.call(one, 2, "head", question.bytes(), reply.bytes()));
    auto request = two.requests.take();
    ASSERT_TRUE(request);
    EXPECT_EQ(request->incoming.head, "head");
    EXPECT_TRUE(same(request->incoming.body.bytes(), question.bytes())) << size;
    answer_with(*request, "tail", answer.bytes());
    const auto answered = asked.answer();
    ASSERT_TRUE(answered) << describe(answered.error());
    EXPECT_EQ(answered->head, "tail");
    EXPECT_TRUE(same(reply.bytes(), answer.bytes())) << size;
  }
}

TEST_F(Tls, CarriesManyRegionsAtOnce) {
  TestNode two(options(2));
  TestNode one(options(1));
  one.join(2, two.address());
  const AlignedBuffer memory = noise(4u << 20);
  const auto key = two->register_region(memory.bytes());
  ASSERT_TRUE(key);
  constexpr std::size_t kReads = 64, kSize = 100'000;
  std::vector<AlignedBuffer> out(kReads);
  std::vector<Asked> asked(kReads);
  for (std::size_t i = 0; i < kReads; ++i) {
    out[i] = AlignedBuffer(kSize);
    ASSERT_TRUE(asked[i].read(one, 2, *key, i * 60'000, out[i].bytes()));
  }
  for (std::size_t i = 0; i < kReads; ++i) {
    EXPECT_TRUE(asked[i].answer());
    EXPECT_TRUE(same(out[i].bytes(), memory.bytes().subspan(i * 60'000, kSize))) << i;
  }
  two->unregister_region(*key);
}

TEST_F(Tls, CallersOfManyThreadsShareAConnection) {
  TestNode two(options(2), [](Incoming in, Responder out) {
    out.reply(Answer{in.head, kept(in.body.bytes())});
  });
  TestNode one(options(1));
  one.join(2, two.address());
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 4; ++t)
    threads.emplace_back([&one, t] {
      for (unsigned i = 0; i < 50; ++i) {
        const AlignedBuffer body = noise(1 + i * 997, t * 50 + i);
        AlignedBuffer reply(body.size());
        Asked asked;
        ASSERT_TRUE(asked.call(one, 2, std::to_string(t), body.bytes(), reply.bytes()));
        const auto answer = asked.answer();
        ASSERT_TRUE(answer) << describe(answer.error());
        EXPECT_EQ(answer->head, std::to_string(t));
        EXPECT_TRUE(same(reply.bytes(), body.bytes()));
      }
    });
  for (std::thread& thread : threads) thread.join();
}

TEST_F(Tls, ACertificateOfAnotherAuthorityIsRefusedAndOthersAreServedOn) {
  const TlsFiles files = of_stranger("liar");
  TestNode two(options(2));
  TestNode good(options(3));
  good.join(2, two.address());
  TestNode liar(with(1, files));
  liar->set_peer({2}, {two.address()}).value();
  const auto event = liar.events.take();
  ASSERT_TRUE(event);
  EXPECT_FALSE(event->is_up);
  EXPECT_EQ(event->why.code, Code::kAccess) << describe(event->why);
  EXPECT_TRUE(speaks_of_tls(event->why)) << describe(event->why);
  const auto refusal = two.refusals.take();
  ASSERT_TRUE(refusal);
  EXPECT_EQ(refusal->code, Code::kAccess);
  EXPECT_TRUE(speaks_of_tls(*refusal)) << describe(*refusal);
  EXPECT_GE(two->counters().refused_tls, 1u);
  EXPECT_GE(liar->counters().refused_tls, 1u);
  EXPECT_EQ(two->counters().refused_secret, 0u);
  Asked asked;
  ASSERT_TRUE(asked.call(good, 2, "still there"));
  auto request = two.requests.take();
  ASSERT_TRUE(request);
  answer_with(*request, "yes");
  EXPECT_TRUE(asked.answer());
  EXPECT_EQ(good.peer(2).counts.disconnects, 0u);
}

TEST_F(Tls, TheDialerDemandsAGoodCertificateToo) {
  const TlsFiles files = of_stranger("impostor");
  TestNode impostor(with(2, files));
  TestNode one(options(1));
  one->set_peer({2}, {impostor.address()}).value();
  const auto event = one.events.take();
  ASSERT_TRUE(event);
  EXPECT_EQ(event->why.code, Code::kAccess) << describe(event->why);
  EXPECT_GE(one->counters().refused_tls, 1u);
}

TEST_F(Tls, TheSecretIsProvedInside) {
  TcpOptions wrong = options(1);
  wrong.secret = "another secret of some size";
  TestNode two(options(2));
  TestNode one(wrong);
  one->set_peer({2}, {two.address()}).value();
  EXPECT_EQ(one.events.take()->why.code, Code::kAccess);
  EXPECT_GE(two->counters().refused_secret + one->counters().refused_secret, 1u);
  EXPECT_EQ(two->counters().refused_tls, 0u);
}

TEST_F(Tls, ANodeWithoutItIsRefused) {
  TestNode two(options(2));
  TestNode plain(test_options(1));
  plain->set_peer({2}, {two.address()}).value();
  EXPECT_FALSE(plain.events.take()->is_up);
  const auto refusal = two.refusals.take();
  ASSERT_TRUE(refusal);
  EXPECT_EQ(refusal->code, Code::kAccess) << describe(*refusal);
}

TEST_F(Tls, ANodeThatAsksForItOfOneWithoutItIsRefused) {
  TestNode plain(test_options(2));
  TestNode one(options(1));
  one->set_peer({2}, {plain.address()}).value();
  EXPECT_EQ(one.events.take()->why.code, Code::kAccess);
  EXPECT_EQ(plain.refusals.take()->code, Code::kCorrupt);
}

TEST_F(Tls, StrangersWhoSayNothingCostNoWord) {
  TestNode two(options(2));
  { const RawPeer silent(two->port()); }
  TestNode one(options(1));
  one.join(2, two.address());
  EXPECT_TRUE(two.refusals.is_empty());
}

TEST_F(Tls, FilesThatAreNotGoodAreNamed) {
  const auto clock = make_real_clock();
  const auto random = make_real_random();
  const TlsFiles good = authority_.issue("node1"), other = authority_.issue("node2");
  const Authority stranger(folder_.path(), "stranger");
  const auto error_of = [&](const TlsFiles& files) {
    const auto made = make_tcp_transport(*clock, *random, with(1, files));
    return made ? Error(Code::kIo, "made") : made.error();
  };
  EXPECT_EQ(error_of(good).detail, "made");
  const std::string none = folder_.path() + "/none";
  for (const auto& [files, word] :
       {std::pair<TlsFiles, std::string>{{none, good.key_file, good.ca_file}, "tls_cert=" + none},
        {{good.certificate_file, none, good.ca_file}, "tls_key=" + none},
        {{good.certificate_file, other.key_file, good.ca_file}, "tls_key=" + other.key_file},
        {{good.certificate_file, good.key_file, none}, "tls_ca=" + none},
        {authority_.issue("late", -3600), "expired"},
        {{good.certificate_file, good.key_file, stranger.ca_file()}, "not good by tls_ca"}}) {
    const Error error = error_of(files);
    EXPECT_EQ(error.code, Code::kInvalid);
    EXPECT_NE(error.detail.find(word), std::string::npos) << error.detail;
  }
}

}  // namespace
}  // namespace kvsyncfs
