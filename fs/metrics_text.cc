#include "fs/metrics_text.h"

#include <array>
#include <boost/json.hpp>
#include <map>
#include <string>
#include <utility>

#include "fs/stats_report.h"

namespace kvsyncfs {
namespace {

namespace json = boost::json;
using Labels = std::vector<prometheus::ClientMetric::Label>;

constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kQuantiles = {
    {{"p50", "0.5"}, {"p99", "0.99"}, {"p999", "0.999"}, {"max", "1"}}};

class Walk {
 public:
  void group(const std::string& prefix, const json::object& object) {
    for (const auto& [key, value] : object) {
      const std::string name = prefix + "_" + std::string(key);
      if (value.is_string())
        texts_.push_back({std::string(key), std::string(value.as_string())});
      else if (key == "operations" && value.is_object())
        operations(name, value.as_object());
      else if (value.is_object())
        group(name, value.as_object());
      else if (value.is_array() && key != "history")
        add(name, static_cast<double>(value.as_array().size()));
      else if (value.is_number())
        add(name, value.to_number<double>(), {}, prefix == "kvsyncfs_engine" && !is_gauge(key));
    }
  }

  std::vector<prometheus::MetricFamily> take() {
    add("kvsyncfs_info", 1, std::move(texts_));
    std::vector<prometheus::MetricFamily> all;
    for (auto& [name, family] : families_) all.push_back(std::move(family));
    return all;
  }

 private:
  void operations(const std::string& prefix, const json::object& operations) {
    for (const auto& [operation, counts] : operations) {
      const Labels labels = {{"operation", std::string(operation)}};
      for (const auto& [key, value] : counts.as_object()) {
        const std::string name = prefix + "_" + std::string(key);
        if (value.is_number()) add(name, value.to_number<double>(), labels, true);
        if (value.is_object()) quantiles(name, labels, value.as_object());
      }
    }
  }

  void quantiles(const std::string& name, const Labels& labels, const json::object& values) {
    for (const auto& [key, quantile] : kQuantiles) {
      const json::value* value = values.if_contains(key);
      if (value == nullptr) continue;
      Labels all = labels;
      all.push_back({"quantile", std::string(quantile)});
      add(name, value->to_number<double>(), std::move(all));
    }
  }

  void add(const std::string& name, double value, Labels labels = {}, bool is_counter = false) {
    prometheus::MetricFamily& family = families_[name];
    family.name = name;
    family.help = "See kvsyncfs-stat(8).";
    family.type = is_counter ? prometheus::MetricType::Counter : prometheus::MetricType::Gauge;
    prometheus::ClientMetric metric;
    metric.label = std::move(labels);
    (is_counter ? metric.counter.value : metric.gauge.value) = value;
    family.metric.push_back(std::move(metric));
  }

  std::map<std::string, prometheus::MetricFamily> families_;
  Labels texts_;
};

}  // namespace

std::vector<prometheus::MetricFamily> to_metrics(std::string_view document) {
  boost::system::error_code error;
  const json::value value = json::parse(document, error);
  if (error || !value.is_object()) return {};
  Walk walk;
  walk.group("kvsyncfs", value.as_object());
  return walk.take();
}

}  // namespace kvsyncfs
