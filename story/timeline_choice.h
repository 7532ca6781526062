// Which parts of a timeline are drawn, and where its instants are.
#pragma once

#include <leasehold/story/svg.h>
#include <leasehold/story/timeline.h>

#include <set>
#include <vector>

namespace leasehold::story {

/// Time from the left to the right.
class TimeAxis {
 public:
  TimeAxis(Duration from, Duration until, Tenths left, Tenths right)
      : from_(from), until_(until), left_(left), right_(right) {}

  /// An instant before or behind the axis is drawn at its end.
  Tenths x(Duration at) const;
  bool seen(Duration at) const { return at >= from_ && at <= until_; }
  bool seen(Duration from, Duration until) const { return until >= from_ && from <= until_; }

 private:
  Duration from_;
  Duration until_;
  Tenths left_;
  Tenths right_;
};

/// If there are many messages, only those that matter to the story.
struct Choice {
  std::vector<const Record*> messages;
  /// The appends and the acknowledgements that moved the edges.
  std::set<const Record*> acks;
  std::set<const LeaseEdge*> tied;
};
Choice choose(const Timeline& timeline, const TimeAxis& axis);

bool is_vote(const Record& message);

}  // namespace leasehold::story
