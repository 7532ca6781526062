// What must hold at every instant of true time, seen from outside all nodes.
#pragma once

#include <leasehold/raft/event.h>
#include <leasehold/raft/ready.h>
#include <leasehold/sim/judge/key_lock_oracle.h>
#include <leasehold/sim/judge/lease_oracles.h>
#include <leasehold/sim/world/judge.h>
#include <leasehold/sim/world/register_machine.h>
#include <leasehold/sim/world/world.h>
#include <leasehold/wire/peer_message.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace leasehold::sim {

/// Judges a run. The oracles, by the name that a violation carries:
///
/// of the lease, in true time, each lease judged on its own node's clock:
///   two_leases              two published leases are valid at one instant
///   lease_and_newer_commit  a lease is valid though a higher term has committed an entry
///   lease_outlives_promise  a valid lease is not covered by a quorum of live, durable promises
///   lease_view_order        a message, or entries to apply, overtook the lease view that readers
///   see
/// of Raft:
///   election_safety         two leaders in one term
///   leader_completeness     a leader lacks a committed entry
///   log_matching            two nodes have committed different entries at one index
///   state_machine_safety    an entry was applied that is not the committed one, or out of order
///   lost_commit             a committed entry is not durable on a quorum, or will not be
///   vote_durability         a vote left before it was durable, or two went to different candidates
///   monotonic               a term, a commit index, an applied index or a lease end moved back
/// of snapshots and of logs that are cut:
///   cut_beyond_durable      a log begins behind what neither the state machine nor a snapshot that
///                           has arrived whole would still hold after a crash
///   snapshot_state          a snapshot, or a state that came of one, is not byte for byte what the
///                           committed entries up to its index make
///   exactly_once            a command was committed twice, or its caller was told that it never
///                           will be
/// of witnesses:
///   witness_serves          a witness holds a lease, has appended a command while it led, or has
///                           answered a client
///   witness_told            a witness was told that it may cut what a full member lacks and the
///                           leader still has
/// of sessions, whose commands may be committed more than once:
///   executed_twice          a command of a session was executed twice
///   session_answer          what a client was told of its command is not what came of it: it was
///                           not executed, elsewhere, or the session was there all the time
///   session_expiry          a session was closed though a command came first, or before it had
///                           been idle for as long as it may
///   session_state           a state machine that has applied the same holds something else
/// of the leases that clients hold (lease_oracles.h)
class Oracles : public Judge {
 public:
  explicit Oracles(World& world);
  /// All nodes, in the order of their ids.
  void watch(std::vector<SimNode*> nodes) { nodes_ = std::move(nodes); }

  void on_start(const SimNode& node) override;
  void on_crash(const SimNode& node) override;
  void on_event(const SimNode& node, const raft::Event& event) override;
  void on_send(const SimNode& node, raft::NodeId to, const wire::PeerMessage& message) override;
  void on_persist(const SimNode& node, const raft::PersistBatch& batch) override;
  void on_apply_asked(const SimNode& node, const std::vector<raft::Entry>& entries) override;
  void on_applied(const SimNode& node, const std::vector<raft::Entry>& entries) override;
  void on_install_asked(const SimNode& node, const raft::SnapshotId& id) override;
  void on_installed(const SimNode& node, const raft::SnapshotId& id, bool at_start) override;
  void on_snapshot_taken(const SimNode& node, std::uint64_t tag,
                         const SnapshotBytes& snapshot) override;
  void on_snapshot_arrived(const SimNode& node, const StagedSnapshot& snapshot) override;
  void on_snapshot_deleted(const SimNode& node) override;
  /// The callers of these were told that it was not and will not be executed.
  void check_dropped(const std::vector<std::uint64_t>& values);
  /// The client was told that the write of `value` was executed at `index`.
  void check_executed(std::uint64_t value, raft::Index index);
  /// The client was told that there is no such session.
  void check_no_session(replica::SessionId id);
  /// Every state machine holds what the committed entries up to its applied index make.
  void check_states();
  void after_handle(const SimNode& node) override;
  /// After every action of the queue, whatever it was.
  void after_step();

