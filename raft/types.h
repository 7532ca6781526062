// The field's words as types.
#pragma once

#include <leasehold/base/strong.h>
#include <leasehold/lease/instant.h>
#include <leasehold/lease/process.h>
#include <leasehold/lease/rounds.h>

#include <compare>
#include <cstdint>
#include <optional>

namespace leasehold::raft {

using lease::Duration;
using lease::ended_by;
using lease::HolderInstant;
using lease::Incarnation;
using lease::Now;
using lease::Process;
using lease::PromiseInstant;
using lease::Round;

/// Raft's logical clock (Raft paper, section 5.1). Zero is before the first election.
using Term = StrongInt<struct TermTag>;
/// Position in the log. The first entry has index 1; zero is the empty log's end.
using Index = StrongInt<struct IndexTag>;
/// A member's number, chosen by the operator. Zero is nobody.
using NodeId = StrongInt<struct NodeIdTag>;
/// One consensus group of a process. One process runs one group today; the id is in every message
/// and key already.
using GroupId = StrongInt<struct GroupIdTag>;
/// Names one Ready of one Core, in the order in which they were taken. Starts at 1.
using ReadyId = StrongInt<struct ReadyIdTag>;

inline constexpr NodeId kNobody{0};

/// A node's own random identity, made when its directory was first used. A directory that was wiped
/// has another one.
struct Uuid {
  std::uint64_t high = 0;
  std::uint64_t low = 0;
  friend bool operator==(const Uuid&, const Uuid&) = default;
  friend auto operator<=>(const Uuid&, const Uuid&) = default;
};

/// Who sent a message: the number, and the directory's uuid and the process, which the transport
/// has checked.
struct Peer {
  NodeId id;
  Uuid uuid;
  Process process{};
  friend bool operator==(const Peer&, const Peer&) = default;
};

/// The position of an entry and the term that wrote it. Ordered by term, then index: the order of
/// "up to date" (section 5.4.1).
struct LogId {
  Term term;
  Index index;
  friend bool operator==(const LogId&, const LogId&) = default;
  friend auto operator<=>(const LogId&, const LogId&) = default;
};

/// Under which leadership a caller wants something done; under any other nothing is done.
struct ExpectedLeader {
  std::optional<Term> term{};  ///< none: any
  NodeId leader{};             ///< kNobody: any
  friend bool operator==(const ExpectedLeader&, const ExpectedLeader&) = default;
};

enum class Role : std::uint8_t { follower, pre_candidate, candidate, leader };

/// How a read asks to be justified. The answer is linearizable in every mode; the cost differs.
enum class ReadMode : std::uint8_t {
  lease,   ///< by the lease if it is valid, else silently by a quorum round
  quorum,  ///< always by a round that begins after the read arrived
  log,     ///< by an entry of its own, which replica::Driver proposes; Core takes it for `quorum`
};

}  // namespace leasehold::raft
