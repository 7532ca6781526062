// One seed, one run: a cluster of production Drivers and state machines over simulated clocks,
// disks and links.
#pragma once

#include <leasehold/sim/judge/oracles.h>
#include <leasehold/sim/plan/cut_demands.h>
#include <leasehold/sim/plan/deputies.h>
#include <leasehold/sim/plan/faults.h>
#include <leasehold/sim/plan/member_changes.h>
#include <leasehold/sim/plan/partition_trial.h>
#include <leasehold/sim/plan/settings_changes.h>
#include <leasehold/sim/plan/transfers.h>
#include <leasehold/sim/plan/upgrade.h>
#include <leasehold/sim/report/seed_report.h>
#include <leasehold/sim/workload/clients.h>
#include <leasehold/sim/workload/key_lock_clients.h>
#include <leasehold/sim/workload/lease_clients.h>
#include <leasehold/sim/workload/lease_watchers.h>
#include <leasehold/sim/workload/session_clients.h>
#include <leasehold/sim/workload/session_watch.h>
#include <leasehold/sim/workload/side_group_writers.h>
#include <leasehold/sim/world/options.h>
#include <leasehold/sim/world/sim_network.h>
#include <leasehold/sim/world/sim_node.h>
#include <leasehold/sim/world/store_nodes.h>
#include <leasehold/sim/world/world.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace leasehold::sim {

/// A cluster in a world of its own. Nothing global, no thread: several may run side by side.
///
/// First a time with faults, in which nothing wrong may happen; then the faults end, and within a
/// bound every member has to complete a write and a read, and every write in a session has to be
/// answered (oracle `liveness`); then the history of the clients goes to the checker (oracle
/// `linearizability`).
class Simulator {
 public:
  Simulator(std::uint64_t seed, const SimOptions& options);
  ~Simulator();
  Simulator(const Simulator&) = delete;
  Simulator& operator=(const Simulator&) = delete;

  SeedReport run();
  /// The newest lines of the trace: for a handler that runs when an assertion has failed.
  std::vector<std::string> trace_tail() const { return world_.trace.tail(); }
  /// What is wrong with the history of the clients so far; empty if nothing is. For that handler,
  /// too: a process that dies of an assertion may have answered clients before.
  std::string judge_history() const;

 private:
  void start_faults();
  void run_until(TrueInstant end);
  void live_until(TrueInstant end);
  void recover();
  void check_recovered();
  /// A full member that has not completed a write and a read since the faults ended.
  bool waiting(const SimNode& node) const;
  /// Of entries that it knows to be committed and of entries that it has applied; zero if it is
  /// down.
  static std::uint64_t progress(const SimNode& node);
  void note_progress();
  /// Some member waits, and all that wait have gained on the log since note_progress().
  bool catching_up() const;
  void check_history();
  SeedReport report() const;

  World world_;
  Oracles oracles_;
  SimNetwork network_;
  std::vector<std::unique_ptr<SimNode>> nodes_;
  std::unique_ptr<Clients> clients_;
  std::unique_ptr<SessionClients> session_clients_;
  std::unique_ptr<SessionWatch> session_watch_;
  std::unique_ptr<SideGroupWriters> side_group_writers_;
  std::unique_ptr<StoreNodes> store_nodes_;
  std::unique_ptr<LeaseClients> lease_clients_;
  std::unique_ptr<KeyLockClients> key_lock_clients_;
  std::unique_ptr<LeaseWatchers> lease_watchers_;
  std::unique_ptr<Faults> faults_;
  std::unique_ptr<Transfers> transfers_;
  std::unique_ptr<MemberChanges> member_changes_;
  std::unique_ptr<CutDemands> cut_demands_;
  std::unique_ptr<SettingsChanges> settings_changes_;
  std::unique_ptr<Upgrade> upgrade_;
  std::unique_ptr<Deputies> deputies_;
  /// Instead of all other faults, if SimOptions::shape is set.
  std::unique_ptr<PartitionTrial> trial_;
  /// Nodes that have completed a write and a read since the faults ended.
  std::set<raft::NodeId> recovered_;
  std::map<raft::NodeId, std::uint64_t> noted_;
};

/// Runs one seed.
SeedReport run_seed(std::uint64_t seed, const SimOptions& options = {});
/// Runs the seeds first..last in turn, and calls `on_report` after each. Callers that want threads
/// run several of these on parts of the range.
void run_seeds(std::uint64_t first, std::uint64_t last, const SimOptions& options,
               const std::function<void(const SeedReport&)>& on_report);

}  // namespace leasehold::sim
