// Every entry that was ever committed, and the state that these entries make.
#pragma once

#include <leasehold/base/bytes.h>
#include <leasehold/raft/membership.h>
#include <leasehold/raft/types.h>
#include <leasehold/sim/world/register_machine.h>
#include <leasehold/sim/world/sim_node.h>
#include <leasehold/sim/world/world.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace leasehold::sim {

class Ledger {
 public:
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

  explicit Ledger(const World& world);
  /// All nodes, in the order of their ids.
  void watch(std::vector<SimNode*> nodes) { nodes_ = std::move(nodes); }
  const std::vector<SimNode*>& nodes() const { return nodes_; }
  const SimNode& node(raft::NodeId id) const { return *nodes_[id.value() - 1]; }

  raft::Index last() const { return raft::Index(entries_.size()); }
  bool empty() const { return entries_.empty(); }
  /// Asserts that the entry is committed.
  const Committed& at(raft::Index index) const;
  raft::LogId id_at(raft::Index index) const { return {at(index).term, index}; }
  bool is_committed(raft::LogId id) const;
  raft::Term newest_term() const { return newest_term_; }
  /// The newest committed entry.
  const raft::Membership& membership() const { return membership_; }
  std::uint64_t membership_entries() const { return membership_entries_; }
  /// Of the committed changes.
  const SettingsCounts& settings_counts() const { return settings_counts_; }

  /// The next entry, which the node was the first to commit: decoded, and not in the ledger yet.
  Committed read(const SimNode& node, const raft::Entry& entry) const;
  /// Executes its command on tip().
  RegisterMachine::Done execute(raft::LogId id, const RegisterMachine::Command& command);
  /// Now it is in the ledger.
  void add(Committed added);

  /// The state without registers, up to the newest entry.
  const RegisterMachine::State& tip() const { return tip_; }
  /// What the committed entries up to `index` make.
  const RegisterMachine::State& state_at(raft::Index index);

  /// Of the newest committed membership; while that is joint, of the voters that are to stay: every
  /// elected node has asked a majority of them, before the joint state is left and after.
  /// A newer membership in some log that is not committed changes nothing: if it is
  /// joint, the voters of this one are half of it, and if not, it leaves the joint state or has the
  /// same voters.
  template <class Holds>
  bool on_quorum(const Holds& holds) const {
    return on_majority(membership_.voters, holds);
  }
  /// While the newest committed membership is joint: of the voters that it lets go.
  template <class Holds>
  bool on_outgoing_quorum(const Holds& holds) const {
    return membership_.joint() && on_majority(membership_.outgoing_voters, holds);
  }
  bool durable_on_quorum(raft::LogId id, const SimNode* without = nullptr) const;

 private:
  template <class Holds>
  bool on_majority(const std::vector<raft::NodeId>& voters, const Holds& holds) const {
    std::size_t missing = voters.size() / 2 + 1;
    for (const raft::NodeId voter : voters) {
      if (holds(node(voter)) && --missing == 0) return true;
    }
    return false;
  }
  void count(const std::optional<raft::GroupSettings>& before,
             const std::optional<raft::GroupSettings>& now);

  std::vector<SimNode*> nodes_;
  /// Index i is at i - 1.
  std::vector<Committed> entries_;
  raft::Membership membership_;
  std::uint64_t membership_entries_ = 0;
  SettingsCounts settings_counts_;
  raft::Term newest_term_;
  /// The state at some index. A question about this index or a later one begins here; one about an
  /// earlier index begins at the milestone before it: number n is the state at n * kMilestone.
  static constexpr std::uint64_t kMilestone = 64;
  RegisterMachine::State state_;
  std::vector<RegisterMachine::State> milestones_ = {{}};
  RegisterMachine::State tip_;
};

}  // namespace leasehold::sim
