// Which survivor of a lost majority a new group goes on from, and what may be lost. Pure.
#pragma once

#include <leasehold/base/result.h>
#include <leasehold/raft/membership.h>
#include <leasehold/raft/types.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace leasehold::node {

/// What the directory of one member says.
struct Survivor {
  std::uint64_t cluster_id = 0;
  raft::NodeId id;
  raft::Uuid uuid;
  raft::LogId base;              ///< the log has the entries behind it
  raft::LogId last;              ///< and up to this one
  raft::Membership membership;   ///< the newest one in the log
  raft::Index membership_index;  ///< where that stands
  raft::Duration promise{0};     ///< the longest that it remembers to have given
  /// What its state machine has applied; none: it has no state that can be used, and `no_state`
  /// says why.
  std::optional<raft::Index> applied;
  std::string no_state{};
  friend bool operator==(const Survivor&, const Survivor&) = default;
};

/// Numbers that are left out where the log of the recovered group begins, so that none of what was
/// lost is given again: of entries, and of what counts with them.
inline constexpr std::uint64_t kRecoveryGap = std::uint64_t{1} << 40U;

struct RecoveryPlan {
  /// Names what is recovered: a hash of all reports. The generation of the group (Restored). Not 0.
  std::uint64_t number = 0;
  std::size_t source = 0;  ///< among the survivors: the group goes on from its log
  /// Of the newest membership: those that are counted as lost.
  std::vector<raft::Member> lost;
  /// Whether entries behind the source's last one may have been committed without a survivor that
  /// knows them. If not, nothing that was ever acknowledged is lost.
  bool may_lose = true;
  /// A survivor that has more of the log than the source, and no state: what it has more is lost.
  std::optional<std::size_t> longer;
  /// Entries of the source up to here were committed, as a survivor has applied them. What is
  /// behind may never have been, and is in the recovered group all the same.
  raft::Index committed;
  /// How long promises to a lost leader may still be worth something after a survivor has stopped.
  raft::Duration wait{0};
  /// Where the recovered group's log begins.
  raft::Index base;
  /// Whether the survivors are a majority; only of a group that goes on beside lost ones.
  bool majority = false;
};

/// What becomes of survivors that are a majority.
enum class MajorityLeft : std::uint8_t {
  refused,  ///< they are to be started
  taken,    ///< they go on in the new group, as others of their hosts have to
};

/// Errors, each a sentence that says what to do: invalid_argument (reports of several groups, of
/// one member twice, or of a directory that is no member's), in_use (the survivors are a majority:
/// nothing is lost, start them), unavailable (no survivor has a state).
Result<RecoveryPlan> plan_recovery(const std::vector<Survivor>& survivors,
                                   MajorityLeft majority = MajorityLeft::refused);

/// Of survivors of one group, those that are members as the longest log among them says.
std::vector<std::size_t> members_among(const std::vector<Survivor>& survivors);

}  // namespace leasehold::node
