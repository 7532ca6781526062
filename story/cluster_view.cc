#include <leasehold/base/assert.h>
#include <leasehold/story/cluster_view.h>
#include <leasehold/story/trace_file.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <set>
#include <tuple>
#include <utility>

namespace leasehold::story {
namespace {

/// A message of which no record shows the arrival is drawn as lost so long after it was sent.
constexpr Duration kUnseenAfter = std::chrono::milliseconds(5);
/// Edges of windows beyond this are as good as never, and a browser counts no further.
constexpr Duration kFar = std::chrono::hours(1000);

std::string ms_text(Duration time) {
  const bool below = time < Duration(0);
  const std::int64_t micro = (below ? -time : time).count() / 1000;
  return fmt::format("{}{}.{:03} ms", below ? "-" : "", micro / 1000, micro % 1000);
}

std::string plural(std::size_t count, const char* what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

/// One common time for all parts, which begins at 0.
class Times {
 public:
  explicit Times(const ClockAlignment& alignment) : alignment_(alignment) {
    for (const PartClock& clock : alignment.clocks) first_ = std::min(first_, clock.offset);
  }
  Duration of(std::size_t part, Duration own) const {
    return alignment_.clocks[part].common(own) - first_;
  }
  /// The edge of a window, which nobody has checked.
  Duration edge(std::size_t part, Duration own) const {
    const Duration begin = alignment_.clocks[part].begin;
    return of(part, begin + std::clamp(own - begin, -kFar, kFar));
  }

 private:
  const ClockAlignment& alignment_;
  Duration first_{0};
};

class View {
 public:
  View(const ClusterTrace& trace, const ClockAlignment& alignment)
      : trace_(trace), alignment_(alignment), times_(alignment) {}

  std::vector<Record> make() {
    begin();
    for (std::size_t part = 0; part < trace_.parts.size(); ++part) add_part(part);
    for (const Passage& one : passages(trace_, alignment_)) {
      arrived_.insert({one.from_part, one.sent});
      Record& delivered = records_[first_of_[one.to_part] + one.delivered];
      delivered.from = records_[first_of_[one.from_part] + one.sent].at;
    }
    add_unseen();
    // What is sent comes before what arrives, and the order of a node stays.
    std::stable_sort(records_.begin() + 1, records_.end(),
                     [](const Record& a, const Record& b) { return a.at < b.at; });
    return std::move(records_);
  }

 private:
  void mark(Duration at, NodeId node, const char* what, std::string text) {
    Record record;
    record.at = at;
    record.kind = Kind::mark;
    record.node = node;
    record.what = what;
    record.text = std::move(text);
    records_.push_back(std::move(record));
  }

  void begin() {
    Record run;
    run.kind = Kind::run;
    run.what = "cluster";
    std::set<NodeId> nodes;
    for (const TracePart& part : trace_.parts) nodes.insert(part.node);
    run.text = fmt::format("a running group: {}", plural(nodes.size(), "node"));
    records_.push_back(std::move(run));
    for (std::string& line : summary_of(trace_, alignment_)) {
      mark(Duration(0), raft::kNobody, "", std::move(line));
    }
  }

  void add_part(std::size_t number) {
    const TracePart& part = trace_.parts[number];
    const Duration begin = times_.of(number, part.begin);
    Record start;
    start.at = begin;
    start.kind = Kind::start;
    start.node = part.node;
    start.number = part.process;
    start.why = "recorded";
    records_.push_back(start);
    Record clock = start;
    clock.kind = Kind::clock;
    clock.number = 0;
    clock.why.clear();
    clock.holder_ppm = -static_cast<std::int64_t>(alignment_.clocks[number].rate * 1e6);
    clock.promise_ppm = clock.holder_ppm;
    records_.push_back(clock);
    first_of_.push_back(records_.size());
    for (const Record& own : part.records) {
      Record record = own;
      record.at = times_.of(number, own.at);
      if (own.from) record.from = times_.edge(number, *own.from);
      if (own.until) record.until = times_.edge(number, *own.until);
      // Of a second group of this trace there is nothing.
      record.group = GroupId();
      records_.push_back(std::move(record));
    }
    end_part(number);
  }

  void end_part(std::size_t number) {
    const TracePart& part = trace_.parts[number];
    const bool again =
        std::any_of(trace_.parts.begin(), trace_.parts.end(), [&part](const TracePart& other) {
          return other.node == part.node && other.process > part.process;
        });
    const Duration end = times_.of(number, part.end);
    if (again) {
      Record crash;
      crash.at = end;
      crash.kind = Kind::crash;
      crash.node = part.node;
      records_.push_back(std::move(crash));
    } else if (part.ended == "lost") {
      mark(end, part.node, "unseen", "from here on nothing is recorded: " + part.text);
    }
  }

  void add_unseen() {
    for (std::size_t part = 0; part < trace_.parts.size(); ++part) {
      const std::vector<Record>& own = trace_.parts[part].records;
      for (std::size_t place = 0; place < own.size(); ++place) {
        if (own[place].kind != Kind::sent || arrived_.count({part, place}) != 0) continue;
        Record lost = records_[first_of_[part] + place];
        lost.kind = Kind::lost;
        lost.from = lost.at;
        lost.at += kUnseenAfter;
        records_.push_back(std::move(lost));
      }
    }
  }

  const ClusterTrace& trace_;
  const ClockAlignment& alignment_;
  const Times times_;
  std::vector<Record> records_;
  std::vector<std::size_t> first_of_;  ///< of each part, in records_
  std::set<std::pair<std::size_t, std::size_t>> arrived_;
};

std::string part_summary(const TracePart& part) {
  std::string text =
      fmt::format("node {} at {}: process {}, version {}, {} in {}", part.node.value(), part.server,
                  part.process, part.version, plural(part.records.size(), "record"),
                  ms_text(part.end - part.begin));
  if (part.dropped > 0) text += fmt::format(", {} more were dropped", part.dropped);
  if (part.ended == "stopped") text += "; stopped before its time";
  if (part.ended == "lost") text += "; lost: " + part.text;
  if (!part.reads.empty()) text += "; reads: " + part.reads;
  return text;
}

std::string pair_summary(const ClusterTrace& trace, const ClockPair& pair) {
  const auto bound = [](const std::optional<Duration>& at) { return at ? ms_text(*at) : "?"; };
  return fmt::format("clock of node {} less that of node {}: {} to {} (by {})",
                     trace.parts[pair.other].node.value(), trace.parts[pair.one].node.value(),
                     bound(pair.low), bound(pair.high), plural(pair.messages, "message"));
}

}  // namespace

std::vector<Record> view_of(const ClusterTrace& trace, const ClockAlignment& alignment) {
  LEASEHOLD_ASSERT(alignment.clocks.size() == trace.parts.size());
  return View(trace, alignment).make();
}

Result<std::vector<Record>> decode_any_trace(const std::string& name, const std::string& text) {
  if (!looks_like_cluster_trace(text)) return decode_trace(name, text);
  const Result<ClusterTrace> trace = decode_cluster_trace(name, text);
  if (!trace) return trace.error();
  return view_of(trace.value(), align_clocks(trace.value()));
}

std::vector<std::string> summary_of(const ClusterTrace& trace, const ClockAlignment& alignment) {
  std::vector<std::string> lines;
  lines.push_back(fmt::format("group {}, recorded by leasehold {} for {}", trace.group,
                              trace.program, ms_text(trace.span)));
  for (const TracePart& part : trace.parts) lines.push_back(part_summary(part));
  for (const TraceMissing& missing : trace.missing) {
    lines.push_back(fmt::format("MISSING {}: {}", missing.server, missing.text));
  }
  if (alignment.shared) {
    lines.emplace_back("nodes of one machine have one clock");
  } else {
    for (const ClockPair& pair : alignment.pairs) lines.push_back(pair_summary(trace, pair));
  }
  for (std::size_t part = 1; part < alignment.clocks.size(); ++part) {
    const PartClock& clock = alignment.clocks[part];
    if (clock.rate != 0) {
      lines.push_back(fmt::format("clock of node {} runs {:.0f} ppm {} than that of node {}",
                                  trace.parts[part].node.value(), std::abs(clock.rate) * 1e6,
                                  clock.rate > 0 ? "slower" : "faster",
                                  trace.parts[0].node.value()));
    }
    if (!clock.earliest || !clock.latest) {
      lines.push_back(
          fmt::format("the lane of node {} may stand anywhere: nothing ties its clock "
                      "to the others",
                      trace.parts[part].node.value()));
    } else if (*clock.earliest < *clock.latest && alignment.consistent) {
      lines.push_back(fmt::format("the lane of node {} stands right within {} (against node {})",
                                  trace.parts[part].node.value(),
                                  ms_text((*clock.latest - *clock.earliest) / 2),
                                  trace.parts[0].node.value()));
    }
  }
  if (!alignment.consistent) {
    lines.emplace_back(
        "CLOCKS: no offsets and rates explain all messages; a clock has leapt, and "
        "arrows that would lead back in time are left out");
  }
  return lines;
}

bool ViewFilter::passes(const Record& record) const {
  if (record.kind == Kind::run) return false;
  if (from && record.at < *from) return false;
  if (until && record.at > *until) return false;
  const auto named = [&record](NodeId node) { return node == record.node || node == record.peer; };
  if (!nodes.empty() && !std::any_of(nodes.begin(), nodes.end(), named)) return false;
  return kinds.empty() || std::find(kinds.begin(), kinds.end(), record.kind) != kinds.end();
}

std::string line_of(const Record& record) {
  const std::string where =
      record.node == raft::kNobody ? "-" : fmt::format("node {}", record.node.value());
  std::string line =
      fmt::format("{:>14}  {:<8} {:<11}", ms_text(record.at), where, kind_name(record.kind));
  const auto add = [&line](const std::string& word) { line += " " + word; };
  if (!record.what.empty()) add(record.what);
  if (record.peer != raft::kNobody) {
    const bool to = record.kind != Kind::delivered;
    add(fmt::format("{} node {}", to ? "->" : "<-", record.peer.value()));
  }
  const bool message =
      record.kind == Kind::sent || record.kind == Kind::delivered || record.kind == Kind::lost;
  if (!message || record.text.empty()) {
    if (record.term.value() != 0) add(fmt::format("term {}", record.term.value()));
    if (record.round.value() != 0) add(fmt::format("round {}", record.round.value()));
    if (record.index.value() != 0) add(fmt::format("index {}", record.index.value()));
  }
  if (record.number != 0) add(fmt::format("#{}", record.number));
  if (!record.why.empty()) add("(" + record.why + ")");
  if (!record.text.empty()) add(record.text);
  if (record.from) add("from " + ms_text(*record.from));
  if (record.until) add("until " + ms_text(*record.until));
  return printable(std::move(line));
}

std::string printable(std::string text) {
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  }
  return text;
}

std::string kind_names() {
  std::string names;
  for (int i = 0; i <= static_cast<int>(Kind::mark); ++i) {
    names += (i == 0 ? "" : ", ") + std::string(kind_name(static_cast<Kind>(i)));
  }
  return names;
}

std::optional<Kind> kind_named(const std::string& name) {
  for (int i = 0; i <= static_cast<int>(Kind::mark); ++i) {
    if (name == kind_name(static_cast<Kind>(i))) return static_cast<Kind>(i);
  }
  return std::nullopt;
}

}  // namespace leasehold::story
