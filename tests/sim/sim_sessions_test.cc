// The sessions of the simulated state machine and of its clients.
#include <gtest/gtest.h>
#include <leasehold/sim/judge/oracles.h>
#include <leasehold/sim/simulator.h>
#include <leasehold/sim/world/register_machine.h>

#include <optional>
#include <string>

namespace leasehold::sim {
namespace {

using Kind = RegisterMachine::Kind;
using Command = RegisterMachine::Command;
using Verdict = replica::SessionTable::Verdict;

Command once(std::uint64_t session, std::uint64_t sequence, std::uint64_t answered_below,
             std::uint64_t value) {
  return {Kind::once, 5, value, replica::SessionId(session), sequence, answered_below};
}
Command expire(std::uint64_t session, std::uint64_t activity) {
  return {Kind::expire, 0, 0, replica::SessionId(session), 0, 0, activity};
}

/// Applies one after the other.
struct Machine {
  RegisterMachine::State state;
  std::uint64_t index = 0;

  Bytes apply(const Command& command) {
    return RegisterMachine::apply_to(state, {raft::Term(1), raft::Index(++index)}, command).result;
  }
  RegisterMachine::Answer answer(const Command& command) {
    return RegisterMachine::decode_answer(apply(command).view()).value();
  }
};

TEST(RegisterSessions, EveryCommandIsWhatItsBytesSay) {
  const Command all[] = {{Kind::set, 1, 2}, {Kind::open, 0, 9}, once(3, 4, 5, 6), expire(7, 8)};
  for (const Command& command : all) {
    const Bytes bytes = RegisterMachine::encode(command);
    const auto decoded = RegisterMachine::decode_command(bytes.view());
    ASSERT_TRUE(decoded);
    EXPECT_EQ(RegisterMachine::encode(*decoded), bytes);
    EXPECT_EQ(decoded->kind, command.kind);
    const std::string longer = std::string(bytes.view()) + "x";
    EXPECT_FALSE(RegisterMachine::decode_command(longer));
    EXPECT_FALSE(RegisterMachine::decode_command(bytes.view().substr(1)));
  }
  EXPECT_FALSE(RegisterMachine::decode_command(""));
}

TEST(RegisterSessions, ARepetitionChangesNothingAndGetsTheFirstAnswer) {
  Machine machine;
  EXPECT_EQ(RegisterMachine::decode_number(machine.apply({Kind::open}).view()), 1U);
  const auto first = machine.answer(once(1, 1, 1, 70));
  EXPECT_EQ(first.verdict, Verdict::execute);
  EXPECT_EQ(first.executed_at, raft::Index(2));
  machine.apply({Kind::set, 5, 80});
  const auto again = machine.answer(once(1, 1, 1, 70));
  EXPECT_EQ(again.verdict, Verdict::repeated);
  EXPECT_EQ(again.value, 70U);
  EXPECT_EQ(again.executed_at, raft::Index(2));
  EXPECT_EQ(machine.state.values[5], 80U);
  EXPECT_EQ(machine.answer(once(1, 2, 2, 90)).verdict, Verdict::execute);
  EXPECT_EQ(machine.answer(once(1, 1, 1, 70)).verdict, Verdict::answered);
  EXPECT_EQ(machine.state.values[5], 90U);
}

TEST(RegisterSessions, ASessionThatIsIdleIsClosedAndNothingIsExecutedInIt) {
  Machine machine;
  machine.apply({Kind::open});
  machine.answer(once(1, 1, 1, 70));
  EXPECT_EQ(RegisterMachine::decode_number(machine.apply(expire(1, 0)).view()), 0U);
  EXPECT_EQ(RegisterMachine::decode_number(machine.apply(expire(1, 1)).view()), 1U);
  EXPECT_EQ(machine.answer(once(1, 2, 2, 90)).verdict, Verdict::no_session);
  EXPECT_EQ(machine.state.values[5], 70U);
}

// Two states that gave a client different answers differ forever.
TEST(RegisterSessions, TheDigestHoldsTheResults) {
  Machine known;
  Machine unknown;
  known.apply({Kind::open});
  unknown.apply({Kind::open});
  ASSERT_EQ(known.state.history, unknown.state.history);
  unknown.state.sessions = {};
  known.apply(once(1, 1, 1, 70));
  unknown.apply(once(1, 1, 1, 70));
  EXPECT_NE(known.state.history, unknown.state.history);
}

TEST(Simulator, ClientsRepeatTheirWritesAndSessionsExpire) {
  SessionCounts all;
  for (std::uint64_t seed = 1; seed <= 24; ++seed) {
    const SeedReport report = run_seed(seed);
    ASSERT_FALSE(report.violation) << seed;
    all.opened += report.sessions.opened;
    all.writes += report.sessions.writes;
    all.repetitions += report.sessions.repetitions;
    all.repeated += report.sessions.repeated;
    all.expired += report.sessions.expired;
    all.given_up += report.sessions.given_up;
  }
  EXPECT_GT(all.opened, 10U);
  EXPECT_GT(all.writes, 100U);
  EXPECT_GT(all.repetitions, 100U);
  EXPECT_GT(all.repeated, 20U) << "the table had to answer";
  EXPECT_GT(all.expired, 0U);
  EXPECT_GT(all.given_up, 0U);
}

}  // namespace
}  // namespace leasehold::sim
