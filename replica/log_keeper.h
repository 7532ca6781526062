// Decides when the front of the log is cut off.
#pragma once

#include <leasehold/replica/driver_context.h>

#include <cstdint>
#include <optional>
#include <vector>

namespace leasehold::replica {

/// Cuts what is older than the tail that slow followers may need, and nothing that the state
/// machine has not made durable. It first asks the state machine, once a cut is worthwhile, and
/// then cuts.
///
/// A bounded number of marks shows how many bytes lie before an entry:
///
///     base                                  tail
///      |----------|----------|----------|----|
///      (5, 0)     (19, 64K)  (31, 128K) ...       index, and bytes of all entries up to it
class LogKeeper {
 public:
  /// `bytes`: of the entries that the log holds at the start. `durable`: what the state machine has
  /// made durable.
  LogKeeper(DriverContext& context, lease::Now now, std::uint64_t bytes, raft::Index durable);

  // What the storage got.
  void appended(lease::Now now, const std::vector<raft::Entry>& entries);
  void truncated(raft::Index from);
  void reset(lease::Now now, raft::Index base);

  /// `holds`: see SnapshotSender. True: the core got an input.
  bool turn(lease::Now now, std::optional<raft::Index> holds);
  /// An error in `failure` means that the node has to stop.
  void answered(MachineDurable& event, std::optional<Error>& failure);
  /// The state machine has installed a snapshot, durably.
  void installed(raft::Index index);
  /// A caller wants the log cut now; completes the demand when it is.
  void demanded(CutLog& event);
  /// The node stops: completes all demands.
  void complete_all();

  /// The state machine cannot make itself durable: the whole log is kept.
  bool never_cuts() const { return unsupported_; }
  /// Of the entries that the log holds, about.
  std::uint64_t bytes() const { return tail_.bytes - marks_.front().bytes; }
  raft::Index machine_durable() const { return machine_durable_; }

 private:
  struct Mark {
    raft::Index index;
    std::uint64_t bytes = 0;  ///< of the entries up to `index`, counted from a fixed one on
    raft::PromiseInstant at;  ///< those entries were appended at or before this
  };

  std::uint64_t bytes_up_to(raft::Index index) const;
  raft::Index index_at(std::uint64_t bytes) const;
  raft::Index old_up_to(lease::Now now) const;
  raft::Index allowed(raft::Index want, std::optional<raft::Index> holds) const;
  std::optional<raft::Index> wanted(lease::Now now, std::optional<raft::Index> holds) const;
  void ask(lease::Now now);
  void cut(lease::Now now, raft::Index to);
  bool meet_demands(lease::Now now, std::optional<raft::Index> holds);
  void thin_out();

  DriverContext& context_;
  /// Ascending; the first is the base. Invariant: 1 .. kMarksMax.
  std::vector<Mark> marks_;
  /// The last entry. Invariant: at or behind the last mark.
  Mark tail_;
  /// The distance of two marks.
  std::uint64_t mark_bytes_;
  raft::Index machine_durable_;
  bool asking_ = false;
  bool unsupported_ = false;
  /// The state machine is not asked again before this.
  raft::PromiseInstant ask_at_ = raft::PromiseInstant::earliest();
  /// The callers that wait for a cut, in order: first those whose question the state machine has
  /// answered, then those for which it was asked, then the others.
  std::vector<LogCutCompletion> demands_;
  std::size_t demands_asked_ = 0;     ///< this many, the first, were there when it was asked
  std::size_t demands_answered_ = 0;  ///< of these, this many may be met
};

}  // namespace leasehold::replica
