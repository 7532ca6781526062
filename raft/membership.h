// What the members of a group have agreed on: voters, learners, witnesses, and the settings; and
// its form in the log.
#pragma once

#include <leasehold/base/bytes.h>
#include <leasehold/base/result.h>
#include <leasehold/raft/settings.h>
#include <leasehold/raft/types.h>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace leasehold::raft {

/// The limit of one membership, including members that are leaving.
inline constexpr std::size_t kMembersMax = 64;

/// One member. A voter under another uuid neither votes nor counts: its directory was wiped.
struct Member {
  NodeId id;
  Uuid uuid;
  /// host:port of its peer listener.
  std::string address;
  friend bool operator==(const Member&, const Member&) = default;
};

/// The members of the group from one log position on. Effective when appended, not when committed.
struct Membership {
  /// All members that receive the log, ascending by id, each once.
  std::vector<Member> members;
  /// Invariant: a sorted subset of the ids of `members`, not empty in a formed group.
  std::vector<NodeId> voters;
  /// While joint (section 6): the voters of the membership that is being left, sorted. Empty
  /// otherwise.
  std::vector<NodeId> outgoing_voters;
  /// While joint: those that are no longer members once the joint state is left, sorted. The others
  /// among the outgoing voters stay, as voters or as learners. Invariant: a subset of
  /// `outgoing_voters` without any of `voters`.
  std::vector<NodeId> leaving;
  /// Members that keep the log and no state machine, voters or not: see core.h. A member's kind
  /// never changes. Invariant: a sorted subset of the ids of `members`; at least one of `voters` is
  /// not a witness.
  std::vector<NodeId> witnesses{};
  /// None in a group of a version that knew no settings, until it has agreed on some: then each
  /// node follows what it was started with. One entry changes the members or the settings, never
  /// both; once there are settings, there are always some.
  std::optional<GroupSettings> settings{};

  bool joint() const { return !outgoing_voters.empty(); }
  /// Votes in at least one half.
  bool is_voter(NodeId id) const;
  /// The same, and the member is the one under `uuid`: another directory under the same number
  /// neither votes nor counts.
  bool is_voter(NodeId id, const Uuid& uuid) const;
  bool is_witness(NodeId id) const;
  const Member* find(NodeId id) const;

  friend bool operator==(const Membership&, const Membership&) = default;
};

/// Names a membership by its content: members, their seats and addresses, and settings. Wherever
/// and whenever two memberships are equal, so are their ids: at every node, after a restart, and
/// when the log was cut. Not a protection against anybody who looks for two with one id.
using MembershipId = StrongInt<struct MembershipIdTag>;
MembershipId id_of(const Membership& membership);
/// 16 hexadecimal digits.
std::string text_of(MembershipId id);
/// None: not 1 to 16 hexadecimal digits.
std::optional<MembershipId> membership_id_of(std::string_view text);

/// The payload of a membership entry. Format: see the head of membership.cc. Decoding checks every
/// invariant above.
Bytes encode_membership(const Membership& membership);
Result<Membership> decode_membership(std::string_view bytes);

}  // namespace leasehold::raft
