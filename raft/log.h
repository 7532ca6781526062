// The shape of the log: which terms wrote which indices, and which entries are memberships.
// Payloads are elsewhere.
#pragma once

#include <leasehold/raft/membership.h>
#include <leasehold/raft/ready.h>
#include <leasehold/raft/types.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace leasehold::raft {

/// A run of entries of one term, from `first` on.
struct TermRun {
  Term term;
  Index first;
  friend bool operator==(const TermRun&, const TermRun&) = default;
};

/// A membership and the entry that holds it (the base of the log for the first one).
struct MembershipAt {
  Index index;
  Membership membership;
  friend bool operator==(const MembershipAt&, const MembershipAt&) = default;
};

/// What a core gets from storage when it starts.
struct InitialState {
  HardState hard_state;
  /// The last entry that the log no longer holds; {0, 0} for a log that was never cut.
  LogId base;
  /// The membership at `base`; for a log that was never cut, the one that the group was formed
  /// with, or an empty one at a node that has joined later: such a node neither votes nor campaigns
  /// until it has learned that it is a member.
  Membership base_membership;
  /// Ascending by index and by term; the first starts at base.index + 1. Empty for an empty log.
  std::vector<TermRun> runs;
  Index last_index;
  /// The membership entries that the log holds, ascending.
  std::vector<MembershipAt> memberships;
  /// The index up to which the state machine has applied durably; from base.index to last_index. So
  /// it is committed. A state machine that is behind the base first gets the snapshot that ends at
  /// the base.
  Index applied;
  /// Payload bytes of the entries that the log holds, about.
  std::uint64_t bytes = 0;
};

/// The shape. Invariant: indices base+1 .. last are covered by runs_ without a gap, terms never
/// fall.
class Log {
 public:
  Log(LogId base, Membership base_membership, std::vector<TermRun> runs, Index last,
      std::vector<MembershipAt> memberships);

  LogId base() const { return base_; }
  Index last_index() const { return last_; }
  LogId last() const { return {last_term(), last_}; }
  Term last_term() const { return runs_.empty() ? base_.term : runs_.back().term; }
  /// The term of the entry at `index`; none: below the base, or above the last entry.
  std::optional<Term> term_at(Index index) const {
    // Nearly every question is about the newest run.
    const bool newest = !runs_.empty() && index >= runs_.back().first && index <= last_;
    return newest ? std::optional<Term>(runs_.back().term) : older_term_at(index);
  }
  /// Whether the entry is in this log. Log Matching (section 5.3): then everything before it is
  /// equal too.
  bool matches(LogId id) const { return term_at(id.index) == id.term; }
  /// The largest index up to `limit` whose term is at most `term`: the place where differing logs
  /// may agree.
  Index last_index_with_term_at_most(Term term, Index limit) const;

  /// Appends one entry of `term` after the last. The membership is given when the entry holds one.
  void append(Term term, const Membership* membership);
  /// Removes `from` and everything above it.
  void truncate(Index from);
  /// Removes everything up to and including `to`, which becomes the base. base < to <= last.
  void cut(Index to);
  /// Empties the log; it begins, and ends, at `base`.
  void reset(LogId base, Membership membership);

  /// The newest membership, committed or not: the one in effect (section 6).
  const Membership& membership() const { return memberships_.back().membership; }
  Index membership_index() const { return memberships_.back().index; }
  /// Whether any membership of this log names the directory `uuid` under `id`. True also when the
  /// log begins with any members: only the log of a node that has joined begins without.
  bool ever_names(NodeId id, const Uuid& uuid) const;
  /// Whether a membership that this log still has names the directory `uuid` under `id`.
  bool names(NodeId id, const Uuid& uuid) const;
  /// How many entries above `index` hold a membership.
  std::size_t memberships_above(Index index) const;
  /// Rises with each change of the memberships or of their places: while it stays, all of them do.
  std::uint64_t membership_changes() const { return membership_changes_; }
  /// The newest membership at or below `index`.
  const Membership& membership_at(Index index) const;

 private:
  std::optional<Term> older_term_at(Index index) const;

  LogId base_;
  Index last_;
  std::vector<TermRun> runs_;
  /// Invariant: never empty; the first is at base_.index.
  std::vector<MembershipAt> memberships_;
  std::uint64_t membership_changes_ = 0;
};

}  // namespace leasehold::raft
