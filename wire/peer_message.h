// The messages between two nodes after the handshake.
#pragma once

#include <leasehold/base/bytes.h>
#include <leasehold/raft/membership.h>
#include <leasehold/raft/message.h>
#include <leasehold/raft/process_beat.h>
#include <leasehold/raft/settings.h>
#include <leasehold/raft/types.h>

#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

namespace leasehold::wire {

/// A follower sends a command to the leader. The leader accepts it only while it leads exactly
/// `term`, and at most once per (sender, incarnation, sequence) in that term: so a duplicate or a
/// replay never executes twice. There is no reply on success: the origin finds the command in its
/// own applied log.
struct ForwardRequest {
  raft::Term term;  ///< the term in which the sender believes that the receiver leads
  raft::Incarnation incarnation;
  std::uint64_t sequence = 0;
  Bytes command;
  friend bool operator==(const ForwardRequest&, const ForwardRequest&) = default;
};

enum class ForwardRefusal : std::uint8_t {
  not_leader = 0,
  overloaded = 1,
  disk_full = 2,  ///< the leader has no space for it
};

/// The command was not appended and never will be: safe to try again.
struct ForwardReply {
  raft::Incarnation incarnation;  ///< echo
  std::uint64_t sequence = 0;     ///< echo
  ForwardRefusal reason = ForwardRefusal::not_leader;
  raft::NodeId leader;  ///< a hint; kNobody if unknown
  friend bool operator==(const ForwardReply&, const ForwardReply&) = default;
};

/// Formation of a group: "I have durably confirmed this set of members, and will never confirm
/// another."
struct FormationConfirm {
  /// Ascending by id. Empty, of a replica of a host: it has confirmed none, and asks.
  std::vector<raft::Member> members;
  bool formed = false;  ///< the sender has seen all of them confirm it: the group exists
  /// What the group begins with, as the member with the lowest id proposed. None: by a build that
  /// knows no settings.
  std::optional<raft::GroupSettings> settings{};
  friend bool operator==(const FormationConfirm&, const FormationConfirm&) = default;
};

using Payload = std::variant<raft::Message, ForwardRequest, ForwardReply, FormationConfirm,
                             raft::ProcessBeat, raft::ProcessBeatReply>;

/// Between two processes, and of none of their groups.
inline bool of_process(const Payload& payload) {
  return std::holds_alternative<raft::ProcessBeat>(payload) ||
         std::holds_alternative<raft::ProcessBeatReply>(payload);
}

/// In a process of many groups a replica has a number of its own in each, which never returns:
/// `from` and `to` are those, and a message of a replica that was there before, or for it, is known
/// as one. Zero, both: the node's number is its member's.
struct PeerMessage {
  raft::GroupId group;
  Payload payload;
  raft::NodeId from{};
  raft::NodeId to{};
  friend bool operator==(const PeerMessage&, const PeerMessage&) = default;
};

}  // namespace leasehold::wire
