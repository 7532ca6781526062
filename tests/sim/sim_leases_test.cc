// The leases of the simulated state machine and of its clients.
#include <gtest/gtest.h>
#include <leasehold/sim/judge/lease_oracles.h>
#include <leasehold/sim/judge/watch_oracle.h>
#include <leasehold/sim/plan/draw_plan.h>
#include <leasehold/sim/simulator.h>
#include <leasehold/sim/world/lease_cells.h>
#include <leasehold/sim/world/register_machine.h>

#include "kept_plans.h"

#include <chrono>
#include <functional>
#include <string>

namespace leasehold::sim {
namespace {

using grant::FencingToken;
using grant::LeaseId;
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
  kv::GrantLease terms{LeaseId(9), seconds(1), "m", "me"};
  terms.terms = {milliseconds(5), milliseconds(6), false};
  cells.apply(raft::Term(1), encoded(terms));
  cells.apply(raft::Term(1), encoded(kv::ExpireLeases{raft::Term(1), {{LeaseId(9), 3}}}));
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
  EXPECT_EQ(*again->table.keys(LeaseId(7)), grant::LeaseTable::Keys{"k"});
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
  World world{draw_plan(1, options), options};
  LeaseOracles oracles{world};
  WatchOracle watches{world};
  LeaseCells cells;

