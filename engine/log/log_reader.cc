#include "engine/log/log_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <memory>
#include <new>
#include <optional>

#include "engine/format/log_layout.h"

namespace kvsyncfs {
namespace {

constexpr std::string_view kSuffix = ".log", kNotePrefix = "newest-";
constexpr std::size_t kGenerationDigits = 16;
constexpr std::size_t kWindowSize = 1u
                                    << 20;  ///< bytes read at once; grows where a batch is larger

/// The generation in a name of the form `prefix`, digits, `suffix`.
std::optional<std::uint64_t> generation_of(std::string_view name, std::string_view prefix,
                                           std::string_view suffix) {
  if (name.size() != prefix.size() + kGenerationDigits + suffix.size()) return {};
  if (!name.starts_with(prefix) || !name.ends_with(suffix)) return {};
  std::uint64_t generation = 0;
  const char* begin = name.data() + prefix.size();
  const auto [stop, error] = std::from_chars(begin, begin + kGenerationDigits, generation, 16);
  if (error != std::errc{} || stop != begin + kGenerationDigits) return {};
  return generation;
}

struct Names {
  std::vector<std::uint64_t> generations;  // of the log's files, in order
  std::optional<std::uint64_t> newest;     // of the notes, the highest
};

Result<Names> list_names(Disk& disk, const std::string& directory) {
  KVSYNCFS_ASSIGN(const std::vector<std::string> listed, disk.list(directory));
  Names names;
  for (const std::string& name : listed) {
    if (const auto generation = generation_of(name, "", kSuffix))
      names.generations.push_back(*generation);
    if (const auto newest = generation_of(name, kNotePrefix, ""))
      names.newest = std::max(names.newest.value_or(0), *newest);
  }
  std::sort(names.generations.begin(), names.generations.end());
  return names;
}

/// One log file through a window, so that small batches do not cost a read each.
class BatchReader {
 public:
  BatchReader(std::unique_ptr<File> file, std::uint64_t size, std::uint64_t volume_tag,
              std::uint64_t generation)
      : file_(std::move(file)), size_(size), volume_tag_(volume_tag), generation_(generation) {}

  struct Batch {
    BatchHeader header;
    Bytes payload;  ///< borrowed until the next read
  };
  /// The valid batch of this file's life at `offset`, or nothing. Errors: kNewerFormat, kIo.
  Result<std::optional<Batch>> read(std::uint64_t offset) {
    KVSYNCFS_ASSIGN(std::optional<BatchHeader> header, peek(offset));
    if (!header) return std::optional<Batch>{};
    const std::size_t size = kBatchHeaderSize + header->payload_bytes;
    KVSYNCFS_ASSIGN(const Bytes bytes, view(offset, size));
    Result<BatchHeader> decoded = decode_batch(bytes);
    if (decoded)
      return std::optional(Batch{*decoded, bytes.subspan(kBatchHeaderSize, header->payload_bytes)});
    if (decoded.error().code == Code::kNewerFormat) return decoded.error();
    return std::optional<Batch>{};
  }

  /// A header at `offset` that says that it belongs there; its checksum is not verified. Errors:
  /// kIo.
  Result<std::optional<BatchHeader>> peek(std::uint64_t offset) {
    KVSYNCFS_ASSIGN(const Bytes bytes, view(offset, kBatchHeaderSize));
    const Result<BatchHeader> header = peek_batch(bytes);
    if (!header || header->volume_tag != volume_tag_ || header->generation != generation_ ||
        header->file_offset != offset || header->payload_bytes > size_ - offset - kBatchHeaderSize)
      return std::optional<BatchHeader>{};
    return std::optional(*header);
  }

  std::uint64_t size() const { return size_; }

 private:
  /// `size` bytes at `offset`, a multiple of kBatchUnit; fewer at the file's end.
  Result<Bytes> view(std::uint64_t offset, std::size_t size) {
    if (offset < window_offset_ || offset + size > window_offset_ + window_size_) {
      const std::size_t want = round_up(std::max(size, kWindowSize), kBatchUnit);
      if (window_.size() < want) window_ = AlignedBuffer(want);
      KVSYNCFS_ASSIGN(window_size_, file_->read_at(offset, window_.bytes()));
      window_offset_ = offset;
    }
    const std::size_t start = offset - window_offset_;
    return window_.bytes()
        .first(window_size_)
        .subspan(start)
        .first(std::min(size, window_size_ - start));
  }

  std::unique_ptr<File> file_;
  const std::uint64_t size_, volume_tag_, generation_;
  AlignedBuffer window_;
  std::uint64_t window_offset_ = 0;
  std::size_t window_size_ = 0;
};

class Scanner {
 public:
  Scanner(Disk& disk, const LocalLogOptions& options, const EntryVisitor& visit)
      : disk_(disk), options_(options), visit_(visit) {}

