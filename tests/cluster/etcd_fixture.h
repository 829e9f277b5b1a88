// A volume in a real etcd, and nodes with the threads that follow its log.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "engine/env/real.h"
#include "engine/log/etcd/etcd_log.h"
#include "engine/log/etcd/grpc_client.h"
#include "tests/cluster/etcd_server.h"
#include "tests/lib/temp_folder.h"

namespace kvsyncfs {

class EtcdLogCluster : public ::testing::Test {
 protected:
  static constexpr std::uint64_t kSecond = 1'000'000'000;
  using Entries = std::vector<std::string>;

  /// One life of one node.
  struct Node {
    ~Node() { stop(); }
    void follow() {
      following = true;
      watcher = std::thread([this] {
        while (following) {
          if (!log->run_watch(kSecond / 20))
            std::this_thread::sleep_for(std::chrono::milliseconds(20));
        }
      });
      keeper = std::thread([this] {
        while (following) {
          (void)log->run_keep_alive();
          std::this_thread::sleep_for(std::chrono::milliseconds(20));
        }
      });
    }
    void stop() {
      following = false;
      if (watcher.joinable()) watcher.join();
      if (keeper.joinable()) keeper.join();
    }
    Entries entries() {
      std::lock_guard lock(mutex);
      return applied;
    }

    std::unique_ptr<etcd::GrpcClient> client;
    std::unique_ptr<EtcdLog> log;
    std::mutex mutex;
    Entries applied;
    std::atomic<bool> following = false;
    std::thread watcher, keeper;
  };

  void SetUp() override {
    if (!EtcdCluster::is_available()) GTEST_SKIP() << "no etcd-server";
  }

  /// `format`: makes the volume.
  void start_servers(std::size_t count, bool format = true) {
    servers = std::make_unique<EtcdCluster>(folder.path(), count);
    ASSERT_TRUE(ready());
    if (!format) return;
    const auto client = make_client();
    const Status made = format_etcd_log(*client, *clock, "v", 1, {});
    ASSERT_TRUE(made) << describe(made.error());
  }

  /// The servers that run have a leader and answer.
  bool ready() {
    if (!servers->wait_until_listening()) return false;
    return make_client()
        ->range({"/", {}, 0, 0, false}, clock->boot_ns() + 30 * kSecond)
        .has_value();
  }

  etcd::GrpcOptions grpc_options() const {
    etcd::GrpcOptions options;
    options.endpoints = servers->endpoints();
    options.tls = servers->has_tls();
    return options;
  }
  std::unique_ptr<etcd::GrpcClient> make_client(etcd::GrpcOptions options) {
    auto client = etcd::GrpcClient::make(*clock, std::move(options));
    EXPECT_TRUE(client);
    return std::move(*client);
  }
  std::unique_ptr<etcd::GrpcClient> make_client() { return make_client(grpc_options()); }

  EtcdLogOptions log_options(const std::string& name) {
    EtcdLogOptions options;
    options.volume = "v";
    options.node = name;
    options.incarnation = ++incarnations;
    return options;
  }

  /// Opens and starts; entries up to `applied` come from `before`.
  Result<std::unique_ptr<Node>> try_node(EtcdLogOptions options, etcd::GrpcOptions grpc,
                                         const Entries& before = {}) {
    auto node = std::make_unique<Node>();
    node->client = make_client(std::move(grpc));
    node->applied = before;
    KVSYNCFS_ASSIGN(node->log, EtcdLog::open(*node->client, *clock, std::move(options)));
    KVSYNCFS_TRY(node->log->start({before.size()},
                                  [raw = node.get()](Position position, std::string_view entry) {
                                    std::lock_guard lock(raw->mutex);
                                    if (position.value > raw->applied.size())
                                      raw->applied.emplace_back(entry);
                                    EXPECT_EQ(raw->applied.at(position.value - 1), entry);
                                  }));
    return node;
  }
  std::unique_ptr<Node> make_node(const std::string& name, const Entries& before = {}) {
    auto node = try_node(log_options(name), grpc_options(), before);
    EXPECT_TRUE(node) << describe(node.error());
    return node ? std::move(*node) : nullptr;
  }

  static void append(Node& node, const std::string& entry) {
    const auto position = node.log->append(entry);
    ASSERT_TRUE(position) << describe(position.error());
    ASSERT_EQ(node.entries().at(position->value - 1), entry);
  }
  static void append_many(Node& node, const std::string& prefix, int count) {
    for (int i = 0; i < count; ++i) append(node, prefix + std::to_string(i));
  }

  TempFolder folder;
  std::unique_ptr<Clock> clock = make_real_clock();
  std::unique_ptr<EtcdCluster> servers;
  std::uint64_t incarnations = 100;
};

}  // namespace kvsyncfs
