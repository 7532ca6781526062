// Who votes, who only listens, and how a membership stands in the log.
#pragma once

#include <leasehold/base/bytes.h>
#include <leasehold/base/result.h>
#include <leasehold/raft/types.h>

#include <string>
#include <string_view>
#include <vector>

namespace leasehold::raft {

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
  /// Everybody that receives the log, ascending by id, each once.
  std::vector<Member> members;
  /// Invariant: a sorted subset of the ids of `members`, not empty in a formed group.
  std::vector<NodeId> voters;
  /// While joint (section 6): the voters of the membership that is being left, sorted. Empty
  /// otherwise.
  std::vector<NodeId> outgoing_voters;

  bool joint() const { return !outgoing_voters.empty(); }
  /// Votes in at least one half.
  bool is_voter(NodeId id) const;
  const Member* find(NodeId id) const;

  friend bool operator==(const Membership&, const Membership&) = default;
};

/// The payload of a membership entry. Format: see the head of membership.cc. Decoding checks every
/// invariant above.
Bytes encode_membership(const Membership& membership);
Result<Membership> decode_membership(std::string_view bytes);

}  // namespace leasehold::raft