  void execute(const kv::Command& command) {
    const std::string bytes = encoded(command);
    oracles.before(bytes, cells);
    watches.before(bytes, cells);
    std::vector<kv::Revision> told;
    const Bytes reply = cells.apply(raft::Term(1), bytes, &told);
    newest = told.empty() ? kv::Revision{} : told[0];
    if (spoil && !told.empty()) spoil(told[0]);
    oracles.after({raft::Term(1), raft::Index(1)}, bytes, reply, cells);
    watches.after({raft::Term(1), raft::Index(1)}, cells, std::move(told));
  }
  void holds(std::uint64_t client, const char* name, std::uint64_t lease, TrueInstant until) {
    oracles.holds({client, name, {}, world.queue.now(), until}, LeaseId(lease));
  }
  /// Nothing happens in that time.
  void pass(Duration time) {
    world.queue.after(time, [this] { newest = {}; });
    world.queue.run_next(world.queue.now() + time);
  }
  WatchOracle::Copy copy() const {
    WatchOracle::Copy all;
    for (const auto& [key, value] : cells.cells) all[key] = std::string(value.bytes.view());
    return all;
  }
  kv::Revision newest;  ///< what the last command told
  std::function<void(kv::Revision&)> spoil;
  std::string verdict() const { return world.violation ? world.violation->oracle : ""; }
  TrueInstant later() const { return world.queue.now() + milliseconds(10); }
};

TEST(LeaseOracles, TwoHoldersOfOneNameAreFound) {
  Judged judged;
  judged.holds(1, "n", 7, judged.later());
  judged.holds(1, "n", 7, judged.later() + milliseconds(5));
  judged.holds(2, "m", 8, judged.later());
  EXPECT_EQ(judged.verdict(), "");
  judged.holds(3, "n", 9, judged.later());
  EXPECT_EQ(judged.verdict(), "two_holders");
}

TEST(LeaseOracles, AReleasedLeaseIsNotHeld) {
  Judged judged;
  judged.holds(1, "n", 7, judged.later());
  judged.oracles.lets_go(LeaseId(7));
  judged.holds(3, "n", 9, judged.later());
  EXPECT_EQ(judged.verdict(), "");
}

TEST(LeaseOracles, AnEarlyExpiryIsFound) {
  Judged judged;
  judged.execute(grant(7, "n"));
  judged.execute(grant(8, "m"));
  judged.holds(1, "n", 7, judged.later());
  judged.execute(kv::ExpireLeases{raft::Term(1), {{LeaseId(8), 2}}});
  EXPECT_EQ(judged.verdict(), "");
  judged.execute(kv::ExpireLeases{raft::Term(1), {{LeaseId(7), 1}}});
  EXPECT_EQ(judged.verdict(), "lease_expired_early");
}

kv::GrantLease with(grant::LeaseTerms terms) {
  kv::GrantLease grant{LeaseId(7), milliseconds(100), "n", "me"};
  grant.terms = terms;
  return grant;
}
kv::Command expire(std::uint64_t id, std::uint64_t stamp) {
  return kv::ExpireLeases{raft::Term(1), {{LeaseId(id), stamp}}};
}

TEST(LeaseOracles, AnExpiryInAGracePeriodIsFound) {
  for (const bool early : {true, false}) {
    Judged judged;
    judged.execute(with({milliseconds(50), {}, false}));
    judged.holds(1, "n", 7, judged.later());
    judged.pass(milliseconds(early ? 120 : 151));
    judged.execute(grant(8, "n"));
    judged.execute(expire(7, 1));
    EXPECT_EQ(judged.verdict(), early ? "lease_grace" : "");
  }
}

TEST(LeaseOracles, BehindASoftLimitALeaseEndsForAnyClientThatAsks) {
  for (const bool wanted : {true, false}) {
    Judged judged;
    judged.execute(with({milliseconds(50), {}, true}));
    judged.holds(1, "n", 7, judged.later());
    judged.pass(milliseconds(120));
    if (wanted) judged.execute(grant(8, "n"));
    judged.execute(expire(7, 1));
    EXPECT_EQ(judged.verdict(), wanted ? "" : "lease_grace");
    EXPECT_EQ(judged.oracles.counts().taken_over, wanted ? 1U : 0U);
  }
}

TEST(LeaseOracles, AGrantDuringALockDelayIsFound) {
  enum class How { early, late, revoked };
  for (const How how : {How::early, How::late, How::revoked}) {
    Judged judged;
    judged.execute(with({{}, milliseconds(50), false}));
    judged.execute(leased("k", 7));
    judged.execute(expire(7, 1));
    EXPECT_EQ(judged.oracles.counts().delayed, 1U);
    if (how == How::late) judged.pass(milliseconds(51));
    judged.execute(how == How::revoked ? kv::Command(kv::RevokeLease{LeaseId(7)}) : expire(7, 2));
    judged.execute(grant(8, "m"));
    EXPECT_EQ(judged.verdict(), "");
    judged.execute(grant(9, "n"));
    EXPECT_EQ(judged.verdict(), how == How::early ? "lock_delay" : "");
  }
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

TEST(LeaseOracles, ARenewalBehindTheExpiryIsFound) {
  Judged judged;
  judged.execute(grant(7, "n"));
  judged.execute(kv::ExpireLeases{raft::Term(1), {{LeaseId(7), 1}}});
  EXPECT_EQ(judged.verdict(), "");
  judged.holds(1, "n", 7, judged.later());
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

TEST(WatchOracle, AWatcherThatGetsEverythingOnceAndInOrderIsFine) {
  Judged judged;
  judged.watches.resynced(0, 0, {});
  judged.execute(grant(7, "n"));
  judged.watches.told(0, judged.newest, judged.copy());
  judged.execute(leased("k", 7, 1));
  judged.watches.told(0, judged.newest, judged.copy());
  judged.watches.resynced(1, 2, judged.copy());
  judged.execute(kv::RevokeLease{LeaseId(7)});
  ASSERT_EQ(judged.newest.events.size(), 1U);
  EXPECT_EQ(judged.newest.events[0].kind, kv::EventKind::revoked);
  judged.watches.told(0, judged.newest, judged.copy());
  judged.watches.told(1, judged.newest, judged.copy());
  EXPECT_EQ(judged.verdict(), "");
  EXPECT_EQ(judged.watches.revisions_told(), 4U);
  EXPECT_EQ(judged.watches.resyncs(), 2U);
}

TEST(WatchOracle, AWrongEventForAWatcherIsFound) {
  const auto verdict_of = [](const std::function<void(Judged&)>& wrong) {
    Judged judged;
    judged.watches.resynced(0, 0, {});
    judged.execute(leased("k", 0));
    judged.watches.told(0, judged.newest, judged.copy());
    EXPECT_EQ(judged.verdict(), "");
    wrong(judged);
    return judged.verdict();
  };
  const std::vector<std::pair<const char*, std::function<void(Judged&)>>> wrongs = {
      {"twice", [](Judged& j) { j.watches.told(0, j.newest, j.copy()); }},
      {"a gap",
       [](Judged& j) {
         j.execute(leased("k", 0));
         j.execute(leased("k", 0));
         j.watches.told(0, j.newest, j.copy());
       }},
      {"before it is committed",
       [](Judged& j) {
         ++j.newest.number;
         j.watches.told(0, j.newest, j.copy());
       }},
      {"another key",
       [](Judged& j) {
         j.execute(leased("k", 0));
         j.newest.events.at(0).key = "l";
         j.watches.told(0, j.newest, j.copy());
       }},
      {"an event is missing",
       [](Judged& j) {
         j.execute(leased("k", 0));
         j.newest.events.clear();
         j.watches.told(0, j.newest, j.copy());
       }},
      {"its copy is not what there is",
       [](Judged& j) {
         j.execute(leased("k", 0));
         j.watches.told(0, j.newest, {});
       }},
      {"a read of a state that was not", [](Judged& j) { j.watches.resynced(0, 1, {}); }},
      {"a read before it is committed", [](Judged& j) { j.watches.resynced(0, 2, j.copy()); }},
  };
  for (const auto& [name, wrong] : wrongs) EXPECT_EQ(verdict_of(wrong), "watch") << name;
}

TEST(WatchOracle, AKeyThatGoesWithItsLeaseHasAnEventThatSaysSo) {
  for (const bool right : {true, false}) {
    Judged judged;
    judged.execute(grant(7, "n"));
    judged.execute(leased("k", 7));
    const std::uint64_t stamp = judged.cells.table.find(LeaseId(7))->stamp;
    judged.spoil = [right](kv::Revision& revision) {
      if (!right) revision.events.at(0).kind = kv::EventKind::deleted;
    };
    judged.execute(kv::ExpireLeases{raft::Term(1), {{LeaseId(7), stamp}}});
    EXPECT_EQ(judged.verdict(), right ? "" : "watch");
  }
}

// What the clients are there to test does happen.
TEST(SimLeases, AreGrantedRenewedLostAndFenced) {
  LeaseCounts all;
  for (std::uint64_t seed = 1; seed <= 24; ++seed) {
    const SeedReport report = run_seed(seed);
    ASSERT_FALSE(report.violation) << seed;
    all.granted += report.leases.granted;
    all.expired += report.leases.expired;
    all.renewed += report.leases.renewed;
    all.without_log += report.leases.without_log;
    all.too_late += report.leases.too_late;
    all.fenced += report.leases.fenced;
    all.regained += report.leases.regained;
    all.delayed += report.leases.delayed;
    all.watched += report.leases.watched;
    all.resynced += report.leases.resynced;
  }
  EXPECT_GT(all.granted, 50U);
  EXPECT_GT(all.expired, 30U);
  EXPECT_GT(all.renewed, 50U);
  EXPECT_GT(all.without_log, 30U);
  EXPECT_GT(all.fenced, 0U);
  EXPECT_GT(all.regained, 0U);
  EXPECT_GT(all.delayed, 0U);
  EXPECT_GT(all.watched, 20U);
  EXPECT_GT(all.resynced, 5U);
}

// If a disk fails while a late thread acts, the next turn learns of it. This once failed an
// assertion.
TEST(SimLeases, ADiskMayFailUnderALateTurn) {
  SimOptions options;
  options.lease_work = true;
  EXPECT_FALSE(run_kept_plan("leases_18959.plan", options).violation);
}

// Entries that were in the log for a minute are applied one by one when the faults have ended. The
// simulator once gave up a node that did so.
TEST(SimLeases, MayBeAppliedForLong) {
  SimOptions options;
  options.lease_work = true;
  EXPECT_FALSE(run_kept_plan("leases_6907.plan", options).violation);
}

// Each second turn is late, and no node leads for long enough; the requests made in vain still
// cover the seed.
TEST(SimLeases, MayBeAskedForInVain) {
  SimOptions options;
  options.lease_work = true;
  SeedReport report = run_kept_plan("leases_156.plan", options);
  EXPECT_FALSE(report.violation);
  EXPECT_EQ(report.leases.events(), 0U);
  EXPECT_GT(report.leases.unanswered, 100U);
  EXPECT_EQ(missing_coverage(report, options), "");
  report.leases.unanswered = 0;
  EXPECT_EQ(missing_coverage(report, options), "10 requests about leases");
}

TEST(SimLeases, AreMostOfWhatIsDoneIfThatIsWanted) {
  SimOptions options;
  options.lease_work = true;
  std::uint64_t events = 0;
  std::uint64_t revoked = 0;
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    const SeedReport report = run_seed(seed, options);
    ASSERT_FALSE(report.violation) << seed;
    EXPECT_EQ(missing_coverage(report, options), "") << seed;
    EXPECT_EQ(report.sessions.opened, 0U);
    events += report.leases.events();
    revoked += report.leases.revoked;
  }
  EXPECT_GT(events, 2000U);
  EXPECT_GT(revoked, 30U);
}

}  // namespace
}  // namespace leasehold::sim
