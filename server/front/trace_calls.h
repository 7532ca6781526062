// What the commands ask of the recording of a group's protocol.
#pragma once

#include <leasehold/base/result.h>
#include <leasehold/lease/instant.h>
#include <leasehold/raft/types.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace leasehold::server {

/// A recording goes on for at most this time.
inline constexpr lease::Duration kTraceSpanMax = std::chrono::minutes(10);

/// A recording that has begun. Instants are of the holder's clock.
struct TraceBegun {
  std::uint64_t id = 0;
  raft::NodeId node;  ///< this node's number in the group
  raft::Incarnation process;
  lease::HolderInstant at;
};

/// A part of it.
struct TraceTaken {
  lease::HolderInstant at;
  std::uint64_t dropped = 0;  ///< records so far, because nobody took those before them in time
  bool more = false;          ///< there are more already
  /// Empty while it goes on; "whole": its time is over, "stopped": before that.
  std::string ended;
  std::vector<std::string> records;  ///< lines of docs/formats/cluster-trace.md
};

/// Each may be empty: then it is not offered. Any thread.
struct TraceCalls {
  /// Begins to record. Answers once, on any thread. Errors: in_use, unavailable.
  std::function<void(lease::Duration span, std::function<void(Result<TraceBegun>)> done)> start;
  /// Takes what there is. A recording that nobody takes from ends. Errors: not_found.
  std::function<Result<TraceTaken>(std::uint64_t id)> next;
  /// Records nothing more; next() takes the rest. Errors: not_found.
  std::function<Result<void>(std::uint64_t id)> stop;
};

}  // namespace leasehold::server
