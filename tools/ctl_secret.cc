#include "tools/ctl_secret.h"

#include <fmt/format.h>

#include <boost/json.hpp>
#include <string_view>
#include <vector>

#include "engine/cluster_secret.h"
#include "engine/env/real.h"

namespace kvsyncfs {
namespace {

namespace json = boost::json;

std::string list_of(const SecretChange& change, bool is_up) {
  std::vector<std::string_view> names;
  for (const SecretChange::Node& node : change.nodes)
    if (node.is_up == is_up && !node.has_next) names.push_back(node.name);
  return fmt::format("{}", fmt::join(names, ", "));
}

std::string begun_text(const SecretChange& change) {
  const std::string up = list_of(change, true), away = list_of(change, false);
  std::string text = fmt::format("volume {}: the next secret is {}\n", change.volume, change.file);
  if (!up.empty() || !away.empty())
    text += "copy it to STORE/secret.next of the nodes that have not got it:\n";
  if (!up.empty()) text += fmt::format("up: {}\n", up);
  if (!away.empty()) text += fmt::format("away: {}\n", away);
  return text + (up.empty() ? "rotate-secret --finish makes it the only one\n"
                            : "then rotate-secret --finish makes it the only one\n");
}

std::string finished_text(const SecretChange& change) {
  const std::string away = list_of(change, false);
  std::string text = fmt::format("volume {}: the former secret is none any more\n", change.volume);
  if (!away.empty())
    text += fmt::format("away without the new one, which has to be their STORE/secret: {}\n", away);
  return text;
}

std::string document(const SecretChange& change, bool is_finished) {
  json::array nodes;
  for (const SecretChange::Node& node : change.nodes)
    nodes.push_back(
        json::object{{"name", node.name}, {"up", node.is_up}, {"has_next", node.has_next}});
  return json::serialize(json::object{{"volume", change.volume},
                                      {"finished", is_finished},
                                      {"file", change.file},
                                      {"nodes", std::move(nodes)}}) +
         "\n";
}

}  // namespace

Result<CtlAnswer> rotate_secret(Disk& disk, Clock& clock, const std::string& store,
                                const CtlOptions& options) {
  if (options.cancel) {
    KVSYNCFS_TRY(cancel_secret_change(disk, clock, store));
    return CtlAnswer{};
  }
  if (options.finish) {
    KVSYNCFS_ASSIGN(const SecretChange change, finish_secret_change(disk, clock, store));
    return CtlAnswer{options.json ? document(change, true) : finished_text(change)};
  }
  const auto random = make_real_random();
  KVSYNCFS_ASSIGN(const SecretChange change, begin_secret_change(disk, clock, *random, store));
  return CtlAnswer{options.json ? document(change, false) : begun_text(change)};
}

}  // namespace kvsyncfs
