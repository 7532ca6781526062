// What `leasehold trace` writes: the protocol of the nodes of a running group, each as the node saw
// it, on the clock of its machine. docs/formats/cluster-trace.md describes the file.
#pragma once

#include <leasehold/base/result.h>
#include <leasehold/story/record.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace leasehold::story {

/// The version that is written, and the only one that is read.
inline constexpr std::uint64_t kClusterTraceVersion = 1;
/// Of one file.
inline constexpr std::size_t kTracePartsMax = 64;
inline constexpr std::size_t kClusterRecordsMax = 1'000'000;
/// Questions to the nodes, over all parts.
inline constexpr std::size_t kTraceProbesMax = 1'000'000;
/// A part tells of at most this time.
inline constexpr Duration kTraceSpanMax = std::chrono::hours(1);

/// The program that records asks a node what its clock shows: that was after `asked` and before
/// `answered`, both on the asking machine's clock.
struct TraceProbe {
  Duration asked{0};
  Duration shown{0};
  Duration answered{0};
  friend bool operator==(const TraceProbe&, const TraceProbe&) = default;
};

/// What one process of a node saw. All instants are of the holder's clock of its machine.
struct TracePart {
  std::string server;         ///< the address that was asked
  NodeId node;                ///< its number in the group
  std::uint64_t process = 0;  ///< its incarnation
  std::string machine;        ///< of this boot; empty: not known
  std::string version;
  Duration begin{0};
  Duration end{0};
  std::uint64_t dropped = 0;  ///< records for which it had no room
  /// "whole", "stopped" (before its time), or "lost": text says why.
  std::string ended;
  std::string text;
  std::string reads;  ///< how this node answered reads meanwhile, in all groups
  std::vector<TraceProbe> probes;
  /// In the order of their instants; of kind `run`: none.
  std::vector<Record> records;
};

/// A server that recorded nothing.
struct TraceMissing {
  std::string server;
  std::string text;
  friend bool operator==(const TraceMissing&, const TraceMissing&) = default;
};

struct ClusterTrace {
  std::string program;  ///< its version
  std::uint64_t group = 1;
  Duration span{0};  ///< that was asked for
  std::vector<TraceMissing> missing;
  std::vector<TracePart> parts;
};

/// Whether a text is such a file, or pretends to be one.
bool looks_like_cluster_trace(const std::string& text);
/// The file, with the bounds of the clocks for its reader (trace_clocks.h).
std::string encode_cluster_trace(const ClusterTrace& trace);
/// The only decoder. What it accepts holds together: a record is of its part's node, and within its
/// time. Errors name the line.
Result<ClusterTrace> decode_cluster_trace(const std::string& name, const std::string& text);

}  // namespace leasehold::story
