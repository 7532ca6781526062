// The invariants of every message that a peer may send. The rest of Leasehold relies on them
// without checking again: decode_message() checks them on incoming messages, encode_message()
// asserts them on outgoing ones.
//
// A position is a term, an index, a round, an incarnation.
//
//  I1  No position is above kPositionMax, so that "the next one" never wraps.
//  I2  A request carries a term and an incarnation of at least 1; a reply echoes such ones.
//  I3  A log id is either (0, 0), the empty log, or has both parts above 0.
//  I4  A candidate's last entry is of a term below the one it asks votes for.
//  I5  AppendRequest: prev.term <= first entry's term <= ... <= last entry's term <= term.
//  I6  AppendRequest: the first entry has the index after prev, each next one the index after that.
//  I7  AppendRequest, SnapshotChunk: a round of at least 1, 0 < lease <= one hour, and 0 <= drift
//  <= 500,000 ppm. I8  AppendRequest: at most kEntriesMax entries, each of a known kind; an empty
//  entry has no
//      payload, and a membership entry's payload decodes.
//  I9  ForwardReply: a known reason.
//  I10 FormationConfirm: 1 to kMembersMax members, ascending by id, each once; id and uuid not
//      zero; an address of 1 to kAddressBytesMax printable ASCII characters without a space. With
//      numbers of replicas (I15), none is possible.
//  I11 SnapshotChunk: the snapshot's last entry is not (0, 0), and its term is not above the
//      message's; 0 < offset + bytes <= size, and at least one byte; a membership that decodes.
//  I12 TimeoutNow, VoteRequest: a token has a term, a target and a last index of at least 1; in a
//      VoteRequest its term is one below the request's, and its last index is the candidate's.
//  I13 AppendRequest, AppendReply: a bind names a beat of at least 1, and an epoch has an
//      incarnation of at least 1.
//  I14 ProcessBeat, ProcessBeatReply: the group 0; a beat of at least 1; lease and drift as in I7;
//      at most kReleasedGroupsMax releases, ascending by group, each of a term of at least 1 and
//      since a beat from 1 to this one; an epoch as in I13.
//  I15 The numbers of two replicas, or none; in ProcessBeat and ProcessBeatReply none.
//
// They do not promise that the numbers fit the receiver's own log or term. The core expects any of
// them, late, twice and out of order.
#pragma once

#include <leasehold/base/result.h>
#include <leasehold/wire/peer_message.h>

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace leasehold::wire {

inline constexpr std::uint64_t kPositionMax = std::uint64_t{1} << 62U;
inline constexpr std::size_t kEntriesMax = std::size_t{1} << 20U;
inline constexpr std::size_t kMembersMax = 128;
inline constexpr std::size_t kAddressBytesMax = 300;

/// Error: malformed, naming the invariant that does not hold.
Result<void> check_message(const wire::PeerMessage& message);

}  // namespace leasehold::wire
