#include "tools/ctl_daemon.h"

#include <algorithm>

#include "engine/env/daemon_client.h"
#include "tools/ctl_table.h"

namespace kvsyncfs {

namespace json = boost::json;

namespace {
constexpr int kStepMs = 120'000;   // a step of long work is far shorter
constexpr int kFlushMs = 600'000;  // a whole write buffer over a slow network
}  // namespace

Result<CtlDaemon> CtlDaemon::of(const std::string& target) {
  KVSYNCFS_ASSIGN(Target found, find_target(target));
  KVSYNCFS_ASSIGN(const ResolvedPath path, resolve(target));
  return CtlDaemon(std::move(found), path.mount ? path.mount->source : path.path);
}

Result<json::object> CtlDaemon::talk(const std::string& line, int timeout_ms) const {
  const auto answer = kvsyncfs::ask(target_.socket, line, timeout_ms);
  if (!answer) {
    const bool no_daemon = answer.error().code == Code::kNotFound;
    return Error(answer.error().code,
                 target_.name + (no_daemon ? ": no daemon: " : ": ") + answer.error().detail);
  }
  json::parse_options options;
  options.allow_invalid_utf8 = true;
  json::error_code broken;
  json::value value = json::parse(answer->text, broken, {}, options);
  if (broken || !value.is_object())
    return Error(Code::kCorrupt, target_.name + ": the daemon answers nonsense");
  return std::move(value.get_object());
}

Result<json::object> CtlDaemon::ask(json::object request) const {
  KVSYNCFS_ASSIGN(json::object answer, talk(json::serialize(request), kStepMs));
  if (flag_in(answer, "ok")) return answer;
  const std::string why = text_in(answer, "error");
  return Error(Code::kIo, target_.name + ": " + (why.empty() ? "no reason is given" : why));
}

Status CtlDaemon::flush() const {
  KVSYNCFS_ASSIGN(const json::object answer, talk("barrier", kFlushMs));
  if (flag_in(answer, "ok")) return {};
  return Error(Code::kIo, target_.name + ": " + text_in(answer, "error"));
}

Result<std::string> CtlDaemon::path_in_volume(const std::string& path) const {
  KVSYNCFS_ASSIGN(const ResolvedPath found, resolve(path));
  std::string inside = path;
  if (found.mount && found.mount->source != store_)
    return Error(Code::kInvalid, path + ": on another mount than that of " + target_.name);
  if (found.mount) inside = found.rest;
  inside.erase(0, std::min(inside.find_first_not_of('/'), inside.size()));
  return inside;
}

}  // namespace kvsyncfs
