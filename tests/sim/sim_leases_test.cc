// The leases of the simulated state machine and of its clients.
#include <gtest/gtest.h>
#include <leasehold/sim/lease_cells.h>
#include <leasehold/sim/lease_oracles.h>
#include <leasehold/sim/register_machine.h>
#include <leasehold/sim/simulator.h>

#include <chrono>
#include <string>

namespace leasehold::sim {
namespace {

using lease::FencingToken;
using lease::LeaseId;
using std::chrono::milliseconds;
using std::chrono::seconds;

std::string encoded(const kv::Command& command) {
  return std::string(kv::encode_command(command).value().view());
}
kv::Command grant(std::uint64_t id, std::string_view name) {
  return kv::GrantLease{LeaseId(id), seconds(1), name, "me"};
}
kv::Set leased(std::string_view key, std::uint64_t lease, std::uint64_t token = 0) {
  kv::Set set{key, "v"};
  set.lease = LeaseId(lease);
  set.token = FencingToken(token);
  return set;
}

/// Cells in which everything stands.
LeaseCells some_cells() {
  LeaseCells cells;
  cells.apply(raft::Term(1), encoded(grant(7, "n")));
  cells.apply(raft::Term(1), encoded(grant(0, "")));
  cells.apply(raft::Term(1), encoded(leased("k", 7, 1)));
  cells.apply(raft::Term(1), encoded(leased("j", 0)));
  kv::Set timed{"i", "v"};
  timed.ttl = seconds(1);
  cells.apply(raft::Term(1), encoded(timed));
  return cells;
}

TEST(LeaseCells, SurviveTheirBytes) {
  const LeaseCells cells = some_cells();
  const auto again = LeaseCells::decode(cells.encode());
  ASSERT_TRUE(again);
  EXPECT_EQ(*again, cells);
  EXPECT_EQ(*again->table.keys(LeaseId(7)), lease::LeaseTable::Keys{"k"});
  EXPECT_FALSE(LeaseCells::decode(cells.encode() + "x"));
  EXPECT_FALSE(LeaseCells::decode(cells.encode().substr(1)));
}

TEST(LeaseCells, StandInTheSnapshotsOfTheMachine) {
  RegisterMachine::State state;
  state.leases = some_cells();
  state.values[3] = 4;
  state.applied = raft::Index(9);
  const auto again = RegisterMachine::decode(RegisterMachine::encode(state, 77));
  ASSERT_TRUE(again);
  EXPECT_EQ(*again, state);
}

TEST(LeaseCells, ACommandOfTheStoreIsACommandOfTheMachine) {
  RegisterMachine::Command command;
  command.kind = RegisterMachine::Kind::leases;
  command.of_store = encoded(grant(7, "n"));
  const auto decoded = RegisterMachine::decode_command(RegisterMachine::encode(command).view());
  ASSERT_TRUE(decoded);
  EXPECT_EQ(decoded->of_store, command.of_store);
  RegisterMachine::State state;
  RegisterMachine::apply_to(state, {raft::Term(1), raft::Index(1)}, *decoded);
  EXPECT_NE(state.leases.table.find("n"), nullptr);
}

/// A world in which nothing runs.
struct Judged {
  SimOptions options;
  World world{1, options};
  LeaseOracles oracles{world};
  LeaseCells cells;

