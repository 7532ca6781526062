// How the replicas of a group compare their states. See docs/decisions/0020.
#pragma once

#include <leasehold/kv/state_sum.h>
#include <leasehold/raft/types.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace leasehold::kv {

/// What a replica says of its state as of an index: the sum that it has kept, and the sum of what
/// it has read back from its disk, which is the same unless it found damage.
struct StateReport {
  raft::NodeId node;
  raft::Index index;
  std::uint64_t version = kSumVersion;
  StateSum kept;
  StateSum stored;
};

/// Collects reports in the order of the log. The thread of apply() adds, any other one judges.
/// Judging needs no clock and no messages: each replica finds by itself that it is the odd one.
class Comparison {
 public:
  struct Point {
    raft::Index index;
    StateSum kept;
  };
  enum class Verdict : std::uint8_t {
    open,       ///< too few have reported
    alike,      ///< a majority has this replica's sum
    differs,    ///< a majority has another one
    undecided,  ///< there are different sums, and none can get a majority any more
  };
  struct Judgement {
    Verdict verdict = Verdict::open;
    raft::Index index;                 ///< that was judged
    std::vector<raft::NodeId> others;  ///< voters whose sum is another than this replica's
  };
  enum class Damage : std::uint8_t {
    unheard,  ///< the own report has not come through the log yet
    own,      ///< it has
    /// Another replica has reported the same difference before: no two disks fail alike, so it is
    /// the program that computes one of the sums wrongly.
    shared,
  };

  // The thread of apply().

  /// CompareState was applied at `index`, and the sum is that of the state there.
  void take(raft::Index index, const StateSum& kept);
  void hear(const StateReport& report);
  /// Another state has replaced the store's.
  void forget_own();

  // Any thread.

  /// The newest index at which this replica has a sum.
  std::optional<Point> newest() const;
  /// The newest index that can be judged. `voters`: those that keep a state.
  Judgement judge(raft::NodeId self, const std::vector<raft::NodeId>& voters) const;
  /// What became of the own report of a damage.
  Damage damage(const StateReport& own) const;

 private:
  /// At one index.
  struct Round {
    raft::Index index;
    StateSum own;
    std::map<raft::NodeId, StateSum> heard;
  };
  static constexpr std::size_t kRoundsMax = 8;
  static constexpr std::size_t kDamagesMax = 64;

  static Judgement judge(const Round& round, raft::NodeId self,
                         const std::vector<raft::NodeId>& voters);

  mutable std::mutex mutex_;
  std::deque<Round> rounds_;  ///< ascending by index
  std::deque<StateReport> damages_;
};

}  // namespace leasehold::kv
