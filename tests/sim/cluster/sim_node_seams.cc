#include "tests/sim/cluster/sim_node_seams.h"

#include <utility>

#include "tests/sim/cluster/sim_threads.h"

namespace kvsyncfs {
namespace {

namespace sim = sim_threads;
using LifePtr = std::shared_ptr<const LifeState>;

Status check(const LifeState& life) {
  return life.is_over ? Status(Error(Code::kIo, "the process is gone")) : Status{};
}

class LifeFile final : public File {
 public:
  LifeFile(std::unique_ptr<File> file, LifePtr life)
      : file_(std::move(file)), life_(std::move(life)) {}

  Result<std::size_t> read_at(std::uint64_t offset, MutableBytes out) override {
    KVSYNCFS_TRY(check(*life_));
    return file_->read_at(offset, out);
  }
  Status write_at(std::uint64_t offset, std::span<const Bytes> pieces) override {
    KVSYNCFS_TRY(check(*life_));
    return file_->write_at(offset, pieces);
  }
  Status sync() override {
    KVSYNCFS_TRY(check(*life_));
    sim::sleep(life_->sync_ns());
    KVSYNCFS_TRY(check(*life_));
    return life_->disk_lies ? Status{} : file_->sync();
  }
  Status allocate(std::uint64_t size) override {
    KVSYNCFS_TRY(check(*life_));
    return file_->allocate(size);
  }
  Status truncate(std::uint64_t size) override {
    KVSYNCFS_TRY(check(*life_));
    return file_->truncate(size);
  }
  Result<std::uint64_t> size() override {
    KVSYNCFS_TRY(check(*life_));
    return file_->size();
  }

 private:
  const std::unique_ptr<File> file_;
  const LifePtr life_;
};

class LifeDisk final : public Disk {
 public:
  LifeDisk(Disk& disk, LifePtr life) : disk_(disk), life_(std::move(life)) {}

  Result<std::unique_ptr<File>> open(const std::string& path, OpenMode mode, bool direct) override {
    KVSYNCFS_TRY(check(*life_));
    KVSYNCFS_ASSIGN(auto file, disk_.open(path, mode, direct));
    return std::unique_ptr<File>(std::make_unique<LifeFile>(std::move(file), life_));
  }
  Status remove(const std::string& path) override {
    KVSYNCFS_TRY(check(*life_));
    return disk_.remove(path);
  }
  Status rename(const std::string& from, const std::string& to) override {
    KVSYNCFS_TRY(check(*life_));
    return disk_.rename(from, to);
  }
  Status make_directory(const std::string& path) override {
    KVSYNCFS_TRY(check(*life_));
    return disk_.make_directory(path);
  }
  Status remove_directory(const std::string& path) override {
    KVSYNCFS_TRY(check(*life_));
    return disk_.remove_directory(path);
  }
  Result<std::vector<std::string>> list(const std::string& directory) override {
    KVSYNCFS_TRY(check(*life_));
    return disk_.list(directory);
  }
  Status sync_directory(const std::string& directory) override {
    KVSYNCFS_TRY(check(*life_));
    sim::sleep(life_->sync_ns());
    KVSYNCFS_TRY(check(*life_));
    return disk_.sync_directory(directory);
  }
  Result<bool> exists(const std::string& path) override {
    KVSYNCFS_TRY(check(*life_));
    return disk_.exists(path);
  }
  Result<bool> is_directory(const std::string& path) override {
    KVSYNCFS_TRY(check(*life_));
    return disk_.is_directory(path);
  }
  Result<std::uint64_t> size_of(const std::string& path) override {
    KVSYNCFS_TRY(check(*life_));
    return disk_.size_of(path);
  }
  Result<DiskSpace> space(const std::string& path) override {
    KVSYNCFS_TRY(check(*life_));
    return disk_.space(path);
  }

