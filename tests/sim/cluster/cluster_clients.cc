// What the clients of a simulated cluster do.
#include <fmt/format.h>
#include <sys/stat.h>

#include "tests/sim/cluster/cluster_world.h"
#include "tests/sim/cluster/sim_threads.h"

namespace kvsyncfs {

namespace sim = sim_threads;

namespace {

constexpr std::uint64_t kMillisecond = 1'000'000, kSecond = 1'000'000'000;
constexpr std::uint64_t kMarginNs = kSecond;
/// A call that brings bytes waits for another one's flush, for the holders and for the log.
constexpr std::uint64_t kWaitsOfBytes = 3;
constexpr const char* kCallOfNames = "a call of names";
constexpr const char* kNames[kGroupNames] = {"a", "b", "c"};

/// A refusal that changed nothing, and always comes to that.
bool is_refusal(Code code) {
  return code == Code::kNotFound || code == Code::kExists || code == Code::kNotDirectory ||
         code == Code::kIsDirectory || code == Code::kNotEmpty;
}
bool ends_life(Code code) { return code == Code::kFenced || code == Code::kIo; }

template <typename T>
Status status_of(const Result<T>& result) {
  return result ? Status{} : Status(result.error());
}

}  // namespace

bool ClusterWorld::is_answer(Client& client, const SimNode::Use& use, const char* call,
                             std::uint64_t begin_ns, const Status& status) {
  if (use.is_over()) return false;
  const std::uint64_t took_ns = sim::now_ns() - begin_ns;
  const bool was_frozen = frozen_until_ns_[client.node.id().value - 1] > begin_ns;
  const bool is_of_names = std::string_view(call) == kCallOfNames;
  const std::uint64_t limit_ns =
      cluster_.timeout_ns * (is_of_names ? 1 : kWaitsOfBytes) + kMarginNs;
  if (took_ns > limit_ns && !was_frozen)
    fail(fmt::format("{} on {} took {:.3f} s, begun at {:.6f}{}", call, client.node.name(),
                     static_cast<double>(took_ns) / 1e9, static_cast<double>(begin_ns) / 1e9,
                     status ? "" : ": " + describe(status.error())));
  if (status || is_refusal(status.error().code)) {
    ++answered_;
    return true;
  }
  ++unanswered_;
  const Code code = status.error().code;
  if (code == Code::kCorrupt || code == Code::kInvalid)
    fail(fmt::format("{} on {}: {}", call, client.node.name(), describe(status.error())));
  if (ends_life(code)) client.node.broken();
  return false;
}

void ClusterWorld::run_client(Client& client) {
  while (!is_over_ && problem_.empty()) {
    if (plan_.only_values) {
      sim::sleep(client.random.below(2 * kMillisecond));
      client.only_reads || client.random.one_in(2) ? get_value(client) : put_value(client);
      continue;
    }
    sim::sleep(kMillisecond + client.random.below(60 * kMillisecond));
    switch (client.only_reads ? client.random.one_in(3) ? 6 : 0 : client.random.below(16)) {
      case 0:
      case 1:
      case 2:
      case 3:
      case 8:
      case 9:
        call_names(client);
        break;
      case 4:
        write_file(client);
        break;
      case 5:
        append_record(client);
        break;
      case 7:
        lock_file(client);
        break;
      case 10:
        put_value(client);
        break;
      case 11:
        get_value(client);
        break;
      default:
        read_file(client, client.random.below(files_.size()));
    }
  }
}

void ClusterWorld::call_names(Client& client) {
  const auto use = client.node.use();
  if (!use) return;
  Engine& engine = use->engine();
  const std::size_t group = client.random.below(kGroups);
  const InodeId folder = groups_[group];
  NameOp op;
  op.call = static_cast<NameCall>(client.random.below(7));
  if (client.only_reads || client.random.one_in(3)) op.call = NameCall::kLookup;
  op.node = static_cast<unsigned>(client.node.id().value);
  op.a = client.random.below(kGroupNames);
  op.b = (op.a + 1 + client.random.below(kGroupNames - 1)) % kGroupNames;
  if (op.call == NameCall::kLink) {
    if (client.known[group].empty()) return;
    auto file = client.known[group].begin();
    std::advance(file, client.random.below(client.known[group].size()));
    op.token = file->first;
  }
  if (op.call == NameCall::kCreate) op.token = ++next_number_;
  const std::size_t place = names_[group].size();
  op.begin_ns = sim::now_ns();
  names_[group].push_back(op);
  const Status status = [&]() -> Status {
    switch (op.call) {
      case NameCall::kCreate: {
        NewNode node;
        node.mode = S_IFREG | 0644;
        node.uid = static_cast<std::uint32_t>(op.token);
        const auto made = engine.create(folder, kNames[op.a], node);
        if (made && !use->is_over()) client.known[group][op.token] = made->inode;
        return status_of(made);
      }
      case NameCall::kUnlink:
        return engine.unlink(folder, kNames[op.a]);
      case NameCall::kRename:
        return engine.rename(folder, kNames[op.a], folder, kNames[op.b], RenameMode::kReplace);
      case NameCall::kRenameNew:
        return engine.rename(folder, kNames[op.a], folder, kNames[op.b], RenameMode::kNoReplace);
      case NameCall::kExchange:
        return engine.rename(folder, kNames[op.a], folder, kNames[op.b], RenameMode::kExchange);
      case NameCall::kLink:
        return status_of(engine.link(client.known[group][op.token], folder, kNames[op.b]));
      case NameCall::kLookup: {
        const auto found = engine.lookup(folder, kNames[op.a]);
        if (!found) return found.error();
        names_[group][place].token = found->attributes.uid;
        return {};
      }
    }
    return {};
  }();
  const bool brings_bytes = op.call == NameCall::kRename;  // the source's come first
  if (!is_answer(client, *use, brings_bytes ? "rename" : kCallOfNames, op.begin_ns, status)) return;
  NameOp& kept = names_[group][place];
  kept.end_ns = sim::now_ns();
  if (!status) kept.code = status.error().code;
  if (op.call == NameCall::kLink && kept.code == Code::kNotFound)
    client.known[group].erase(op.token);
}

void ClusterWorld::write_cells(Client& client, const SimNode::Use& use, std::size_t file,
                               const char* keeper, const std::function<Status()>& keep) {
  const std::uint64_t number = ++next_number_;
  ByteWrite& write = bytes_[file].writes[number];
  write.node = static_cast<unsigned>(client.node.id().value);
  write.first = client.random.below(kCells);
  write.count = 1 + client.random.below(kCells - write.first);
  write.begin_ns = sim::now_ns();
  const std::string bytes = cells_of(number, write.count);
  const Status written = use.engine().write(files_[file], write.first * kCellSize, as_bytes(bytes));
  if (!is_answer(client, use, "write", write.begin_ns, written) || !written) return;
  const std::uint64_t begin_ns = sim::now_ns();
  const Status kept = keep();
  if (is_answer(client, use, keeper, begin_ns, kept) && kept) write.confirmed_ns = sim::now_ns();
}

void ClusterWorld::write_file(Client& client) {
  const auto use = client.node.use();
  if (!use) return;
  Engine& engine = use->engine();
  const std::size_t file = client.random.below(kCellFiles);
  const std::uint64_t begin_ns = sim::now_ns();
  const auto opened = engine.open_handle(files_[file]);
  if (!is_answer(client, *use, "open", begin_ns, status_of(opened))) return;
  const bool close = client.random.one_in(2), leave = client.random.one_in(5);
  write_cells(client, *use, file, close ? "close" : "fsync", [&]() -> Status {
    if (leave) return Code::kTimeout;  // the bytes stay in the write buffer for now
    return close ? engine.flush(files_[file]) : engine.sync(files_[file]);
  });
  engine.close_handle(files_[file]);
}

/// Locks, looks, writes and unlocks, or gives up the wait.
void ClusterWorld::lock_file(Client& client) {
  const auto use = client.node.use();
  if (!use) return;
  Engine& engine = use->engine();
  struct Given {
    bool is_answered = false;
    LockAnswer answer;
  };
  const auto given = std::make_shared<Given>();
  const LockType type = client.random.one_in(3) ? LockType::kShared : LockType::kExclusive;
  LockRange range;
  range.inode = files_[kLockedFile];
  range.kind = client.random.one_in(2) ? LockKind::kFlock : LockKind::kPosix;
  range.owner = client.owner;
  const std::uint64_t begin_ns = sim::now_ns();
  const std::uint64_t request = engine.begin_lock([given](const LockAnswer& answer) {
    given->answer = answer;
    given->is_answered = true;
    sim::wake(given.get());
  });
  engine.lock(request, range, type, !client.random.one_in(4));
  if (!given->is_answered)
    static_cast<void>(sim::wait(given.get(), sim::now_ns() + client.random.below(kSecond)));
  if (!given->is_answered) engine.cancel_lock(request);
  const std::uint64_t until_ns = sim::now_ns() + 3 * cluster_.timeout_ns;
  while (!given->is_answered && !use->is_over() && sim::now_ns() < until_ns)
    static_cast<void>(sim::wait(given.get(), sim::now_ns() + 100 * kMillisecond));
  if (use->is_over()) return;
  if (!given->is_answered)
    return fail(fmt::format("a lock on {} is not answered, begun at {:.6f}", client.node.name(),
                            static_cast<double>(begin_ns) / 1e9));
  const Status& status = given->answer.status;
  if (!status && status.error().code != Code::kWouldBlock)
    static_cast<void>(is_answer(client, *use, "lock", sim::now_ns(), status));
  if (!status || given->answer.interrupted) return;
  LockHold hold{static_cast<unsigned>(client.node.id().value), client.owner,
                type == LockType::kExclusive, sim::now_ns(), 0};
  read_file(client, kLockedFile);
  sim::sleep(client.random.below(50 * kMillisecond));
  const auto unlock = [&]() -> Status {
    hold.end_ns = sim::now_ns();
    const Status unlocked = engine.unlock(range);
    if (!unlocked && !use->is_over()) engine.drop_locks(range.inode, range.kind, range.owner);
    if (unlocked && !use->is_over()) holds_[range.kind == LockKind::kPosix].push_back(hold);
    return unlocked;
  };
  if (hold.is_exclusive) return write_cells(client, *use, kLockedFile, "unlock", unlock);
  static_cast<void>(is_answer(client, *use, "unlock", sim::now_ns(), unlock()));
}

void ClusterWorld::append_record(Client& client) {
  const auto use = client.node.use();
  if (!use) return;
  const std::uint64_t number = ++next_number_;
  ByteWrite& write = bytes_[kAppendFile].writes[number];
  write.node = static_cast<unsigned>(client.node.id().value);
  write.begin_ns = sim::now_ns();
  const std::string record = record_of(number);
  const Status written =
      use->engine().write(files_[kAppendFile], 0, as_bytes(record), WriteOptions{.append = true});
  if (is_answer(client, *use, "append", write.begin_ns, written) && written)
    write.confirmed_ns = sim::now_ns();
}

/// Who reads the key meanwhile sees the old value or the new one, whole.
void ClusterWorld::put_value(Client& client) {
  const auto use = client.node.use();
  if (!use) return;
  const std::uint64_t number = ++next_number_;
  ByteWrite& write = bytes_[kKey].writes[number];
  write.node = static_cast<unsigned>(client.node.id().value);
  write.count = kCells;
  write.begin_ns = sim::now_ns();
  const std::string value = cells_of(number, kCells);
  const Status put = use->engine().put(kKeyName, as_bytes(value));
  if (!is_answer(client, *use, "put", write.begin_ns, put) || !put) return;
  const std::uint64_t begin_ns = sim::now_ns();
  const Status synced = use->engine().sync_all();
  if (is_answer(client, *use, "sync_all", begin_ns, synced) && synced)
    write.confirmed_ns = sim::now_ns();
}

void ClusterWorld::get_value(Client& client) {
  const auto use = client.node.use();
  if (!use) return;
  ByteRead read;
  read.node = static_cast<unsigned>(client.node.id().value);
  read.begin_ns = sim::now_ns();
  const auto value = use->engine().get(kKeyName);
  if (!is_answer(client, *use, "get", read.begin_ns, status_of(value))) return;
  if (!value && bytes_[kKey].reads.empty()) return;  // nobody has put it yet, as far as seen
  if (!value) return fail("a key that was there is gone: " + describe(value.error()));
  read.end_ns = sim::now_ns();
  read.bytes = *value;
  bytes_[kKey].reads.push_back(std::move(read));
}

bool ClusterWorld::read_into(Engine& engine, InodeId inode, std::string* bytes) {
  const auto attributes = engine.attributes(inode);
  if (!attributes) return false;
  bytes->resize(attributes->size);
  const auto count = engine.read(inode, 0, bytes_of(*bytes));
  if (!count) return false;
  bytes->resize(*count);
  return true;
}

void ClusterWorld::read_file(Client& client, std::size_t file) {
  const auto use = client.node.use();
  if (!use) return;
  Engine& engine = use->engine();
  ByteRead read;
  read.node = static_cast<unsigned>(client.node.id().value);
  read.begin_ns = sim::now_ns();
  if (!is_answer(client, *use, "open", read.begin_ns, status_of(engine.open_handle(files_[file]))))
    return;
  const std::uint64_t begin_ns = sim::now_ns();
  Status status{};
  const auto attributes = engine.attributes(files_[file]);
  if (attributes) {
    read.bytes.resize(attributes->size);
    const auto count = engine.read(files_[file], 0, bytes_of(read.bytes));
    status = status_of(count);
    if (count) read.bytes.resize(*count);
  } else {
    status = attributes.error();
  }
  engine.close_handle(files_[file]);
  if (!is_answer(client, *use, "read", begin_ns, status) || !status) return;
  read.end_ns = sim::now_ns();
  bytes_[file].reads.push_back(std::move(read));
}

}  // namespace kvsyncfs
