// The page of metrics: its text format, what it says, and that docs/metrics.md says the same.
#include <leasehold/server/admin/metrics.h>
#include <leasehold/server/admin/process_figures.h>
#include <leasehold/tests/server/admin_rig.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace leasehold::server {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

/// Name and type of each family of a page.
std::map<std::string, std::string> families_of(const std::string& page) {
  std::map<std::string, std::string> found;
  for (const std::string& line : lines_of(page)) {
    std::istringstream words(line);
    std::string hash, what, name, type;
    if (words >> hash >> what >> name >> type && hash == "#" && what == "TYPE") {
      EXPECT_TRUE(found.emplace(name, type).second) << name << " is there twice";
    }
  }
  return found;
}

/// The same of the tables of docs/metrics.md: "| `name` | type | ...".
std::map<std::string, std::string> documented() {
  std::ifstream file(LEASEHOLD_DOCS "/metrics.md");
  EXPECT_TRUE(file.good());
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  std::map<std::string, std::string> found;
  for (const std::string& line : lines_of(text)) {
    std::istringstream words(line);
    std::string bar, name, second_bar, type;
    words >> bar >> name >> second_bar >> type;
    if (type != "counter" && type != "gauge" && type != "histogram") continue;
    EXPECT_TRUE(name.starts_with('`') && name.ends_with('`')) << line;
    EXPECT_TRUE(found.emplace(name.substr(1, name.size() - 2), type).second) << name;
  }
  return found;
}

bool all_of(std::string_view text, std::string_view characters) {
  return !text.empty() && text.find_first_not_of(characters) == std::string_view::npos;
}

/// "name 1", or "name{label=\"value\",...} 1".
bool is_sample(std::string_view line) {
  constexpr std::string_view kName = "abcdefghijklmnopqrstuvwxyz_";
  const std::size_t blank = line.rfind(' ');
  if (blank == std::string_view::npos || !all_of(line.substr(blank + 1), "0123456789-+.e")) {
    return false;
  }
  std::string_view name = line.substr(0, blank);
  if (!name.ends_with('}')) return all_of(name, kName);
  const std::size_t brace = name.find('{');
  if (!all_of(name.substr(0, brace), kName)) return false;
  std::string_view labels = name.substr(brace + 1);
  while (!labels.empty()) {
    const std::size_t equals = labels.find("=\"");
    const std::size_t end = labels.find('"', equals + 2);
    if (end == std::string_view::npos || !all_of(labels.substr(0, equals), kName)) return false;
    const char next = labels[end + 1];
    if (next != ',' && next != '}') return false;
    labels.remove_prefix(end + 2);
  }
  return true;
}

TEST(MetricsText, ASampleIsALine) {
  MetricsText page;
  page.family({"a_total", MetricType::counter, "Of a."}).add(std::uint64_t{3});
  page.family({"b", MetricType::gauge, "Of b."}).add(0.25, {{"x", "1"}, {"y", "two"}});
  EXPECT_EQ(page.take(),
            "# HELP a_total Of a.\n# TYPE a_total counter\na_total 3\n"
            "# HELP b Of b.\n# TYPE b gauge\nb{x=\"1\",y=\"two\"} 0.25\n");
}

TEST(MetricsText, BucketsOfAHistogramAddUp) {
  MetricsText page;
  page.family({"h_seconds", MetricType::histogram, "Of h."})
      .histogram({0.1, 1}, {2, 0, 5}, 7.5, {{"x", "1"}});
  EXPECT_THAT(page.take(), HasSubstr("h_seconds_bucket{x=\"1\",le=\"0.1\"} 2\n"
                                     "h_seconds_bucket{x=\"1\",le=\"1\"} 2\n"
                                     "h_seconds_bucket{x=\"1\",le=\"+Inf\"} 7\n"
                                     "h_seconds_sum{x=\"1\"} 7.5\nh_seconds_count{x=\"1\"} 7\n"));
}

