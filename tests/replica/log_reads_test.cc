// Readers of the committed log: what they get, when, and what the log keeps for them.
#include <leasehold/tests/replica/snapshot_fixture.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>
#include <vector>

namespace leasehold::replica::testing {
namespace {

using std::chrono::seconds;

class LogReadsTest : public SnapshotTest {
 protected:
  /// The answers of a reader that asks again whenever it has one.
  using Answers = std::vector<Result<LogPart>>;

  void ask(Rig& at, const LogReadFrom& from, Answers& answers,
           lease::Duration timeout = seconds(30), CallGroup group = CallGroup(0)) {
    at.handle(
        cluster.now(),
        ReadLog{from, cluster.in(timeout),
                [&answers](Result<LogPart> part) { answers.push_back(std::move(part)); }, group});
    cluster.settle();
  }
  static LogReadFrom from(std::uint64_t index, std::uint64_t reader = 0) {
    LogReadFrom from;
    from.index = raft::Index(index);
    from.reader = reader;
    return from;
  }
  /// Reads on until a call would wait; the numbers that write() has put in front of its commands.
  std::vector<int> numbers(Rig& at, LogReadFrom from) {
    std::vector<int> found;
    for (;;) {
      Answers answers;
      ask(at, from, answers, lease::Duration(1));
      cluster.advance(milliseconds(5));
      EXPECT_EQ(answers.size(), 1U);
      if (answers.size() != 1 || !answers[0].ok()) return found;
      const LogPart& part = answers[0].value();
      EXPECT_FALSE(part.cut);
      EXPECT_GT(part.next, from.index);
      raft::Index last = std::max(from.index, raft::Index(1)).prev();
      for (const CommittedCommand& command : part.commands) {
        EXPECT_GT(command.id.index, last);
        EXPECT_LT(command.id.index, part.next);
        last = command.id.index;
        found.push_back(std::stoi(std::string(command.command.view())));
      }
      from.index = part.next;
    }
  }
  static std::vector<int> up_to(int last) {
    std::vector<int> all;
    for (int i = 1; i <= last; ++i) all.push_back(i);
    return all;
  }
};

TEST_F(LogReadsTest, EveryReplicaGivesEveryCommandOnceAndInOrder) {
  DriverOptions options;
  options.cache_bytes_max = 600;  // most entries are read from the disk
  cluster = Cluster(3, options);
  write(leader(), 40);
  cluster.advance(seconds(1));
  LogReadFrom small = from(1);
  small.bytes_max = 350;
  for (std::uint64_t id = 1; id <= 3; ++id) {
    EXPECT_EQ(numbers(cluster.node(id), from(0)), up_to(40)) << "0 is taken for 1";
    EXPECT_EQ(numbers(cluster.node(id), small), up_to(40));
    EXPECT_GT(cluster.node(id).reads_finished(), 0U);
  }
}

TEST_F(LogReadsTest, OneThatIsAtTheEndWaitsForWhatIsCommitted) {
  Rig& leads = leader();
  write(leads, 3);
  Answers answers;
  ask(leads, from(leads.driver().core().commit_index().value() + 1), answers);
  EXPECT_TRUE(answers.empty());
  // Appended, and durable here; the others do not hear of it.
  for (std::uint64_t id = 1; id <= 3; ++id) {
    if (cluster.node(id).id() != leads.id()) cluster.cut(id);
  }
  Answer<ProposeResult> proposed;
  leads.handle(cluster.now(), Propose{Bytes("4."), cluster.in(seconds(30)), proposed.completion()});
  cluster.settle();
  EXPECT_TRUE(answers.empty());
  cluster.heal();
  ASSERT_TRUE(cluster.advance_until([&answers] { return !answers.empty(); }));
  ASSERT_TRUE(answers[0].ok());
  EXPECT_EQ(answers[0].value().commands.at(0).command, Bytes("4."));
  EXPECT_EQ(answers[0].value().commit, leads.driver().core().commit_index());
}

// What others have on their disks, a crash of this node does not take from them; but what a reader
// has seen here must be here again.
TEST_F(LogReadsTest, NothingIsGivenThatIsNotDurableHere) {
  Rig& leads = leader();
  write(leads, 3);
  cluster.advance(seconds(1));
  Answers answers;
  ask(leads, from(leads.driver().core().log().last_index().value() + 1), answers);
  leads.handle(cluster.now(), Propose{Bytes("4."), cluster.in(seconds(30)), [](const auto&) {}});
  // Its own disk stands still.
  for (int round = 0; round < 4; ++round) {
    for (Rig::Sent& sent : leads.take_sent()) {
      Rig& to = cluster.node(sent.to.value());
      to.handle(cluster.now(), PeerMessageReceived{leads.peer(), sent.message});
      if (to.writes_waiting() > 0) to.finish_writes(cluster.now(), to.writes_waiting());
      for (Rig::Sent& answer : to.take_sent()) {
        leads.handle(cluster.now(), PeerMessageReceived{to.peer(), answer.message});
      }
    }
  }
  EXPECT_EQ(leads.driver().core().commit_index(), leads.driver().core().log().last_index());
  EXPECT_TRUE(answers.empty());
  EXPECT_EQ(leads.applies_waiting(), 0U);
  leads.finish_writes(cluster.now(), leads.writes_waiting());
  ASSERT_EQ(leads.applies_waiting(), 1U);
  leads.finish_apply(cluster.now());
  EXPECT_EQ(answers.size(), 1U);
}

// A reader under the lease may not miss what a reader of the log has seen.
TEST_F(LogReadsTest, NothingIsGivenThatTheStateMachineDoesNotShow) {
  Rig& leads = leader();
  cluster.advance(seconds(1));
  Answers answers;
  ask(leads, from(leads.driver().core().log().last_index().value() + 1), answers);
  leads.handle(cluster.now(), Propose{Bytes("1."), cluster.in(seconds(30)), [](const auto&) {}});
  leads.finish_writes(cluster.now(), leads.writes_waiting());
  for (int round = 0; round < 4; ++round) {
    for (Rig::Sent& sent : leads.take_sent()) {
      Rig& to = cluster.node(sent.to.value());
      to.handle(cluster.now(), PeerMessageReceived{leads.peer(), sent.message});
      if (to.writes_waiting() > 0) to.finish_writes(cluster.now(), to.writes_waiting());
      for (Rig::Sent& answer : to.take_sent()) {
        leads.handle(cluster.now(), PeerMessageReceived{to.peer(), answer.message});
      }
    }
  }
  EXPECT_EQ(leads.driver().core().commit_index(), leads.driver().core().durable_index());
  ASSERT_EQ(leads.applies_waiting(), 1U);
  EXPECT_TRUE(answers.empty());
  leads.finish_apply(cluster.now());
  EXPECT_EQ(answers.size(), 1U);
}

TEST_F(LogReadsTest, OneThatIsTooLateIsToldWhereTheLogBegins) {
  Rig& leads = leader();
  write(leads, 200);
  ASSERT_GT(base_of(leads), raft::Index(1));
  Answers answers;
  ask(leads, from(1), answers);
  ASSERT_EQ(answers.size(), 1U);
  ASSERT_TRUE(answers[0].ok());
  EXPECT_TRUE(answers[0].value().cut);
  EXPECT_EQ(answers[0].value().next, base_of(leads).next());
  EXPECT_TRUE(answers[0].value().commands.empty());
  EXPECT_FALSE(numbers(leads, from(answers[0].value().next.value())).empty());
}

// The log is cut while the disk is read, unless the reader has a place.
TEST_F(LogReadsTest, ACutMayComeBeforeTheAnswerOfTheDisk) {
  for (const std::uint64_t reader : {0, 7}) {
    DriverOptions options;
    options.cache_bytes_max = 600;
    options.log_tail_bytes = 500;
    options.log_reader_patience = lease::Duration(0);  // only a call that waits counts
    cluster = Cluster(3, options);
    Rig& leads = leader();
    write(leads, 20);
    Answers answers;
    leads.handle(cluster.now(),
                 ReadLog{from(1, reader), cluster.in(seconds(30)),
                         [&answers](Result<LogPart> part) { answers.push_back(std::move(part)); }});
    ASSERT_EQ(leads.reads().size(), 1U);
    demand(leads);
    leads.finish_snapshots(cluster.now());
    EXPECT_EQ(base_of(leads) > raft::Index(0), reader == 0);
    EXPECT_TRUE(answers.empty());
    leads.finish_reads(cluster.now());
    ASSERT_EQ(answers.size(), 1U);
    ASSERT_TRUE(answers[0].ok());
    EXPECT_EQ(answers[0].value().cut, reader == 0);
    EXPECT_EQ(answers[0].value().commands.empty(), reader == 0);
    EXPECT_FALSE(leads.driver().failure());
  }
}

TEST_F(LogReadsTest, TheLogKeepsWhatAReaderWithAPlaceHasNotRead) {
  DriverOptions options = small_limits();
  options.log_reader_patience = seconds(20);
  cluster = Cluster(3, options);
  Rig& leads = leader();
  LogReadFrom place = from(1, 7);
  Answers answers;
  ask(leads, place, answers);
  ASSERT_EQ(answers.size(), 1U);
  place.index = answers[0].value().next;
  ask(leads, place, answers);
  write(leads, 200);
  ASSERT_EQ(answers.size(), 2U);
  EXPECT_LT(base_of(leads), place.index);
  EXPECT_EQ(numbers(leads, place), up_to(200));
  // It has read all of them.
  write(leads, 60);
  EXPECT_GT(base_of(leads), place.index);
  cluster.advance(seconds(21));
  write(leads, 200);
  EXPECT_GT(base_of(leads), raft::Index(260)) << "a reader that is gone keeps nothing";
}

TEST_F(LogReadsTest, AReaderMayLeaveItsPlace) {
  Rig& leads = leader();
  Answers answers;
  LogReadFrom place = from(1, 7);
  ask(leads, place, answers);
  write(leads, 100);
  EXPECT_EQ(base_of(leads), raft::Index(0));
  place.leaves = true;
  ask(leads, place, answers, lease::Duration(0));
  ASSERT_EQ(answers.size(), 2U);
  EXPECT_EQ(answers[1].error().code, ErrorCode::timed_out);
  write(leads, 1);
  EXPECT_GT(base_of(leads), raft::Index(0));
}

TEST_F(LogReadsTest, NoReaderKeepsMoreThanTheBound) {
  DriverOptions options = small_limits();
  options.log_held_bytes_max = 10'000;
  cluster = Cluster(3, options);
  Rig& leads = leader();
  Answers answers;
  ask(leads, from(1, 7), answers);
  write(leads, 60);
  EXPECT_EQ(base_of(leads), raft::Index(0));
  write(leads, 100);
  EXPECT_GT(base_of(leads), raft::Index(0));
}

TEST_F(LogReadsTest, ACallEndsInTimeOrCancelledOrWithTheNode) {
  Rig& leads = leader();
  const std::uint64_t behind = leads.driver().core().log().last_index().value() + 10;
  Answers answers;
  ask(leads, from(behind), answers, milliseconds(100));
  ask(leads, from(behind), answers, seconds(30), CallGroup(5));
  ask(leads, from(behind), answers);
  EXPECT_TRUE(answers.empty());
  cluster.advance(milliseconds(200));
  ASSERT_EQ(answers.size(), 1U);
  EXPECT_EQ(answers[0].error().code, ErrorCode::timed_out);
  leads.handle(cluster.now(), Cancel{CallGroup(5)});
  ASSERT_EQ(answers.size(), 2U);
  EXPECT_EQ(answers[1].error().code, ErrorCode::timed_out);
  leads.handle(cluster.now(), Stop{});
  ask(leads, from(1), answers);
  ASSERT_EQ(answers.size(), 4U);
  EXPECT_EQ(answers[2].error().code, ErrorCode::stopped);
  EXPECT_EQ(answers[3].error().code, ErrorCode::stopped);
}

TEST_F(LogReadsTest, ThereIsABoundOnReaders) {
  DriverOptions options = small_limits();
  options.log_reads_max = 2;
  options.log_reader_patience = seconds(1);
  cluster = Cluster(3, options);
  Rig& leads = leader();
  Answers answers;
  ask(leads, from(1, 1), answers);
  ask(leads, from(1, 2), answers);
  ask(leads, from(1, 3), answers);
  ASSERT_EQ(answers.size(), 3U);
  EXPECT_EQ(answers[2].error().code, ErrorCode::overloaded) << "two have a place";
  cluster.advance(seconds(2));
  ask(leads, from(1, 3), answers);
  EXPECT_TRUE(answers.at(3).ok()) << "their time is over";
  for (int i = 0; i < 3; ++i) ask(leads, from(1'000), answers);
  ASSERT_EQ(answers.size(), 5U);
  EXPECT_EQ(answers[4].error().code, ErrorCode::overloaded) << "two wait";
}

TEST_F(LogReadsTest, AReadThroughTheLogIsNoCommand) {
  Rig& leads = leader();
  write(leads, 2);
  leads.handle(cluster.now(),
               Read{raft::ReadMode::log, cluster.in(seconds(5)), [](const auto&) {}});
  cluster.advance(milliseconds(100));
  write(leads, 1);
  EXPECT_EQ(numbers(leads, from(1)), up_to(3));
}

TEST_F(LogReadsTest, ADamagedLogIsNotGivenAway) {
  DriverOptions options;
  options.cache_bytes_max = 600;
  cluster = Cluster(3, options);
  Rig& leads = leader();
  write(leads, 40);
  Answers answers;
  leads.handle(cluster.now(),
               ReadLog{from(2), cluster.in(seconds(30)),
                       [&answers](Result<LogPart> part) { answers.push_back(std::move(part)); }});
  ASSERT_EQ(leads.reads().size(), 1U);
  raft::Entry other;
  other.id = {raft::Term(99), raft::Index(2)};
  leads.handle(cluster.now(), EntriesRead{leads.reads()[0].token, std::vector{other}});
  ASSERT_EQ(answers.size(), 1U);
  EXPECT_EQ(answers[0].error().code, ErrorCode::corrupted);
  EXPECT_TRUE(leads.driver().failure());
}

}  // namespace
}  // namespace leasehold::replica::testing
