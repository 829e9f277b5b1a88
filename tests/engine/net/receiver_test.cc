// The receiving half without a socket: however the bytes are cut, the frames are the same.
#include "engine/net/tcp/receiver.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cstring>

#include "engine/base/checksum.h"

namespace kvsyncfs {
namespace {

std::string frame_of(std::uint64_t sequence, const std::string& head, const std::string& body) {
  FrameHeader header;
  header.type = FrameType::kRequest;
  header.sequence = header.request = sequence;
  header.head_size = static_cast<std::uint32_t>(head.size());
  header.body_size = static_cast<std::uint32_t>(body.size());
  std::string bytes = encode(header) + head + body;
  if (header.has_trailer())
    bytes += encode(make_trailer(crc32c(as_bytes(body), crc32c(as_bytes(head))), 0));
  return bytes;
}

/// Keeps all frames; drops the bodies of those it is told to.
class Collector final : public FrameSink {
 public:
  struct Frame {
    std::string head, body;
    bool operator==(const Frame&) const = default;
  };
  Result<MutableBytes> begin_frame(const FrameHeader& header) override {
    body_.assign(header.body_size, '?');
    if (drops(header.sequence)) return MutableBytes{};
    return MutableBytes(reinterpret_cast<std::byte*>(body_.data()), body_.size());
  }
  Status take_frame(const FrameHeader&, std::string head, std::uint16_t) override {
    frames.push_back({std::move(head), body_});
    return {};
  }
  static bool drops(std::uint64_t sequence) { return sequence % 5 == 0; }

  std::vector<Frame> frames;

 private:
  std::string body_;
};

/// Feeds as a socket would: what fits into the room, at most `piece` bytes at a time.
Status feed(Receiver& receiver, std::string_view bytes, const auto& piece) {
  while (!bytes.empty()) {
    std::size_t left = std::min<std::size_t>(piece(), bytes.size());
    std::size_t size = 0;
    for (const MutableBytes room : receiver.room()) {
      const std::size_t part = std::min(left, room.size());
      std::copy_n(reinterpret_cast<const std::byte*>(bytes.data()) + size, part, room.data());
      size += part;
      left -= part;
    }
    EXPECT_GT(size, 0u) << "no room";
    if (size == 0) return Code::kIo;
    bytes.remove_prefix(size);
    if (const Status status = receiver.received(size); !status) return status;
  }
  return {};
}

RC_GTEST_PROP(Receiver, HoweverBytesAreCutTheFramesAreTheSame, ()) {
  const auto count = *rc::gen::inRange<std::uint64_t>(1, 12);
  std::string stream;
  std::vector<Collector::Frame> expected;
  for (std::uint64_t sequence = 1; sequence <= count; ++sequence) {
    const auto size_of = [](std::size_t max) {
      return *rc::gen::element<std::size_t>(0, 1, *rc::gen::inRange<std::size_t>(0, max));
    };
    const std::string head(size_of(30'000), static_cast<char>('a' + sequence));
    std::string body(size_of(60'000), static_cast<char>('A' + sequence));
    stream += frame_of(sequence, head, body);
    if (Collector::drops(sequence)) body.assign(body.size(), '?');
    expected.push_back({head, body});
  }
  Collector collector;
  Receiver receiver(collector);
  if (*rc::gen::arbitrary<bool>()) receiver.grow();
  const auto piece_max = *rc::gen::element<std::size_t>(1, 7, 48, 1000, 20'000, 1'000'000);
  std::size_t turn = 0;
  RC_ASSERT(feed(receiver, stream, [&] { return 1 + turn++ * 7919 % piece_max; }).has_value());
  RC_ASSERT(collector.frames == expected);
}

TEST(Receiver, AStrangerGetsOneKibibyteOfMemory) {
  Collector collector;
  Receiver receiver(collector);
  const auto room = receiver.room();
  EXPECT_EQ(room[0].size() + room[1].size(), 1024u);
}

TEST(Receiver, ABodyIsReceivedInItsPlace) {
  Collector collector;
  Receiver receiver(collector);
  const std::string frame = frame_of(1, "", std::string(100'000, 'b'));
  ASSERT_TRUE(feed(receiver, frame.substr(0, kFrameHeaderSize), [] { return 1000; }));
  EXPECT_EQ(receiver.room()[0].size(), 100'000u);
}

TEST(Receiver, ADroppedBodyIsNotWritten) {
  Collector collector;
  Receiver receiver(collector);
  const std::string stream = frame_of(1, "h", std::string(10'000, 'b')) + frame_of(2, "next", "n");
  ASSERT_TRUE(feed(receiver, std::string_view(stream).substr(0, 4000), [] { return 1000; }));
  receiver.drop_body();
  ASSERT_TRUE(feed(receiver, std::string_view(stream).substr(4000), [] { return 1000; }));
  ASSERT_EQ(collector.frames.size(), 2u);
  const std::string& body = collector.frames[0].body;
  EXPECT_EQ(body.substr(0, 3000), std::string(3000, 'b'));
  EXPECT_EQ(body.substr(4000), std::string(6000, '?'));
  EXPECT_EQ(collector.frames[1], (Collector::Frame{"next", "n"}));
}

TEST(Receiver, EveryFlippedBitEndsTheConnection) {
  const std::string frame = frame_of(1, "head", "body") + frame_of(2, "x", "y");
  for (std::size_t bit = 0; bit < 8 * frame.size(); ++bit) {
    std::string bad = frame;
    bad[bit / 8] = static_cast<char>(bad[bit / 8] ^ (1 << bit % 8));
    Collector collector;
    Receiver receiver(collector);
    EXPECT_FALSE(feed(receiver, bad, [] { return 1000; })) << "bit " << bit;
  }
}

}  // namespace
}  // namespace kvsyncfs
