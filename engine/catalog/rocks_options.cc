#include "engine/catalog/rocks_options.h"

#include <rocksdb/cache.h>
#include <rocksdb/convenience.h>
#include <rocksdb/env.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/listener.h>
#include <rocksdb/slice_transform.h>
#include <rocksdb/table.h>

#include <algorithm>
#include <limits>

#include "engine/catalog/keys.h"

namespace kvsyncfs {

namespace {

class NoLogger final : public rocksdb::Logger {
 public:
  NoLogger() : Logger(rocksdb::InfoLogLevel::FATAL_LEVEL) {}
  using Logger::Logv;
  void Logv(const char*, va_list) override {}
};

rocksdb::CompressionType compression() {
  auto types = rocksdb::GetSupportedCompressions();
  bool lz4 = std::find(types.begin(), types.end(), rocksdb::kLZ4Compression) != types.end();
  return lz4 ? rocksdb::kLZ4Compression : rocksdb::kNoCompression;
}

/// Filters and indexes are cut into blocks that live in the bounded cache: memory does not grow
/// with the catalog.
std::shared_ptr<rocksdb::TableFactory> table_factory(std::uint64_t block_cache_bytes) {
  rocksdb::BlockBasedTableOptions table;
  table.block_cache = rocksdb::NewLRUCache(block_cache_bytes);
  table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(10));
  table.index_type = rocksdb::BlockBasedTableOptions::kTwoLevelIndexSearch;
  table.partition_filters = true;
  table.cache_index_and_filter_blocks = true;
  table.cache_index_and_filter_blocks_with_high_priority = true;
  table.pin_top_level_index_and_filter = true;
  table.block_size = 8192;
  table.format_version = 5;
  return std::shared_ptr<rocksdb::TableFactory>(rocksdb::NewBlockBasedTableFactory(table));
}

/// Writes are never slowed or stopped by compaction: the engine's checkpoints set the pace.
void never_stall(rocksdb::Options& o) {
  o.level0_slowdown_writes_trigger = std::numeric_limits<int>::max() / 2;
  o.level0_stop_writes_trigger = std::numeric_limits<int>::max() / 2;
  o.soft_pending_compaction_bytes_limit = 0;
  o.hard_pending_compaction_bytes_limit = 0;
}

/// Nothing that dates, names or counts the machine goes into the files, and no helper thread runs.
void keep_quiet(rocksdb::Options& o) {
  o.info_log = std::make_shared<NoLogger>();
  o.db_host_id = "";
  o.stats_dump_period_sec = 0;
  o.stats_persist_period_sec = 0;
  o.skip_stats_update_on_db_open = true;
}

}  // namespace

rocksdb::Options rocks_options(const CatalogOptions& options, rocksdb::Env& env,
                               std::shared_ptr<rocksdb::EventListener> listener) {
  rocksdb::Options o;
  o.env = &env;
  o.listeners.push_back(std::move(listener));
  o.write_buffer_size = options.memtable_bytes * kMemtableLimitFactor;
  o.arena_block_size = 1 << 20;
  o.max_write_buffer_number = 4;
  o.allow_concurrent_memtable_write = false;  // one writer; and insert hints need it
  o.enable_write_thread_adaptive_yield = false;
  o.max_bgerror_resume_count = 0;        // resuming flushes: it waits for the next checkpoint
  o.avoid_flush_during_shutdown = true;  // only a checkpoint may write
  o.compaction_style = rocksdb::kCompactionStyleUniversal;  // least write amplification
  o.compression = compression();
  o.max_background_jobs = 2;
  o.max_file_opening_threads = 1;  // none of its own: RocksDB aborts where it cannot start one
  o.table_factory = table_factory(options.block_cache_bytes);
  o.prefix_extractor.reset(rocksdb::NewCappedPrefixTransform(kKeyPrefixSize));
  // One hint per kind of record: commands mostly go on where the last one of the kind was.
  o.memtable_insert_with_hint_prefix_extractor.reset(rocksdb::NewCappedPrefixTransform(1));
  never_stall(o);
  keep_quiet(o);
  return o;
}

}  // namespace kvsyncfs
