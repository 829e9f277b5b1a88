// What the clients of a simulated cluster do to names.
#include <sys/stat.h>

#include <iterator>

#include "tests/sim/cluster/cluster_clients.h"
#include "tests/sim/cluster/cluster_world.h"
#include "tests/sim/cluster/sim_threads.h"

namespace kvsyncfs {

namespace sim = sim_threads;

namespace {

constexpr const char* kNames[kGroupNames] = {"a", "b", "c", "d"};
constexpr const char* kNameInside = "x";
constexpr std::size_t kKnownMax = 6;  // older nodes are gone, most of them
constexpr NameCall kCalls[] = {NameCall::kCreate, NameCall::kCreate,    NameCall::kUnlink,
                               NameCall::kRmdir,  NameCall::kRename,    NameCall::kRename,
                               NameCall::kLink,   NameCall::kRenameNew, NameCall::kExchange};

NewNode new_node(std::uint64_t token) {
  NewNode node;
  node.mode = kind_of(token) == NodeKind::kFile        ? S_IFREG | 0644
              : kind_of(token) == NodeKind::kDirectory ? S_IFDIR | 0755
                                                       : S_IFLNK | 0777;
  if (kind_of(token) == NodeKind::kSymlink) node.target = "somewhere";
  node.uid = static_cast<std::uint32_t>(token);
  return node;
}

}  // namespace

/// One of the nodes that the client has seen; 0: none of that kind.
std::uint64_t ClusterWorld::known_node(Client& client, std::size_t group, bool is_folder) {
  auto& known = client.known[group];
  while (known.size() > kKnownMax) known.erase(known.begin());
  std::vector<std::uint64_t> tokens;
  for (const auto& [token, inode] : known)
    if ((kind_of(token) == NodeKind::kDirectory) == is_folder) tokens.push_back(token);
  return tokens.empty() ? 0 : tokens[client.random.below(tokens.size())];
}

NamePlace ClusterWorld::draw_place(Client& client, std::size_t group) {
  NamePlace place;
  place.name = client.random.below(kGroupNames);
  if (client.random.one_in(3)) place.directory = known_node(client, group, true);
  if (place.directory != 0) place.name = 0;
  return place;
}

ClusterWorld::Named ClusterWorld::named(const Client& client, std::size_t group,
                                        const NamePlace& place) const {
  if (place.directory != 0) return {client.known[group].at(place.directory), kNameInside};
  return {folders_[group * kGroupFolders + place.name % kGroupFolders], kNames[place.name]};
}

/// Errors: those of the call.
Status ClusterWorld::call_name(Client& client, const SimNode::Use& use, std::size_t group,
                               NameOp& op) {
  Engine& engine = use.engine();
  const Named a = named(client, group, op.a), b = named(client, group, op.b);
  const auto rename = [&](RenameMode mode) {
    return engine.rename(a.folder, a.name, b.folder, b.name, mode);
  };
  switch (op.call) {
    case NameCall::kCreate: {
      const auto made = engine.create(a.folder, a.name, new_node(op.token));
      if (made && !use.is_over()) client.known[group][op.token] = made->inode;
      return status_of(made);
    }
    case NameCall::kUnlink:
      return engine.unlink(a.folder, a.name);
    case NameCall::kRmdir:
      return engine.remove_directory(a.folder, a.name);
    case NameCall::kRename:
      return rename(RenameMode::kReplace);
    case NameCall::kRenameNew:
      return rename(RenameMode::kNoReplace);
    case NameCall::kExchange:
      return rename(RenameMode::kExchange);
    case NameCall::kLink:
      return status_of(engine.link(client.known[group][op.token], b.folder, b.name));
    case NameCall::kLookup:
      break;
  }
  const auto found = engine.lookup(a.folder, a.name);
  if (!found) return found.error();
  op.token = found->attributes.uid;
  client.known[group][op.token] = found->inode;
  return {};
}

void ClusterWorld::call_names(Client& client) {
  const auto use = client.node.use();
  if (!use) return;
  const std::size_t group = client.random.below(kGroups);
  if (client.random.one_in(12)) return list_names(client, *use, group);
  NameOp op;
  if (!client.only_reads && !client.random.one_in(3))
    op.call = kCalls[client.random.below(std::size(kCalls))];
  op.node = static_cast<unsigned>(client.node.id().value);
  op.a = draw_place(client, group);
  do {
    op.b = draw_place(client, group);
  } while (op.b == op.a);
  if (op.call == NameCall::kCreate) {
    const NodeKind kind = static_cast<NodeKind>(client.random.below(3));
    op.token = token_of(++next_number_, kind);
  }
  if (op.call == NameCall::kLink) op.token = known_node(client, group, false);
  if (op.call == NameCall::kLink && op.token == 0) return;
  const std::size_t place = names_[group].size();
  op.begin_ns = sim::now_ns();
  names_[group].push_back(op);
  const Status status = call_name(client, *use, group, op);
  const bool brings_bytes = op.call == NameCall::kRename;  // the source's come first
  if (!is_answer(client, *use, brings_bytes ? "rename" : kCallOfNames, op.begin_ns, status)) return;
  op.end_ns = sim::now_ns();
  if (!status) op.code = status.error().code;
  names_[group][place] = op;
  if (op.call == NameCall::kLink && op.code == Code::kNotFound) client.known[group].erase(op.token);
}

/// A listing tells of each name what a lookup at some moment of it would.
void ClusterWorld::list_names(Client& client, const SimNode::Use& use, std::size_t group) {
  const std::size_t which = client.random.below(kGroupFolders);
  NameOp op;
  op.node = static_cast<unsigned>(client.node.id().value);
  op.begin_ns = sim::now_ns();
  const auto entries =
      use.engine().list(folders_[group * kGroupFolders + which], 0, 10 * kGroupNames, true);
  if (!is_answer(client, use, kCallOfNames, op.begin_ns, status_of(entries)) || !entries) return;
  op.end_ns = sim::now_ns();
  std::map<std::string, std::uint64_t> there;
  for (const ListEntry& entry : *entries)
    if (!there.emplace(entry.dentry.name, entry.attributes.uid).second)
      fail("a listing has a name twice: " + entry.dentry.name);
  for (op.a.name = which; op.a.name < kGroupNames; op.a.name += kGroupFolders) {
    const auto found = there.find(kNames[op.a.name]);
    op.token = found == there.end() ? 0 : found->second;
    op.code = found == there.end() ? Code::kNotFound : Code{};
    names_[group].push_back(op);
  }
}

}  // namespace kvsyncfs
