#include <leasehold/sim/judge/log_oracle.h>
#include <leasehold/sim/judge/words.h>

#include <fmt/format.h>

#include <algorithm>

namespace leasehold::sim {

void LogOracle::on_crash(const SimNode& node) {
  if (ledger_.empty()) return;
  // Only the newest: Log Matching covers the ones before it.
  const raft::LogId id = ledger_.id_at(ledger_.last());
  if (ledger_.durable_on_quorum(id)) return;
  world_.fail("lost_commit", fmt::format("after the crash of {}, {} is durable on no quorum",
                                         name(node), id_text(id)));
}

void LogOracle::after_handle(const SimNode& node) {
  raft::Index& known = commits_[node.id()];
  const raft::Index commit = node.running().commit_index();
  const DiskImage& log = node.disk().written();
  // What is below the base was judged when the log was cut or reset there.
  const raft::Index known_up_to = std::max(known, log.base_id().index);
  for (raft::Index i = known_up_to.next(); i <= commit; i = i.next()) {
    if (i > log.last_index() || i > ledger_.last().next()) {
      world_.fail("log_matching",
                  fmt::format("{} has committed index {} that its log does not hold", name(node),
                              i.value()));
      break;
    }
    const raft::Entry& entry = log.entry(i);
    if (i > ledger_.last()) {
      first_commit_(node, entry);
    } else if (!ledger_.at(i).is(entry)) {
      world_.fail("log_matching",
                  fmt::format("{} has committed {}, where {} was committed before", name(node),
                              id_text(entry.id), id_text(ledger_.id_at(i))));
    }
  }
  if (commit > known && commit == ledger_.last() &&
      !ledger_.durable_on_quorum(ledger_.id_at(commit))) {
    world_.fail("lost_commit", fmt::format("{} has committed {}, which is durable on no quorum",
                                           name(node), id_text(ledger_.id_at(commit))));
  }
  known = std::max(known, commit);
}

void LogOracle::on_removal(const SimNode& node, raft::Index from) {
  const DiskImage& log = node.disk().written();
  for (raft::Index i = std::max(from, log.base_id().index.next());
       i <= log.last_index() && i <= ledger_.last(); i = i.next()) {
    const raft::LogId id = log.entry(i).id;
    // An overtaken leader may still remove it from a node that no quorum for it has counted.
    if (id.term == ledger_.at(i).term && !ledger_.durable_on_quorum(id, &node)) {
      world_.fail("lost_commit",
                  fmt::format("{} removes the committed {}, which no quorum of the others holds",
                              name(node), id_text(id)));
      return;
    }
  }
}

}  // namespace leasehold::sim
