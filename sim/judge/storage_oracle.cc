#include <leasehold/sim/judge/storage_oracle.h>
#include <leasehold/sim/judge/words.h>

#include <fmt/format.h>

#include <variant>

namespace leasehold::sim {
namespace {

/// The term that a message names as its sender's own; none: it names none, or binds no node.
std::optional<raft::Term> own_term(const raft::Message& message) {
  if (const auto* m = std::get_if<raft::PreVoteReply>(&message)) return m->term;
  if (const auto* m = std::get_if<raft::VoteRequest>(&message)) return m->term;
  if (const auto* m = std::get_if<raft::VoteReply>(&message)) return m->term;
  if (const auto* m = std::get_if<raft::AppendRequest>(&message)) return m->term;
  if (const auto* m = std::get_if<raft::AppendReply>(&message)) return m->term;
  if (const auto* m = std::get_if<raft::SnapshotChunk>(&message)) return m->term;
  if (const auto* m = std::get_if<raft::SnapshotReply>(&message)) return m->term;
  if (const auto* m = std::get_if<raft::TimeoutNow>(&message)) return m->token.term;
  return std::nullopt;
}

}  // namespace

// ---- The log ----

void StorageOracle::on_persist(const SimNode& node, const raft::PersistBatch& batch) {
  if (batch.truncate_from || batch.reset) replaced_.insert(node.id());
}

void StorageOracle::after_handle(const SimNode& node) {
  check_written(node, replaced_.erase(node.id()) > 0);
  check_durable(node);
}

// Entries only come at the end of a log, unless a part was replaced.
void StorageOracle::check_written(const SimNode& node, bool all) const {
  const RunningReplica& log = node.running();
  const raft::LogId base = log.log_base();
  const raft::Index last = log.log_last().index;
  const DiskImage& disk = node.disk().written();
  if (disk.base_id() != base || disk.last_index() != last) {
    world_.fail("disk_log",
                fmt::format("{} goes by a log from {} to {}, and its disk has received {} to {}",
                            name(node), id_text(base), last.value(), id_text(disk.base_id()),
                            disk.last_index().value()));
    return;
  }
  raft::Index i = all ? base.index.next() : last;
  for (; i <= last; i = i.next()) {
    if (i == base.index || disk.entry(i).id.term == log.term_at(i)) continue;
    world_.fail("disk_log",
                fmt::format("{} goes by an entry {} of another term than {}, which its disk has "
                            "received",
                            name(node), i.value(), id_text(disk.entry(i).id)));
    return;
  }
}

void StorageOracle::check_durable(const SimNode& node) const {
  const raft::Index index = node.running().durable_index();
  // None: a snapshot has replaced the log, and that is not durable yet.
  const std::optional<raft::Term> term = node.running().term_at(index);
  if (!term || node.disk().durable().holds({*term, index})) return;
  world_.fail("disk_log", fmt::format("{} takes {} for durable, and a crash would remove it",
                                      name(node), id_text({*term, index})));
}

// ---- Messages ----

void StorageOracle::on_send(const SimNode& node, raft::NodeId to,
                            const raft::Message& message) const {
  const raft::Term durable = node.disk().durable().hard_state.term;
  const std::optional<raft::Term> term = own_term(message);
  if (term && *term > durable) {
    world_.fail("told_before_durable",
                fmt::format("{} tells of its {}, and {} is durable", name(node), term_text(*term),
                            term_text(durable)));
  }
  if (const auto* reply = std::get_if<raft::AppendReply>(&message)) {
    if (reply->promised) check_promise(node, to, reply->request_term);
    if (reply->promised && reply->matched) check_match(node, *reply);
  }
  if (const auto* reply = std::get_if<raft::SnapshotReply>(&message)) {
    if (reply->promised) check_promise(node, to, reply->request_term);
  }
}

// A later leader's promise may be durable by now; it was given after this one.
void StorageOracle::check_promise(const SimNode& node, raft::NodeId to, raft::Term asked) const {
  const raft::StoredPromise& stored = node.disk().durable().hard_state.promise;
  if (stored.term > asked || (stored.term == asked && stored.holder == to)) return;
  // It leads by now, and then it gave no promise to another.
  if (node.disk().durable().hard_state.term > asked) return;
  world_.fail("told_before_durable",
              fmt::format("{} tells node {} of its promise in {} before it is durable", name(node),
                          to.value(), term_text(asked)));
}

void StorageOracle::check_match(const SimNode& node, const raft::AppendReply& reply) const {
  // A later leader may have replaced what this reply is about.
  const std::optional<raft::Term> term = node.running().term_at(reply.index);
  if (reply.term != node.running().term() || !term) return;
  const raft::LogId id{*term, reply.index};
  if (node.disk().durable().holds(id)) return;
  world_.fail("told_before_durable",
              fmt::format("{} acknowledges {} before it is durable", name(node), id_text(id)));
}

}  // namespace leasehold::sim
