#include "engine/store/guarded_disk.h"

#include <utility>

namespace kvsyncfs {
namespace {

template <typename Call>
auto twice(RoomMaker& maker, Call call) {
  const std::uint64_t mark = maker.mark();
  auto result = call();
  if (!result && result.error().code == Code::kNoSpace && maker.make_room(mark)) result = call();
  return result;
}

class GuardedFile final : public File {
 public:
  GuardedFile(std::unique_ptr<File> below, RoomMaker& maker)
      : below_(std::move(below)), maker_(maker) {}

  Result<std::size_t> read_at(std::uint64_t offset, MutableBytes out) override {
    return below_->read_at(offset, out);
  }
  Status write_at(std::uint64_t offset, std::span<const Bytes> pieces) override {
    return twice(maker_, [&] { return below_->write_at(offset, pieces); });
  }
  // Not a second time: after a failure nobody knows what became of the bytes.
  Status sync() override { return below_->sync(); }
  Status allocate(std::uint64_t size) override {
    return twice(maker_, [&] { return below_->allocate(size); });
  }
  Status truncate(std::uint64_t size) override {
    return twice(maker_, [&] { return below_->truncate(size); });
  }
  Result<std::uint64_t> size() override { return below_->size(); }

 private:
  const std::unique_ptr<File> below_;
  RoomMaker& maker_;
};

class GuardedDisk final : public Disk {
 public:
  GuardedDisk(Disk& below, RoomMaker& maker) : below_(below), maker_(maker) {}

  Result<std::unique_ptr<File>> open(const std::string& path, OpenMode mode, bool direct) override {
    KVSYNCFS_ASSIGN(auto file, twice(maker_, [&] { return below_.open(path, mode, direct); }));
    return std::unique_ptr<File>(std::make_unique<GuardedFile>(std::move(file), maker_));
  }
  Status remove(const std::string& path) override { return below_.remove(path); }
  Status rename(const std::string& from, const std::string& to) override {
    return twice(maker_, [&] { return below_.rename(from, to); });
  }
  Status make_directory(const std::string& path) override {
    return twice(maker_, [&] { return below_.make_directory(path); });
  }
  Status remove_directory(const std::string& path) override {
    return below_.remove_directory(path);
  }
  Result<std::vector<std::string>> list(const std::string& directory) override {
    return below_.list(directory);
  }
  Status sync_directory(const std::string& directory) override {
    return below_.sync_directory(directory);
  }
  Result<bool> exists(const std::string& path) override { return below_.exists(path); }
  Result<bool> is_directory(const std::string& path) override { return below_.is_directory(path); }
  Result<std::uint64_t> size_of(const std::string& path) override { return below_.size_of(path); }
  Result<DiskSpace> space(const std::string& path) override { return below_.space(path); }

 private:
  Disk& below_;
  RoomMaker& maker_;
};

}  // namespace

std::unique_ptr<Disk> make_guarded_disk(Disk& below, RoomMaker& maker) {
  return std::make_unique<GuardedDisk>(below, maker);
}

}  // namespace kvsyncfs
