#include "tools/stat_model.h"

namespace kvsyncfs {
namespace {

namespace json = boost::json;

Count to_count(const json::value* value) {
  if (value == nullptr) return std::nullopt;
  if (value->is_uint64()) return value->get_uint64();
  if (value->is_int64() && value->get_int64() >= 0) {
    return static_cast<std::uint64_t>(value->get_int64());
  }
  return std::nullopt;
}

Count number_in(const json::object& object, std::string_view name) {
  return to_count(object.if_contains(name));
}

const json::object* object_in(const json::object& object, std::string_view name) {
  const json::value* value = object.if_contains(name);
  return value != nullptr ? value->if_object() : nullptr;
}

std::optional<HitSample> to_sample(const json::object& object, Count uptime_ns) {
  const Count hits = number_in(object, "page_hits");
  const Count misses = number_in(object, "page_misses");
  if (!uptime_ns || !hits || !misses) return std::nullopt;
  return HitSample{*uptime_ns, *hits, *misses};
}

}  // namespace

Result<StatDocument> StatDocument::parse(std::string_view text) {
  boost::system::error_code error;
  json::value value = json::parse(text, error);
  if (error) return Error(Code::kCorrupt, "the answer is not JSON: " + error.message());
  if (!value.is_object()) return Error(Code::kCorrupt, "the answer is not a JSON object");
  StatDocument document;
  document.json_ = std::move(value.get_object());
  const Count pid = number_in(document.json_, "pid");
  const Count uptime_ns = number_in(document.json_, "uptime_ns");
  if (!pid || !uptime_ns) return Error(Code::kCorrupt, "the answer has no pid or uptime_ns");
  document.pid_ = *pid;
  document.uptime_ns_ = *uptime_ns;
  return document;
}

std::string StatDocument::text(std::string_view name) const {
  const json::value* value = json_.if_contains(name);
  return value != nullptr && value->is_string() ? std::string(value->get_string().c_str()) : "";
}

Count StatDocument::number(std::string_view group, std::string_view name) const {
  const json::object* object = object_in(json_, group);
  return object != nullptr ? number_in(*object, name) : std::nullopt;
}

std::vector<std::string> StatDocument::words(std::string_view name) const {
  std::vector<std::string> result;
  const json::value* list = json_.if_contains(name);
  if (list == nullptr || !list->is_array()) return result;
  for (const json::value& word : list->get_array()) {
    if (word.is_string()) result.emplace_back(word.get_string().c_str());
  }
  return result;
}

std::vector<OperationStats> StatDocument::operations() const {
  std::vector<OperationStats> result;
  const json::object* operations = object_in(json_, "operations");
  if (operations == nullptr) return result;
  for (const auto& [name, value] : *operations) {
    if (!value.is_object()) continue;
    const json::object& counts = value.get_object();
    OperationStats stats;
    stats.name = std::string(name);
    stats.count = number_in(counts, "count");
    stats.errors = number_in(counts, "errors");
    if (const json::object* latency = object_in(counts, "latency_ns")) {
      stats.p50_ns = number_in(*latency, "p50");
      stats.p99_ns = number_in(*latency, "p99");
      stats.p999_ns = number_in(*latency, "p999");
      stats.max_ns = number_in(*latency, "max");
    }
    result.push_back(std::move(stats));
  }
  return result;
}

std::optional<HitSample> StatDocument::hits() const {
  const json::object* engine = object_in(json_, "engine");
  return engine != nullptr ? to_sample(*engine, uptime_ns_) : std::nullopt;
}

std::vector<HitSample> StatDocument::history() const {
  std::vector<HitSample> result;
  const json::value* list = json_.if_contains("history");
  if (list == nullptr || !list->is_array()) return result;
  for (const json::value& value : list->get_array()) {
    if (!value.is_object()) continue;
    const json::object& object = value.get_object();
    if (const auto sample = to_sample(object, number_in(object, "uptime_ns"))) {
      result.push_back(*sample);
    }
  }
  return result;
}

}  // namespace kvsyncfs
