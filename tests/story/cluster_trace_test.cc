// Cluster traces: what is written is read again, everything else is refused with its line, and the
// clocks of the nodes are laid beside each other by their messages.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <leasehold/base/random.h>
#include <leasehold/story/cluster_trace.h>
#include <leasehold/story/cluster_view.h>
#include <leasehold/story/trace_clocks.h>
#include <leasehold/story/trace_file.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

namespace leasehold::story {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::Contains;
using testing::HasSubstr;

/// A node's clock: what it shows at true time 0, and how fast it runs.
struct NodeClock {
  Duration at_start{0};
  double rate = 0;

  Duration at(Duration truth) const {
    return at_start + truth + Duration(std::llround(static_cast<double>(truth.count()) * rate));
  }
};

/// Nodes 1, 2, ... exchange messages with known true times, and write down what their clocks show.
class Recorded {
 public:
  explicit Recorded(std::vector<NodeClock> clocks, Duration length = seconds(10))
      : clocks_(std::move(clocks)) {
    for (std::size_t i = 0; i < clocks_.size(); ++i) {
      TracePart part;
      part.server = "10.0.0." + std::to_string(i + 1) + ":7201";
      part.node = NodeId(i + 1);
      part.process = 1;
      part.version = "1";
      part.begin = clocks_[i].at(Duration(0));
      part.end = clocks_[i].at(length);
      part.ended = "whole";
      trace.parts.push_back(std::move(part));
    }
    trace.program = "1";
    trace.span = length;
  }

  void message(std::size_t from, std::size_t to, Duration sent, Duration under_way,
               std::uint64_t number) {
    Record out;
    out.at = clocks_[from - 1].at(sent);
    out.kind = Kind::sent;
    out.node = NodeId(from);
    out.peer = NodeId(to);
    out.what = "append";
    out.round = Round(number);
    Record in = out;
    in.at = clocks_[to - 1].at(sent + under_way);
    in.kind = Kind::delivered;
    std::swap(in.node, in.peer);
    add(from, out);
    add(to, in);
  }

