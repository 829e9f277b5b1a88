// What the kernel of this node keeps of attributes while the lease of the node holds, and how it is
// told in time that other attributes came to be: a node acknowledges a change only after its own
// kernel was told of it. ARCHITECTURE.md, "In a cluster the kernel keeps attributes, and no names".
//
// Thread: any; run() one at a time.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <unordered_map>

#include "engine/base/ids.h"

namespace kvsyncfs {

class KeptAttributes {
 public:
  /// Makes the kernel forget what it keeps of an inode, and returns when it has; false: it has no
  /// such inode. It may wait for requests of the kernel, so that only run() calls it.
  using Forget = std::function<bool(InodeId)>;
  /// The kernel has the inode, or will have it when it looks at an answer that is on its way.
  using IsRetained = std::function<bool(InodeId)>;
  static constexpr std::size_t kKeptMax = 65'536;  ///< inodes; more are not kept

  /// Nothing is kept before; an empty `forget` waits until none is called any more.
  void set_forget(Forget forget, IsRetained is_retained);

  /// The attributes that are read after this may be kept until then, boot time, by a kernel that
  /// has the inode, or that looks at them for one call only. False: they may not.
  bool keep(InodeId inode, std::uint64_t until_ns, std::uint64_t now_ns);
  /// The inode has other attributes now. Waits for nothing.
  void changed(InodeId inode);
  /// Nothing of what was kept may be kept any longer. Waits for nothing.
  void all_changed();
  /// Calls `then` when the kernel was told of all changes so far, and after all earlier ones: at
  /// once, or in run().
  void when_told(std::function<void()> then);

  /// Tells the kernel of what has changed; waits up to 100 ms for the first.
  void run();

 private:
  struct Step {
    InodeId inode;               // 0: none
    std::function<void()> then;  // or this
  };

  void tell(InodeId inode);

  std::mutex forget_mutex_;  // before mutex_; held while the kernel is told
  Forget forget_;            // guarded by it, as the next
  IsRetained is_retained_;
  std::mutex mutex_;
  std::condition_variable came_;
  bool has_forget_ = false;                           // guarded by mutex_, as all below
  std::unordered_map<InodeId, std::uint64_t> until_;  // of what the kernel may keep
  std::deque<Step> steps_;                            // the first stays until it is done
};

}  // namespace kvsyncfs