 private:
  Disk& disk_;
  const LifePtr life_;
};

/// What is asked while the node is cut off, or is answered then, is not answered. The deadline is
/// the node's, `ask` gets etcd's.
template <typename Answer, typename Ask>
Answer ask(const LifeState& life, std::uint64_t shown_deadline_ns, Ask ask) {
  const std::uint64_t deadline_ns = sim::time_of(shown_deadline_ns);
  const auto nothing = [&]() -> Answer {
    if (life.is_over) return Code::kShutdown;
    sim::sleep_until(deadline_ns);
    return life.is_over ? Code::kShutdown : Code::kTimeout;
  };
  if (life.is_over || life.is_cut()) return nothing();
  Answer answer = ask(deadline_ns);
  if (life.is_over || life.is_cut()) return nothing();
  return answer;
}

class LifeWatch final : public etcd::EtcdWatch {
 public:
  LifeWatch(std::unique_ptr<EtcdWatch> watch, LifePtr life)
      : watch_(std::move(watch)), life_(std::move(life)) {}
  Result<etcd::WatchBatch> next(std::uint64_t deadline_ns) override {
    if (is_lost_) return Code::kIo;
    auto batch = ask<Result<etcd::WatchBatch>>(
        *life_, deadline_ns, [&](std::uint64_t by_ns) { return watch_->next(by_ns); });
    is_lost_ = life_->is_over || life_->is_cut();  // it may have shown what did not come here
    return batch;
  }

 private:
  const std::unique_ptr<EtcdWatch> watch_;
  const LifePtr life_;
  bool is_lost_ = false;
};

class LifeEtcd final : public etcd::EtcdClient {
 public:
  LifeEtcd(std::unique_ptr<EtcdClient> client, LifePtr life)
      : client_(std::move(client)), life_(std::move(life)) {}

  Result<etcd::RangeReply> range(const etcd::Range& request, std::uint64_t until_ns) override {
    return ask<Result<etcd::RangeReply>>(
        *life_, until_ns, [&](std::uint64_t by_ns) { return client_->range(request, by_ns); });
  }
  Result<etcd::TxnReply> txn(const etcd::Txn& request, std::uint64_t until_ns) override {
    return ask<Result<etcd::TxnReply>>(
        *life_, until_ns, [&](std::uint64_t by_ns) { return client_->txn(request, by_ns); });
  }
  Result<etcd::Lease> grant_lease(std::int64_t ttl_s, std::uint64_t until_ns) override {
    return ask<Result<etcd::Lease>>(
        *life_, until_ns, [&](std::uint64_t by_ns) { return client_->grant_lease(ttl_s, by_ns); });
  }
  Result<etcd::Lease> keep_alive(std::int64_t lease, std::uint64_t until_ns) override {
    return ask<Result<etcd::Lease>>(
        *life_, until_ns, [&](std::uint64_t by_ns) { return client_->keep_alive(lease, by_ns); });
  }
  Status revoke_lease(std::int64_t lease, std::uint64_t until_ns) override {
    return ask<Status>(*life_, until_ns,
                       [&](std::uint64_t by_ns) { return client_->revoke_lease(lease, by_ns); });
  }
  Status compact(std::int64_t revision, std::uint64_t until_ns) override {
    return ask<Status>(*life_, until_ns,
                       [&](std::uint64_t by_ns) { return client_->compact(revision, by_ns); });
  }
  Result<std::unique_ptr<etcd::EtcdWatch>> watch(const etcd::WatchRequest& request,
                                                 std::uint64_t until_ns) override {
    using Made = Result<std::unique_ptr<etcd::EtcdWatch>>;
    auto made = ask<Made>(*life_, until_ns,
                          [&](std::uint64_t by_ns) { return client_->watch(request, by_ns); });
    if (!made) return made;
    return Made(std::make_unique<LifeWatch>(std::move(*made), life_));
  }

 private:
  const std::unique_ptr<EtcdClient> client_;
  const LifePtr life_;
};

}  // namespace

std::unique_ptr<Disk> make_life_disk(Disk& disk, LifePtr life) {
  return std::make_unique<LifeDisk>(disk, std::move(life));
}
std::unique_ptr<etcd::EtcdClient> make_life_etcd(std::unique_ptr<etcd::EtcdClient> client,
                                                 LifePtr life) {
  return std::make_unique<LifeEtcd>(std::move(client), std::move(life));
}

}  // namespace kvsyncfs
