// The life of sessions: one per node at a time, each with a greater incarnation than the one
// before.
#include "engine/catalog/apply.h"

namespace kvsyncfs {

namespace {

/// What is known of the node before `incarnation` comes: nothing, or a session that has ended.
/// Errors: kInvalid, kBusy, kTooBig.
Status check_first_of(CommandRun& run, NodeId node, Incarnation incarnation) {
  if (node.value == 0 || incarnation.value == 0) return Code::kInvalid;
  const auto last = run.find_session(node);
  if (!last) return run.session_count() < kSessionsMax ? Status{} : Status(Code::kTooBig);
  return last->lives() ? Status(Code::kBusy) : Status{};
}

}  // namespace

Status run_command(CommandRun& run, const JoinCommand& c) {
  if (c.lease_ms == 0) return Code::kInvalid;
  const auto last = run.find_session(c.node);
  if (last && c.incarnation == last->incarnation && last->lives()) {
    run.result.session = last->session;
    return {};
  }
  if (last && c.incarnation <= last->incarnation) return Code::kFenced;
  KVSYNCFS_TRY(check_first_of(run, c.node, c.incarnation));
  SessionRecord record;
  record.session = run.result.session = {run.new_id()};
  record.incarnation = c.incarnation;
  record.features = c.features;
  record.lease_ms = c.lease_ms;
  run.put_session(c.node, record);
  return {};
}

Status run_command(CommandRun& run, const EndCommand& c) {
  const auto last = run.find_session(c.node);
  if (last && c.incarnation < last->incarnation) return {};
  SessionRecord record;
  if (last && c.incarnation == last->incarnation) {
    record = *last;
    run.result.session = record.session;
    if (!record.lives()) return {};
    KVSYNCFS_TRY(end_locks(run, record.session));
  } else {
    KVSYNCFS_TRY(check_first_of(run, c.node, c.incarnation));
    record.session = run.result.session = {run.new_id()};
    record.incarnation = c.incarnation;
  }
  record.ended = run.position();
  run.put_session(c.node, record);
  return {};
}

}  // namespace kvsyncfs
