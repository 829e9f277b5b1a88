// The inside of fsck: the catalog with itself, the catalog with the segments, and (scrub) every
// page.
#include <fmt/format.h>

#include "engine/engine_impl.h"

namespace kvsyncfs {

Result<Engine::CheckReport> EngineImpl::check(const CheckOptions& options) {
  CheckReport report;
  KVSYNCFS_ASSIGN(report.problems,
                  catalog_->check(options.report, [&](std::uint64_t done, std::uint64_t total) {
                    options.progress("catalog", done, total);
                  }));
  KVSYNCFS_TRY(check_segments(options, report));
  return report;
}

Status EngineImpl::check_segments(const CheckOptions& options, CheckReport& report) {
  KVSYNCFS_ASSIGN(const auto segments, catalog_->segments());
  std::uint64_t done = 0, total = 0;
  for (const auto& [id, record] : segments) total += record.length;
  for (const auto& [id, record] : segments) {
    const auto verdict = options.scrub
                             ? store_->scrub(id,
                                             [&](std::uint64_t bytes) {
                                               report.pages_checked += bytes / kPageSize;
                                               options.progress("segments", done += bytes, total);
                                             })
                             : store_->pages_in_batch_from(id, 1);
    if (!verdict && record.live_bytes == 0 && verdict.error().code != Code::kIo) continue;
    if (!verdict) {
      ++report.problems;
      options.report(describe(verdict.error()));
    } else if (options.scrub && *verdict > 0) {
      report.bad_pages += *verdict;
      ++report.problems;
      options.report(fmt::format("segment {}: {} bad pages, {} live bytes", id.value, *verdict,
                                 record.live_bytes));
    }
  }
  return {};
}

}  // namespace kvsyncfs
