// From one membership to the next: the wanted members, the allowed successors, and the obstacles.
//
// A change of voters takes two entries (joint consensus, Raft paper section 6): the joint one, in
// which both the old and the new voters have to agree, and the one that leaves it, which the leader
// appends by itself when the joint one is committed. Any number of members may change at once. A
// change that leaves the voters as they are takes one entry.
#pragma once

#include <leasehold/raft/membership.h>
#include <leasehold/raft/types.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace leasehold::raft {

/// Whether a member votes. A learner receives the log and does not.
enum class Suffrage : std::uint8_t { voter, learner };

struct WantedMember {
  NodeId id;
  Uuid uuid;
  std::string address;  ///< 1 to kMemberAddressMax printable ASCII characters, no space
  Suffrage suffrage = Suffrage::voter;
  /// Keeps the log and no state machine. Fixed while it is a member.
  bool witness = false;
};

inline constexpr std::size_t kMemberAddressMax = 300;

/// All members after the change, in any order.
using WantedMembers = std::vector<WantedMember>;

/// Why a change was not begun. Nothing was appended.
enum class ChangeObstacle : std::uint8_t {
  not_leader,          ///< ask `member`, if it is known
  transfer_under_way,  ///< of the leadership, or this leader is about to stop leading
  change_under_way,    ///< the newest membership is joint, or not known to be committed
  leader_is_new,       ///< it has committed nothing of its own term yet
  already_so,          ///< the group already has exactly these members
  no_voter,            ///< there would be no voter
  no_full_voter,       ///< only witnesses would vote: none could lead, and none has the state
  too_many,            ///< more than kMembersMax, those included that leave
  invalid_member,      ///< `member` has no id, no uuid, or no valid address
  duplicate,           ///< `member` has the id, the uuid or the address of another
  other_uuid,          ///< `member` is a member under another uuid
  other_kind,      ///< `member` is a witness and would become a full member, or the other way round
  not_a_learner,   ///< `member` is to vote and has not been a learner before
  learner_behind,  ///< `member` is to vote and lacks too much, or has not answered lately
  // A node finds these before it asks its core.
  not_a_member,    ///< `member` is not a member, and cannot be changed
  already_member,  ///< `member` is a member, at another address
  no_answer,       ///< no node answers at the address of `member`, or another one
  too_late,        ///< the caller's time was over before the change was begun
  contradiction,   ///< the edits of `member` contradict each other
  older_build,     ///< `member` runs a build that cannot read the settings of the group
  /// The caller expected another membership than the newest: see `in_effect`.
  membership_changed,
};

struct ChangeRefused {
  ChangeObstacle obstacle = ChangeObstacle::not_leader;
  NodeId member{};                        ///< the member in question; kNobody: none, or unknown
  std::uint64_t entries_behind = 0;       ///< learner_behind: how many entries it lacks
  std::optional<Membership> in_effect{};  ///< membership_changed: the newest membership
  friend bool operator==(const ChangeRefused&, const ChangeRefused&) = default;
};

/// The refusal of a change whose caller expected another membership than `newest`.
ChangeRefused membership_changed(const Membership& newest);

/// A sentence for a person that says what to do.
std::string text_of(const ChangeRefused& refused);

/// Whether the same change may pass later, or at the leader, without a correction.
bool passes_by_itself(ChangeObstacle obstacle);

/// The membership to append so that the group of `newest`, which is not joint, gets the members of
/// `wanted`: a joint membership, or a plain one when the voters stay the same. Refuses faults of
/// `wanted` itself; does not check whether a learner has caught up.
std::variant<Membership, ChangeRefused> plan_change(const Membership& newest,
                                                    const WantedMembers& wanted);

/// The members that vote in `next` and not in `before`.
std::vector<NodeId> promoted(const Membership& before, const Membership& next);

/// The membership that follows a joint one.
Membership without_outgoing(const Membership& joint);

/// The membership to append so that the group of `newest`, which is not joint, follows `settings`.
Membership with_settings(const Membership& newest, const GroupSettings& settings);

/// Whether `next` may follow `before` in a log: every quorum of the one then shares a voter with
/// every quorum of the other, no member changes its uuid, or becomes a witness or stops being one,
/// and the settings change by themselves or not at all.
bool may_follow(const Membership& before, const Membership& next);

}  // namespace leasehold::raft
