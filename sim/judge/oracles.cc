#include <leasehold/sim/judge/oracles.h>

#include <optional>
#include <variant>

namespace leasehold::sim {

Oracles::Oracles(World& world)
    : ledger_(world),
      numbers_(ledger_, world.plan.settings.drift_ppm_without_leases),
      leader_leases_(world, ledger_, numbers_),
      view_order_(world),
      elections_(world, ledger_),
      log_(world, ledger_,
           [this](const SimNode& node, const raft::Entry& entry) { first_commit(node, entry); }),
      storage_(world),
      reads_(world),
      state_machines_(world, ledger_),
      monotonic_(world),
      snapshots_(world, ledger_),
      sessions_(world, ledger_),
      witnesses_(world, ledger_),
      leases_(world),
      watches_(world),
      key_locks_(world, ledger_.tip().leases),
      side_groups_(world, ledger_) {}

// ---- The committed log ----

void Oracles::first_commit(const SimNode& node, const raft::Entry& entry) {
  Ledger::Committed added = ledger_.read(node, entry);
  witnesses_.on_committed(entry, elections_.leader_of(entry.id.term));
  if (added.command) execute(entry.id, *added.command);
  ledger_.add(std::move(added));
}

void Oracles::execute(raft::LogId id, const RegisterMachine::Command& command) {
  const bool of_store = command.kind == RegisterMachine::Kind::leases;
  const LeaseCells& cells = ledger_.tip().leases;
  if (of_store) {
    leases_.before(command.of_store, cells);
    watches_.before(command.of_store, cells);
  }
  RegisterMachine::Done done = ledger_.execute(id, command);
  if (of_store) {
    leases_.after(id, command.of_store, done.result, cells);
    watches_.after(id, cells, std::move(done.told));
    key_locks_.after(id);
  }
  sessions_.on_executed(id, command, done);
}

// ---- Moments of a node ----

void Oracles::on_start(const SimNode& node) {
  monotonic_.on_start(node);
  log_.on_start(node);
  state_machines_.on_start(node);
}

void Oracles::on_crash(const SimNode& node) {
  const std::optional<raft::LogBase>& base = node.disk().durable().base;
  if (base) snapshots_.check_base(node, *base);
  log_.on_crash(node);
  storage_.on_crash(node);
  reads_.on_crash(node);
}

void Oracles::on_event(const SimNode& node, const raft::Event& event) {
  elections_.on_event(node, event);
}

void Oracles::on_send(const SimNode& node, raft::NodeId to, const wire::PeerMessage& message) {
  const auto* raft_message = std::get_if<raft::Message>(&message.payload);
  if (raft_message == nullptr) return;
  view_order_.on_send(node, to, *raft_message);
  witnesses_.on_send(node, to, *raft_message);
  elections_.on_send(node, to, *raft_message);
  storage_.on_send(node, to, *raft_message);
  reads_.on_send(node, to, *raft_message);
}

void Oracles::on_arrival(const SimNode& node, raft::NodeId from, const wire::PeerMessage& message) {
  const auto* raft_message = std::get_if<raft::Message>(&message.payload);
  if (raft_message != nullptr) reads_.on_arrival(node, from, *raft_message);
}

void Oracles::on_persist(const SimNode& node, const raft::PersistBatch& batch) {
  // From now on it may survive a crash.
  if (batch.cut) snapshots_.check_base(node, *batch.cut);
  if (batch.reset) {
    snapshots_.check_base(node, *batch.reset);
    log_.on_removal(node, batch.reset->id.index.next());
  }
  if (batch.truncate_from) log_.on_removal(node, *batch.truncate_from);
  storage_.on_persist(node, batch);
}

void Oracles::after_handle(const SimNode& node) {
  monotonic_.after_handle(node);
  log_.after_handle(node);
  storage_.after_handle(node);
}

// ---- State machines and snapshots ----

void Oracles::on_apply_asked(const SimNode& node, const std::vector<raft::Entry>& entries) {
  view_order_.on_apply_asked(node, entries);
  state_machines_.on_apply_asked(node, entries);
}

void Oracles::on_applied(const SimNode& node, const std::vector<raft::Entry>& entries) {
  state_machines_.on_applied(node, entries);
}

void Oracles::on_install_asked(const SimNode& node, const raft::SnapshotId& id) {
  state_machines_.on_install_asked(node, id);
}

void Oracles::on_installed(const SimNode& node, const raft::SnapshotId& id, bool at_start) {
  state_machines_.on_installed(node, id, at_start);
  snapshots_.on_installed(node, id);
}

void Oracles::on_snapshot_taken(const SimNode& node, std::uint64_t tag,
                                const SnapshotBytes& snapshot) {
  snapshots_.on_snapshot_taken(node, tag, snapshot);
}

void Oracles::on_snapshot_arrived(const SimNode& node, const StagedSnapshot& snapshot) {
  snapshots_.on_snapshot_arrived(node, snapshot);
}

void Oracles::on_snapshot_deleted(const SimNode& node) {
  snapshots_.on_snapshot_deleted(node);
}

}  // namespace leasehold::sim
