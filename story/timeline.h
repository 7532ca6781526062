// Draws records as a timeline over true time: one lane a node, or one a replica of several groups.
#pragma once

#include <leasehold/base/result.h>
#include <leasehold/story/record.h>

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace leasehold::story {

// ---- What is drawn ----

/// A span in which a node had a role, was down or stood still.
struct RoleSpan {
  Duration from{0};
  Duration until{0};
  std::string what;  ///< a role, or down, pause, suspend
  Term term;
};

struct PromiseWindow {
  Duration given{0};
  Duration until{0};
  NodeId holder;
  Term term;
  bool restarted = false;
  std::vector<Duration> renewals;
};

/// An acknowledgement that moved the end of a lease.
struct LeaseEdge {
  Duration at{0};     ///< when it arrived
  Duration until{0};  ///< where the lease ended from then on
  NodeId peer;
  Round round;
  Duration began{0};
  bool beat = false;  ///< the round is the number of a beat
};

struct LeaseWindow {
  Duration shown{0};
  Duration until{0};
  Term term;
  std::vector<LeaseEdge> edges;
};

struct Lane {
  NodeId node;
  GroupId group;  ///< as that of a record
  std::vector<RoleSpan> roles;
  /// Pauses and suspends: over the roles, which go on.
  std::vector<RoleSpan> stops;
  std::vector<PromiseWindow> promises;
  std::vector<LeaseWindow> leases;
  /// Votes, refusals, reads, writes, faults: told by a sign each.
  std::vector<Record> signs;
};

struct Timeline {
  std::string title;
  Duration from{0};
  Duration until{0};
  std::vector<Lane> lanes;
  std::size_t groups = 1;
  std::vector<Record> messages;  ///< delivered or lost
  std::vector<Record> marks;

  /// Which lane is of the node's replica of the group; the number of lanes: none is.
  std::size_t lane(NodeId node, GroupId group) const;
};

struct TimelineOptions {
  std::optional<Duration> from;
  std::optional<Duration> until;
  /// Of the picture, in pixels.
  std::int64_t width = 1160;
};

/// Records in the order of their time, the first of kind `run`. An error if there is nothing to
/// draw in the asked window.
Result<Timeline> make_timeline(const std::vector<Record>& records, const TimelineOptions& options);

/// The picture. The same records give the same bytes.
std::string draw_timeline(const Timeline& timeline, const TimelineOptions& options);

}  // namespace leasehold::story
