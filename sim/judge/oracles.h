// All oracles of a run: what must hold at every instant of true time, seen from outside all nodes.
#pragma once

#include <leasehold/raft/event.h>
#include <leasehold/raft/ready.h>
#include <leasehold/sim/judge/agreed_numbers.h>
#include <leasehold/sim/judge/election_oracle.h>
#include <leasehold/sim/judge/key_lock_oracle.h>
#include <leasehold/sim/judge/leader_lease_oracle.h>
#include <leasehold/sim/judge/lease_oracles.h>
#include <leasehold/sim/judge/ledger.h>
#include <leasehold/sim/judge/log_oracle.h>
#include <leasehold/sim/judge/monotonic_oracle.h>
#include <leasehold/sim/judge/read_oracle.h>
#include <leasehold/sim/judge/session_oracle.h>
#include <leasehold/sim/judge/side_group_oracle.h>
#include <leasehold/sim/judge/snapshot_oracle.h>
#include <leasehold/sim/judge/state_machine_oracle.h>
#include <leasehold/sim/judge/storage_oracle.h>
#include <leasehold/sim/judge/view_order_oracle.h>
#include <leasehold/sim/judge/watch_oracle.h>
#include <leasehold/sim/judge/witness_oracle.h>
#include <leasehold/sim/world/judge.h>
#include <leasehold/sim/world/world.h>
#include <leasehold/wire/peer_message.h>

#include <cstdint>
#include <utility>
#include <vector>

namespace leasehold::sim {

/// Passes each moment of a run to the oracles that judge it, always in the same order: only the
/// first finding counts. Each oracle's header says what it judges, by the names that a violation
/// carries: of the leader's lease leader_lease_oracle.h and view_order_oracle.h, of Raft
/// election_oracle.h, log_oracle.h, storage_oracle.h, read_oracle.h, state_machine_oracle.h and
/// monotonic_oracle.h, and then snapshot_oracle.h, session_oracle.h, witness_oracle.h, of clients'
/// leases lease_oracles.h, watch_oracle.h and key_lock_oracle.h, of side groups
/// side_group_oracle.h.
class Oracles : public Judge {
 public:
  explicit Oracles(World& world);
  Oracles(const Oracles&) = delete;
  Oracles& operator=(const Oracles&) = delete;
  /// All nodes, in the order of their ids.
  void watch(std::vector<SimNode*> nodes) { ledger_.watch(std::move(nodes)); }

  void on_start(const SimNode& node) override;
  void on_crash(const SimNode& node) override;
  void on_event(const SimNode& node, const raft::Event& event) override;
  void on_send(const SimNode& node, raft::NodeId to, const wire::PeerMessage& message) override;
  void on_arrival(const SimNode& node, raft::NodeId from,
                  const wire::PeerMessage& message) override;
  void on_persist(const SimNode& node, const raft::PersistBatch& batch) override;
  void on_apply_asked(const SimNode& node, const std::vector<raft::Entry>& entries) override;
  void on_applied(const SimNode& node, const std::vector<raft::Entry>& entries) override;
  void on_install_asked(const SimNode& node, const raft::SnapshotId& id) override;
  void on_installed(const SimNode& node, const raft::SnapshotId& id, bool at_start) override;
  void on_snapshot_taken(const SimNode& node, std::uint64_t tag,
                         const SnapshotBytes& snapshot) override;
  void on_snapshot_arrived(const SimNode& node, const StagedSnapshot& snapshot) override;
  void on_snapshot_deleted(const SimNode& node) override;
  void after_handle(const SimNode& node) override;
  void after_side_turn(const SideGroup& group) override { side_groups_.after_turn(group); }
  /// After every action of the queue, whatever it was.
  void after_step() { leader_leases_.after_step(); }

  const Ledger& ledger() const { return ledger_; }
  AgreedNumbers& numbers() { return numbers_; }
  const AgreedNumbers& numbers() const { return numbers_; }
  /// Terms that had a leader, without the first.
  std::uint64_t leader_changes() const { return elections_.leader_changes(); }
  SessionOracle& sessions() { return sessions_; }
  const SessionOracle& sessions() const { return sessions_; }
  LeaseOracles& leases() { return leases_; }
  const LeaseOracles& leases() const { return leases_; }
  WatchOracle& watches() { return watches_; }
  const WatchOracle& watches() const { return watches_; }
  KeyLockOracle& key_locks() { return key_locks_; }
  SideGroupOracle& side_groups() { return side_groups_; }

 private:
  void first_commit(const SimNode& node, const raft::Entry& entry);
  void execute(raft::LogId id, const RegisterMachine::Command& command);

  Ledger ledger_;
  AgreedNumbers numbers_;
  LeaderLeaseOracle leader_leases_;
  ViewOrderOracle view_order_;
  ElectionOracle elections_;
  LogOracle log_;
  StorageOracle storage_;
  ReadOracle reads_;
  StateMachineOracle state_machines_;
  MonotonicOracle monotonic_;
  SnapshotOracle snapshots_;
  SessionOracle sessions_;
  WitnessOracle witnesses_;
  LeaseOracles leases_;
  WatchOracle watches_;
  KeyLockOracle key_locks_;
  SideGroupOracle side_groups_;
};

}  // namespace leasehold::sim