TEST(MetricsText, NoTextOfALabelEndsIt) {
  MetricsText page;
  page.family({"b", MetricType::gauge, "Of b."})
      .add(std::uint64_t{1}, {{"x", "\"} 9\nc 1\\ \x01\xff\xc3\xa4"}});
  EXPECT_THAT(page.take(), HasSubstr("\nb{x=\"\\\"} 9\\nc 1\\\\ ????\"} 1\n"));
}

TEST(Metrics, ThePageAndItsDocumentationNameTheSame) {
  AdminRig rig;
  EXPECT_EQ(families_of(rig.get("/metrics").body), documented());
}

TEST(Metrics, EachLineHasTheFormOfASample) {
  AdminRig rig(3);
  std::set<std::string> seen;
  for (const std::string& line : lines_of(rig.get("/metrics").body)) {
    if (line.starts_with("# ")) continue;
    EXPECT_TRUE(is_sample(line)) << line;
    EXPECT_TRUE(seen.insert(line.substr(0, line.rfind(' '))).second) << line << " is there twice";
  }
  EXPECT_GT(seen.size(), 100U);
}

TEST(Metrics, NamesFollowTheConventions) {
  AdminRig rig;
  for (const auto& [name, type] : families_of(rig.get("/metrics").body)) {
    EXPECT_EQ(name.ends_with("_total"), type == "counter") << name;
    EXPECT_TRUE(name.starts_with("leasehold_") || name.starts_with("process_")) << name;
    for (const char* bad : {"_ms", "_us", "_milliseconds", "_kb", "_count", "_sum", "_bucket"}) {
      EXPECT_FALSE(name.ends_with(bad)) << name;
    }
  }
}

TEST(Metrics, ALeaderShowsItsLeaseAndItsPeers) {
  AdminRig rig;
  rig.look.statuses[0].counters.elections_won = 4;
  rig.state.counters[1].lease_hits.add(5);
  rig.state.counters[0].lease_hits.add(2);
  rig.look.statuses[0].members[2].heard_ago = std::chrono::seconds(3);
  const std::string page = rig.get("/metrics").body;
  for (const char* line :
       {"leasehold_groups_led 1", "leasehold_groups_without_leader 0",
        "leasehold_lease_left_seconds{group=\"1\"} 0.75", "leasehold_lease_left_seconds_min 0.75",
        "leasehold_raft_role{group=\"1\",role=\"leader\"} 1",
        "leasehold_raft_role{group=\"1\",role=\"follower\"} 0",
        "leasehold_raft_term{group=\"1\"} 7", "leasehold_raft_leader{group=\"1\"} 1",
        "leasehold_peer_connected{peer=\"2\"} 1", "leasehold_peer_connected{peer=\"3\"} 0",
        "leasehold_peer_lag_entries{peer=\"3\"} 20", "leasehold_elections_won_total 4",
        "leasehold_reads_total{way=\"lease_hit\"} 7",
        "leasehold_raft_members{group=\"1\",kind=\"voter\"} 3"}) {
    EXPECT_THAT(page, HasSubstr("\n" + std::string(line) + "\n"));
  }
  // Not heard since this leader leads: it may have all of the log, or nothing.
  EXPECT_THAT(page, Not(HasSubstr("leasehold_peer_lag_entries{peer=\"2\"}")));
}

TEST(Metrics, AFollowerHasNoLeastLeaseAndNoLagOfPeers) {
  AdminRig rig;
  rig.look.statuses[0].role = raft::Role::follower;
  rig.look.statuses[0].leader = raft::NodeId(2);
  rig.look.statuses[0].lease_left = lease::Duration(0);
  const std::string page = rig.get("/metrics").body;
  EXPECT_THAT(page, Not(HasSubstr("\nleasehold_lease_left_seconds_min ")));
  EXPECT_THAT(page, Not(HasSubstr("\nleasehold_peer_lag_entries{")));
  EXPECT_THAT(page, HasSubstr("\nleasehold_raft_leader{group=\"1\"} 2\n"));
}

