// What the clients of a simulated cluster do.
#include "tests/sim/cluster/cluster_clients.h"

#include <fmt/format.h>

#include "tests/sim/cluster/cluster_world.h"
#include "tests/sim/cluster/sim_threads.h"

namespace kvsyncfs {

namespace sim = sim_threads;

namespace {

constexpr std::uint64_t kMillisecond = 1'000'000, kSecond = 1'000'000'000;
constexpr std::uint64_t kMarginNs = kSecond;
/// A call that brings bytes waits for another one's flush, for the holders and for the log.
constexpr std::uint64_t kWaitsOfBytes = 3;
/// What became of a lock is known at the latest when the session has ended.
constexpr std::uint64_t kLockAnsweredNs = 18 * kSecond;

/// A refusal that changed nothing, and always comes to that.
bool is_refusal(Code code) {
  return code == Code::kNotFound || code == Code::kExists || code == Code::kNotDirectory ||
         code == Code::kIsDirectory || code == Code::kNotEmpty;
}
bool ends_life(Code code) { return code == Code::kFenced || code == Code::kIo; }

}  // namespace

bool ClusterWorld::is_answer(Client& client, const SimNode::Use& use, const char* call,
                             std::uint64_t begin_ns, const Status& status) {
  if (use.is_over()) return false;
  const std::uint64_t took_ns = sim::now_ns() - begin_ns;
  const bool was_frozen = frozen_until_ns_[client.node.id().value - 1] > begin_ns;
  const bool is_of_names = std::string_view(call) == kCallOfNames;
  const bool is_of_names_or_rename = is_of_names || std::string_view(call) == "rename";
  const std::uint64_t limit_ns =
      cluster_.timeout_ns * (is_of_names ? 1 : kWaitsOfBytes) + kMarginNs;
  if (took_ns > limit_ns && !was_frozen)
    fail(fmt::format("{} on {} took {:.3f} s, begun at {:.6f}{}", call, client.node.name(),
                     static_cast<double>(took_ns) / 1e9, static_cast<double>(begin_ns) / 1e9,
                     status ? "" : ": " + describe(status.error())));
  // Only a rename is refused so: of a directory into itself.
  const bool is_loop = !status && status.error().code == Code::kInvalid && is_of_names_or_rename;
  if (status || is_refusal(status.error().code) || is_loop) {
    ++answered_;
    return true;
  }
  ++unanswered_;
  const Code code = status.error().code;
  if (code == Code::kCorrupt || code == Code::kInvalid)
    fail(fmt::format("{} on {}: {}", call, client.node.name(), describe(status.error())));
  if (!ends_life(code)) return false;
  // A node whose session ended joins again by itself, unless the log was trimmed meanwhile.
  const Status failure = use.engine().failure();
  if (failure && std::string_view(call) == "lock") return false;  // it went with the session
  if (failure || failure.error().code != Code::kStale)
    fail(fmt::format("{} on {} ends it: {}, {}", call, client.node.name(), describe(status.error()),
                     failure ? "" : describe(failure.error())));
  client.node.broken();
  return false;
}

void ClusterWorld::run_client(Client& client) {
  while (!is_over_ && problem_.empty()) {
    if (plan_.work == ClusterWork::kValues) {
      sim::sleep(client.random.below(2 * kMillisecond));
      client.only_reads || client.random.one_in(2) ? get_value(client) : put_value(client);
      continue;
    }
    sim::sleep(kMillisecond + client.random.below(60 * kMillisecond));
    if (plan_.work == ClusterWork::kNames)
      call_names(client);
    else if (plan_.work == ClusterWork::kAttributes)
      client.only_reads ? read_attributes(client) : change_attributes(client);
    else if (plan_.work == ClusterWork::kBytes)
      client.only_reads ? read_file(client, client.random.below(kCellFiles)) : write_file(client);
    else if (client.only_reads)
      read_something(client);
    else
      change_something(client);
  }
}

void ClusterWorld::read_something(Client& client) {
  switch (client.random.below(9)) {
    case 0:
    case 1:
    case 2:
      return read_file(client, client.random.below(kAttributeFile));
    case 3:
      return read_attributes(client);
    case 4:
      return call_xattr(client);
    default:
      return call_names(client);
  }
}

void ClusterWorld::change_something(Client& client) {
  switch (client.random.below(18)) {
    case 0:
    case 1:
      return write_file(client);
    case 2:
      return append_record(client);
    case 3:
      return lock_file(client);
    case 4:
      return put_value(client);
    case 5:
      return get_value(client);
    case 6:
      return client.random.one_in(3) ? remove_value(client) : get_value(client);
    case 7:
    case 8:
    case 9:
    case 10:
      return change_attributes(client);
    case 11:
    case 12:
      return read_file(client, client.random.below(kAttributeFile));
    default:
      return call_names(client);
  }
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
  const std::uint64_t handle = engine.next_handle();
  const bool close = client.random.one_in(2), leave = client.random.one_in(5);
  if (client.random.one_in(3))
    change_cells(client, *use, file);
  else
    write_cells(client, *use, file, close ? "close" : "fsync", [&]() -> Status {
      if (leave) return Code::kTimeout;  // the bytes stay in the write buffer for now
      KVSYNCFS_TRY(close ? engine.flush(files_[file]) : engine.sync(files_[file]));
      const Status lost = engine.check_bytes(files_[file], handle);
      return lost ? Status{} : Status(Code::kTimeout);  // this node goes on without them
    });
  engine.close_handle(files_[file]);
}

void ClusterWorld::change_cells(Client& client, const SimNode::Use& use, std::size_t file) {
  Engine& engine = use.engine();
  ByteWrite& change = bytes_[file].writes[++next_number_];
  change.node = static_cast<unsigned>(client.node.id().value);
  change.first = client.random.below(kCells);
  change.count = 1 + client.random.below(kCells - change.first);
  change.is_zeros = true;
  change.begin_ns = sim::now_ns();
  const std::uint64_t offset = change.first * kCellSize, length = change.count * kCellSize;
  const Status status = [&]() -> Status {
    switch (client.random.below(5)) {
      case 0: {
        change.count = kCells - change.first;  // what is cut off, or was not there
        AttributeChange cut;
        cut.size = offset;
        return status_of(engine.set_attributes(files_[file], cut));
      }
      case 1:
        return engine.allocate(files_[file], offset, length, AllocateMode::kPunchHole);
      case 2:
        return engine.allocate(files_[file], offset, length, AllocateMode::kZeroRange);
      case 3:
        change.count = 0;  // changes no byte
        return engine.allocate(files_[file], offset, length, AllocateMode::kReserve);
      default:
        break;
    }
    const std::size_t from = (file + 1) % kCellFiles;
    change.is_zeros = false;
    change.source = &bytes_[from];
    change.source_first = client.random.below(kCells - change.count + 1);
    if (const auto opened = engine.open_handle(files_[from]); !opened) return opened.error();
    const auto copied = engine.clone_range(files_[from], change.source_first * kCellSize,
                                           files_[file], offset, length);
    engine.close_handle(files_[from]);
    if (copied && *copied % kCellSize != 0) fail("a part of a cell was copied");
    if (copied) change.count = *copied / kCellSize;  // the source may end before
    return status_of(copied);
  }();
  if (is_answer(client, use, "change of cells", change.begin_ns, status) && status)
    change.confirmed_ns = sim::now_ns();
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
  if (range.kind == LockKind::kPosix && client.random.one_in(2)) {  // one of two parts
    range.start = client.random.below(2) * 4;
    range.end = range.start + 3;
  }
  const std::uint64_t handle = engine.next_handle();
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
  const std::uint64_t until_ns = sim::now_ns() + kLockAnsweredNs;
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
  LockHold hold{static_cast<unsigned>(client.node.id().value),
                client.owner,
                type == LockType::kExclusive,
                range.start,
                range.end,
                sim::now_ns(),
                0};
  read_file(client, kLockedFile);
  sim::sleep(client.random.below(50 * kMillisecond));
  const auto unlock = [&]() -> Status {
    hold.end_ns = sim::now_ns();
    Status unlocked = engine.unlock(range);
    // It was lost with a session, and this node goes on.
    if (unlocked && !engine.check_handle(range.inode, handle)) unlocked = Code::kTimeout;
    if (!unlocked && !use->is_over()) engine.drop_locks(range.inode, range.kind, range.owner);
    if (unlocked && !use->is_over()) holds_[range.kind == LockKind::kPosix].push_back(hold);
    return unlocked;
  };
  const bool is_lost = !engine.check_change(range.inode, handle);
  if (hold.is_exclusive && !is_lost)
    return write_cells(client, *use, kLockedFile, "unlock", unlock);
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
  const std::size_t key = client.random.below(plan_.work == ClusterWork::kValues ? 1 : kKeys);
  const std::uint64_t number = ++next_number_;
  ByteWrite& write = bytes_[kFiles + key].writes[number];
  write.node = static_cast<unsigned>(client.node.id().value);
  write.count = kCells;
  write.begin_ns = sim::now_ns();
  const std::string value = cells_of(number, kCells);
  const Status put = use->engine().put(kKeyNames[key], as_bytes(value));
  if (!is_answer(client, *use, "put", write.begin_ns, put) || !put) return;
  const std::uint64_t begin_ns = sim::now_ns();
  const Status synced = use->engine().sync_all();
  if (is_answer(client, *use, "sync_all", begin_ns, synced) && synced)
    write.confirmed_ns = sim::now_ns();
}

void ClusterWorld::remove_value(Client& client) {
  const auto use = client.node.use();
  if (!use) return;
  const std::size_t key = client.random.below(kKeys);
  ByteWrite& removal = bytes_[kFiles + key].writes[++next_number_];
  removal.node = static_cast<unsigned>(client.node.id().value);
  removal.count = kCells;
  removal.is_zeros = true;
  removal.begin_ns = sim::now_ns();
  const Status removed = use->engine().remove(kKeyNames[key]);
  if (is_answer(client, *use, kCallOfNames, removal.begin_ns, removed) && removed)
    removal.confirmed_ns = sim::now_ns();
}

/// No value is one without bytes.
void ClusterWorld::get_value(Client& client) {
  const auto use = client.node.use();
  if (!use) return;
  const std::size_t key = client.random.below(plan_.work == ClusterWork::kValues ? 1 : kKeys);
  ByteRead read;
  read.node = static_cast<unsigned>(client.node.id().value);
  read.begin_ns = sim::now_ns();
  const auto value = use->engine().get(kKeyNames[key]);
  if (!is_answer(client, *use, "get", read.begin_ns, status_of(value))) return;
  if (!value && value.error().code != Code::kNotFound)
    return fail("get: " + describe(value.error()));
  if (value && value->empty()) return fail("a value that is empty");
  read.end_ns = sim::now_ns();
  if (value) read.bytes = *value;
  bytes_[kFiles + key].reads.push_back(std::move(read));
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
