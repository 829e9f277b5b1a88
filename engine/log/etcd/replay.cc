#include "engine/log/etcd/replay.h"

#include <fmt/format.h>

#include <algorithm>
#include <queue>
#include <vector>

namespace kvsyncfs::etcd {
namespace {

constexpr std::int64_t kFirstPage = 16;         // keys
constexpr std::int64_t kPageMax = 64;           // of the largest batches: what an answer may hold
constexpr std::uint64_t kPageBytes = 8u << 20;  // aimed at

struct Later {
  bool operator()(const KeyValue& a, const KeyValue& b) const {
    return a.mod_revision > b.mod_revision;
  }
};

class Replay {
 public:
  Replay(EtcdClient& client, const LogKeys& keys, const ReplayRequest& request,
         const ReplayVisitor& visitor)
      : client_(client), keys_(keys), request_(request), visitor_(visitor) {}

  Result<ReplayReport> run() {
    KVSYNCFS_TRY(first_page());
    while (more_) KVSYNCFS_TRY(next_page());
    KVSYNCFS_TRY(hand_out(~std::uint64_t{0}));
    if (next_ != report_.tail + 1 || leftovers_ != 0)
      return Error(Code::kCorrupt, "log in etcd: keys do not add up to its count");
    return report_;
  }

 private:
  Status first_page();
  Status check_head(const TxnReply& reply);
  Status next_page();
  Status take(const RangeReply& page);
  Status hand_out(std::uint64_t complete_base);
  /// That a batch of the index can have.
  std::uint64_t lowest_base(std::uint64_t index) const {
    return index > request_.window ? index - request_.window : 0;
  }

  EtcdClient& client_;
  const LogKeys& keys_;
  const ReplayRequest& request_;
  const ReplayVisitor& visitor_;
  ReplayReport report_;
  std::uint64_t next_ = 0;       // index to hand out next
  std::uint64_t leftovers_ = 0;  // keys of older batches that stand among ours
  std::priority_queue<KeyValue, std::vector<KeyValue>, Later> heap_;
  bool more_ = false;
  std::string after_key_;
  std::int64_t page_ = kFirstPage;
};

Status Replay::first_page() {
  const std::string end = end_of_prefix(keys_.batches());
  // Where the reading begins without `after` is told by the trim record; from the lowest key then.
  const std::string from =
      request_.after ? keys_.batches_from(lowest_base(*request_.after + 1)) : keys_.batches();
  Txn txn;
  txn.success = {
      Range{keys_.count(), {}}, Range{keys_.trim(), {}}, Range{keys_.generation(), {}},
      Range{request_.known.key.empty() ? keys_.trim() : request_.known.key, {}, 0, 0, true},
      Range{from, end, page_}};
  KVSYNCFS_ASSIGN(const TxnReply reply, client_.txn(txn, request_.deadline_ns()));
  if (reply.ranges.size() != txn.success.size())
    return Error(Code::kCorrupt, "etcd: an answer is missing");
  KVSYNCFS_TRY(check_head(reply));
  const RangeReply& page = reply.ranges.back();
  const std::uint64_t wanted = report_.tail + 1 - next_;
  if (page.count < 0 || static_cast<std::uint64_t>(page.count) < wanted)
    return Error(Code::kCorrupt, "log in etcd: batches are missing");
  leftovers_ = static_cast<std::uint64_t>(page.count) - wanted;
  KVSYNCFS_TRY(visitor_.begin(report_.trim));
  return take(page);
}

/// Is it the log that we know, and does it still have what we need?
Status Replay::check_head(const TxnReply& reply) {
  const auto& count = reply.ranges[0].items;
  const auto& trim = reply.ranges[1].items;
  const auto& generation = reply.ranges[2].items;
  const auto& known = reply.ranges[3].items;
  if (generation.size() != 1 || parse_number(generation[0].value) != request_.generation)
    return Error(Code::kStale, "the log has another generation");
  const auto trimmed = trim.size() == 1 ? parse_trim(trim[0].value) : std::nullopt;
  if (!trimmed || count.size() > 1) return Error(Code::kCorrupt, "log in etcd: bad trim record");
  report_.revision = reply.revision;
  report_.trim = *trimmed;
  report_.tail = count.empty() ? 0 : static_cast<std::uint64_t>(count[0].version);
  next_ = request_.after.value_or(trimmed->index) + 1;
  if (report_.tail + 1 < next_ || report_.tail < trimmed->index)
    return Error(Code::kCorrupt, fmt::format("the log ends at batch {}, {} was applied here: "
                                             "etcd went back",
                                             report_.tail, next_ - 1));
  if (next_ <= trimmed->index)
    return Error(Code::kStale, fmt::format("log batch {} is needed, up to {} they are trimmed",
                                           next_, trimmed->index));
  if (request_.known.index == 0) return {};
  const bool there = known.size() == 1 && known[0].mod_revision == request_.known.revision;
  if (!there && (!known.empty() || request_.known.index > trimmed->index))
    return Error(Code::kCorrupt, fmt::format("log batch {} is not the one that was applied here: "
                                             "etcd went back",
                                             request_.known.index));
  return {};
}

Status Replay::next_page() {
  const Range range{after_key_ + '\0', end_of_prefix(keys_.batches()), page_, report_.revision};
  const auto page = client_.range(range, request_.deadline_ns());
  if (page) return take(*page);
  if (page.error().code == Code::kStale)
    return Error(Code::kBusy, "the log's history was compacted under a reading");
  return page.error();
}

Status Replay::take(const RangeReply& page) {
  std::uint64_t bytes = 0, base = 0;
  for (const KeyValue& item : page.items) {
    const auto name = keys_.parse_batch(item.key);
    if (!name || item.key <= after_key_ || item.mod_revision <= 0)
      return Error(Code::kCorrupt, "etcd: a range out of order");
    base = name->base;
    bytes += item.value.size();
    after_key_ = item.key;
    heap_.push(item);
  }
  more_ = page.more;
  if (page.items.empty()) {
    return more_ ? Status(Error(Code::kCorrupt, "etcd: an empty page")) : Status{};
  }
  const std::uint64_t average = bytes / page.items.size() + 1;
  page_ = std::clamp<std::int64_t>(static_cast<std::int64_t>(kPageBytes / average), 1, kPageMax);
  return more_ ? hand_out(base) : Status{};
}

/// Every key below `complete_base` has been read, so every batch up to that index has.
Status Replay::hand_out(std::uint64_t complete_base) {
  while (!heap_.empty()) {
    const std::uint64_t index = leftovers_ > 0 ? next_ - 1 : next_;
    if (index > complete_base) return {};
    const KeyValue batch = heap_.top();
    heap_.pop();
    if (leftovers_ > 0) {
      --leftovers_;
      continue;
    }
    const auto name = keys_.parse_batch(batch.key);
    if (index > report_.tail || name->base >= index || index - name->base > request_.window)
      return Error(Code::kCorrupt, "log in etcd: a batch out of its window");
    KVSYNCFS_TRY(visitor_.batch(index, batch));
    ++next_;
  }
  return {};
}

}  // namespace

Result<ReplayReport> replay(EtcdClient& client, const LogKeys& keys, const ReplayRequest& request,
                            const ReplayVisitor& visitor) {
  return Replay(client, keys, request, visitor).run();
}

}  // namespace kvsyncfs::etcd
