#include "engine/net/tcp/receiver.h"

#include <algorithm>
#include <cassert>
#include <cstring>

#include "engine/base/checksum.h"

namespace kvsyncfs {

std::array<MutableBytes, 2> Receiver::room() {
  if (begin_ == end_) {
    begin_ = end_ = 0;
  } else if (begin_ > 0) {
    std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
  }
  const MutableBytes rest = MutableBytes(buffer_).subspan(end_);
  if (is_direct()) return {place_, rest};
  return {rest, MutableBytes{}};
}

Status Receiver::received(std::size_t size) {
  if (is_direct()) {
    const std::size_t direct = std::min(size, place_.size());
    checksum_ = crc32c(place_.first(direct), checksum_);
    place_ = place_.subspan(direct);
    body_left_ -= static_cast<std::uint32_t>(direct);
    size -= direct;
  }
  end_ += size;
  assert(end_ <= buffer_.size());
  for (bool waits = false; !waits;) KVSYNCFS_TRY(step(&waits));
  return {};
}

/// One part of a frame, as far as its bytes are here.
Status Receiver::step(bool* waits) {
  switch (part_) {
    case Part::kHeader:
      return begin(waits);
    case Part::kHead:
      take_head();
      break;
    case Part::kBody:
      take_body();
      break;
    case Part::kTrailer:
      return finish(waits);
  }
  enter_part();
  *waits = begin_ == end_;
  return {};
}

/// Goes past the parts that are complete.
void Receiver::enter_part() {
  if (part_ == Part::kHead && head_.size() == header_.head_size) part_ = Part::kBody;
  if (part_ == Part::kBody && body_left_ == 0) part_ = Part::kTrailer;
}

Status Receiver::begin(bool* waits) {
  if (end_ - begin_ < kFrameHeaderSize) {
    // Garbage that is shorter than a header is told at once, not when the peer gives up.
    if (!buffered().starts_with(kFrameMagic.substr(0, end_ - begin_)))
      return Error(Code::kCorrupt, "frame: no magic");
    *waits = true;
    return {};
  }
  KVSYNCFS_ASSIGN(header_, decode_frame_header(buffered()));
  begin_ += kFrameHeaderSize;
  if (header_.sequence != sequence_ + 1)
    return Error(Code::kCorrupt, "frame " + std::to_string(header_.sequence) +
                                     " came after frame " + std::to_string(sequence_));
  ++sequence_;
  head_.clear();
  checksum_ = 0;
  KVSYNCFS_ASSIGN(place_, sink_->begin_frame(header_));
  assert(place_.empty() || place_.size() == header_.body_size);
  body_left_ = header_.body_size;
  if (!header_.has_trailer()) return sink_->take_frame(header_, {}, 0);
  part_ = Part::kHead;
  enter_part();
  return {};
}

void Receiver::take_head() {
  const std::string_view piece = buffered().substr(0, header_.head_size - head_.size());
  head_.append(piece);
  checksum_ = crc32c(as_bytes(piece), checksum_);
  begin_ += piece.size();
}

void Receiver::take_body() {
  const std::string_view piece = buffered().substr(0, body_left_);
  checksum_ = crc32c(as_bytes(piece), checksum_);
  if (!place_.empty()) {
    std::memcpy(place_.data(), piece.data(), piece.size());
    place_ = place_.subspan(piece.size());
  }
  body_left_ -= static_cast<std::uint32_t>(piece.size());
  begin_ += piece.size();
}

Status Receiver::finish(bool* waits) {
  if (end_ - begin_ < kFrameTrailerSize) {
    *waits = true;
    return {};
  }
  KVSYNCFS_ASSIGN(const FrameTrailer trailer,
                  decode_frame_trailer(buffered().substr(0, kFrameTrailerSize)));
  begin_ += kFrameTrailerSize;
  if (trailer != make_trailer(checksum_, trailer.code))
    return Error(Code::kCorrupt, "frame: bad checksum of head and body");
  part_ = Part::kHeader;
  return sink_->take_frame(header_, std::move(head_), trailer.code);
}

}  // namespace kvsyncfs
