// The JSON document of kvsyncfs-stat(8) as metrics for Prometheus: one walk over whatever is in
// there, so that a counter is named in one place only. Pure. Thread: values.
#pragma once

#include <prometheus/metric_family.h>

#include <string_view>
#include <vector>

namespace kvsyncfs {

/// A number a.b of the document becomes kvsyncfs_a_b, a list its length, all texts together are the
/// labels of kvsyncfs_info; an operation's name and a latency's quantile become labels. The history
/// is left out: Prometheus has its own. In order of their names; empty if the text is no JSON.
std::vector<prometheus::MetricFamily> to_metrics(std::string_view document);

}  // namespace kvsyncfs
