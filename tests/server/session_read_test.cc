// Reads of a session: what justifies each, and when it is answered.
#include <leasehold/server/commands/command_table.h>
#include <leasehold/server/front/session.h>
#include <leasehold/tests/server/session_fixture.h>

#include <nlohmann/json.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace leasehold::server {
namespace {

using std::chrono::milliseconds;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

TEST_F(SessionTest, ReadsUnderTheLeaseAreAnsweredAtOnce) {
  write({"SET", "k", "v"});
  node_.grant_lease(milliseconds(500));
  EXPECT_EQ(feed("GET k\r\nGET none\r\nEXISTS k none k\r\nDBSIZE\r\n"),
            "$1\r\nv\r\n$-1\r\n:2\r\n:1\r\n");
  EXPECT_EQ(node_.reads() + node_.waits(), 0U);
  EXPECT_EQ(count(&Counters::lease_hits), 4U);
  EXPECT_EQ(count(&Counters::lease_fallbacks), 0U);
}

TEST_F(SessionTest, TheLeaseIsOverAtItsEndAndNotAfter) {
  node_.grant_lease(milliseconds(500));
  node_.manual_clock().advance(milliseconds(500) - std::chrono::nanoseconds(1));
  EXPECT_EQ(feed("GET k\r\n"), "$-1\r\n");
  node_.manual_clock().advance(std::chrono::nanoseconds(1));
  EXPECT_EQ(feed("GET k\r\n"), "");
  EXPECT_EQ(node_.next_read_mode(), raft::ReadMode::lease);
  EXPECT_EQ(count(&Counters::lease_hits), 1U);
  EXPECT_EQ(count(&Counters::lease_fallbacks), 1U);
}

TEST_F(SessionTest, ALeaseReadWaitsForApplyAndDoesNotFallBack) {
  node_.grant_lease(milliseconds(500));
  node_.commit_ahead(3);
  EXPECT_EQ(feed("GET a\r\nGET b\r\n"), "");
  // One wait serves both; the view is looked at again for the second.
  ASSERT_EQ(node_.waits(), 1U);
  EXPECT_EQ(node_.reads(), 0U);
  node_.apply_all();
  node_.end_wait(node_.granted(raft::ReadBasis::lease));
  EXPECT_EQ(pump(), "$-1\r\n$-1\r\n");
  EXPECT_EQ(count(&Counters::lease_waits), 2U);
  EXPECT_EQ(count(&Counters::answered_lease), 2U);
  EXPECT_EQ(count(&Counters::lease_fallbacks), 0U);
}

// lease/README.md, rule 52.
TEST_F(SessionTest, AReadOfRecordsDoesNotWaitForWhatNoOtherNodeKnows) {
  write({"SET", "k", "v"});
  node_.grant_lease(milliseconds(500));
  node_.commit_untold(1);
  EXPECT_EQ(feed("GET k\r\nMGET k\r\nEXISTS k\r\nSTRLEN k\r\n"),
            "$1\r\nv\r\n*1\r\n$1\r\nv\r\n:1\r\n:1\r\n");
  EXPECT_EQ(count(&Counters::lease_waits), 0U);
  // What is counted, or kept beside the records, may be shown before them or after.
  for (const std::string other : {"DBSIZE", "TTL k", "LEASE.LIST", "KEYS *"}) {
    EXPECT_EQ(feed(other + "\r\n"), "") << other;
    ASSERT_EQ(node_.waits(), 1U) << other;
    node_.end_wait(node_.granted(raft::ReadBasis::lease));
    EXPECT_NE(pump(), "") << other;
  }
}

TEST_F(SessionTest, OneReadIndexServesThePipelineThatHasArrived) {
  write({"SET", "k", "v"});
  EXPECT_EQ(feed("GET k\r\nGET k\r\nEXISTS k\r\n"), "");
  ASSERT_EQ(node_.reads(), 1U);
  node_.end_read(node_.granted(raft::ReadBasis::leader));
  EXPECT_EQ(pump(), "$1\r\nv\r\n$1\r\nv\r\n:1\r\n");
  EXPECT_EQ(count(&Counters::lease_fallbacks), 3U);
  EXPECT_EQ(count(&Counters::answered_leader), 3U);
}

TEST_F(SessionTest, AReadThatArrivesLaterHasItsOwnReadIndex) {
  feed("GET k\r\n");
  feed("GET k\r\n");
  EXPECT_EQ(node_.reads(), 2U);
}

TEST_F(SessionTest, RefusedReadsSayWhy) {
  feed("GET k\r\nGET k\r\n");
  replica::ReadResult refused;
  node_.end_read(refused);
  EXPECT_THAT(pump(), StartsWith("-NOLEADER "));
  feed("GET k\r\n");
  refused.leader = raft::NodeId(2);
  node_.end_read(refused);
  EXPECT_THAT(pump(), StartsWith("-TRYAGAIN the leader changed, or this node leaves"));
  EXPECT_EQ(count(&Counters::reads_refused), 3U);
}

TEST_F(SessionTest, ReadModesAskForWhatTheyName) {
  node_.grant_lease(milliseconds(500));
  EXPECT_EQ(feed("LEASEHOLD READMODE\r\n"), "$5\r\nlease\r\n");
  EXPECT_EQ(feed("LEASEHOLD READMODE quorum\r\nGET k\r\n"), "+OK\r\n");
  ASSERT_EQ(node_.reads(), 1U);
  EXPECT_EQ(node_.next_read_mode(), raft::ReadMode::quorum);
  node_.end_read(node_.granted(raft::ReadBasis::quorum));
  EXPECT_EQ(pump(), "$-1\r\n");
  EXPECT_EQ(feed("LEASEHOLD READMODE LOG\r\nGET k\r\n"), "+OK\r\n");
  EXPECT_EQ(node_.next_read_mode(), raft::ReadMode::log);
  node_.end_read(node_.granted(raft::ReadBasis::quorum));
  EXPECT_EQ(pump(), "$-1\r\n");
  EXPECT_THAT(feed("LEASEHOLD READMODE never\r\n"), StartsWith("-ERR unknown read mode 'never'"));
  EXPECT_EQ(feed("LEASEHOLD READMODE lease\r\nGET k\r\n"), "+OK\r\n$-1\r\n");
  EXPECT_EQ(count(&Counters::answered_quorum), 1U);
  EXPECT_EQ(count(&Counters::answered_log), 1U);
  EXPECT_EQ(count(&Counters::lease_hits), 1U);
}

TEST_F(SessionTest, AChangeOfReadModeInAPipelineLeavesEarlierReadsAsTheyWere) {
  feed("GET a\r\nLEASEHOLD READMODE quorum\r\nGET b\r\n");
  ASSERT_EQ(node_.reads(), 2U);
  EXPECT_EQ(node_.next_read_mode(), raft::ReadMode::lease);
  node_.end_read(node_.granted(raft::ReadBasis::quorum));
  EXPECT_EQ(node_.next_read_mode(), raft::ReadMode::quorum);
  node_.end_read(node_.granted(raft::ReadBasis::quorum));
  EXPECT_EQ(pump(), "$-1\r\n+OK\r\n$-1\r\n");
}

TEST_F(SessionTest, LeaseReadsCanBeSwitchedOff) {
  state_.options.lease_reads = false;
  node_.grant_lease(milliseconds(500));
  EXPECT_EQ(feed("GET k\r\n"), "");
  EXPECT_EQ(node_.next_read_mode(), raft::ReadMode::quorum);
  EXPECT_EQ(count(&Counters::quorum_asked), 1U);
  EXPECT_EQ(count(&Counters::lease_hits), 0U);
}

class ReadModes : public SessionTest {
 protected:
  std::string explained() { return feed("LEASEHOLD EXPLAIN\r\n"); }
  static std::string field(const char* name, const std::string& value) {
    std::string out;
    append_bulk(out, name);
    append_bulk(out, value);
    return out;
  }
};

TEST_F(ReadModes, ExplainSaysWhyAReadWasServedAsItWas) {
  write({"SET", "k", "v"});
  EXPECT_EQ(explained(), "*2\r\n$6\r\nserved\r\n$4\r\nnone\r\n");
  node_.grant_lease(milliseconds(500));
  feed("GET k\r\n");
  EXPECT_THAT(explained(), HasSubstr(field("served", "lease")));
  EXPECT_THAT(explained(), HasSubstr("lease_left_us\r\n:500000\r\n"));
  node_.manual_clock().advance(milliseconds(600));
  feed("GET k\r\n");
  node_.end_read(node_.granted(raft::ReadBasis::leader));
  pump();
  EXPECT_THAT(explained(), HasSubstr(field("served", "leader")));
  EXPECT_THAT(explained(), HasSubstr(field("fallback", "the lease of this node had ended")));
  EXPECT_THAT(explained(), HasSubstr("lease_left_us\r\n:0\r\n"));
  EXPECT_THAT(explained(), HasSubstr("$5\r\nindex\r\n"));
  node_.grant_lease(milliseconds(500));
  feed("GET k\r\n");
  EXPECT_THAT(explained(), Not(HasSubstr("$5\r\nindex\r\n")));
}

TEST_F(ReadModes, OneReadMayHaveAModeOfItsOwn) {
  node_.grant_lease(milliseconds(500));
  EXPECT_EQ(feed("LEASEHOLD READ quorum GET k\r\n"), "");
  EXPECT_EQ(node_.next_read_mode(), raft::ReadMode::quorum);
  node_.end_read(node_.granted(raft::ReadBasis::quorum));
  EXPECT_EQ(pump(), "$-1\r\n");
  EXPECT_THAT(explained(), HasSubstr(field("served", "quorum")));
  EXPECT_EQ(feed("GET k\r\n"), "$-1\r\n");
  EXPECT_EQ(feed("LEASEHOLD READMODE\r\n"), "$5\r\nlease\r\n");
  EXPECT_THAT(feed("LEASEHOLD READ log SET k v\r\n"), StartsWith("-ERR 'SET' is not a command"));
  EXPECT_THAT(feed("LEASEHOLD READ log WATCH k\r\n"), StartsWith("-ERR 'WATCH' is not a command"));
  EXPECT_THAT(feed("LEASEHOLD READ stale GET k\r\n"), StartsWith("-ERR 'GET' is not a duration"));
  EXPECT_THAT(feed("LEASEHOLD READMODE stale\r\n"), StartsWith("-ERR stale needs a bound"));
}

TEST_F(ReadModes, ReadsOfTwoModesAreAskedForApart) {
  feed("LEASEHOLD READ quorum GET a\r\nLEASEHOLD READ log GET b\r\nGET c\r\n");
  ASSERT_EQ(node_.reads(), 3U);
  EXPECT_EQ(node_.next_read_mode(), raft::ReadMode::quorum);
  node_.end_read(node_.granted(raft::ReadBasis::quorum));
  EXPECT_EQ(node_.next_read_mode(), raft::ReadMode::log);
  node_.end_read(node_.granted(raft::ReadBasis::quorum));
  EXPECT_EQ(node_.next_read_mode(), raft::ReadMode::lease);
}

// The clock may lose a tenth: 500 ms of true time are 450 ms of it.
TEST_F(ReadModes, StaleIsServedWithinItsBoundAndFallsBackPastIt) {
  node_.lease_view().fresh_since().set_drift_ppm(100'000);
  write({"SET", "k", "v"});
  EXPECT_EQ(feed("LEASEHOLD READMODE stale 500ms\r\n"), "+OK\r\n");
  EXPECT_EQ(feed("LEASEHOLD READMODE\r\n"), "$11\r\nstale 500ms\r\n");
  // Nothing is known of this node's state yet: a linearizable read finds out.
  EXPECT_EQ(feed("GET k\r\n"), "");
  node_.manual_clock().advance(milliseconds(100));
  node_.end_read(node_.granted(raft::ReadBasis::leader));
  EXPECT_EQ(pump(), "$1\r\nv\r\n");
  EXPECT_EQ(count(&Counters::stale_fallbacks), 1U);
  EXPECT_EQ(feed("GET k\r\n"), "$1\r\nv\r\n");
  EXPECT_EQ(count(&Counters::stale_hits), 1U);
  EXPECT_THAT(explained(), HasSubstr(field("served", "stale")));
  // The age counts from the beginning of the linearizable read, not from its answer.
  node_.manual_clock().advance(milliseconds(349));
  EXPECT_EQ(feed("GET k\r\n"), "$1\r\nv\r\n");
  node_.manual_clock().advance(milliseconds(1));
  EXPECT_EQ(feed("GET k\r\n"), "");
  EXPECT_EQ(count(&Counters::stale_fallbacks), 2U);
  node_.end_read(node_.granted(raft::ReadBasis::leader));
  EXPECT_EQ(pump(), "$1\r\nv\r\n");
  EXPECT_THAT(explained(), HasSubstr(field("bound_held", "no")));
}

// What is committed between the copy of the lease view and the look at the clock may be missing in
// the copy: the age counts from before both.
TEST_F(ReadModes, TheAgeCountsFromBeforeTheLeaseWasLookedAt) {
  write({"SET", "k", "v"});
  node_.grant_lease(std::chrono::hours(1));
  node_.manual_clock().set_step(milliseconds(300));
  const std::string bound = "LEASEHOLD READ stale 500ms GET k\r\n";
  EXPECT_EQ(feed(bound), "$1\r\nv\r\n");
  node_.manual_clock().set_step(milliseconds(0));
  EXPECT_EQ(feed(bound), "$1\r\nv\r\n");
  EXPECT_EQ(count(&Counters::stale_hits), 0U);
  EXPECT_EQ(feed(bound), "$1\r\nv\r\n");
  EXPECT_EQ(count(&Counters::stale_hits), 1U);
}

// A caller of the node's own read does the same.
TEST_F(ReadModes, TheAgeOfAReadPointCountsFromBeforeTheLeaseWasLookedAt) {
  node_.grant_lease(std::chrono::hours(1));
  node_.manual_clock().set_step(milliseconds(300));
  node::CallOptions options = std::chrono::seconds(1);
  options.max_age = milliseconds(500);
  EXPECT_FALSE(node_.read_point(raft::ReadMode::lease, options).stale);
  node_.manual_clock().set_step(milliseconds(0));
  EXPECT_FALSE(node_.read_point(raft::ReadMode::lease, options).stale);
  EXPECT_TRUE(node_.read_point(raft::ReadMode::lease, options).stale);
}

// The state catches up with an index that was copied before the clock was read.
TEST_F(ReadModes, TheAgeOfAReadThatWaitedCountsFromBeforeItLooked) {
  write({"SET", "k", "v"});
  node_.grant_lease(std::chrono::hours(1));
  node_.commit_ahead(1);
  node_.manual_clock().set_step(milliseconds(300));
  const std::string bound = "LEASEHOLD READ stale 500ms GET k\r\n";
  EXPECT_EQ(feed(bound), "");
  node_.manual_clock().set_step(milliseconds(0));
  node_.apply_all();
  node_.end_wait(node_.granted(raft::ReadBasis::lease));
  EXPECT_EQ(pump(), "$1\r\nv\r\n");
  EXPECT_EQ(feed(bound), "$1\r\nv\r\n");
  EXPECT_EQ(count(&Counters::stale_hits), 0U);
}

TEST_F(ReadModes, ARefusedReadMakesNothingFresh) {
  feed("LEASEHOLD READMODE stale 1m\r\n");
  feed("GET k\r\n");
  node_.end_read(replica::ReadResult{});
  EXPECT_THAT(pump(), StartsWith("-NOLEADER "));
  EXPECT_EQ(feed("GET k\r\n"), "");
  EXPECT_EQ(count(&Counters::stale_hits), 0U);
}

}  // namespace
}  // namespace leasehold::server
