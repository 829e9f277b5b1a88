// What the clients of a simulated cluster do to attributes and extended attributes: those of one
// file, to which nobody writes, each a register.
#include "tests/sim/cluster/cluster_clients.h"
#include "tests/sim/cluster/cluster_world.h"
#include "tests/sim/cluster/sim_threads.h"

namespace kvsyncfs {

namespace sim = sim_threads;

namespace {
enum Register : std::size_t { kMode, kUid, kGid, kMtime, kAtime, kXattrs };
constexpr std::uint32_t kModeBits = 0777;

bool means_no_data(const Status& status) {
  return !status && (status.error().code == Code::kNoData || status.error().code == Code::kExists);
}
}  // namespace

std::size_t ClusterWorld::begin_register(Client& client, std::size_t which, RegisterCall call,
                                         std::uint64_t value) {
  RegisterOp op;
  op.call = call;
  op.node = static_cast<unsigned>(client.node.id().value);
  op.value = value;
  op.begin_ns = sim::now_ns();
  registers_[which].push_back(op);
  return registers_[which].size() - 1;
}

void ClusterWorld::change_attributes(Client& client) {
  switch (client.random.below(4)) {
    case 0:
      return set_attributes(client);
    case 1:
      return read_attributes(client);
    default:
      return call_xattr(client);
  }
}

/// Each register that is set has a call of its own, all at the same time.
void ClusterWorld::set_attributes(Client& client) {
  const auto use = client.node.use();
  if (!use) return;
  const std::uint64_t number = ++next_number_;
  const auto small = static_cast<std::uint32_t>(number);
  AttributeChange change;
  std::vector<std::pair<std::size_t, std::size_t>> calls;
  const auto draw = [&](Register which, std::uint64_t value) {
    if (!client.random.one_in(2)) return false;
    calls.emplace_back(which, begin_register(client, which, RegisterCall::kSet, value));
    return true;
  };
  if (draw(kMode, number & kModeBits)) change.mode = small & kModeBits;
  if (draw(kUid, number)) change.uid = small;
  if (draw(kGid, number)) change.gid = small;
  const Timestamp time{static_cast<std::int64_t>(number), 5};
  if (draw(kMtime, number)) change.mtime = time;
  if (draw(kAtime, number)) change.atime = time;
  const std::uint64_t begin_ns = sim::now_ns();
  const auto changed = use->engine().set_attributes(files_[kAttributeFile], change);
  if (!is_answer(client, *use, "setattr", begin_ns, status_of(changed)) || !changed) return;
  for (const auto& [which, place] : calls) registers_[which][place].end_ns = sim::now_ns();
}

void ClusterWorld::read_attributes(Client& client) {
  const auto use = client.node.use();
  if (!use) return;
  RegisterOp op;
  op.node = static_cast<unsigned>(client.node.id().value);
  op.begin_ns = sim::now_ns();
  const auto seen = use->engine().attributes(files_[kAttributeFile]);
  if (!is_answer(client, *use, kCallOfNames, op.begin_ns, status_of(seen)) || !seen) return;
  op.end_ns = sim::now_ns();
  const std::uint64_t values[] = {seen->mode & kModeBits, seen->uid, seen->gid,
                                  static_cast<std::uint64_t>(seen->mtime.seconds),
                                  static_cast<std::uint64_t>(seen->atime.seconds)};
  for (std::size_t which = 0; which < kXattrs; ++which) {
    op.value = values[which];
    registers_[which].push_back(op);
  }
}

/// Sets, adds, replaces, removes or reads one.
void ClusterWorld::call_xattr(Client& client) {
  const auto use = client.node.use();
  if (!use) return;
  Engine& engine = use->engine();
  const InodeId inode = files_[kAttributeFile];
  const std::size_t which = kXattrs + client.random.below(kRegisters - kXattrs);
  const std::string name = "user." + std::to_string(which);
  const bool reads = client.only_reads || client.random.one_in(2);
  const RegisterCall call =
      reads ? RegisterCall::kRead : static_cast<RegisterCall>(client.random.below(4));
  const bool is_set = call < RegisterCall::kRemove;
  const std::uint64_t value = is_set ? ++next_number_ : 0;
  const std::size_t place = begin_register(client, which, call, value);
  const std::uint64_t begin_ns = sim::now_ns();
  std::string seen;
  const Status status = [&]() -> Status {
    if (call == RegisterCall::kRemove) return engine.remove_xattr(inode, name);
    if (is_set)
      return engine.set_xattr(inode, name, std::to_string(value),
                              call == RegisterCall::kSet   ? XattrMode::kSet
                              : call == RegisterCall::kAdd ? XattrMode::kCreate
                                                           : XattrMode::kReplace);
    KVSYNCFS_ASSIGN(seen, engine.xattr(inode, name));
    return {};
  }();
  const bool is_refused = means_no_data(status);
  if (!is_answer(client, *use, kCallOfNames, begin_ns, is_refused ? Status{} : status)) return;
  RegisterOp& op = registers_[which][place];
  op.end_ns = sim::now_ns();
  if (reads) op.value = is_refused ? 0 : std::strtoull(seen.c_str(), nullptr, 10);
  if (!reads && is_refused) op.code = status.error().code;
}

}  // namespace kvsyncfs
