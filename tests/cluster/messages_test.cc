// What an operation of a cluster costs in messages, over a real etcd and real connections: three
// nodes in this process, whose appends and calls are counted.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <thread>

#include "engine/cluster/etcd_access.h"
#include "engine/cluster/volume_record_store.h"
#include "engine/cluster_seams.h"
#include "engine/cluster_store.h"
#include "engine/engine.h"
#include "engine/env/real.h"
#include "engine/format/peer_message.h"
#include "engine/log/etcd/etcd_log.h"
#include "engine/net/tcp/tcp_transport.h"
#include "engine/task_threads.h"
#include "tests/cluster/etcd_server.h"
#include "tests/lib/temp_folder.h"

namespace kvsyncfs {
namespace {

constexpr std::uint64_t kMiB = 1 << 20;

/// Of one node, or of several together.
struct Messages {
  std::size_t appends = 0, acknowledgements = 0, batches = 0, pulls = 0, other = 0;
  std::size_t all() const { return appends + acknowledgements + batches + pulls + other; }
};
Messages operator-(const Messages& a, const Messages& b) {
  return {a.appends - b.appends, a.acknowledgements - b.acknowledgements, a.batches - b.batches,
          a.pulls - b.pulls, a.other - b.other};
}

/// Counts transactions that put a batch into the log.
class CountingEtcd final : public etcd::EtcdClient {
 public:
  explicit CountingEtcd(std::unique_ptr<etcd::EtcdClient> client) : client_(std::move(client)) {}
  Result<etcd::RangeReply> range(const etcd::Range& r, std::uint64_t until_ns) override {
    return client_->range(r, until_ns);
  }
  Result<etcd::TxnReply> txn(const etcd::Txn& txn, std::uint64_t until_ns) override {
    for (const etcd::Operation& operation : txn.success)
      if (const auto* put = std::get_if<etcd::Put>(&operation))
        if (put->key.find("/e/") != std::string::npos) ++appends;
    return client_->txn(txn, until_ns);
  }
  Result<etcd::Lease> grant_lease(std::int64_t ttl_s, std::uint64_t until_ns) override {
    return client_->grant_lease(ttl_s, until_ns);
  }
  Result<etcd::Lease> keep_alive(std::int64_t lease, std::uint64_t until_ns) override {
    return client_->keep_alive(lease, until_ns);
  }
  Status revoke_lease(std::int64_t lease, std::uint64_t until_ns) override {
    return client_->revoke_lease(lease, until_ns);
  }
  Status compact(std::int64_t revision, std::uint64_t until_ns) override {
    return client_->compact(revision, until_ns);
  }
  Result<std::unique_ptr<etcd::EtcdWatch>> watch(const etcd::WatchRequest& request,
                                                 std::uint64_t until_ns) override {
    return client_->watch(request, until_ns);
  }
  std::atomic<std::size_t> appends = 0;

 private:
  const std::unique_ptr<etcd::EtcdClient> client_;
};

class CountingTransport final : public Transport {
 public:
  explicit CountingTransport(TcpTransport& transport) : transport_(transport) {}
  Status start(TransportHandlers handlers) override {
    return transport_.start(std::move(handlers));
  }
  Status set_peer(NodeId node, const std::vector<std::string>& addresses) override {
    return transport_.set_peer(node, addresses);
  }
  void remove_peer(NodeId node) override { transport_.remove_peer(node); }
  Status call(NodeId peer, Call call) override {
    ++calls[std::min<std::size_t>(call.kind, calls.size() - 1)];
    return transport_.call(peer, std::move(call));
  }
  Status read(NodeId peer, RegionRead read) override {
    return transport_.read(peer, std::move(read));
  }
  Result<RegionKey> register_region(Bytes memory) override {
    return transport_.register_region(memory);
  }
  void unregister_region(RegionKey key) override { transport_.unregister_region(key); }
  std::vector<PeerStatus> peers() const override { return transport_.peers(); }
  TransportCounters counters() const override { return transport_.counters(); }
  std::array<std::atomic<std::size_t>, 8> calls{};  ///< by kind, the last: all from there on

