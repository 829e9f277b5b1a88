#include "engine/format/log_layout.h"

#include <gtest/gtest.h>

#include <string>

#include "engine/base/checksum.h"

namespace kvsyncfs {
namespace {

MutableBytes bytes_of(std::string& s) { return {reinterpret_cast<std::byte*>(s.data()), s.size()}; }

std::string make_batch(BatchHeader header, const std::vector<std::string>& entries) {
  std::string batch(kBatchHeaderSize, '\0');
  for (const std::string& entry : entries) {
    const std::size_t at = batch.size();
    batch.resize(at + kEntryHeaderSize + entry.size());
    put_entry(bytes_of(batch).data() + at, entry);
  }
  header.payload_bytes = batch.size() - kBatchHeaderSize;
  header.entry_count = static_cast<std::uint32_t>(entries.size());
  seal_batch(header, bytes_of(batch));
  return batch;
}

BatchHeader sample_header() {
  BatchHeader header;
  header.volume_tag = 0x0102030405060708;
  header.generation = 9;
  header.file_offset = 0x3000;
  header.first = Position{100};
  header.durable = Position{98};
  return header;
}

TEST(LogLayout, GoldenBytes) {
  const std::string batch = make_batch(sample_header(), {"ab", ""});
  const std::string header(
      "\x01\x00\x00\x00\x02\x00\x00\x00"
      "\x08\x07\x06\x05\x04\x03\x02\x01"
      "\x09\x00\x00\x00\x00\x00\x00\x00"
      "\x00\x30\x00\x00\x00\x00\x00\x00"
      "\x64\x00\x00\x00\x00\x00\x00\x00"
      "\x62\x00\x00\x00\x00\x00\x00\x00"
      "\x0a\x00\x00\x00\x00\x00\x00\x00",
      56);
  const std::string payload("\x02\x00\x00\x00\x61\x62\x00\x00\x00\x00", 10);
  EXPECT_EQ(batch.substr(0, 4), "KVLB");
  EXPECT_EQ(batch.substr(8), header + payload);
  const std::uint32_t checksum = crc32c(as_bytes(header + payload));
  for (std::size_t i = 0; i < 4; ++i)
    EXPECT_EQ(static_cast<unsigned char>(batch[4 + i]), (checksum >> (8 * i)) & 0xff);
}

TEST(LogLayout, WhatWasSealedIsDecoded) {
  const std::vector<std::string> entries{"one", "", std::string(5000, 'x')};
  std::string batch = make_batch(sample_header(), entries);
  batch += "what follows in the file";
  const Result<BatchHeader> header = decode_batch(as_bytes(batch));
  ASSERT_TRUE(header);
  EXPECT_EQ(header->first, Position{100});
  EXPECT_EQ(header->last(), Position{102});
  EXPECT_EQ(header->durable, Position{98});
  EXPECT_EQ(header->volume_tag, sample_header().volume_tag);
  EXPECT_EQ(header->stored_bytes(), 8192u);
  Bytes payload = as_bytes(batch).subspan(kBatchHeaderSize, header->payload_bytes);
  std::string_view entry;
  for (const std::string& expected : entries) {
    ASSERT_TRUE(next_entry(payload, entry));
    EXPECT_EQ(entry, expected);
  }
  EXPECT_FALSE(next_entry(payload, entry));
}

TEST(LogLayout, AnyFlippedBitIsRefused) {
  const std::string batch = make_batch(sample_header(), {"entry", "another"});
  for (std::size_t at = 0; at < batch.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string bad = batch;
      bad[at] = static_cast<char>(bad[at] ^ (1 << bit));
      ASSERT_FALSE(decode_batch(as_bytes(bad))) << "byte " << at << " bit " << bit;
    }
  }
}

TEST(LogLayout, AnyShorterPieceIsRefused) {
  const std::string batch = make_batch(sample_header(), {"entry", "another"});
  for (std::size_t size = 0; size < batch.size(); ++size)
    ASSERT_FALSE(decode_batch(as_bytes(std::string_view(batch).substr(0, size)))) << size;
}

/// A right checksum does not make a lie true: counts and sizes are checked against each other.
TEST(LogLayout, FieldsThatCannotBeAreRefused) {
  const auto refused = [](BatchHeader header) {
    std::string batch = make_batch(sample_header(), {"entry"});
    header.payload_bytes = batch.size() - kBatchHeaderSize;
    seal_batch(header, bytes_of(batch));
    return !decode_batch(as_bytes(batch));
  };
  BatchHeader header = sample_header();
  header.entry_count = 1;
  EXPECT_FALSE(refused(header));
  header.entry_count = 0;
  EXPECT_TRUE(refused(header));
  header.entry_count = 2;
  EXPECT_TRUE(refused(header));
  header.entry_count = 0xffffffff;
  EXPECT_TRUE(refused(header));
  header = sample_header();
  header.entry_count = 1;
  header.first = Position{0};
  EXPECT_TRUE(refused(header));
  header.first = Position{~std::uint64_t{0}};
  EXPECT_TRUE(refused(header));
  header.first = header.durable = Position{7};
  EXPECT_TRUE(refused(header)) << "a batch cannot be durable before it is written";
}

TEST(LogLayout, EntryLongerThanItsBatchIsRefused) {
  BatchHeader header = sample_header();
  std::string batch = make_batch(header, {"entry"});
  batch[kBatchHeaderSize] = 6;  // one byte more than there is
  header.entry_count = 1;
  header.payload_bytes = batch.size() - kBatchHeaderSize;
  seal_batch(header, bytes_of(batch));
  EXPECT_FALSE(decode_batch(as_bytes(batch)));
  Bytes payload = as_bytes(batch).subspan(kBatchHeaderSize);
  std::string_view entry;
  EXPECT_FALSE(next_entry(payload, entry));
}

TEST(LogLayout, ZerosAreNotABatch) {
  EXPECT_FALSE(peek_batch(as_bytes(std::string(4096, '\0'))));
  EXPECT_FALSE(decode_batch(as_bytes(std::string(4096, '\0'))));
  EXPECT_FALSE(decode_batch({}));
}

}  // namespace
}  // namespace kvsyncfs