  void execute(const kv::Command& command) {
    const std::string bytes = encoded(command);
    oracles.before(bytes, cells);
    const Bytes reply = cells.apply(raft::Term(1), bytes);
    oracles.after({raft::Term(1), raft::Index(1)}, bytes, reply, cells);
  }
  std::string verdict() const { return world.violation ? world.violation->oracle : ""; }
  TrueInstant later() const { return world.queue.now() + milliseconds(10); }
};

TEST(LeaseOracles, TwoHoldersOfOneNameAreFound) {
  Judged judged;
  judged.oracles.holds(1, "n", LeaseId(7), judged.later());
  judged.oracles.holds(1, "n", LeaseId(7), judged.later() + milliseconds(5));
  judged.oracles.holds(2, "m", LeaseId(8), judged.later());
  EXPECT_EQ(judged.verdict(), "");
  judged.oracles.holds(3, "n", LeaseId(9), judged.later());
  EXPECT_EQ(judged.verdict(), "two_holders");
}

TEST(LeaseOracles, WhoHasLetGoHoldsNothing) {
  Judged judged;
  judged.oracles.holds(1, "n", LeaseId(7), judged.later());
  judged.oracles.lets_go(LeaseId(7));
  judged.oracles.holds(3, "n", LeaseId(9), judged.later());
  EXPECT_EQ(judged.verdict(), "");
}

TEST(LeaseOracles, AnEarlyExpiryIsFound) {
  Judged judged;
  judged.execute(grant(7, "n"));
  judged.execute(grant(8, "m"));
  judged.oracles.holds(1, "n", LeaseId(7), judged.later());
  judged.execute(kv::ExpireLeases{raft::Term(1), {{LeaseId(8), 2}}});
  EXPECT_EQ(judged.verdict(), "");
  judged.execute(kv::ExpireLeases{raft::Term(1), {{LeaseId(7), 1}}});
  EXPECT_EQ(judged.verdict(), "lease_expired_early");
}

TEST(LeaseOracles, AnEarlyExpiryOfAKeyIsFound) {
  Judged judged;
  kv::Set timed{"k", "v"};
  timed.ttl = seconds(1);
  judged.execute(timed);
  const LeaseId own = judged.cells.cells.at("k").lease;
  judged.execute(kv::ExpireLeases{raft::Term(1), {{own, 9}}});
  EXPECT_EQ(judged.verdict(), "");
  judged.execute(kv::ExpireLeases{raft::Term(1), {{own, 1}}});
  EXPECT_EQ(judged.verdict(), "lease_expired_early");
}

TEST(LeaseOracles, TheLeaseOfAKeyWithoutItIsFound) {
  Judged judged;
  static_cast<void>(judged.cells.table.grant_to_key(seconds(1), FencingToken(1)));
  judged.cells.table.keep();
  judged.execute(grant(7, "n"));
  EXPECT_EQ(judged.verdict(), "lease_keys");
}

TEST(LeaseOracles, WhoIsToldOfARenewalBehindTheExpiryIsFound) {
  Judged judged;
  judged.execute(grant(7, "n"));
  judged.execute(kv::ExpireLeases{raft::Term(1), {{LeaseId(7), 1}}});
  EXPECT_EQ(judged.verdict(), "");
  judged.oracles.holds(1, "n", LeaseId(7), judged.later());
  EXPECT_EQ(judged.verdict(), "lease_expired_early");
}

TEST(LeaseOracles, ATokenThatDoesNotRiseIsFound) {
  Judged judged;
  judged.execute(grant(7, "n"));
  judged.cells.revision = 0;
  judged.execute(grant(8, "m"));
  EXPECT_EQ(judged.verdict(), "lease_token");
}

TEST(LeaseOracles, AKeyWithoutItsLeaseIsFound) {
  Judged judged;
  judged.execute(grant(7, "n"));
  judged.execute(leased("k", 7));
  EXPECT_EQ(judged.verdict(), "");
  judged.cells.cells["x"].lease = LeaseId(9);
  judged.execute(grant(8, "m"));
  EXPECT_EQ(judged.verdict(), "lease_keys");
}

TEST(LeaseOracles, AWriteBehindALargerTokenIsFound) {
  Judged judged;
  judged.execute(grant(7, "n"));
  judged.execute(grant(8, "m"));
  judged.execute(leased("k", 8, 2));
  EXPECT_EQ(judged.verdict(), "");
  judged.cells.fences.clear();
  judged.execute(leased("k", 7, 1));
  EXPECT_EQ(judged.verdict(), "fence");
}

// What the clients are there for does happen.
TEST(SimLeases, AreGrantedRenewedLostAndFenced) {
  LeaseCounts all;
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    const SeedReport report = run_seed(seed);
    ASSERT_FALSE(report.violation) << seed;
    all.granted += report.leases.granted;
    all.expired += report.leases.expired;
    all.renewed += report.leases.renewed;
    all.without_log += report.leases.without_log;
    all.too_late += report.leases.too_late;
    all.fenced += report.leases.fenced;
  }
  EXPECT_GT(all.granted, 50U);
  EXPECT_GT(all.expired, 30U);
  EXPECT_GT(all.renewed, 50U);
  EXPECT_GT(all.without_log, 30U);
  EXPECT_GT(all.fenced, 0U);
}

}  // namespace
}  // namespace leasehold::sim