  /// Terms that had a leader, but for the first.
  std::uint64_t leader_changes() const {
    return leaders_.empty() ? 0 : static_cast<std::uint64_t>(leaders_.size()) - 1;
  }
  raft::Index committed() const { return raft::Index(ledger_.size()); }
  /// The newest that is committed.
  const raft::Membership& membership() const { return membership_; }
  std::uint64_t membership_entries() const { return membership_entries_; }
  std::uint64_t sessions_expired() const { return sessions_expired_; }
  LeaseOracles& leases() { return leases_; }
  const LeaseOracles& leases() const { return leases_; }
  KeyLockOracle& key_locks() { return key_locks_; }

 private:
  /// What an oracle remembers of a node.
  struct Memory {
    raft::Term term;
    raft::Index commit;  ///< of the present process; compared with the ledger up to here
    raft::Index applied;
    raft::LeaseState lease;
  };
  /// A committed entry: who wrote it, what, and in which term it was committed: only leaders of
  /// later terms than that have to hold it.
  struct Committed {
    raft::Term term;
    raft::Term committed_in;
    raft::EntryKind kind = raft::EntryKind::empty;
    Bytes payload;
    std::optional<RegisterMachine::Command> command;
    /// RegisterMachine::State::history of a state machine that has applied it.
    std::uint64_t history = 0;

    bool is(const raft::Entry& entry) const {
      return term == entry.id.term && kind == entry.kind && payload == entry.payload;
    }
  };

  Memory& memory(const SimNode& node);
  template <class Holds>
  bool on_quorum(const Holds& holds) const;
  bool covered(const SimNode& leader, raft::Term term) const;
  bool bound_to(const SimNode& voter, const SimNode& leader, raft::Term term) const;
  void check_coverage(const SimNode& leader, raft::Term term);
  void check_vote(const SimNode& node, raft::Term term, raft::NodeId candidate);
  void check_view_order(const SimNode& node, const raft::Message& message);
  void check_told(const SimNode& leader, raft::NodeId to, raft::Index commit);
  void check_monotonic(const SimNode& node);
  void advance_ledger(const SimNode& node);
  void add_to_ledger(const SimNode& node, const raft::Entry& entry);
  void execute(raft::LogId id, const RegisterMachine::Command& command);
  void check_expiry(raft::LogId id, const RegisterMachine::Command& command, bool gone);
  /// What the committed entries up to `index` make.
  const RegisterMachine::State& state_at(raft::Index index);
  bool is_committed(raft::LogId id) const;
  void check_base(const SimNode& node, const raft::LogBase& base);
  void check_removal(const SimNode& node, raft::Index from);
  void check_new_leader(const SimNode& node, raft::Term term);
  bool durable_on_quorum(raft::LogId id, const SimNode* without = nullptr) const;

  World& world_;
  std::vector<SimNode*> nodes_;
  std::vector<Memory> memories_;
  /// Every entry that was ever committed; index i stands at i - 1.
  std::vector<Committed> ledger_;
  raft::Membership membership_;
  std::uint64_t membership_entries_ = 0;
  /// The state at some index, where the next question begins that is not about an earlier one; one
  /// that is begins at the last of these before it: number n is the state at n * kMilestone.
  static constexpr std::uint64_t kMilestone = 64;
  RegisterMachine::State state_;
  std::vector<RegisterMachine::State> milestones_ = {{}};
  /// The state without registers, up to the newest entry.
  RegisterMachine::State tip_;
  /// By the value that it writes, which no other command does: where a command was committed, or,
  /// of a session, executed.
  std::map<std::uint64_t, raft::Index> executed_;
  /// What is known of the open sessions without their table.
  struct SessionSeen {
    std::uint64_t activity = 0;
    TrueInstant since;  ///< when the newest command that names it was committed
  };
  std::map<replica::SessionId, SessionSeen> sessions_;
  std::uint64_t sessions_expired_ = 0;
  LeaseOracles leases_;
  KeyLockOracle key_locks_;
  /// The bytes of every snapshot that was taken, by its tag.
  std::map<std::uint64_t, SnapshotBytes> taken_;
  raft::Term newest_committed_term_;
  std::map<raft::Term, raft::NodeId> leaders_;
  std::map<std::pair<raft::NodeId, raft::Term>, raft::NodeId> votes_;
};

}  // namespace leasehold::sim