  /// Each pair, both ways, again and again, as heartbeats and their answers.
  void beats(Duration length, std::uint64_t seed) {
    Random random(seed);
    std::uint64_t number = 0;
    for (Duration at(0); at + milliseconds(20) < length; at += milliseconds(50)) {
      for (std::size_t from = 1; from <= clocks_.size(); ++from) {
        for (std::size_t to = 1; to <= clocks_.size(); ++to) {
          if (from == to) continue;
          message(from, to, at, microseconds(100 + random.below(10'000)), ++number);
        }
      }
    }
    sort();
  }

  void sort() {
    for (TracePart& part : trace.parts) {
      std::stable_sort(part.records.begin(), part.records.end(),
                       [](const Record& a, const Record& b) { return a.at < b.at; });
    }
  }

  void add(std::size_t node, Record record) {
    trace.parts[node - 1].records.push_back(std::move(record));
  }

  ClusterTrace trace;

 private:
  std::vector<NodeClock> clocks_;
};

std::size_t arrows_of(const std::vector<Record>& view) {
  std::size_t count = 0;
  for (const Record& record : view) {
    if (record.kind != Kind::delivered || !record.from) continue;
    EXPECT_LE(*record.from, record.at) << line_of(record);
    ++count;
  }
  return count;
}

std::size_t deliveries_of(const ClusterTrace& trace) {
  std::size_t count = 0;
  for (const TracePart& part : trace.parts) {
    for (const Record& record : part.records) count += record.kind == Kind::delivered ? 1U : 0U;
  }
  return count;
}

std::string refusal_of(const std::string& text) {
  const auto trace = decode_cluster_trace("t", text);
  return trace ? "" : trace.error().message;
}

TEST(ClusterTrace, IsReadAsItWasWritten) {
  Recorded recorded({{std::chrono::hours(1)}, {std::chrono::hours(2)}});
  recorded.beats(seconds(1), 1);
  recorded.trace.missing.push_back({"10.0.0.3:7201", "connection \"refused\""});
  recorded.trace.parts[1].ended = "lost";
  recorded.trace.parts[1].text = "it closed the connection";
  recorded.trace.parts[1].dropped = 7;
  recorded.trace.parts[0].reads = "lease 12";
  recorded.trace.parts[0].machine = "m";
  recorded.trace.parts[0].probes.push_back({seconds(5), recorded.trace.parts[0].begin, seconds(6)});
  const std::string text = encode_cluster_trace(recorded.trace);
  EXPECT_TRUE(looks_like_cluster_trace(text));
  const auto again = decode_cluster_trace("t", text);
  ASSERT_TRUE(again.ok()) << again.error().message;
  EXPECT_EQ(encode_cluster_trace(again.value()), text);
  ASSERT_EQ(again.value().parts.size(), 2U);
  EXPECT_EQ(again.value().parts[0].records, recorded.trace.parts[0].records);
  EXPECT_EQ(again.value().parts[0].probes, recorded.trace.parts[0].probes);
  EXPECT_EQ(again.value().parts[1].text, "it closed the connection");
  EXPECT_EQ(again.value().missing, recorded.trace.missing);
}

TEST(ClusterTrace, WhatDoesNotHoldTogetherIsRefusedWithItsLine) {
  const std::string first = "{\"kind\":\"cluster_trace\",\"v\":1,\"group\":1,\"span\":5}\n";
  const std::string part =
      "{\"kind\":\"part\",\"server\":\"s\",\"node\":1,\"begin\":10,\"end\":20,"
      "\"ended\":\"whole\"}\n";
  EXPECT_EQ(refusal_of(first + part + "{\"at\":10,\"kind\":\"crash\",\"node\":1}\n"), "");
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", "t is empty"},
      {part, "t:1: this is no file of leasehold trace"},
      {"{\"kind\":\"cluster_trace\",\"v\":2}\n", "t:1: this is a cluster trace of version 2"},
      {"{\"kind\":\"cluster_trace\"}\n", "version 0"},
      {first + first, "t:2: the first line stands twice"},
      {first + "{\"kind\":\"parts\"}\n", "t:2: there is no kind `parts` here"},
      {first + "{\"kind\":\"part\",\"colour\":1}\n", "has no member `colour`"},
      {first + "{\"kind\":\"part\",\"node\":-1}\n", "`node` is no such number"},
      {first + "{\"kind\":\"part\",\"node\":1", "t:2: the object ends with }"},
      {first + "{\"at\":10,\"kind\":\"crash\",\"node\":1}\n", "stands behind its part"},
      {first + part + "{\"at\":10,\"kind\":\"crash\",\"node\":2}\n", "is of the node of its part"},
      {first + part + "{\"at\":10,\"kind\":\"run\",\"v\":1,\"node\":1}\n",
       "of the node of its part"},
      {first + part + "{\"at\":9,\"kind\":\"crash\",\"node\":1}\n", "within the time of its part"},
      {first + part + "{\"at\":21,\"kind\":\"crash\",\"node\":1}\n", "within the time of its part"},
      {first + part + "{\"at\":12,\"kind\":\"crash\",\"node\":1}\n" +
           "{\"at\":11,\"kind\":\"crash\",\"node\":1}\n",
       "t:4: time moves back"},
      {first + "{\"kind\":\"part\",\"node\":1,\"begin\":9,\"end\":8,\"ended\":\"whole\"}\n",
       "ends after its beginning"},
      {first +
           "{\"kind\":\"part\",\"node\":1,\"begin\":1,\"end\":9000000000000,\"ended\":\"whole\"}\n",
       "at most an hour later"},
      {first + "{\"kind\":\"part\",\"node\":1,\"begin\":1,\"end\":2,\"ended\":\"well\"}\n",
       "has ended `whole`, `stopped` or `lost`"},
      {first + "{\"kind\":\"part\",\"begin\":1,\"end\":2,\"ended\":\"whole\"}\n", "is of a node"},
      {first + "{\"kind\":\"probe\",\"asked\":1,\"shown\":2,\"answered\":3}\n", "behind its part"},
      {first + part + "{\"kind\":\"probe\",\"asked\":4,\"shown\":12,\"answered\":3}\n",
       "answered after it was asked"},
      {first + part + "{\"kind\":\"probe\",\"asked\":4,\"shown\":9,\"answered\":5}\n",
       "within the time of its part"}};
  for (const auto& [text, says] : cases) EXPECT_THAT(refusal_of(text), HasSubstr(says)) << text;
}

TEST(ClusterTrace, NoDamagedFileIsMoreThanRefused) {
  Recorded recorded({{seconds(100)}, {seconds(7)}, {std::chrono::hours(90)}});
  recorded.beats(seconds(1), 2);
  const std::string good = encode_cluster_trace(recorded.trace);
  Random random(3);
  for (int i = 0; i < 2000; ++i) {
    std::string text = good;
    const std::size_t at = random.below(text.size());
    switch (random.below(4)) {
      case 0: text.resize(at); break;
      case 1: text[at] = static_cast<char>(random.below(256)); break;
      case 2: text.erase(at, random.below(40)); break;
      default: text.insert(at, text.substr(random.below(text.size()), random.below(80)));
    }
    const auto trace = decode_cluster_trace("t", text);
    if (!trace) {
      EXPECT_THAT(trace.error().message, HasSubstr("t:"));
      continue;
    }
    Duration last(0);
    for (const Record& record : view_of(trace.value(), align_clocks(trace.value()))) {
      EXPECT_GE(record.at, last);
      last = record.at;
      EXPECT_TRUE(decode_record(encode_record(record)).ok()) << encode_record(record);
    }
  }
}

TEST(TraceClocks, ClocksThatAreOffBySecondsComeTogether) {
  Recorded recorded({{seconds(5)}, {seconds(5000)}, {seconds(1) + microseconds(17)}});
  recorded.beats(seconds(10), 4);
  const ClockAlignment alignment = align_clocks(recorded.trace);
  EXPECT_TRUE(alignment.consistent);
  EXPECT_FALSE(alignment.drifting);
  // All began at one true instant: what they say of it differs by less than a way takes.
  for (const PartClock& clock : alignment.clocks) {
    EXPECT_LT(std::chrono::abs(clock.offset), milliseconds(1));
    ASSERT_TRUE(clock.earliest && clock.latest);
    EXPECT_LE(*clock.earliest, Duration(0));
    EXPECT_GE(*clock.latest, Duration(0));
  }
  ASSERT_EQ(alignment.pairs.size(), 3U);
  EXPECT_LE(*alignment.pairs[0].low, seconds(4995));
  EXPECT_GE(*alignment.pairs[0].high, seconds(4995));
  EXPECT_EQ(arrows_of(view_of(recorded.trace, alignment)), deliveries_of(recorded.trace));
}

TEST(TraceClocks, APartThatBeginsLaterStandsLater) {
  Recorded recorded({{seconds(5)}, {seconds(5000)}});
  recorded.beats(seconds(10), 4);
  TracePart& part = recorded.trace.parts[1];
  part.begin += milliseconds(300);
  part.records.erase(part.records.begin(),
                     std::find_if(part.records.begin(), part.records.end(),
                                  [&part](const Record& r) { return r.at >= part.begin; }));
  const ClockAlignment alignment = align_clocks(recorded.trace);
  EXPECT_FALSE(alignment.drifting);
  EXPECT_LT(std::chrono::abs(alignment.clocks[1].offset - milliseconds(300)), milliseconds(1));
}

TEST(TraceClocks, ClocksThatDriftComeTogether) {
  Recorded recorded({{seconds(5), 0}, {seconds(900), 0.01}, {seconds(30), -0.02}});
  recorded.beats(seconds(10), 5);
  const ClockAlignment alignment = align_clocks(recorded.trace);
  EXPECT_TRUE(alignment.drifting);
  EXPECT_TRUE(alignment.consistent);
  EXPECT_NEAR(alignment.clocks[1].rate, -0.01, 0.001);
  EXPECT_NEAR(alignment.clocks[2].rate, 0.02, 0.001);
  EXPECT_EQ(arrows_of(view_of(recorded.trace, alignment)), deliveries_of(recorded.trace));
}

// Rates that fit each pair of clocks may contradict each other around a circle of nodes.
TEST(TraceClocks, ManyClocksThatDriftComeTogether) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Random random(seed);
    std::vector<NodeClock> clocks;
    clocks.reserve(5);
    for (int i = 0; i < 5; ++i) {
      clocks.push_back({seconds(random.below(100'000)),
                        (static_cast<double>(random.below(2000)) - 1000) / 100'000});
    }
    Recorded recorded(clocks, seconds(4));
    recorded.beats(seconds(4), seed);
    const ClockAlignment alignment = align_clocks(recorded.trace);
    EXPECT_TRUE(alignment.consistent) << "seed " << seed;
    EXPECT_EQ(arrows_of(view_of(recorded.trace, alignment)), deliveries_of(recorded.trace));
  }
}

TEST(TraceClocks, AClockThatLeapsIsSaidAndNoArrowLeadsBack) {
  Recorded recorded({{seconds(5)}, {seconds(50)}});
  recorded.beats(seconds(10), 6);
  TracePart& part = recorded.trace.parts[1];
  for (Record& record : part.records) {
    if (record.at - part.begin > seconds(5)) record.at += seconds(3);
  }
  part.end += seconds(3);
  const ClockAlignment alignment = align_clocks(recorded.trace);
  EXPECT_FALSE(alignment.consistent);
  arrows_of(view_of(recorded.trace, alignment));
  EXPECT_THAT(summary_of(recorded.trace, alignment), Contains(HasSubstr("a clock has leapt")));
}

TEST(TraceClocks, NodesOfOneMachineHaveOneClock) {
  Recorded recorded({{seconds(5)}, {seconds(5)}});
  for (TracePart& part : recorded.trace.parts) part.machine = "m";
  recorded.message(1, 2, seconds(1), milliseconds(300), 1);
  const ClockAlignment alignment = align_clocks(recorded.trace);
  EXPECT_TRUE(alignment.shared);
  EXPECT_EQ(alignment.clocks[1].offset, Duration(0));
  EXPECT_EQ(alignment.clocks[1].earliest, alignment.clocks[1].latest);
}

TEST(TraceClocks, AMachineThatShowsTwoTimesIsNotBelieved) {
  Recorded recorded({{seconds(5)}, {seconds(65)}});
  for (TracePart& part : recorded.trace.parts) part.machine = "m";
  recorded.beats(seconds(5), 7);
  const ClockAlignment alignment = align_clocks(recorded.trace);
  EXPECT_FALSE(alignment.shared);
  EXPECT_TRUE(alignment.consistent);
  EXPECT_LT(std::chrono::abs(alignment.clocks[1].offset), milliseconds(1));
}

TEST(TraceClocks, WithoutMessagesTheProbesOfTheClientTieThem) {
  Recorded recorded({{seconds(5)}, {seconds(500)}});
  for (TracePart& part : recorded.trace.parts) {
    part.probes.push_back({seconds(70), part.begin, seconds(70) + milliseconds(4)});
  }
  const ClockAlignment alignment = align_clocks(recorded.trace);
  ASSERT_TRUE(alignment.clocks[1].earliest && alignment.clocks[1].latest);
  EXPECT_EQ(*alignment.clocks[1].latest - *alignment.clocks[1].earliest, milliseconds(8));
  EXPECT_EQ(alignment.clocks[1].offset, Duration(0));
}

TEST(TraceClocks, WithoutAnythingTheSummarySaysSo) {
  const Recorded recorded({{seconds(5)}, {seconds(500)}});
  const auto lines = summary_of(recorded.trace, align_clocks(recorded.trace));
  EXPECT_THAT(lines, Contains(HasSubstr("nothing ties its clock to the others")));
}

TEST(ClusterView, AMessageThatNobodySawArriveIsLost) {
  Recorded recorded({{seconds(5)}, {seconds(9)}});
  recorded.beats(seconds(1), 8);
  TracePart& part = recorded.trace.parts[1];
  const auto arrival = std::find_if(part.records.begin(), part.records.end(),
                                    [](const Record& r) { return r.kind == Kind::delivered; });
  part.records.erase(arrival);
  const auto view = view_of(recorded.trace, align_clocks(recorded.trace));
  EXPECT_EQ(
      std::count_if(view.begin(), view.end(), [](const Record& r) { return r.kind == Kind::lost; }),
      1);
}

TEST(ClusterView, AProcessThatComesBackHasDiedBefore) {
  Recorded recorded({{seconds(5)}, {seconds(9)}});
  recorded.beats(seconds(1), 9);
  recorded.trace.parts[1].ended = "lost";
  recorded.trace.parts[1].text = "closed";
  EXPECT_THAT(summary_of(recorded.trace, align_clocks(recorded.trace)),
              Contains(HasSubstr("lost: closed")));
  auto has = [&](Kind kind, const std::string& what) {
    const auto view = view_of(recorded.trace, align_clocks(recorded.trace));
    return std::any_of(view.begin(), view.end(),
                       [&](const Record& r) { return r.kind == kind && r.what == what; });
  };
  EXPECT_TRUE(has(Kind::mark, "unseen"));
  EXPECT_FALSE(has(Kind::crash, ""));
  TracePart next = recorded.trace.parts[1];
  next.process = 2;
  next.begin = next.end + seconds(1);
  next.end = next.begin + seconds(1);
  next.records.clear();
  recorded.trace.parts.push_back(next);
  EXPECT_TRUE(has(Kind::crash, ""));
}

TEST(ClusterView, FiltersLeaveWhatIsAskedFor) {
  Record record;
  record.kind = Kind::vote;
  record.node = NodeId(2);
  record.peer = NodeId(3);
  record.at = seconds(2);
  ViewFilter filter;
  EXPECT_TRUE(filter.passes(record));
  filter.nodes = {NodeId(3)};
  EXPECT_TRUE(filter.passes(record));
  filter.nodes = {NodeId(1)};
  EXPECT_FALSE(filter.passes(record));
  filter.nodes.clear();
  filter.kinds = {Kind::role};
  EXPECT_FALSE(filter.passes(record));
  filter.kinds = {*kind_named("vote")};
  filter.from = seconds(1);
  EXPECT_TRUE(filter.passes(record));
  filter.from = seconds(3);
  EXPECT_FALSE(filter.passes(record));
  filter.from.reset();
  filter.until = seconds(1);
  EXPECT_FALSE(filter.passes(record));
  EXPECT_FALSE(kind_named("votes"));
}

TEST(ClusterView, ALineSaysWhatHappened) {
  Record record;
  record.at = milliseconds(1234);
  record.kind = Kind::refusal;
  record.node = NodeId(2);
  record.peer = NodeId(3);
  record.term = Term(7);
  record.what = "vote";
  record.why = "promised";
  record.text = "a\x1b[2Jb";
  EXPECT_EQ(line_of(record),
            "   1234.000 ms  node 2   refusal     vote -> node 3 term 7 (promised) a?[2Jb");
}

}  // namespace
}  // namespace leasehold::story
