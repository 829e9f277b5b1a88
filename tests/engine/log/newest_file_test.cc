// The note that names the newest log file: somebody who deletes that file is found out, and nobody
// else is.
#include "tests/engine/log/log_fixture.h"

namespace kvsyncfs {
namespace {

class LocalLogNewest : public LocalLogTest {
 protected:
  std::optional<Code> open_error() {
    const auto opened = open_local_log(disk_, options_);
    return opened ? std::nullopt : std::optional(opened.error().code);
  }
  std::string note() {
    for (const std::string& path : log_files())
      if (path.find("/newest-") != std::string::npos) return path;
    return {};
  }
};

TEST_F(LocalLogNewest, DeletedFileOfTheNewestEntriesIsMissed) {
  open();
  commit("one");
  log_.reset();
  ASSERT_TRUE(disk_.remove(written_file()));
  EXPECT_EQ(open_error(), Code::kCorrupt);
  ASSERT_TRUE(disk_.remove(note()));
  open();
  EXPECT_EQ(log_->last(), Position{0}) << "who removes the note goes on without the entries";
}

TEST_F(LocalLogNewest, FileOfAFormerLifeIsMissedUntilItIsTrimmed) {
  open();
  commit("one");
  open();
  const std::string file = written_file(), bytes = disk_.contents(file);
  log_.reset();
  ASSERT_TRUE(disk_.remove(file));
  EXPECT_EQ(open_error(), Code::kCorrupt);
  ASSERT_TRUE(disk_.open(file, OpenMode::kCreateNew, false));
  disk_.set_contents(file, bytes);
  open();
  ASSERT_TRUE(log_->trim(log_->last()));
  log_.reset();
  for (const std::string& path : log_files()) {
    if (!path.ends_with(".log")) continue;
    ASSERT_TRUE(disk_.remove(path));
  }
  EXPECT_EQ(open_error(), std::nullopt) << "nothing that was in them is needed";
}

TEST_F(LocalLogNewest, LogWithoutANoteGetsOne) {
  ASSERT_TRUE(disk_.remove(note()));
  open();
  commit("one");
  log_.reset();
  ASSERT_NE(note(), "");
  ASSERT_TRUE(disk_.remove(written_file()));
  EXPECT_EQ(open_error(), Code::kCorrupt);
}

}  // namespace
}  // namespace kvsyncfs
