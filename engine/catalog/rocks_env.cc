#include "engine/catalog/rocks_env.h"

#include <rocksdb/file_system.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "engine/catalog/manifest.h"

namespace kvsyncfs {

namespace {

using rocksdb::FileOptions;
using rocksdb::IODebugContext;
using rocksdb::IOOptions;
using rocksdb::IOStatus;
using rocksdb::Slice;

IOStatus to_rocks(const Error& error, const std::string& path) {
  switch (error.code) {
    case Code::kNotFound:
      return IOStatus::PathNotFound(path);
    case Code::kNoSpace:
      return IOStatus::NoSpace(path);
    default:
      return IOStatus::IOError(path, describe(error));
  }
}

template <typename T>
IOStatus to_rocks(const Result<T>& result, const std::string& path) {
  return result ? IOStatus::OK() : to_rocks(result.error(), path);
}

MutableBytes scratch_bytes(char* scratch, std::size_t size) {
  return {reinterpret_cast<std::byte*>(scratch), size};
}

/// RocksDB joins paths freely ("dir//file", "dir/"); a Disk knows each by one spelling.
std::string clean(const std::string& path) {
  std::string out;
  for (char c : path)
    if (c != '/' || out.empty() || out.back() != '/') out.push_back(c);
  if (out.size() > 1 && out.back() == '/') out.pop_back();
  return out;
}

class SequentialFile final : public rocksdb::FSSequentialFile {
 public:
  SequentialFile(std::unique_ptr<File> file, std::string path, std::uint64_t end)
      : file_(std::move(file)), path_(std::move(path)), end_(end) {}

  IOStatus Read(std::size_t n, const IOOptions&, Slice* result, char* scratch,
                IODebugContext*) override {
    n = std::min<std::uint64_t>(n, end_ - std::min(offset_, end_));
    auto count = file_->read_at(offset_, scratch_bytes(scratch, n));
    if (!count) return to_rocks(count, path_);
    offset_ += *count;
    *result = Slice(scratch, *count);
    return IOStatus::OK();
  }
  IOStatus Skip(std::uint64_t n) override {
    offset_ += n;
    return IOStatus::OK();
  }

 private:
  std::unique_ptr<File> file_;
  std::string path_;
  const std::uint64_t end_;  // as if the file ended there
  std::uint64_t offset_ = 0;
};

class RandomAccessFile final : public rocksdb::FSRandomAccessFile {
 public:
  RandomAccessFile(std::unique_ptr<File> file, std::string path)
      : file_(std::move(file)), path_(std::move(path)) {}

  IOStatus Read(std::uint64_t offset, std::size_t n, const IOOptions&, Slice* result, char* scratch,
                IODebugContext*) const override {
    auto count = file_->read_at(offset, scratch_bytes(scratch, n));
    if (!count) return to_rocks(count, path_);
    *result = Slice(scratch, *count);
    return IOStatus::OK();
  }

 private:
  std::unique_ptr<File> file_;
  std::string path_;
};

/// Appends as they come: RocksDB gathers up to writable_file_max_buffer_size itself.
class WritableFile final : public rocksdb::FSWritableFile {
 public:
  WritableFile(std::unique_ptr<File> file, std::string path)
      : file_(std::move(file)), path_(std::move(path)) {}

  using FSWritableFile::Append;
  IOStatus Append(const Slice& data, const IOOptions&, IODebugContext*) override {
    if (data.empty()) return IOStatus::OK();
    auto done = file_->write_at(size_, as_bytes({data.data(), data.size()}));
    if (done) size_ += data.size();
    return to_rocks(done, path_);
  }
  IOStatus Truncate(std::uint64_t size, const IOOptions&, IODebugContext*) override {
    auto done = file_->truncate(size);
    if (done) size_ = size;
    return to_rocks(done, path_);
  }
  IOStatus Flush(const IOOptions&, IODebugContext*) override { return IOStatus::OK(); }
  IOStatus Sync(const IOOptions&, IODebugContext*) override {
    return to_rocks(file_->sync(), path_);
  }
  IOStatus Close(const IOOptions&, IODebugContext*) override {
    file_.reset();
    return IOStatus::OK();
  }
  std::uint64_t GetFileSize(const IOOptions&, IODebugContext*) override { return size_; }

 private:
  std::unique_ptr<File> file_;
  std::string path_;
  std::uint64_t size_ = 0;
};

class Directory final : public rocksdb::FSDirectory {
 public:
  Directory(Disk& disk, std::string path) : disk_(disk), path_(std::move(path)) {}
  IOStatus Fsync(const IOOptions&, IODebugContext*) override {
    return to_rocks(disk_.sync_directory(path_), path_);
  }
  IOStatus Close(const IOOptions&, IODebugContext*) override { return IOStatus::OK(); }

 private:
  Disk& disk_;
  std::string path_;
};

/// The store's own lock keeps a second process out, so RocksDB's is only a token.
class NoLock final : public rocksdb::FileLock {};

class DiskFileSystem final : public rocksdb::FileSystem {
 public:
  explicit DiskFileSystem(Disk& disk) : disk_(disk) {}
  const char* Name() const override { return "kvsyncfs"; }

