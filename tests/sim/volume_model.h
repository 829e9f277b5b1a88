// What a volume may hold after a crash: every state of its names and every version of its files
// since what is durable for sure.
//
// The rules are P3 and P4 of the contract: the names and attributes are those of one moment, not
// before the last sync; each byte of a file is the last fsynced one or a later one; a value that
// was put, and a file that replaced another, is whole. After a call that failed, what it was to do
// is in doubt: there or not, and no sync makes it certain. Thread: one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/ids.h"

namespace kvsyncfs {

using Xattrs = std::map<std::string, std::string>;

/// What an opened volume holds.
struct VolumeContents {
  std::map<std::string, InodeId> names;  ///< by path; folders too
  std::map<InodeId, std::string> files;  ///< bytes; of folders none
  std::map<InodeId, Xattrs> xattrs;      ///< of who has some
};

class VolumeModel {
 public:
  using Names = std::map<std::string, InodeId>;
  static constexpr InodeId kUnknown{0};  ///< of what a call under way creates

  /// All that is there is durable, and nothing else.
  explicit VolumeModel(const VolumeContents& contents);

  const Names& names() const { return states_.back().names; }
  const std::string& bytes(InodeId file) const { return files_.at(file).versions.back(); }
  Xattrs xattrs(InodeId inode) const;

  // What may happen from now on, before the engine is asked for it.

  /// `whole`: the file that must then have its bytes of now.
  void begin_names(Names names, std::optional<InodeId> whole = std::nullopt);
  void begin_bytes(InodeId file, std::string bytes);
  void begin_xattrs(InodeId inode, Xattrs xattrs);
  /// Besides the sizes that the file has had since its last sync.
  void begin_size(InodeId file, std::uint64_t size);
  /// A new file that is made and filled at once.
  void begin_value(const std::string& path, std::string value);

  // What has happened.

  /// A created file or folder has its number; `value` as begin_value had it.
  void created(const std::string& path, InodeId inode, bool folder,
               std::optional<std::string> value = std::nullopt);
  /// The newest bytes of the file follow the order of the log: durable with the next sync of any.
  void committed(InodeId file);
  /// The file was cut to its newest size, in the order of the log, its bytes perhaps later.
  void cut(InodeId file);
  /// The file is written by parts from here on.
  void written_in_parts(InodeId file) { files_.at(file).whole = false; }
  void synced();
  void synced(InodeId file);
  void synced_all();

  // Calls that fail.

  /// A call begins now.
  void mark();
  /// It failed: what began since mark() is in doubt.
  void doubt();
  /// Empty, or what is wrong with bytes read while the file's newest change is in doubt.
  std::string check_doubtful(InodeId file, const std::string& bytes) const;

  /// Empty, or the rule that is broken.
  std::string check(const VolumeContents& found) const;

 private:
  struct File {
    std::vector<std::string> versions;
    std::vector<std::pair<std::size_t, std::uint64_t>> sizes;  // more: (index of version, size)
    std::size_t marked = 0;                                    // versions before the call
    std::size_t committed = 0, cut = 0;                        // indexes of versions
    std::size_t floor = 0, size_floor = 0;                     // the oldest that may be seen
    bool whole = true;                                         // only ever put
  };
  struct State {
    Names names;
    std::map<InodeId, Xattrs> xattrs;
    std::optional<InodeId> whole;
    std::size_t version = 0;  // of `whole`
  };

  std::optional<std::size_t> find_state(const VolumeContents& found) const;
  std::string check_file(const File& file, std::size_t floor, const std::string& bytes) const;

  std::vector<State> states_;
  std::size_t floor_ = 0, marked_ = 0;  // indexes; marked_: states before the call
  bool doubtful_ = false;
  std::map<InodeId, File> files_;
  std::optional<std::string> pending_;  // the newest state's new file has this from the start
};

}  // namespace kvsyncfs
