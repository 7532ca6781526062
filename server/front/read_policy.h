// How the reads of a connection are justified, and a note about the last read.
#pragma once

#include <leasehold/raft/types.h>
#include <leasehold/replica/lease_view.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>

namespace leasehold::server {

inline constexpr lease::Duration kStaleBoundMax = std::chrono::hours(1);

struct ReadPolicy {
  raft::ReadMode mode = raft::ReadMode::lease;
  /// A stale read: one that is not linearizable. Its answer shows every write that was
  /// acknowledged, anywhere, at least this long before the read arrived. Where the node's state is
  /// older than that, `mode` decides. Above 0 and at most kStaleBoundMax; none: a linearizable
  /// read.
  std::optional<lease::Duration> stale_bound{};
};

/// The word that clients use: "lease", "quorum", "log", or "stale".
const char* read_policy_name(const ReadPolicy& policy);
/// None: there is no such word. For "stale" the bound is 0 here.
std::optional<ReadPolicy> read_policy_named(std::string_view name);

/// How a read came to its answer.
enum class ReadEnd : std::uint8_t {
  none,  ///< there was no read yet
  under_way,
  lease,             ///< under the lease, on the connection's own thread
  lease_after_wait,  ///< under the lease, once the state machine had caught up
  lease_of_node,     ///< under the lease, on the node's thread
  quorum,
  leader,
  log,
  stale,
  refused,
};
const char* read_end_name(ReadEnd end);

/// Why a read that could have been answered on the connection's own thread was not.
enum class ReadFallback : std::uint8_t {
  none,
  lease_reads_off,
  no_lease,    ///< this node holds none
  lease_over,  ///< it held one, which has ended
  apply_lags,  ///< the lease was valid, the state machine behind
  not_fresh,   ///< stale: no linearizable read within the bound
};
const char* read_fallback_text(ReadFallback fallback);

/// What happens to a read that has arrived.
enum class ReadRoute : std::uint8_t {
  now,   ///< it may be made
  wait,  ///< when apply has reached the commit index that the note saw
  ask,   ///< when the node has justified it, in the note's mode
};

/// Plain fields of one connection, written at each of its reads.
struct ReadNote {
  ReadPolicy policy;
  ReadEnd end = ReadEnd::none;
  ReadFallback fallback = ReadFallback::none;
  bool bound_missed = false;  ///< a stale read: the state was older than the bound
  replica::LeaseLook look;    ///< when the read arrived
  raft::Index applied;        ///< then
  raft::Index index;          ///< at which the read was justified; 0: none
  lease::Duration waited{0};
  std::uint64_t number = 0;
  std::uint64_t stay = 0;  ///< ServedGroup::stay() before it was judged
};

}  // namespace leasehold::server
