// Random commands of every kind for round-trip tests and as fuzz seeds; same seed, same commands.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <type_traits>

#include "engine/format/command.h"

namespace kvsyncfs {

class CommandGenerator {
 public:
  explicit CommandGenerator(std::uint64_t seed) : random_(seed) {}

  Transaction transaction(std::size_t count_max) {
    Transaction t;
    std::size_t count = below(count_max + 1);
    for (std::size_t i = 0; i < count; ++i)
      t.commands.push_back(command(below(std::variant_size_v<Command>)));
    if (coin()) t.origin = Origin{{1 + below(99)}, {1 + below(99)}, 1 + below(99)};
    return t;
  }

  /// A command of the kind at `index` of the variant.
  Command command(std::size_t index) {
    switch (index) {
      case 0:
        return CreateCommand{{number()}, text(),   u32(),  u32(), u32(),
                             u32(),      number(), text(), time()};
      case 1:
        return LinkCommand{{number()}, {number()}, text(), time()};
      case 2:
        return UnlinkCommand{{number()}, text(), coin(), time()};
      case 3:
        return RenameCommand{{number()}, text(), {number()}, text(), RenameMode(below(3)), time()};
      case 4:
        return set_attr();
      case 5:
        return WriteExtentsCommand{
            {number()}, list([&] { return extent(); }), maybe_time(), coin(), time()};
      case 6:
        return WriteInlineCommand{{number()},
                                  list([&] {
                                    return WriteInlineCommand::Piece{number(), text()};
                                  }),
                                  maybe_time(),
                                  coin(),
                                  time()};
      case 7:
        return AllocateCommand{{number()}, number(), number(), AllocateMode(below(5)), time()};
      case 8:
        return CloneRangeCommand{{number()}, {number()}, number(), number(), number(), time()};
      case 9:
        return SetXattrCommand{{number()}, text(), text(), XattrMode(below(3)), coin(), time()};
      case 10:
        return RemoveXattrCommand{{number()}, text(), time()};
      case 11:
        return ReclaimCommand{{number()}};
      case 12:
        return OpenSegmentCommand{};
      case 13:
        return SealSegmentCommand{{number()}, number()};
      case 14:
        return DeleteSegmentCommand{{number()}};
      case 16:
        return JoinCommand{{number()}, {number()}, number(), u32()};
      case 17:
        return EndCommand{{number()}, {number()}};
      case 18:
        return HoldOrphansCommand{list([&] { return InodeId{number()}; }),
                                  list([&] { return InodeId{number()}; })};
      case 19:
        return AcquireLockCommand{{number()}, kind(),   LockType(1 + below(2)),
                                  number(),   number(), number(),
                                  u32(),      coin()};
      case 20:
        return ReleaseLockCommand{{number()}, kind(), number(), number(), number()};
      case 21:
        return CancelLockCommand{{number()}, kind(), number()};
      case 22:
        return CreateFilledCommand{{number()}, text(), u32(),  u32(),
                                   u32(),      u32(),  time(), list([&] { return extent(); })};
      case 23:
        return OpenPlacedSegmentCommand{{number()}, list([&] { return NodeId{number()}; })};
      case 24:
        return SetHoldersCommand{{number()}, {number()}, list([&] { return NodeId{number()}; })};
      case 25:
        return AppendExtentsCommand{
            {number()},
            list([&] {
              return AppendExtentsCommand::Piece{{number()}, number(), number()};
            }),
            time()};
      case 26:
        return HoldSegmentsCommand{text(), time(), time()};
      case 27:
        return ReleaseHoldCommand{text(), {number()}};
      default:
        return MoveExtentsCommand{list([&] {
          return MoveExtentsCommand::Move{{number()}, extent(), {number()}, number()};
        })};
    }
  }

  std::uint64_t below(std::uint64_t n) { return random_() % n; }
  std::uint64_t number() { return random_() >> below(64); }
  std::string text() {
    std::string s(below(20), '\0');
    for (char& c : s) c = static_cast<char>(random_());
    return s;
  }

 private:
  LockKind kind() { return LockKind(1 + below(2)); }
  bool coin() { return below(2) == 1; }
  std::uint32_t u32() { return static_cast<std::uint32_t>(number()); }
  Timestamp time() {
    return {static_cast<std::int64_t>(random_()), static_cast<std::uint32_t>(below(1'000'000'000))};
  }
  std::optional<Timestamp> maybe_time() {
    return coin() ? std::optional<Timestamp>(time()) : std::nullopt;
  }
  Extent extent() { return {number(), number(), {number()}, number()}; }
  template <typename F>
  std::vector<std::invoke_result_t<F>> list(F make) {
    std::vector<std::invoke_result_t<F>> items;
    for (std::size_t i = below(4); i > 0; --i) items.push_back(make());
    return items;
  }
  Command set_attr() {
    SetAttrCommand c;
    c.inode = {number()};
    if (coin()) c.mode = u32();
    if (coin()) c.uid = u32();
    if (coin()) c.gid = u32();
    if (coin()) c.size = number();
    c.atime = maybe_time();
    c.mtime = maybe_time();
    c.kill_privileges = coin();
    c.kill_setgid = c.kill_privileges && coin();
    c.keep_ctime = !c.kill_privileges && coin();
    c.time = time();
    return c;
  }

  std::mt19937_64 random_;
};

}  // namespace kvsyncfs
