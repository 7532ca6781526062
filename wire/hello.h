// The two frames of the handshake. The dialler speaks first; the other side answers with its own
// hello or with a refusal; the dialler may still refuse the answer.
//
// Their format is pinned for ever (frame version 0), so that builds of any two versions can tell
// each other why they do not talk.
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

/// Wire versions that a build speaks, both included.
struct VersionRange {
  std::uint32_t min = kWireVersionMin;
  std::uint32_t max = kWireVersionMax;
  friend bool operator==(const VersionRange&, const VersionRange&) = default;
};

/// What a connection is for. Pinned. Only a peer that speaks version 2 or above is told of
/// snapshots.
enum class Purpose : std::uint32_t {
  messages = 0,
  snapshots = 1,  ///< chunks of snapshots, so that nothing else waits behind them
};

/// "This is who I am, and whom I want to reach."
/// Invariants, checked by decode_hello: 1 <= versions.min <= versions.max; cluster_id, from, to,
/// uuid and incarnation not zero; incarnation at most kPositionMax.
struct Hello {
  VersionRange versions;
  std::uint64_t cluster_id = 0;
  raft::NodeId from;
  raft::NodeId to;
  raft::Uuid uuid;
  raft::Incarnation incarnation;
  std::uint64_t process = 0;  ///< drawn at each start of a process
  Purpose purpose = Purpose::messages;
  friend bool operator==(const Hello&, const Hello&) = default;
};

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
};

struct Refusal {
  RefusalCode code = RefusalCode::refused_by_node;
  /// For a person. What a peer sent is cut to kReasonBytesMax, and what is not printable ASCII is
  /// shown as '?'.
  std::string reason;
  VersionRange versions;  ///< that the refusing side speaks
  friend bool operator==(const Refusal&, const Refusal&) = default;
};

void encode_hello(const Hello& hello, SendBuffer& out);
void encode_refusal(const Refusal& refusal, SendBuffer& out);

/// Read the frame of the kind in their name. Error: malformed.
Result<Hello> decode_hello(const Frame& frame);
Result<Refusal> decode_refusal(const Frame& frame);

}  // namespace leasehold::wire
