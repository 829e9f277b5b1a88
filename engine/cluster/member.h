// What a node that is up tells the others of itself: its line in the cluster's list of members.
//
// The line is JSON, so that an operator can read it in etcd and a later version can add a field:
// fields that are not known are ignored, `format` grows only where an older reader would go wrong.
// Every line comes from the network and is taken only within the bounds below. Pure. Thread: any.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/error.h"
#include "engine/base/ids.h"
#include "engine/format/frame.h"

namespace kvsyncfs {

inline constexpr std::size_t kMemberLineSizeMax = 16u << 10;  ///< bytes
inline constexpr std::size_t kMemberAddressesMax = 16;
inline constexpr std::size_t kMemberVersionSizeMax = 64;  ///< bytes
inline constexpr std::size_t kMemberUnreachedMax = 256;

inline constexpr std::size_t kMemberFeaturesMax = 16;

/// Major versions of the protocol between nodes (format/frame.h) that a program speaks; min <= max.
struct ProtocolRange {
  std::uint64_t min = kProtocolMajor, max = kProtocolMajor;
  bool operator==(const ProtocolRange&) const = default;
};

inline constexpr std::string_view kFeatureTls = "tls";

struct Member {
  NodeId id;                           ///< not 0
  std::string name;                    ///< 1 to 64 of A-Z a-z 0-9 . _ -
  Incarnation incarnation;             ///< of its daemon; not 0
  std::vector<std::string> addresses;  ///< 1 to 16, best first: "10.0.0.3:7420", "[fd00::3]:7420"
  std::string rack;                    ///< a name as well; empty: not told
  std::uint64_t capacity_bytes = 0;    ///< of its store
  std::uint64_t free_bytes = 0;        ///< of them, when it told
  std::string version;                 ///< of its program; printable ASCII
  std::vector<NodeId> unreached = {};  ///< nodes that it cannot ask, by id; see cuts.h
  ProtocolRange protocol = {};
  /// What all nodes must have alike, by names, in order; what nodes may do without is not here.
  std::vector<std::string> features = {};
  std::uint64_t beat = 0;  ///< grows with each line while such a list concerns it

  bool operator==(const Member&) const = default;
};

/// The line of a member. Errors: kInvalid (a field is not as Member says).
Result<std::string> encode_member(const Member& member);

/// A member from its line. Errors: kCorrupt (no such line, a field is missing or not as Member
/// says), kNewerFormat, kNoMemory.
Result<Member> decode_member(std::string_view line);

/// Whether the two can be nodes of one volume at the same time; both sides find the same. Errors,
/// naming the other and why: kNewerFormat (no common version), kUnsupported (features differ).
Status get_on(const Member& self, const Member& other);

/// A numeric address and a port that another node can dial; IPv6 stands in brackets.
bool is_member_address(const std::string& text);

}  // namespace kvsyncfs
