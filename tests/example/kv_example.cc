// A program that uses a kvsyncfs store as the key-value store that it is, without a mount.
//
//   kv_example [FOLDER]
//
// Makes a store in FOLDER (default: a new one below /var/tmp, removed at the end), sets, gets,
// lists and removes values, closes the store, opens it again and finds everything there. It links
// with the CMake target kvsyncfs::engine. Exit status: 0, or 1 with the reason on stderr.
#include <stdlib.h>

#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "engine/env/real.h"
#include "engine/workers.h"

namespace {

using namespace kvsyncfs;

/// What an engine needs from outside. A simulator has other ones.
struct Seams {
  std::unique_ptr<Disk> disk = make_real_disk();
  std::unique_ptr<Clock> clock = make_real_clock();
  std::unique_ptr<Random> random = make_real_random();
};

Status expect(bool is_true, const std::string& what) {
  if (is_true) return {};
  return Error(Code::kInvalid, "not as expected: " + what);
}

Status format_store(Seams& seams, const std::string& folder) {
  FormatOptions options;
  options.store = folder;
  options.label = "example";
  options.size_bytes = 256u << 20;
  for (auto& byte : options.uuid) byte = static_cast<std::uint8_t>(seams.random->next());
  return Engine::format(*seams.disk, *seams.clock, options);
}

Result<std::unique_ptr<Engine>> open_store(Seams& seams, const std::string& folder) {
  EngineOptions options;
  options.store = folder;
  options.cache_size_bytes = 16u << 20;
  options.write_buffer_bytes = 16u << 20;
  options.warn = [](std::string_view line) {
    std::fprintf(stderr, "kv_example: %.*s\n", static_cast<int>(line.size()), line.data());
  };
  return Engine::open(*seams.disk, *seams.clock, *seams.random, options);
}

/// Sets values. A key is a path: what is put here is also a file of a mount.
Status fill(Engine& store) {
  KVSYNCFS_TRY(store.put("orders/2024/0001", as_bytes("bread")));
  KVSYNCFS_TRY(store.put("orders/2024/0002", as_bytes("cheese")));
  KVSYNCFS_TRY(store.put("orders/2025/0001", as_bytes("olives")));
  KVSYNCFS_TRY(store.put("orders-old", as_bytes(std::string(1'000'000, 'x'))));

  KVSYNCFS_TRY(store.put("orders/2024/0002", as_bytes("old cheese")));  // the whole value is new
  KVSYNCFS_TRY(store.put("orders/2024/0003", as_bytes("a mistake")));
  KVSYNCFS_TRY(store.remove("orders/2024/0003"));
  return store.sync_all();  // until here a crash could lose the last second, but never mix values
}

Status check(Engine& store) {
  KVSYNCFS_ASSIGN(const auto value, store.get("orders/2024/0002"));
  KVSYNCFS_TRY(expect(value == "old cheese", "orders/2024/0002 is " + value));
  KVSYNCFS_ASSIGN(const auto large, store.get("orders-old"));
  KVSYNCFS_TRY(expect(large == std::string(1'000'000, 'x'), "orders-old"));

  const auto removed = store.get("orders/2024/0003");
  KVSYNCFS_TRY(expect(!removed && removed.error().code == Code::kNotFound, "a removed key"));

  KVSYNCFS_ASSIGN(const auto keys, store.list_keys("orders/2024/", 100));
  KVSYNCFS_TRY(expect(keys == std::vector<std::string>{"orders/2024/0001", "orders/2024/0002"},
                      "list of orders/2024/"));
  // A long list comes in pieces: the next one begins after the last key of the one before.
  KVSYNCFS_ASSIGN(const auto first, store.list_keys("orders", 2));
  KVSYNCFS_TRY(expect(first.size() == 2, "first piece of the list"));
  KVSYNCFS_ASSIGN(const auto rest, store.list_keys("orders", 100, first.back()));
  return expect(rest.size() == 2, "rest of the list");
}

Status first_life(Engine& store) {
  KVSYNCFS_TRY(fill(store));
  return check(store);
}

Status second_life(Engine& store) {
  KVSYNCFS_TRY(check(store));
  auto tier = Engine::Tier::kCold;
  KVSYNCFS_ASSIGN(const auto first, store.hybrid_get("orders/2025/0001", &tier));
  KVSYNCFS_ASSIGN(const auto again, store.hybrid_get("orders/2025/0001", &tier));
  KVSYNCFS_TRY(expect(tier == Engine::Tier::kHot, "the second read comes from memory"));
  return expect(first == again, "the same value from every tier");
}

Status with_store(Seams& seams, const std::string& folder, Status (*use)(Engine&)) {
  KVSYNCFS_ASSIGN(const auto store, open_store(seams, folder));
  Status used{};
  {
    const Workers workers(*store, *seams.clock);  // flushes and cleans in the background
    used = use(*store);
  }
  const Status closed = store->close();
  return used ? closed : used;
}

Status run(const std::string& folder) {
  Seams seams;
  KVSYNCFS_TRY(format_store(seams, folder));
  KVSYNCFS_TRY(with_store(seams, folder, first_life));
  return with_store(seams, folder, second_life);
}

}  // namespace

int main(int argc, char** argv) {
  std::string folder = argc > 1 ? argv[1] : "/var/tmp/kv_example-XXXXXX";
  if (argc <= 1 && ::mkdtemp(folder.data()) == nullptr) {
    std::perror("kv_example: mkdtemp");
    return 1;
  }
  const Status done = run(folder);
  if (argc <= 1) std::filesystem::remove_all(folder);
  if (!done) std::fprintf(stderr, "kv_example: %s\n", describe(done.error()).c_str());
  return done ? 0 : 1;
}
