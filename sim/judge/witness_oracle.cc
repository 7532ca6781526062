#include <leasehold/sim/judge/witness_oracle.h>
#include <leasehold/sim/judge/words.h>

#include <fmt/format.h>

namespace leasehold::sim {

void WitnessOracle::on_committed(const raft::Entry& entry, std::optional<raft::NodeId> leader) {
  if (entry.kind != raft::EntryKind::command || !leader || !ledger_.node(*leader).witness()) return;
  world_.fail("witness_serves", "a witness has appended " + id_text(entry.id));
}

// What a witness takes for committed it may cut, and a full member that lacks it could then
// get it from no node once this leader is gone. Members that were added behind that entry, or
// removed and added again, came too late.
void WitnessOracle::on_send(const SimNode& leader, raft::NodeId to, const raft::Message& message) {
  const auto* append = std::get_if<raft::AppendRequest>(&message);
  if (append == nullptr) return;
  const raft::Index commit = append->commit;
  const RunningReplica& log = leader.running();
  const auto term = log.term_at(commit);
  if (!ledger_.node(to).witness() || commit <= log.log_base().index || !term) return;
  const raft::Membership committed = log.membership_at(commit);
  for (const raft::Member& member : committed.members) {
    const SimNode& other = ledger_.node(member.id);
    if (other.witness() || log.membership().find(member.id) == nullptr) continue;
    if (other.disk().durable().holds({*term, commit})) continue;
    bool stayed = true;
    for (raft::Index at = commit; at < log.log_last().index; at = at + 1) {
      stayed = stayed && log.membership_at(at).find(member.id) != nullptr;
    }
    if (!stayed) continue;
    world_.fail("witness_told",
                fmt::format("{} tells a witness of commit {}, which {} does not hold durably",
                            name(leader), commit.value(), name(other)));
  }
}

}  // namespace leasehold::sim