TEST(Metrics, OfManyGroupsAPageShowsTheSumsAndTheWorst) {
  AdminRig rig(kGroupsShownMax + 1);
  rig.look.statuses[5].leader = raft::kNobody;
  rig.look.statuses[5].role = raft::Role::candidate;
  rig.look.statuses[6].applied = raft::Index(10);
  rig.look.statuses[7].lease_left = std::chrono::milliseconds(20);
  for (node::NodeStatus& status : rig.look.statuses) status.counters.proposals = 2;
  const std::string page = rig.get("/metrics").body;
  EXPECT_THAT(page, Not(HasSubstr("group=\"")));
  for (const char* line :
       {"leasehold_groups 17", "leasehold_groups_led 16", "leasehold_groups_without_leader 1",
        "leasehold_apply_lag_entries_max 30", "leasehold_lease_left_seconds_min 0.02",
        "leasehold_proposals_total 34"}) {
    EXPECT_THAT(page, HasSubstr("\n" + std::string(line) + "\n"));
  }
  const std::string some = rig.get("/metrics?group=6,8").body;
  EXPECT_THAT(some, HasSubstr("\nleasehold_raft_leader{group=\"6\"} 0\n"));
  EXPECT_THAT(some, HasSubstr("\nleasehold_raft_leader{group=\"8\"} 1\n"));
  EXPECT_THAT(some, Not(HasSubstr("group=\"7\"")));
  EXPECT_THAT(rig.get("/metrics?group=all").body, HasSubstr("\nleasehold_keys{group=\"17\"} 0\n"));
}

raft::Event role_change(raft::Role from, raft::Role to, raft::RoleChangeReason reason) {
  raft::Event event;
  event.group = raft::GroupId(1);
  event.term = raft::Term(3);
  event.what = raft::RoleChanged{from, to, reason};
  return event;
}

TEST(Metrics, ACampaignCountsOnceUnderItsCause) {
  using Reason = raft::RoleChangeReason;
  AdminRig rig;
  const auto note = [&](raft::Role from, raft::Role to, Reason reason) {
    rig.events.note(role_change(from, to, reason));
  };
  note(raft::Role::follower, raft::Role::pre_candidate, Reason::election_timeout);
  note(raft::Role::pre_candidate, raft::Role::candidate, Reason::pre_vote_won);
  note(raft::Role::candidate, raft::Role::leader, Reason::election_won);
  note(raft::Role::leader, raft::Role::follower, Reason::quorum_lost);
  note(raft::Role::follower, raft::Role::candidate, Reason::transfer);
  note(raft::Role::candidate, raft::Role::follower, Reason::election_lost);
  rig.events.note_lease(1, raft::Term(3), true);
  rig.events.note_lease(1, raft::Term(3), false);
  const std::string page = rig.get("/metrics").body;
  for (const char* line : {"leasehold_campaigns_total{cause=\"election_timeout\"} 1",
                           "leasehold_campaigns_total{cause=\"transfer\"} 1",
                           "leasehold_campaigns_total{cause=\"leader_ended\"} 0",
                           "leasehold_leaderships_ended_total{cause=\"quorum_lost\"} 1",
                           "leasehold_leaderships_ended_total{cause=\"higher_term\"} 0",
                           "leasehold_leases_gained_total 1", "leasehold_leases_ended_total 1"}) {
    EXPECT_THAT(page, HasSubstr("\n" + std::string(line) + "\n"));
  }
}