  IOStatus NewSequentialFile(const std::string& path, const FileOptions&,
                             std::unique_ptr<rocksdb::FSSequentialFile>* result,
                             IODebugContext*) override {
    auto file = disk_.open(clean(path), OpenMode::kRead);
    if (!file) return to_rocks(file, path);
    Result<std::uint64_t> end = std::numeric_limits<std::uint64_t>::max();
    if (path.find("/MANIFEST-") != path.npos) end = whole_manifest_bytes(**file);
    if (end) *result = std::make_unique<SequentialFile>(std::move(*file), path, *end);
    return to_rocks(end, path);
  }
  IOStatus NewRandomAccessFile(const std::string& path, const FileOptions&,
                               std::unique_ptr<rocksdb::FSRandomAccessFile>* result,
                               IODebugContext*) override {
    auto file = disk_.open(clean(path), OpenMode::kRead);
    if (file) *result = std::make_unique<RandomAccessFile>(std::move(*file), path);
    return to_rocks(file, path);
  }
  IOStatus NewWritableFile(const std::string& path, const FileOptions&,
                           std::unique_ptr<rocksdb::FSWritableFile>* result,
                           IODebugContext*) override {
    auto file = disk_.open(clean(path), OpenMode::kCreateOrOpen);
    if (!file) return to_rocks(file, path);
    auto emptied = (*file)->truncate(0);
    if (emptied) *result = std::make_unique<WritableFile>(std::move(*file), path);
    return to_rocks(emptied, path);
  }
  IOStatus NewDirectory(const std::string& path, const IOOptions&,
                        std::unique_ptr<rocksdb::FSDirectory>* result, IODebugContext*) override {
    *result = std::make_unique<Directory>(disk_, clean(path));
    return IOStatus::OK();
  }

  IOStatus FileExists(const std::string& path, const IOOptions&, IODebugContext*) override {
    auto there = disk_.exists(clean(path));
    if (!there) return to_rocks(there, path);
    return *there ? IOStatus::OK() : IOStatus::NotFound(path);
  }
  IOStatus GetChildren(const std::string& directory, const IOOptions&,
                       std::vector<std::string>* result, IODebugContext*) override {
    auto names = disk_.list(clean(directory));
    if (names) *result = std::move(*names);
    return to_rocks(names, directory);
  }
  IOStatus DeleteFile(const std::string& path, const IOOptions&, IODebugContext*) override {
    return to_rocks(disk_.remove(clean(path)), path);
  }
  IOStatus CreateDir(const std::string& path, const IOOptions&, IODebugContext*) override {
    return to_rocks(disk_.make_directory(clean(path)), path);
  }
  IOStatus CreateDirIfMissing(const std::string& path, const IOOptions&, IODebugContext*) override {
    auto made = disk_.make_directory(clean(path));
    if (!made && made.error().code == Code::kExists) return IOStatus::OK();
    return to_rocks(made, path);
  }
  IOStatus DeleteDir(const std::string& path, const IOOptions&, IODebugContext*) override {
    return to_rocks(disk_.remove_directory(clean(path)), path);
  }
  IOStatus GetFileSize(const std::string& path, const IOOptions&, std::uint64_t* size,
                       IODebugContext*) override {
    auto bytes = disk_.size_of(clean(path));
    if (bytes) *size = *bytes;
    return to_rocks(bytes, path);
  }
  /// Only RocksDB's own archive of old logs would look at it; there is none.
  IOStatus GetFileModificationTime(const std::string&, const IOOptions&, std::uint64_t* time,
                                   IODebugContext*) override {
    *time = 0;
    return IOStatus::OK();
  }
  IOStatus RenameFile(const std::string& from, const std::string& to, const IOOptions&,
                      IODebugContext*) override {
    // RocksDB makes CURRENT name a new MANIFEST and syncs the folder only then. A disk may keep the
    // rename and lose the older name, so the older ones become durable first.
    const std::string path = clean(to);
    if (const Status names = disk_.sync_directory(path.substr(0, path.rfind('/'))); !names)
      return to_rocks(names, to);
    return to_rocks(disk_.rename(clean(from), path), from);
  }
  IOStatus LockFile(const std::string&, const IOOptions&, rocksdb::FileLock** lock,
                    IODebugContext*) override {
    *lock = new NoLock;  // freed by UnlockFile: the interface wants it so
    return IOStatus::OK();
  }
  IOStatus UnlockFile(rocksdb::FileLock* lock, const IOOptions&, IODebugContext*) override {
    delete lock;
    return IOStatus::OK();
  }
  IOStatus GetTestDirectory(const IOOptions&, std::string*, IODebugContext*) override {
    return IOStatus::NotSupported("test directory");
  }
  IOStatus GetAbsolutePath(const std::string& path, const IOOptions&, std::string* result,
                           IODebugContext*) override {
    *result = path;
    return IOStatus::OK();
  }
  IOStatus GetFreeSpace(const std::string& path, const IOOptions&, std::uint64_t* free,
                        IODebugContext*) override {
    auto space = disk_.space(clean(path));
    if (space) *free = space->available_bytes;
    return to_rocks(space, path);
  }
  IOStatus IsDirectory(const std::string& path, const IOOptions&, bool* yes,
                       IODebugContext*) override {
    auto directory = disk_.is_directory(clean(path));
    if (directory) *yes = *directory;
    return to_rocks(directory, path);
  }

 private:
  Disk& disk_;
};

}  // namespace

std::unique_ptr<rocksdb::Env> make_rocks_env(Disk& disk) {
  return rocksdb::NewCompositeEnv(std::make_shared<DiskFileSystem>(disk));
}

Error from_rocks(const rocksdb::Status& status) {
  Code code = Code::kIo;
  if (status.IsNotFound() || status.IsPathNotFound()) code = Code::kNotFound;
  if (status.IsNoSpace()) code = Code::kNoSpace;
  if (status.IsCorruption()) code = Code::kCorrupt;
  if (status.IsMemoryLimit()) code = Code::kNoMemory;
  return {code, "catalog: " + status.ToString()};
}

}  // namespace kvsyncfs
