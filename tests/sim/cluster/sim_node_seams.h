// Disk and etcd as one life of a node has them: dead with it, slow or cut off as the node's are.
// Thread: threads of the simulation.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/env/disk.h"
#include "engine/log/etcd/etcd_client.h"

namespace kvsyncfs {

struct LifeState {
  bool is_over = false;
  bool disk_lies = false;                  ///< a sync of a file makes nothing durable
  std::function<bool()> is_cut;            ///< from etcd, now
  std::function<std::uint64_t()> sync_ns;  ///< what a sync of the disk takes, now
};

std::unique_ptr<Disk> make_life_disk(Disk& disk, std::shared_ptr<const LifeState> life);
std::unique_ptr<etcd::EtcdClient> make_life_etcd(std::unique_ptr<etcd::EtcdClient> client,
                                                 std::shared_ptr<const LifeState> life);

}  // namespace kvsyncfs