 private:
  TcpTransport& transport_;
};

struct Node {
  explicit Node(Clock& clock) : tasks(clock), network(clock) {}
  ~Node() {
    if (engine) {
      EXPECT_TRUE(engine->close());
    }
    if (tcp) tcp->stop();
    network.stop();
    engine.reset();
  }
  std::size_t calls(PeerRequest kind) const {
    return transport->calls[static_cast<std::size_t>(kind)];
  }
  Messages messages() const {
    Messages m{etcd->appends, calls(PeerRequest::kAcknowledge), calls(PeerRequest::kReplicate),
               calls(PeerRequest::kReadPages), 0};
    for (const auto& count : transport->calls) m.other += count;
    m.other -= m.acknowledgements + m.batches + m.pulls;
    return m;
  }

  std::unique_ptr<CountingEtcd> etcd;
  std::unique_ptr<TcpTransport> tcp;
  std::unique_ptr<CountingTransport> transport;
  TaskThreads tasks, network;
  std::unique_ptr<ClusterSeams> seams;
  std::unique_ptr<Engine> engine;
};

class ClusterMessages : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!EtcdCluster::is_available()) GTEST_SKIP() << "no etcd-server";
    servers_ = std::make_unique<EtcdCluster>(folder_.path(), 1);
    ASSERT_TRUE(servers_->wait_until_listening());
    const auto ports = free_ports(nodes_.size());
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      const Status opened = open(i, ports[i]);
      ASSERT_TRUE(opened) << describe(opened.error());
    }
    ASSERT_NE(make_file("first"), InodeId{});  // finds the peers and opens a segment
  }
  void TearDown() override {
    for (auto& node : nodes_) node.reset();
  }

  Status open(std::size_t i, std::uint16_t port) {
    const std::string store = folder_.path() + "/node" + std::to_string(i);
    std::filesystem::create_directory(store);
    FormatOptions options;
    options.store = store;
    options.size_bytes = 256 * kMiB;
    ClusterFormat format;
    format.config.volume = "v";
    format.config.endpoints = servers_->endpoints();
    format.config.node = "node" + std::to_string(i);
    format.config.listen = "127.0.0.1:" + std::to_string(port);
    format.join = i > 0;
    if (i > 0) {
      KVSYNCFS_ASSIGN(format.secret, read_volume_secret(*disk_, folder_.path() + "/node0/secret"));
    }
    KVSYNCFS_TRY(format_cluster_store(*disk_, *clock_, *random_, options, format));
    nodes_[i] = std::make_unique<Node>(*clock_);
    return mount(*nodes_[i], store);
  }

  Status mount(Node& node, const std::string& store) {
    KVSYNCFS_ASSIGN(const ClusterConfig config, read_cluster_config(*disk_, store));
    KVSYNCFS_ASSIGN(auto client, connect_etcd(*disk_, *clock_, config));
    node.etcd = std::make_unique<CountingEtcd>(std::move(client));
    VolumeRecordStore records(*node.etcd, *clock_, config.volume);
    KVSYNCFS_ASSIGN(const auto volume, records.confirm(config, clock_->boot_ns() + kEtcdTimeoutNs));
    KVSYNCFS_ASSIGN(const std::uint64_t life,
                    next_incarnation(*node.etcd, *clock_, config.volume, config.node, 1));
    TcpOptions tcp;
    tcp.node = config.id;
    tcp.incarnation = {life};
    tcp.volume = volume.uuid;
    KVSYNCFS_ASSIGN(tcp.secret, read_volume_secret(*disk_, store + "/secret"));
    tcp.listen = config.listen;
    KVSYNCFS_ASSIGN(node.tcp, make_tcp_transport(*clock_, *random_, tcp));
    node.network.start("network", [&node] {
      node.tcp->run();
      return ~std::uint64_t{0};
    });
    node.transport = std::make_unique<CountingTransport>(*node.tcp);
    node.seams =
        std::make_unique<ClusterSeams>(ClusterSeams{*node.etcd, *node.transport, node.tasks});
    node.seams->volume = config.volume;
    node.seams->node_name = config.node;
    node.seams->node = config.id;
    node.seams->incarnation = {life};
    node.seams->addresses = {config.listen};
    node.seams->replicas = 2;
    EngineOptions options;
    options.store = store;
    options.cluster = node.seams.get();
    KVSYNCFS_ASSIGN(node.engine, Engine::open(*disk_, *clock_, *random_, options));
    return {};
  }

  Engine& engine(std::size_t i = 0) { return *nodes_[i]->engine; }
  InodeId create(const std::string& name) {
    NewNode node;
    node.mode = S_IFREG | 0644;
    const auto made = engine().create(kRootInode, name, node);
    EXPECT_TRUE(made) << describe(made.error());
    return made ? made->inode : InodeId{};
  }
  /// As a program writes a small file and closes it.
  void write(InodeId inode) {
    const std::string page(kPageSize, 'p');
    EXPECT_TRUE(engine().write(inode, 0, as_bytes(page), {}));
    const Status flushed = engine().flush(inode);
    EXPECT_TRUE(flushed) << describe(flushed.error());
  }
  InodeId make_file(const std::string& name) {
    const InodeId inode = create(name);
    write(inode);
    return inode;
  }
  std::array<Messages, 3> messages() const {
    return {nodes_[0]->messages(), nodes_[1]->messages(), nodes_[2]->messages()};
  }
  /// The one of the other two that has no copy of what node 0 wrote.
  std::size_t without_copy() { return engine(1).counters().copied_bytes == 0 ? 1 : 2; }
  std::string read(std::size_t i, InodeId inode) {
    std::string bytes(kPageSize, '\0');
    const auto got = engine(i).read(inode, 0, as_writable_bytes(bytes));
    EXPECT_TRUE(got) << describe(got.error());
    return bytes;
  }
  static MutableBytes as_writable_bytes(std::string& bytes) {
    return {reinterpret_cast<std::byte*>(bytes.data()), bytes.size()};
  }

  TempFolder folder_;
  std::unique_ptr<EtcdCluster> servers_;
  std::unique_ptr<Disk> disk_ = make_real_disk();
  std::unique_ptr<Clock> clock_ = make_real_clock();
  std::unique_ptr<Random> random_ = make_real_random();
  std::array<std::unique_ptr<Node>, 3> nodes_;
};

