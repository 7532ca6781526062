#include <leasehold/sim/judge/state_machine_oracle.h>
#include <leasehold/sim/judge/words.h>

namespace leasehold::sim {

void StateMachineOracle::on_apply_asked(const SimNode& node,
                                        const std::vector<raft::Entry>& entries) {
  const raft::LogId id = entries.back().id;
  if (node.disk().durable().holds(id)) return;
  world_.fail("state_machine_safety",
              name(node) + " applies " + id_text(id) + ", which is not durable there");
}

void StateMachineOracle::on_applied(const SimNode& node, const std::vector<raft::Entry>& entries) {
  raft::Index& applied = applied_[node.id()];
  for (const raft::Entry& entry : entries) {
    const raft::Index i = entry.id.index;
    if (i != applied.next()) {
      world_.fail("state_machine_safety", name(node) + " applies index " +
                                              std::to_string(i.value()) + " after " +
                                              std::to_string(applied.value()));
    }
    applied = i;
    if (i > ledger_.last()) {
      world_.fail("state_machine_safety",
                  name(node) + " applies " + id_text(entry.id) + ", which is not committed");
      continue;
    }
    if (!ledger_.at(i).is(entry)) {
      world_.fail("state_machine_safety", name(node) + " applies " + id_text(entry.id) + ", but " +
                                              id_text(ledger_.id_at(i)) + " is committed");
    }
  }
  const RegisterMachine::State& state = node.machine().present();
  const raft::Index at = state.applied;
  if (at > raft::Index() && at <= ledger_.last() && state.history != ledger_.at(at).history) {
    world_.fail("state_machine_safety", name(node) + " has applied up to " +
                                            std::to_string(at.value()) +
                                            " something else than was committed");
  }
}

void StateMachineOracle::on_install_asked(const SimNode& node, const raft::SnapshotId& id) {
  if (node.disk().durable().base_id() == id.last) return;
  world_.fail("state_machine_safety", name(node) + " installs the snapshot up to " +
                                          id_text(id.last) +
                                          " before its log begins there durably");
}

void StateMachineOracle::on_installed(const SimNode& node, const raft::SnapshotId& id,
                                      bool at_start) {
  raft::Index& applied = applied_[node.id()];
  if (!at_start && id.last.index <= applied) {
    world_.fail("monotonic", name(node) + " installs a snapshot up to " +
                                 std::to_string(id.last.index.value()) + " after applying " +
                                 std::to_string(applied.value()));
  }
  applied = id.last.index;
}

}  // namespace leasehold::sim
