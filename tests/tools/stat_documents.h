// Answers of a daemon, made up for the tests of kvsyncfs-stat. Thread: values.
#pragma once

#include <boost/json.hpp>
#include <cstdint>
#include <stdexcept>
#include <vector>

#include "tools/stat_model.h"

namespace kvsyncfs {

inline StatDocument document_of(const boost::json::object& object) {
  auto document = StatDocument::parse(boost::json::serialize(object));
  if (!document) throw std::runtime_error(describe(document.error()));
  return *document;
}

inline boost::json::object answer_at(std::uint64_t seconds, std::uint64_t pid = 7) {
  return {{"version", "0.1.0"}, {"pid", pid}, {"uptime_ns", seconds * 1'000'000'000}};
}

inline StatDocument hits_at(std::uint64_t seconds, std::uint64_t hits, std::uint64_t misses,
                            const std::vector<HitSample>& history = {}) {
  auto answer = answer_at(seconds);
  answer["engine"] = {{"page_hits", hits}, {"page_misses", misses}};
  boost::json::array samples;
  for (const HitSample& sample : history) {
    samples.push_back({{"uptime_ns", sample.uptime_ns},
                       {"page_hits", sample.hits},
                       {"page_misses", sample.misses}});
  }
  answer["history"] = samples;
  return document_of(answer);
}

}  // namespace kvsyncfs
