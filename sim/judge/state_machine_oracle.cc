#include <leasehold/sim/judge/state_machine_oracle.h>
#include <leasehold/sim/judge/words.h>

#include <fmt/format.h>

namespace leasehold::sim {

void StateMachineOracle::on_apply_asked(const SimNode& node,
                                        const std::vector<raft::Entry>& entries) {
  const raft::LogId id = entries.back().id;
  if (node.disk().durable().holds(id)) return;
  world_.fail("state_machine_safety",
              fmt::format("{} applies {}, which is not durable there", name(node), id_text(id)));
}

void StateMachineOracle::on_applied(const SimNode& node, const std::vector<raft::Entry>& entries) {
  raft::Index& applied = applied_[node.id()];
  for (const raft::Entry& entry : entries) {
    const raft::Index i = entry.id.index;
    if (i != applied.next()) {
      world_.fail("state_machine_safety", fmt::format("{} applies index {} after {}", name(node),
                                                      i.value(), applied.value()));
    }
    applied = i;
    if (i > ledger_.last()) {
      world_.fail("state_machine_safety", fmt::format("{} applies {}, which is not committed",
                                                      name(node), id_text(entry.id)));
      continue;
    }
    if (!ledger_.at(i).is(entry)) {
      world_.fail("state_machine_safety",
                  fmt::format("{} applies {}, but {} is committed", name(node), id_text(entry.id),
                              id_text(ledger_.id_at(i))));
    }
  }
  const RegisterMachine::State& state = node.machine().present();
  const raft::Index at = state.applied;
  if (at > raft::Index() && at <= ledger_.last() && state.history != ledger_.at(at).history) {
    world_.fail("state_machine_safety",
                fmt::format("{} has applied up to {} something else than was committed", name(node),
                            at.value()));
  }
}

void StateMachineOracle::on_install_asked(const SimNode& node, const raft::SnapshotId& id) {
  if (node.disk().durable().base_id() == id.last) return;
  world_.fail("state_machine_safety",
              fmt::format("{} installs the snapshot up to {} before its log begins there durably",
                          name(node), id_text(id.last)));
}

void StateMachineOracle::on_installed(const SimNode& node, const raft::SnapshotId& id,
                                      bool at_start) {
  raft::Index& applied = applied_[node.id()];
  if (!at_start && id.last.index <= applied) {
    world_.fail("monotonic", fmt::format("{} installs a snapshot up to {} after applying {}",
                                         name(node), id.last.index.value(), applied.value()));
  }
  applied = id.last.index;
}

}  // namespace leasehold::sim
