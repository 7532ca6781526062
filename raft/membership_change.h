// From one membership to the next: what is wanted, what may follow what, and what stands in the
// way.
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
#include <string>
#include <variant>
#include <vector>

namespace leasehold::raft {

/// What a member is there for. A learner receives the log and does not vote.
enum class Suffrage : std::uint8_t { voter, learner };

struct WantedMember {
  NodeId id;
  Uuid uuid;
  std::string address;  ///< 1 to kMemberAddressMax printable ASCII characters, no space
  Suffrage suffrage = Suffrage::voter;
  /// Keeps the log and no state machine. Fixed for as long as it is a member.
  bool witness = false;
};

inline constexpr std::size_t kMemberAddressMax = 300;

/// Everybody who shall be a member, in any order.
using WantedMembers = std::vector<WantedMember>;

/// Why a change was not begun. Nothing was appended.
enum class ChangeObstacle : std::uint8_t {
  not_leader,          ///< ask `member`, if it is known
  transfer_under_way,  ///< of the leadership, or this leader is on its way out
  change_under_way,    ///< the newest membership is joint, or not known to be committed
  leader_is_new,       ///< it has committed nothing of its own term yet
  already_so,          ///< the group has exactly these members
  no_voter,            ///< nobody would vote
  no_full_voter,       ///< only witnesses would vote: nobody could lead, and nobody has the state
  too_many,            ///< more than kMembersMax, those included that leave
  invalid_member,      ///< `member` has no id, no uuid, or an address that is none
  duplicate,           ///< `member` has the id, the uuid or the address of another
  other_uuid,          ///< `member` is a member under another uuid
  other_kind,          ///< `member` is a witness and shall be none, or the other way round
  not_a_learner,       ///< `member` is to vote and has not been brought up as a learner
  learner_behind,      ///< `member` is to vote and lacks too much, or has not answered lately
  // Found by a node before it asks its core.
  not_a_member,    ///< `member` is not there, and cannot be changed
  already_member,  ///< `member` is there, at another address
  no_answer,       ///< nobody answers at the address of `member`, or somebody else
  too_late,        ///< the caller's time was over before the change was begun
};

struct ChangeRefused {
  ChangeObstacle obstacle = ChangeObstacle::not_leader;
  NodeId member{};                   ///< the member in question; kNobody: none, or unknown
  std::uint64_t entries_behind = 0;  ///< learner_behind: so many entries it lacks
  friend bool operator==(const ChangeRefused&, const ChangeRefused&) = default;
};

/// A sentence for a person that says what to do.
std::string text_of(const ChangeRefused& refused);

/// Whether the same change may be taken later, or by the leader, though nobody corrects anything.
bool passes_by_itself(ChangeObstacle obstacle);

/// What to append so that the group of `newest`, which is not joint, comes to have the members of
/// `wanted`: a joint membership, or a plain one when the voters stay the same. Refuses what is
/// wrong with `wanted` itself; not whether a learner has caught up.
std::variant<Membership, ChangeRefused> plan_change(const Membership& newest,
                                                    const WantedMembers& wanted);

/// Who is to vote in `next` and does not in `before`.
std::vector<NodeId> promoted(const Membership& before, const Membership& next);

/// What follows a joint membership.
Membership without_outgoing(const Membership& joint);

/// Whether `next` may stand behind `before` in a log: every quorum of the one then shares a voter
/// with every quorum of the other, and nobody changes its uuid, or becomes a witness or none.
bool may_follow(const Membership& before, const Membership& next);

}  // namespace leasehold::raft
