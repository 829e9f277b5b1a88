#include "tools/stat_fetch.h"

namespace kvsyncfs {

Result<StatDocument> fetch(const Target& target, int timeout_ms, int interrupt_fd) {
  const auto failure = [&target](Error error) {
    const std::string_view what = error.code == Code::kNotFound ? ": no daemon: " : ": ";
    return Error(error.code, target.name + std::string(what) + error.detail);
  };
  const auto answer = ask_daemon(target.socket, timeout_ms, interrupt_fd);
  if (!answer) return failure(answer.error());
  auto document = StatDocument::parse(*answer);
  if (!document)
    return failure({document.error().code, target.socket + ": " + document.error().detail});
  if (!target.uuid.empty() && document->text("uuid") != target.uuid) {
    return failure({Code::kNotFound, target.socket + " belongs to another store"});
  }
  return document;
}

}  // namespace kvsyncfs