TEST(EventCounts, TheNewestStepsAreKeptAndNoMore) {
  EventCounts events(true);
  for (std::uint64_t i = 1; i <= EventCounts::kRecentMax + 5; ++i) {
    raft::Event event;
    event.group = raft::GroupId(i);
    event.what = raft::LeaderKnown{raft::NodeId(20'007)};
    events.note(event);
  }
  const auto recent = events.recent();
  ASSERT_EQ(recent.size(), EventCounts::kRecentMax);
  EXPECT_EQ(recent.front().group, EventCounts::kRecentMax + 5);
  // The number of the node, not of its replica.
  EXPECT_EQ(recent.front().text, "node 7 leads");
}

TEST(Metrics, ASyncIsInTheBucketThatItsTimeFits) {
  AdminRig rig;
  rig.clock.set_step(std::chrono::nanoseconds(0));
  const storage::SyncTimes::Begun begun(&rig.syncs);
  rig.clock.advance(std::chrono::microseconds(250));
  begun.note();
  rig.syncs.note(std::chrono::seconds(3));
  storage::SyncTimes::Begun(nullptr).note();
  const std::string page = rig.get("/metrics").body;
  for (const char* line :
       {"_bucket{le=\"0.0001\"} 0", "_bucket{le=\"0.00025\"} 1", "_bucket{le=\"2.5\"} 1",
        "_bucket{le=\"+Inf\"} 2", "_sum 3.00025", "_count 2"}) {
    EXPECT_THAT(page, HasSubstr("\nleasehold_log_sync_seconds" + std::string(line) + "\n"));
  }
}

TEST(Metrics, ARoundIsInTheBucketThatItsTimeFits) {
  AdminRig rig;
  rig.events.note_round(std::chrono::microseconds(101));
  rig.events.note_round(std::chrono::milliseconds(5));
  const std::string page = rig.get("/metrics").body;
  for (const char* line : {"_bucket{le=\"0.0001\"} 0", "_bucket{le=\"0.00025\"} 1",
                           "_bucket{le=\"0.005\"} 2", "_count 2"}) {
    EXPECT_THAT(page, HasSubstr("\nleasehold_round_trip_seconds" + std::string(line) + "\n"));
  }
}

TEST(Metrics, WhatIsLeftOfALeaseAtAReadIsCounted) {
  AdminRig rig;
  Counters& counters = rig.state.counters[1];
  counters.note_lease_hit(std::chrono::nanoseconds(1));
  counters.note_lease_hit(std::chrono::milliseconds(700));
  counters.note_lease_hit(std::chrono::hours(1));
  const std::string page = rig.get("/metrics").body;
  EXPECT_THAT(page, HasSubstr("\nleasehold_reads_total{way=\"lease_hit\"} 3\n"));
  for (const char* line : {"_bucket{le=\"0.001048576\"} 1", "_bucket{le=\"0.536870912\"} 1",
                           "_bucket{le=\"1.073741824\"} 2", "_bucket{le=\"+Inf\"} 3", "_count 3"}) {
    EXPECT_THAT(page,
                HasSubstr("\nleasehold_lease_left_at_reads_seconds" + std::string(line) + "\n"));
  }
}

TEST(Metrics, CommandsAreCountedByKind) {
  AdminRig rig;
  rig.state.counters[0].note_command(static_cast<int>(CommandGroup::leasehold));
  rig.state.counters[1].note_command(-1);
  const std::string page = rig.get("/metrics").body;
  EXPECT_THAT(page, HasSubstr("\nleasehold_commands_total 2\n"));
  EXPECT_THAT(page, HasSubstr("\nleasehold_commands_by_kind_total{kind=\"leasehold\"} 1\n"));
  EXPECT_THAT(page, HasSubstr("\nleasehold_commands_by_kind_total{kind=\"none\"} 1\n"));
}

TEST(ProcessFigures, WithoutADescriptorLeftAllAreOpen) {
  const int lowest = dup(STDERR_FILENO);
  ASSERT_GT(lowest, 0);
  close(lowest);
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none_left{static_cast<rlim_t>(lowest), before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none_left), 0);
  const ProcessFigures figures = process_figures("/");
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_EQ(figures.open_files_max, static_cast<std::uint64_t>(lowest));
  EXPECT_EQ(figures.open_files, figures.open_files_max);
  EXPECT_GT(process_figures("/").open_files, 0U);
}

TEST(Metrics, OnlyGroupsThatAreThereAreShown) {
  EXPECT_EQ(shown_groups("", 3), (std::vector<std::size_t>{0, 1, 2}));
  EXPECT_THAT(shown_groups("", kGroupsShownMax + 1), IsEmpty());
  EXPECT_EQ(shown_groups("2,2,1", 3), (std::vector<std::size_t>{1, 0}));
  EXPECT_EQ(shown_groups("3", 3), std::vector<std::size_t>{2});
  for (const char* none : {"0", "4", "-1", "1x", ",", "18446744073709551617", " 1", "ALL", "\"}"}) {
    EXPECT_THAT(shown_groups(none, 3), IsEmpty()) << none;
  }
}

}  // namespace
}  // namespace leasehold::server