  Result<LogScan> run() {
    KVSYNCFS_ASSIGN(const Names names, list_names(disk_, options_.directory));
    KVSYNCFS_TRY(check_newest(names));
    scan_.newest = names.newest;
    bool ended = false;
    for (const std::uint64_t generation : names.generations) {
      KVSYNCFS_ASSIGN(BatchReader reader, open(generation));
      ScannedFile& file = scan_.files.emplace_back();
      file.generation = generation;
      file.size = reader.size();
      if (!ended) {
        KVSYNCFS_TRY(read_batches(reader, file));
        // A file that does not go on where the one before it stopped is where the log ends.
        ended = file.used_bytes == 0;
        if (!ended) rest_.clear();
      }
      rest_.push_back(generation);
    }
    KVSYNCFS_TRY(search_rest());
    return std::move(scan_);
  }

 private:
  Status check_newest(const Names& names) const {
    const std::uint64_t newest = names.newest.value_or(0);
    if (newest == 0 ||
        std::binary_search(names.generations.begin(), names.generations.end(), newest))
      return {};
    return Error(Code::kCorrupt,
                 fmt::format("{} is missing, with what was safe in it (without {} nobody asks)",
                             log_file_path(options_.directory, newest),
                             newest_note_path(options_.directory, newest)));
  }

  Result<BatchReader> open(std::uint64_t generation) {
    const std::string path = log_file_path(options_.directory, generation);
    KVSYNCFS_ASSIGN(auto file, disk_.open(path, OpenMode::kRead, true));
    KVSYNCFS_ASSIGN(const std::uint64_t size, file->size());
    return BatchReader(std::move(file), size, options_.volume_tag, generation);
  }

  Position expected() const { return {scan_.report.last.value + 1}; }
  bool empty() const { return scan_.report.last.value == 0; }

  Status read_batches(BatchReader& reader, ScannedFile& file) {
    while (file.used_bytes + kBatchHeaderSize <= file.size) {
      KVSYNCFS_ASSIGN(const auto batch, reader.read(file.used_bytes));
      if (!batch || (!empty() && batch->header.first != expected())) break;
      if (empty()) scan_.report.first = batch->header.first;
      visit_all(*batch);
      scan_.report.last = file.last = batch->header.last();
      file.used_bytes += batch->header.stored_bytes();
    }
    return {};
  }

  void visit_all(const BatchReader::Batch& batch) {
    if (!visit_) return;
    Bytes payload = batch.payload;
    std::string_view entry;
    for (Position position = batch.header.first; next_entry(payload, entry); ++position.value)
      visit_(position, entry);
  }

  /// Looks behind the log's end for batches that prove that entries before them were durable once.
  Status search_rest() {
    for (const std::uint64_t generation : rest_) {
      KVSYNCFS_ASSIGN(BatchReader reader, open(generation));
      const auto file =
          std::find_if(scan_.files.begin(), scan_.files.end(),
                       [&](const ScannedFile& f) { return f.generation == generation; });
      std::uint64_t offset = file->used_bytes;
      while (offset + kBatchHeaderSize <= file->size) {
        KVSYNCFS_ASSIGN(const auto header, reader.peek(offset));
        std::uint64_t step = kBatchUnit;
        if (header) {
          KVSYNCFS_ASSIGN(const auto batch, reader.read(offset));
          if (batch) KVSYNCFS_TRY(judge(batch->header, generation, offset));
          step = batch ? header->stored_bytes() : kBatchUnit;
          if (batch || offset == file->used_bytes)
            scan_.report.torn_bytes += header->stored_bytes();
        }
        offset += step;
      }
    }
    return {};
  }

  /// A valid batch behind the end: damage if the batch that is missing before it was durable.
  Status judge(const BatchHeader& header, std::uint64_t generation, std::uint64_t offset) {
    if (oldest_behind_ == Position{}) oldest_behind_ = header.first;
    const Position missing = empty() ? Position{oldest_behind_.value - 1} : expected();
    if (header.durable < missing) return {};
    return Error(Code::kCorrupt,
                 fmt::format("{} offset {}: batch of position {}, but position {} is damaged",
                             log_file_path(options_.directory, generation), offset,
                             header.first.value, missing.value));
  }

  Disk& disk_;
  const LocalLogOptions& options_;
  const EntryVisitor& visit_;
  LogScan scan_;
  std::vector<std::uint64_t>
      rest_;  ///< generations of the last file of the log and of all behind it
  Position oldest_behind_;
};

}  // namespace

std::string log_file_path(const std::string& directory, std::uint64_t generation) {
  return fmt::format("{}/{:016x}{}", directory, generation, kSuffix);
}

std::string newest_note_path(const std::string& directory, std::uint64_t generation) {
  return fmt::format("{}/{}{:016x}", directory, kNotePrefix, generation);
}

Result<LogScan> scan_log(Disk& disk, const LocalLogOptions& options,
                         const EntryVisitor& visit) try {
  return Scanner(disk, options, visit).run();
} catch (const std::bad_alloc&) {
  return Error(Code::kNoMemory, options.directory);
}

}  // namespace kvsyncfs
