// Changes of the members as people request them: steps from the present membership, not a whole new
// one.
#pragma once

#include <leasehold/raft/membership.h>
#include <leasehold/raft/membership_change.h>
#include <leasehold/replica/calls.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace leasehold::node {

/// One step of a change of the members.
struct MemberEdit {
  enum class What : std::uint8_t {
    add,      ///< as a learner: it receives the log and does not vote
    promote,  ///< a learner that has caught up becomes a voter
    demote,   ///< a voter becomes a learner
    remove,
    move,  ///< another address; the directory is the same
  };
  What what = What::add;
  raft::NodeId id;
  std::string address{};  ///< add and move: host:port of its peer listener
  /// add: of its directory. Zero: the leader asks the node at `address`.
  raft::Uuid uuid{};
  bool witness = false;  ///< add: it keeps the log and no state machine; it votes once promoted
  friend bool operator==(const MemberEdit&, const MemberEdit&) = default;
};
/// Made together, in order: as one change, or not at all.
using MemberEdits = std::vector<MemberEdit>;

/// How a change of the members ended.
struct MembersResult {
  replica::GroupCallStatus status = replica::GroupCallStatus::unknown;
  /// refused: why; with the node in question, and how far it is behind.
  raft::ChangeRefused refused{};
  /// refused: the same change may pass later, or at the leader, without a correction.
  bool retryable = false;
  /// refused or unknown: a sentence for a person that says what to do.
  std::string reason{};
  raft::NodeId leader;  ///< a hint; kNobody if unknown
};
using MembersCompletion = std::function<void(MembersResult)>;

/// The first id whose edits contradict each other: it is to be promoted and demoted, or to be at
/// two addresses, or to be removed and to be something else as well. Naming the same edit twice is
/// not a contradiction, nor is adding a node and promoting it.
std::optional<raft::NodeId> contradiction(const MemberEdits& edits);

/// The members after making `edits` to `now`, which is not joint; or what is wrong with them:
/// contradiction, not_a_member, already_member, invalid_member (add without address or uuid),
/// other_uuid, other_kind, no_voter. Adding an existing member, under this uuid and address,
/// changes nothing, and neither does promoting a voter, so that a call whose answer was lost can be
/// made again.
std::variant<raft::WantedMembers, raft::ChangeRefused> apply_edits(const raft::Membership& now,
                                                                   const MemberEdits& edits);

/// The caller's view of `result`.
MembersResult members_result(const replica::ChangeResult& result);
MembersResult members_refused(const raft::ChangeRefused& refused, raft::NodeId leader);

}  // namespace leasehold::node
