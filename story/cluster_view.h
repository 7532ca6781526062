// A cluster trace as one story: what all nodes saw, on one common time. For the lab, which draws
// it, and for people, who read it line by line.
#pragma once

#include <leasehold/story/cluster_trace.h>
#include <leasehold/story/trace_clocks.h>

#include <optional>
#include <string>
#include <vector>

namespace leasehold::story {

/// A trace (docs/formats/trace.md) whose time is the common one and begins with the first part. Its
/// `run` has the word `cluster` as `what`; marks say what is missing, and how well the clocks are
/// known.
std::vector<Record> view_of(const ClusterTrace& trace, const ClockAlignment& alignment);

/// Of a file of either form: decode_trace(), or the view of a cluster trace.
Result<std::vector<Record>> decode_any_trace(const std::string& name, const std::string& text);

/// What is known of the trace as a whole: its nodes, versions, gaps and clocks. A sentence a line.
std::vector<std::string> summary_of(const ClusterTrace& trace, const ClockAlignment& alignment);

/// What is printed of a view; nothing set: everything.
struct ViewFilter {
  std::vector<NodeId> nodes;  ///< the record is of one of them, or about one
  std::vector<Kind> kinds;
  std::optional<Duration> from, until;

  bool passes(const Record& record) const;
};

/// "   12.345ms  node 1   sent  append to node 2: term 3, round 5, heartbeat ...".
std::string line_of(const Record& record);
/// The text without what could lead a terminal astray.
std::string printable(std::string text);
/// "run, start, ...": those of trace files.
std::string kind_names();
/// The kind with that name in trace files. None: there is no such kind.
std::optional<Kind> kind_named(const std::string& name);

}  // namespace leasehold::story
