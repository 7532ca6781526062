// From records to what is drawn.

#include <leasehold/story/timeline.h>

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace leasehold::story {
namespace {

constexpr std::uint64_t kLanesMax = 64;

class Builder {
 public:
  explicit Builder(Timeline& timeline) : timeline_(timeline) {}

  void take(const Record& r) {
    last_ = r.at;
    if (r.kind == Kind::mark) timeline_.marks.push_back(r);
    if (r.kind == Kind::heal) {
      timeline_.marks.push_back(r);
      timeline_.marks.back().text = "all faults end";
    }
    const std::size_t first = timeline_.lane(r.node, r.group);
    if (first == timeline_.lanes.size()) return;
    if (r.kind != Kind::start && !begun_) {
      begun_ = true;
      first_ = r.at;
    }
    take(timeline_.lanes[first], r);
    if (!of_the_process(r.kind)) return;
    for (std::size_t more = 1; more < timeline_.groups; ++more) {
      take(timeline_.lanes[first + more], r);
    }
  }

  /// Closes what is open.
  void finish() {
    end_ = last_;
    for (const Lane& lane : timeline_.lanes) {
      if (!lane.promises.empty()) end_ = std::max(end_, lane.promises.back().until);
      if (!lane.leases.empty()) end_ = std::max(end_, lane.leases.back().until);
    }
  }

  Duration first() const { return first_; }
  Duration end() const { return end_; }

 private:
  /// Concerns all replicas of the node.
  static bool of_the_process(Kind kind) {
    return kind == Kind::start || kind == Kind::crash || kind == Kind::pause ||
           kind == Kind::suspend || kind == Kind::resume;
  }

  void take(Lane& lane, const Record& r) {
    switch (r.kind) {
      case Kind::start:
        begin_role(lane, r, "follower");
        if (r.number > 1) lane.signs.push_back(r);
        break;
      case Kind::crash:
        end_lease(lane, r.at);
        end_promise(lane, r.at);
        end_stop(lane, r.at);
        begin_role(lane, r, "down");
        lane.signs.push_back(r);
        break;
      case Kind::role:
        if (r.what != "leader") end_lease(lane, r.at);
        begin_role(lane, r, r.what);
        break;
      case Kind::pause:
      case Kind::suspend: begin_stop(lane, r); break;
      case Kind::resume: end_stop(lane, r.at); break;
      case Kind::leader: follow(lane, r); break;
      case Kind::promise: promise(lane, r); break;
      case Kind::unpromised: end_promise(lane, r.at); break;
      case Kind::lease: lease(lane, r); break;
      case Kind::lease_lost:
        end_lease(lane, r.at);
        lane.signs.push_back(r);
        break;
      case Kind::delivered:
      case Kind::lost:
        if (r.from) timeline_.messages.push_back(r);
        break;
      case Kind::notice:
      case Kind::vote:
      case Kind::refusal:
      case Kind::read:
      case Kind::write:
      case Kind::clock:
      case Kind::cut:
      case Kind::join:
      case Kind::disk:
      case Kind::log_cut:
      case Kind::snapshot:
      case Kind::members:
      case Kind::transfer:
      case Kind::fail: lane.signs.push_back(r); break;
      default: break;
    }
  }

  static void begin_role(Lane& lane, const Record& r, const std::string& what) {
    if (!lane.roles.empty()) lane.roles.back().until = r.at;
    lane.roles.push_back({r.at, Duration::max(), what, r.term});
  }

  // The term of a follower is that of the leader that it hears.
  static void follow(Lane& lane, const Record& r) {
    if (lane.roles.empty() || lane.roles.back().term == r.term) return;
    begin_role(lane, r, "follower");
  }

  static void begin_stop(Lane& lane, const Record& r) {
    end_stop(lane, r.at);
    lane.stops.push_back({r.at, r.until.value_or(Duration::max()),
                          r.kind == Kind::pause ? "pause" : "suspend", Term()});
  }
  static void end_stop(Lane& lane, Duration at) {
    if (!lane.stops.empty()) lane.stops.back().until = std::min(lane.stops.back().until, at);
  }

  static void end_promise(Lane& lane, Duration at) {
    if (!lane.promises.empty()) {
      lane.promises.back().until = std::min(lane.promises.back().until, at);
    }
  }

  static void promise(Lane& lane, const Record& r) {
    const Duration until = r.until.value_or(r.at);
    const bool same = !lane.promises.empty() && lane.promises.back().holder == r.peer &&
                      lane.promises.back().term == r.term && lane.promises.back().until >= r.at;
    if (same && r.why != "given" && r.why != "restarted") {
      lane.promises.back().until = until;
      if (r.why == "renewed") lane.promises.back().renewals.push_back(r.at);
      return;
    }
    end_promise(lane, r.at);
    lane.promises.push_back({r.at, until, r.peer, r.term, r.why == "restarted", {}});
  }

  static void end_lease(Lane& lane, Duration at) {
    if (!lane.leases.empty()) lane.leases.back().until = std::min(lane.leases.back().until, at);
  }

  static void lease(Lane& lane, const Record& r) {
    const Duration until = r.until.value_or(r.at);
    const bool same = !lane.leases.empty() && lane.leases.back().term == r.term &&
                      lane.leases.back().until >= r.at;
    if (!same) lane.leases.push_back({r.at, until, r.term, {}});
    LeaseWindow& window = lane.leases.back();
    window.until = until;
    if (r.peer != raft::kNobody && r.from && r.why != "clock") {
      window.edges.push_back({r.at, until, r.peer, r.round, *r.from, r.what == "beat"});
    }
  }

  Timeline& timeline_;
  bool begun_ = false;
  Duration first_{0};
  Duration last_{0};
  Duration end_{0};
};

/// How many groups the records are of.
std::uint64_t groups_of(const std::vector<Record>& records) {
  std::uint64_t groups = 1;
  for (const Record& record : records) groups = std::max(groups, record.group.value());
  return groups;
}

}  // namespace

std::size_t Timeline::lane(NodeId node, GroupId group) const {
  const std::uint64_t of_node = group == GroupId() ? 0 : group.value() - 1;
  if (node == raft::kNobody || node.value() > lanes.size() / groups || of_node >= groups) {
    return lanes.size();
  }
  return (node.value() - 1) * groups + of_node;
}

Result<Timeline> make_timeline(const std::vector<Record>& records, const TimelineOptions& options) {
  if (records.empty() || records.front().kind != Kind::run || records.front().number == 0 ||
      records.front().number > kLanesMax) {
    return Error{
        ErrorCode::malformed,
        fmt::format("a timeline begins with a record of kind `run` that says how many nodes "
                    "there are, 1 to {}",
                    kLanesMax)};
  }
  const std::uint64_t groups = groups_of(records);
  if (groups > kLanesMax / records.front().number) {
    return Error{ErrorCode::malformed,
                 fmt::format("a timeline has at most {} lanes, and here are {} nodes of {} groups",
                             kLanesMax, records.front().number, groups)};
  }
  Timeline timeline;
  timeline.title = records.front().text;
  timeline.groups = groups;
  for (std::uint64_t i = 1; i <= records.front().number; ++i) {
    for (std::uint64_t group = 1; group <= groups; ++group) {
      Lane lane;
      lane.node = NodeId(i);
      if (group > 1) lane.group = GroupId(group);
      timeline.lanes.push_back(lane);
    }
  }
  Builder builder(timeline);
  for (const Record& record : records) builder.take(record);
  builder.finish();
  const Duration margin = (builder.end() - builder.first()) / 40;
  const Duration first = std::max(Duration{0}, builder.first() - margin);
  timeline.from = options.from.value_or(first);
  timeline.until = options.until.value_or(builder.end() + margin);
  if (timeline.until - timeline.from < std::chrono::microseconds(1)) {
    return Error{
        ErrorCode::invalid_argument,
        fmt::format("there is nothing to draw between {} and {}; the records reach from {} to {}",
                    format_time(timeline.from), format_time(timeline.until),
                    format_time(builder.first()), format_time(builder.end()))};
  }
  return timeline;
}

}  // namespace leasehold::story
