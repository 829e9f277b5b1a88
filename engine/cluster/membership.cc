#include "engine/cluster/membership.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "engine/log/etcd/log_keys.h"

namespace kvsyncfs {
namespace {

bool before(const Member& member, NodeId node) { return member.id < node; }

/// What the lines of a range say; epoch 0.
ClusterMap read_lines(const etcd::RangeReply& reply, std::size_t prefix_size) {
  ClusterMap map;
  for (const etcd::KeyValue& item : reply.items) {
    std::string name = item.key.substr(std::min(prefix_size, item.key.size()));
    auto member = decode_member(item.value);
    const auto place =
        member ? std::lower_bound(map.members.begin(), map.members.end(), member->id, before)
               : map.members.end();
    const bool is_double = member && place != map.members.end() && place->id == member->id;
    if (!member && member.error().code == Code::kNewerFormat) map.newer.push_back(name);
    if (!member || member->name != name || is_double)
      map.unreadable.push_back(std::move(name));
    else
      map.members.insert(place, std::move(*member));
  }
  return map;
}

}  // namespace

const Member* ClusterMap::find(NodeId node) const {
  const auto found = std::lower_bound(members.begin(), members.end(), node, before);
  return found != members.end() && found->id == node ? &*found : nullptr;
}

std::vector<Candidate> placement_candidates(const ClusterMap& map) {
  std::vector<Candidate> candidates;
  for (const Member& member : map.members)
    candidates.push_back(
        {member.id, member.rack, placement_weight(member.capacity_bytes, member.free_bytes)});
  return candidates;
}

Membership::Membership(etcd::EtcdClient& client, Clock& clock, const std::string& volume)
    : client_(client),
      clock_(clock),
      volume_(volume),
      prefix_(fmt::format("/kvsyncfs/{}/members/", volume)) {}

Status Membership::announce(const Member& member, std::int64_t lease, std::uint64_t deadline_ns) {
  KVSYNCFS_ASSIGN(std::string line, encode_member(member));
  const auto seen = map();
  if (const Member* shown = seen->find(member.id); shown != nullptr && *shown == member) return {};
  // The key of a session is the same in every generation of the log.
  const std::string session =
      etcd::LogKeys(volume_, 1).session(member.name, member.incarnation.value);
  etcd::Txn txn;  // "the session is gone" can be asked with one compare, that it is there cannot
  txn.compares = {etcd::version_is(session, 0)};
  txn.failure = {etcd::Put{prefix_ + member.name, std::move(line), lease}};
  const auto reply = client_.txn(txn, deadline_ns);
  const bool lease_is_gone = !reply && reply.error().code == Code::kNotFound;
  if (lease_is_gone || (reply && reply->succeeded))
    return Error(Code::kFenced, fmt::format("member {}: session {} has ended", member.name,
                                            member.incarnation.value));
  return reply ? Status{} : Status(reply.error());
}

Status Membership::refresh(std::uint64_t deadline_ns) {
  const std::uint64_t begun_ns = clock_.boot_ns();
  const etcd::Range lines{prefix_, etcd::end_of_prefix(prefix_), kMembersMax};
  KVSYNCFS_ASSIGN(const etcd::RangeReply reply, client_.range(lines, deadline_ns));
  if (reply.more)
    return Error(Code::kTooBig, fmt::format("volume {}: {} members", volume_, reply.count));
  auto read = std::make_shared<ClusterMap>(read_lines(reply, prefix_.size()));

  std::lock_guard lock(mutex_);
  read_ns_ = std::max(read_ns_, begun_ns);
  if (reply.revision < revision_) return {};  // another thread has read what came later
  revision_ = reply.revision;
  if (map_->epoch != 0 && map_->members == read->members && map_->unreadable == read->unreadable)
    return {};
  read->epoch = map_->epoch + 1;
  map_ = std::move(read);
  return {};
}

std::shared_ptr<const ClusterMap> Membership::map() const {
  std::lock_guard lock(mutex_);
  return map_;
}

std::uint64_t Membership::read_ns() const {
  std::lock_guard lock(mutex_);
  return read_ns_;
}

}  // namespace kvsyncfs