TEST_F(ClusterMessages, OpenStatAndHitsCostNone) {
  const InodeId inode = make_file("file");
  const std::size_t far = without_copy();
  const std::string page = read(far, inode);
  const auto before = messages();
  for (int i = 0; i < 100; ++i) {
    EXPECT_TRUE(engine(far).lookup(kRootInode, "file"));
    EXPECT_FALSE(engine(far).lookup(kRootInode, "none"));
    EXPECT_TRUE(engine(far).open_handle(inode));
    EXPECT_TRUE(engine(far).attributes(inode));
    EXPECT_EQ(read(far, inode), page);
    EXPECT_TRUE(engine(far).flush(inode));
    engine(far).close_handle(inode);
  }
  const auto after = messages();
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ((after[i] - before[i]).all(), 0u) << "node " << i;
}

TEST_F(ClusterMessages, AMissIsOneRoundTrip) {
  const InodeId inode = make_file("file");
  const std::size_t far = without_copy();
  const auto before = messages();
  EXPECT_EQ(read(far, inode), std::string(kPageSize, 'p'));
  const auto after = messages();
  EXPECT_EQ((after[far] - before[far]).pulls, 1u);
  for (std::size_t i = 0; i < 3; ++i)
    EXPECT_EQ((after[i] - before[i]).all(), i == far ? 1u : 0u) << "node " << i;
}

TEST_F(ClusterMessages, SmallFilesThatLieTogetherShareARoundTrip) {
  std::vector<InodeId> files;
  for (int i = 0; i < 40; ++i) files.push_back(make_file("file" + std::to_string(i)));
  const std::size_t far = without_copy();
  const auto before = messages();
  for (const InodeId inode : files) EXPECT_EQ(read(far, inode), std::string(kPageSize, 'p'));
  EXPECT_LE((messages()[far] - before[far]).pulls, files.size() / 4);
}

