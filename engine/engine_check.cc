// The inside of fsck: the catalog with itself, the catalog with the segments, and (scrub) every
// page; and what mends the catalog.
#include <fmt/format.h>

#include <algorithm>

#include "engine/engine_impl.h"

namespace kvsyncfs {

namespace {

/// A part of a file whose bytes cannot be read.
struct LostRange {
  InodeId inode;
  std::uint64_t begin = 0, end = 0;
  auto operator<=>(const LostRange&) const = default;
};

/// In order, and joined where they touch.
void join(std::vector<LostRange>& ranges) {
  std::sort(ranges.begin(), ranges.end());
  std::size_t last = 0;
  for (std::size_t i = 1; i < ranges.size(); ++i) {
    if (ranges[i].inode == ranges[last].inode && ranges[i].begin <= ranges[last].end) {
      ranges[last].end = std::max(ranges[last].end, ranges[i].end);
    } else {
      ranges[++last] = ranges[i];
    }
  }
  if (!ranges.empty()) ranges.resize(last + 1);
}

}  // namespace

CatalogCheckOptions EngineImpl::catalog_check(const CheckOptions& options) const {
  CatalogCheckOptions catalog;
  catalog.report = options.report;
  catalog.progress = [&options](std::uint64_t done, std::uint64_t total) {
    options.progress("catalog", done, total);
  };
  catalog.segment_file = [this](SegmentId id) -> std::optional<std::uint64_t> {
    const auto file = store_->file(id);
    if (!file) return std::nullopt;
    return file->file_bytes;
  };
  catalog.knows_all_records = superblock_.compatible == 0;
  return catalog;
}

Result<Engine::CheckReport> EngineImpl::check(const CheckOptions& options) {
  CheckReport report;
  KVSYNCFS_ASSIGN(report.problems, catalog_->check(catalog_check(options)));
  if (options_.read_only) {
    KVSYNCFS_ASSIGN(const auto known, known_segments());
    KVSYNCFS_TRY(store_->adopt(known));
  }
  KVSYNCFS_TRY(check_segments(options, report));
  return report;
}

Status EngineImpl::check_segments(const CheckOptions& options, CheckReport& report) {
  const auto bytes_of = [this](SegmentId id, const SegmentRecord& record) {
    const auto file = store_->file(id);
    return file && record.state == SegmentState::kOpen ? file->length : record.length;
  };
  KVSYNCFS_ASSIGN(const auto segments, catalog_->segments());
  std::uint64_t done = 0, total = 0;
  for (const auto& [id, record] : segments)
    if (is_held(record)) total += bytes_of(id, record);
  for (const auto& [id, record] : segments) {
    if (!is_held(record)) continue;
    std::uint64_t in_segment = 0;
    const auto bad = store_->scrub(
        id, options.scrub ? Scrub::kPages : Scrub::kBatches, [&](std::uint64_t bytes) {
          report.pages_checked += bytes / kPageSize;
          options.progress("segments", done + (in_segment += bytes), total);
        });
    if (bad) {
      KVSYNCFS_TRY(tell_owners(id, *bad, options, report));
    } else if (bad.error().code != Code::kNotFound) {
      ++report.problems;
      options.report(fmt::format("segment {}: {}", id.value, describe(bad.error())));
    } else if (options_.check_node.value != 0) {
      // The log may say since that it is gone, and another holder has the bytes in any case.
      options.report(fmt::format("note: segment {} has no file here", id.value));
    } else if (record.live_bytes > 0) {
      const PageRange all{0, ~std::uint64_t{0} / kPageSize};
      KVSYNCFS_TRY(tell_owners(id, {&all, 1}, options, report));
    }
    done += bytes_of(id, record);
    options.progress("segments", done, total);
  }
  return {};
}

Status EngineImpl::tell_owners(SegmentId id, std::span<const PageRange> bad,
                               const CheckOptions& options, CheckReport& report) {
  if (bad.empty()) return {};
  const bool has_file = store_->file(id).has_value();
  KVSYNCFS_ASSIGN(const auto extents, catalog_->segment_extents(id, 0, ~std::size_t{0}));
  std::vector<LostRange> lost;
  std::unordered_set<InodeId> owners;
  for (const PageRange& range : bad) {
    const std::uint64_t from = range.page * kPageSize, to = from + range.count * kPageSize;
    bool used = false;
    for (const auto& [inode, e] : extents) {
      const std::uint64_t begin = std::max(from, e.segment_offset);
      const std::uint64_t end = std::min(to, e.segment_offset + e.length);
      if (begin >= end) continue;
      used = true;
      owners.insert(inode);
      lost.push_back({inode, e.file_offset + (begin - e.segment_offset),
                      e.file_offset + (end - e.segment_offset)});
    }
    if (has_file) report.bad_pages += range.count;
    if (used || !options.scrub || !has_file) continue;
    ++report.problems;
    options.report(fmt::format("segment {}: pages {} to {} are damaged, no file uses them",
                               id.value, range.page, range.page + range.count - 1));
  }
  join(lost);
  KVSYNCFS_ASSIGN(const auto paths, catalog_->paths(owners));
  for (const LostRange& range : lost) {
    ++report.problems;
    const auto path = paths.find(range.inode);
    options.report(
        fmt::format("inode {}{}: bytes {} to {} cannot be read, segment {} {}", range.inode.value,
                    path == paths.end() ? "" : fmt::format(" ({})", path->second), range.begin,
                    range.end - 1, id.value, has_file ? "is damaged" : "is lost"));
  }
  return {};
}

/// Before anything is adopted, flushed or reclaimed: recovery would act on what is not mended. The
/// log goes first, and stays: the catalog is at its end, as a checkpoint would leave it.
Result<Engine::CheckReport> EngineImpl::mend(const CheckOptions& options) {
  KVSYNCFS_TRY(commit(Transaction{}));  // its ids are for what is made
  KVSYNCFS_TRY(log_->sync(log_->last()));
  CheckReport report;
  KVSYNCFS_ASSIGN(report.repaired, catalog_->repair(catalog_check(options)));
  report.problems = report.repaired;
  KVSYNCFS_TRY(catalog_->begin_checkpoint());
  KVSYNCFS_TRY(catalog_->finish_checkpoint());
  closed_ = true;
  return report;
}

Result<Engine::CheckReport> Engine::repair(Disk& disk, Clock& clock, Random& random,
                                           EngineOptions options, const CheckOptions& check) {
  KVSYNCFS_ASSIGN(Superblock superblock, Engine::superblock(disk, options.store));
  KVSYNCFS_TRY(check_alone(options.store, superblock));
  CheckReport report;
  {
    EngineOptions for_check = options;
    for_check.for_check = true;
    EngineImpl engine(disk, clock, random, std::move(for_check), std::move(superblock));
    KVSYNCFS_TRY(engine.start_without_taking());
    KVSYNCFS_ASSIGN(report, engine.mend(check));
  }
  KVSYNCFS_ASSIGN(const auto engine, Engine::open(disk, clock, random, std::move(options)));
  KVSYNCFS_TRY(engine->close());
  return report;
}

}  // namespace kvsyncfs
