// The two frames of the handshake. The dialler speaks first; the other side answers with its own
// hello or with a refusal; the dialler may still refuse the answer.
//
// Their format never changes (frame version 0), so that builds of any two versions can tell each
// other why they do not talk.
#pragma once

#include <leasehold/base/result.h>
#include <leasehold/raft/types.h>
#include <leasehold/wire/frame.h>

#include <cstddef>
#include <cstdint>
#include <string>

namespace leasehold::wire {

/// A frame above this is refused before the handshake is done.
inline constexpr std::size_t kHandshakeFrameBytesMax = 4096;
inline constexpr std::size_t kReasonBytesMax = 1024;
inline constexpr std::size_t kClusterNameBytesMax = 256;
inline constexpr std::size_t kHelloAddressBytesMax = 300;

/// Wire versions that a build speaks, both included.
struct VersionRange {
  std::uint32_t min = kWireVersionMin;
  std::uint32_t max = kWireVersionMax;
  friend bool operator==(const VersionRange&, const VersionRange&) = default;
};

/// Of Hello::end_commitment.
inline constexpr std::size_t kCommitmentBytes = 32;

/// What a connection is for. Pinned. Only a peer that speaks version 2 or above gets `snapshots`.
enum class Purpose : std::uint32_t {
  messages = 0,
  snapshots = 1,  ///< chunks of snapshots, so that nothing else waits behind them
  /// Two hellos and the end: they say which node answers at an address, and of which cluster. So a
  /// new node learns the cluster id, and a leader learns the uuid of a node that is to be added.
  introduction = 2,
};

/// "This is who I am, and which node I want to reach."
///
/// Invariants, checked by decode_hello: 1 <= versions.min <= versions.max; from not zero;
/// cluster_id, to, uuid and incarnation not zero, except in an introduction, where zero says "not
/// known"; incarnation and membership at most kPositionMax; cluster and address within their
/// bounds, the address of printable ASCII; end_commitment empty or of 32 bytes.
struct Hello {
  VersionRange versions;
  std::uint64_t cluster_id = 0;
  raft::NodeId from;
  raft::NodeId to;
  raft::Uuid uuid;
  raft::Incarnation incarnation;
  std::uint64_t process = 0;  ///< drawn at each start of a process
  Purpose purpose = Purpose::messages;
  /// The cluster's name, in an introduction; empty: not known, or by a build that does not say it.
  std::string cluster{};
  /// host:port of the sender's peer listener, so that it can be dialled back; may be empty.
  std::string address{};
  /// Where the newest membership stands in the sender's log; {0, 0}: it has none, or the first one.
  raft::LogId membership{};
  bool witness = false;  ///< the sender keeps the log and no state machine
  /// Where the lock of the sender's directory lies (storage/lock_place.h); 0: not known, or a build
  /// that does not say it.
  std::uint64_t place = 0;
  /// SHA-256 of the secret that a notice of this process's end will have (notice.h); empty: there
  /// will be none.
  std::string end_commitment{};
  friend bool operator==(const Hello&, const Hello&) = default;
};

/// The sender, as far as its incarnation can be compared with others of its directory.
inline raft::Peer peer_of(const Hello& hello) {
  if (hello.place == 0) return {hello.from, hello.uuid, {}};
  return {hello.from, hello.uuid, {hello.incarnation, hello.place}};
}

/// Why one side does not talk to the other. Pinned. A code that a build does not know counts as
/// refused_by_node.
enum class RefusalCode : std::uint32_t {
  version = 1,
  wrong_cluster = 2,
  wrong_target = 3,
  same_id = 4,
  unknown_peer = 5,
  older_incarnation = 6,
  duplicate_process = 7,
  refused_by_node = 8,
  too_many = 9,
  removed = 10,   ///< the peer is no member any more, and nothing in its log says that it is again
  unproved = 11,  ///< the peer has not proved that it is the node that its hello names
  given_up = 12,  ///< the peer's group was given up: another was recovered from what was left of it
};

struct Refusal {
  RefusalCode code = RefusalCode::refused_by_node;
  /// For a person. A received reason is cut to kReasonBytesMax, and characters that are not
  /// printable ASCII become '?'.
  std::string reason;
  VersionRange versions;  ///< that the refusing side speaks
  /// removed: the committed membership without the peer, at the refusing side.
  raft::LogId membership{};
  friend bool operator==(const Refusal&, const Refusal&) = default;
};

void encode_hello(const Hello& hello, SendBuffer& out);
void encode_refusal(const Refusal& refusal, SendBuffer& out);

/// Read the frame of the kind in their name. Error: malformed.
Result<Hello> decode_hello(const Frame& frame);
Result<Refusal> decode_refusal(const Frame& frame);

}  // namespace leasehold::wire
