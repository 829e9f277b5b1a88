// Names of the log's keys in etcd and the texts in them.
//
//   /kvsyncfs/<volume>/generation                       decimal; the log below it is the volume's
//   /kvsyncfs/<volume>/life/<node>                      its version counts the node's lives
//   /kvsyncfs/<volume>/session/<node>/<incarnation>     leased; decimal number of its last batch,
//                                                       or kSentAway
//   /kvsyncfs/<volume>/log/<generation>/count           empty; its version: the last batch's index
//   /kvsyncfs/<volume>/log/<generation>/trim            "<index> <position>": what is trimmed away
//   /kvsyncfs/<volume>/log/<generation>/origin          decimal position; not of the first
//   /kvsyncfs/<volume>/log/<generation>/e/<base>/<node>/<incarnation>/<number>   a batch
//
// Base, incarnation and number are 16 hex digits, generation is decimal. A batch's base is an index
// that its writer knew to be taken; etcd accepts it only while fewer than kWindow batches came
// since, so a batch of index i stands below a base in [i - kWindow, i), and readers find all that
// follow an index by a range of keys. Pure. Thread: any.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "engine/base/ids.h"

namespace kvsyncfs::etcd {

/// Value of the session's key of a node that was sent away: it appends nothing any more.
inline constexpr std::string_view kSentAway = "sent away";

/// Batches that may come between the moment a writer names its base and its own.
inline constexpr std::uint64_t kWindow = 1024;

struct BatchName {
  std::uint64_t base = 0;
  std::string node;
  std::uint64_t incarnation = 0, number = 0;
  bool operator==(const BatchName&) const = default;
};

struct TrimRecord {
  std::uint64_t index = 0;  ///< batches up to it are trimmed
  Position position;        ///< of the last entry in them
  bool operator==(const TrimRecord&) const = default;
};

class LogKeys {
 public:
  /// Requires is_name(volume).
  LogKeys(const std::string& volume, std::uint64_t generation);

  std::string generation() const { return root_ + "generation"; }
  std::string life(std::string_view node) const;
  std::string session(std::string_view node, std::uint64_t incarnation) const;
  std::string sessions(std::string_view node) const;  ///< prefix
  std::string log() const { return log_; }            ///< prefix of the five below
  std::string count() const { return log_ + "count"; }
  std::string trim() const { return log_ + "trim"; }
  std::string origin() const { return log_ + "origin"; }
  std::string batches() const { return log_ + "e/"; }  ///< prefix
  std::string batches_from(std::uint64_t base) const;  ///< below every batch of that base
  std::string batch(const BatchName& name) const;
  /// Nothing: not the key of a batch.
  std::optional<BatchName> parse_batch(std::string_view key) const;

 private:
  std::string root_, log_;
};

/// A volume's or node's name: 1 to 64 of A-Z a-z 0-9 . _ -
bool is_name(std::string_view text);

/// Nothing: not a plain decimal number that fits.
std::optional<std::uint64_t> parse_number(std::string_view text);
std::string to_text(const TrimRecord& record);
std::optional<TrimRecord> parse_trim(std::string_view text);

}  // namespace kvsyncfs::etcd