TEST_F(ClusterMessages, AChangeIsOneAppendAndOneAcknowledgementOfEachOtherNode) {
  constexpr std::size_t kChanges = 20;
  const auto before = messages();
  for (std::size_t i = 0; i < kChanges; ++i) create("file" + std::to_string(i));
  const auto after = messages();
  EXPECT_EQ((after[0] - before[0]).appends, kChanges);
  for (const std::size_t i : {1u, 2u})
    EXPECT_EQ((after[i] - before[i]).acknowledgements, kChanges) << "node " << i;
  for (std::size_t i = 0; i < 3; ++i)
    EXPECT_EQ((after[i] - before[i]).all(), kChanges) << "node " << i;
}

TEST_F(ClusterMessages, ACloseIsOneBatchToTheOtherHolderAndOneChange) {
  constexpr std::size_t kCloses = 20;
  std::vector<InodeId> files;
  for (std::size_t i = 0; i < kCloses; ++i) files.push_back(create("file" + std::to_string(i)));
  const auto before = messages();
  for (const InodeId inode : files) write(inode);
  const auto after = messages();
  EXPECT_EQ((after[0] - before[0]).batches, kCloses);
  EXPECT_EQ((after[0] - before[0]).appends, kCloses);
  EXPECT_EQ((after[0] - before[0]).all(), 2 * kCloses);
  for (const std::size_t i : {1u, 2u})
    EXPECT_EQ((after[i] - before[i]).acknowledgements, kCloses) << "node " << i;
}

TEST_F(ClusterMessages, RemovedFilesAreReclaimedTogether) {
  constexpr std::size_t kFiles = 60;
  std::vector<InodeId> files;
  for (std::size_t i = 0; i < kFiles; ++i) files.push_back(create("file" + std::to_string(i)));
  const auto before = messages();
  for (std::size_t i = 0; i < kFiles; ++i)
    EXPECT_TRUE(engine().unlink(kRootInode, "file" + std::to_string(i)));
  const auto is_there = [this](InodeId inode) { return engine().attributes(inode).has_value(); };
  const std::uint64_t until_ns = clock_->boot_ns() + 20'000'000'000;
  while (std::any_of(files.begin(), files.end(), is_there) && clock_->boot_ns() < until_ns)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_TRUE(std::none_of(files.begin(), files.end(), is_there));
  const auto after = messages();
  std::size_t appends = 0;
  for (std::size_t i = 0; i < 3; ++i) appends += (after[i] - before[i]).appends;
  EXPECT_LE(appends, kFiles + kFiles / 2);
}

TEST_F(ClusterMessages, ChangesAtOnceShareAppendsAndAcknowledgements) {
  // Fewer than 64 files in a round: the thread sanitizer follows no more locks of one flush.
  constexpr std::size_t kRounds = 3, kThreads = 8, kEach = 7, kFiles = kRounds * kThreads * kEach;
  const auto before = messages();
  for (std::size_t round = 0; round < kRounds; ++round) {
    std::vector<std::thread> threads;
    for (std::size_t t = 0; t < kThreads; ++t)
      threads.emplace_back([this, round, t] {
        for (std::size_t i = 0; i < kEach; ++i)
          make_file(std::to_string(round) + "-" + std::to_string(t) + "-" + std::to_string(i));
      });
    for (std::thread& thread : threads) thread.join();
    EXPECT_TRUE(engine().sync_all());
  }
  const auto after = messages();
  const Messages own = after[0] - before[0];
  EXPECT_LT(own.appends, kFiles) << "of twice as many changes";
  EXPECT_LT(own.batches, kFiles * 3 / 4);
  std::size_t appends = 1;  // the last one before may be acknowledged late
  for (const std::size_t i : {0u, 1u, 2u}) appends += (after[i] - before[i]).appends;
  for (const std::size_t i : {1u, 2u})
    EXPECT_LE((after[i] - before[i]).acknowledgements, appends) << "node " << i;
}

}  // namespace
}  // namespace kvsyncfs
