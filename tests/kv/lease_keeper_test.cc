// Who times the leases, and what a renewal without the log may say.
#include <leasehold/base/random.h>
#include <leasehold/kv/lease_keeper.h>
#include <leasehold/tests/kv/store_support.h>

#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace leasehold::kv::testing {
namespace {

using grant::LeaseId;
using raft::Term;
using std::chrono::seconds;

class HandClock final : public lease::Clock {
 public:
  lease::Now now() const override { return {holder_now(), lease::PromiseInstant(at)}; }
  lease::HolderInstant holder_now() const override { return lease::HolderInstant(at); }
  lease::Duration at = seconds(100);
};

class LeaseKeeperTest : public ::testing::Test {
 protected:
  std::string run(const Command& command) {
    return apply(store_, store_.applied_index().value() + 1, {encoded(command)}).at(0);
  }
  void grant(std::uint64_t id) { run(GrantLease{LeaseId(id), seconds(10), "", "me"}); }
  void pass(std::int64_t time) { clock_.at += seconds(time); }
  /// "7/1 8/2": what is due.
  std::string look(std::optional<Term> term = Term(1), std::size_t count = 100) {
    std::string out;
    last_ = ExpireLeases{term.value_or(Term(0)), keeper_.look(term, count).value()};
    for (const SeenLease& seen : last_.leases) {
      if (!out.empty()) out += " ";
      out += std::to_string(seen.id.value()) + "/" + std::to_string(seen.stamp);
    }
    return out;
  }
  /// "10 -": seconds for each lease, or "by the log".
  std::string renew(std::vector<std::uint64_t> numbers, Term term = Term(1)) {
    std::vector<LeaseId> ids;
    for (const std::uint64_t id : numbers) ids.emplace_back(id);
    const auto renewed = keeper_.renew(ids, term).value();
    if (!renewed) return "by the log";
    std::string out;
    for (const auto& ttl : renewed->ttl) {
      if (!out.empty()) out += " ";
      out += ttl ? std::to_string(*ttl / seconds(1)) : "-";
    }
    return out;
  }

  /// "7 of 1": seconds, and the stamp.
  std::string left(std::uint64_t id) {
    const auto found = keeper_.left(LeaseId(id)).value();
    if (!found) return "-";
    return std::to_string(found->left / seconds(1)) + " of " + std::to_string(found->stamp);
  }
  void set_for(std::string_view key, std::int64_t time) {
    Set set{key, "v"};
    set.ttl = seconds(time);
    run(set);
  }
  std::uint64_t lease_of(std::string_view key) { return store_.get(key).value()->lease.value(); }

  MemoryStore store_;
  HandClock clock_;
  LeaseKeeper keeper_{clock_,
                      [this](std::uint64_t cursor) { return store_.lease_changes(cursor); }};
  ExpireLeases last_;
};

TEST_F(LeaseKeeperTest, ALeaseIsDueWhenNobodyRenewsIt) {
  grant(7);
  grant(8);
  EXPECT_EQ(look(), "");
  pass(6);
  EXPECT_EQ(renew({8, 9}), "10 -");
  pass(3);
  EXPECT_EQ(look(), "");
  pass(1);
  EXPECT_EQ(look(), "7/1");
  EXPECT_EQ(run(last_), "1");
  EXPECT_EQ(look(), "");
  pass(6);
  EXPECT_EQ(look(), "8/2");
}

TEST_F(LeaseKeeperTest, ARenewalWritesNothing) {
  grant(7);
  const raft::Index before = store_.applied_index();
  EXPECT_EQ(renew({7}), "10");
  EXPECT_EQ(store_.applied_index(), before);
  EXPECT_EQ(store_.find_lease(LeaseId(7), "").value()->lease.stamp, 1U);
}

// Its command may be under way: only another command can win against it.
TEST_F(LeaseKeeperTest, ADueLeaseIsRenewedByTheLogOnly) {
  grant(7);
  grant(8);
  look();
  pass(9);
  renew({8});
  pass(1);
  EXPECT_EQ(look(), "7/1");
  EXPECT_EQ(renew({8, 7}), "by the log");
  EXPECT_EQ(run(RenewLeases{{LeaseId(7)}}), "[10000,]");
  EXPECT_EQ(run(last_), "0");
  EXPECT_EQ(renew({7}), "10");
  pass(9);
  EXPECT_EQ(look(), "");
}

TEST_F(LeaseKeeperTest, OnlyTheLeaderTimes) {
  grant(7);
  look();
  pass(30);
  EXPECT_EQ(look(std::nullopt), "");
  EXPECT_EQ(look(), "") << "the leader lease had lapsed: nobody could renew";
  pass(9);
  EXPECT_EQ(look(), "");
  pass(1);
  EXPECT_EQ(look(), "7/1");
}

TEST_F(LeaseKeeperTest, ANewLeaderGivesEveryLeaseItsWholeTime) {
  grant(7);
  look();
  pass(9);
  EXPECT_EQ(look(Term(3)), "");
  pass(9);
  EXPECT_EQ(look(Term(3)), "");
  pass(1);
  EXPECT_EQ(look(Term(3)), "7/1");
}

// The command that ends it may be in the log of this term, and may be committed when the leader has
// its lease again.
TEST_F(LeaseKeeperTest, ALeaseNamedAsDueStaysNamedUntilTheTermEnds) {
  grant(7);
  look();
  pass(10);
  EXPECT_EQ(look(), "7/1");
  EXPECT_EQ(look(std::nullopt), "");
  EXPECT_EQ(look(), "");
  EXPECT_EQ(renew({7}), "by the log");
  EXPECT_EQ(renew({7}, Term(2)), "10") << "in a later term that command has no effect";
}

TEST_F(LeaseKeeperTest, ALookOfAnEarlierTermSaysNothing) {
  grant(7);
  look(Term(3));
  pass(10);
  EXPECT_EQ(look(Term(2)), "");
  EXPECT_EQ(renew({7}, Term(2)), "by the log");
}

TEST_F(LeaseKeeperTest, ANewGrantHasItsWholeTimeFromTheFirstLook) {
  look();
  pass(30);
  grant(7);
  pass(5);
  EXPECT_EQ(left(7), "10 of 1");
  pass(9);
  EXPECT_EQ(look(), "");
  EXPECT_EQ(left(7), "1 of 1");
  EXPECT_EQ(left(8), "-");
}

TEST_F(LeaseKeeperTest, AKeyIsNamedWhenItsTimeIsOver) {
  set_for("k", 10);
  const std::string named = std::to_string(lease_of("k")) + "/1";
  EXPECT_EQ(look(), "");
  pass(9);
  EXPECT_EQ(look(), "");
  pass(1);
  EXPECT_EQ(look(), named);
  EXPECT_EQ(run(last_), "1");
  EXPECT_FALSE(store_.exists("k").value());
  EXPECT_EQ(look(), "");
}

TEST_F(LeaseKeeperTest, AKeyThatGotAnotherTimeIsNotNamedForTheOldOne) {
  set_for("k", 10);
  look();
  pass(10);
  EXPECT_NE(look(), "");
  const ExpireLeases named = last_;
  run(ExpireKey{"k", TimeChange::set, seconds(20)});
  EXPECT_EQ(run(named), "0");
  EXPECT_EQ(look(), "");
  EXPECT_EQ(left(lease_of("k")), "20 of 2");
  run(ExpireKey{"k", TimeChange::set, seconds(1)});
  EXPECT_EQ(left(lease_of("k")), "1 of 3") << "it may become less, too";
}

TEST_F(LeaseKeeperTest, TheLeaseOfAKeyIsNotRenewedWithoutTheLog) {
  set_for("k", 10);
  grant(7);
  EXPECT_EQ(renew({7, lease_of("k")}), "10 -");
  pass(9);
  EXPECT_EQ(renew({7, lease_of("k")}), "10 -");
  EXPECT_EQ(left(lease_of("k")), "1 of 1");
}

// The client that asked for it began to count before any node had it.
TEST_F(LeaseKeeperTest, EveryNodeKnowsHowMuchIsLeftOfAKeysTime) {
  set_for("k", 10);
  grant(7);
  EXPECT_EQ(look(std::nullopt), "");
  pass(4);
  EXPECT_EQ(left(lease_of("k")), "6 of 1");
  EXPECT_EQ(left(7), "10 of 2") << "the leader may have renewed it without a word";
  look(Term(2));
  EXPECT_EQ(left(lease_of("k")), "10 of 1") << "who begins to lead gives the whole time";
  pass(4);
  EXPECT_EQ(left(7), "6 of 2");
}

TEST_F(LeaseKeeperTest, NothingIsLeftOfATimeThatIsOver) {
  set_for("k", 10);
  const LeaseId own(lease_of("k"));
  EXPECT_EQ(keeper_.seen(own).left, seconds(10));
  pass(12);
  EXPECT_EQ(keeper_.seen(own).stamp, 1U);
  EXPECT_EQ(keeper_.seen(own).left, seconds(0));
  EXPECT_EQ(keeper_.seen(LeaseId(9)).stamp, 0U) << "there is no such lease";
}

TEST_F(LeaseKeeperTest, ManyAtOnceAreNamedInParts) {
  for (std::uint64_t id = 1; id <= 5; ++id) grant(id);
  look();
  pass(10);
  EXPECT_EQ(look(Term(1), 2), "1/1 2/2");
  EXPECT_EQ(renew({5}), "10") << "not named yet";
  EXPECT_EQ(look(Term(1), 2), "3/3 4/4") << "what cannot end yet keeps nothing else from its end";
  EXPECT_EQ(run(last_), "2");
  EXPECT_EQ(look(Term(1), 2), "1/1 2/2");
}

// ---- The terms ----

TEST_F(LeaseKeeperTest, InItsGracePeriodALeaseIsRenewed) {
  GrantLease grant{LeaseId(7), seconds(10), "n", "me"};
  grant.terms.grace = seconds(5);
  run(grant);
  EXPECT_EQ(look(), "");
  pass(14);
  EXPECT_EQ(look(), "");
  EXPECT_EQ(left(7), "-4 of 1");
  EXPECT_EQ(renew({7}), "10");
  pass(14);
  EXPECT_EQ(look(), "");
  pass(1);
  EXPECT_EQ(look(), "7/1");
  EXPECT_EQ(renew({7}), "by the log");
}

TEST_F(LeaseKeeperTest, PastASoftLimitAWaitingClientGetsTheNameSoon) {
  GrantLease grant{LeaseId(7), seconds(10), "n", "me"};
  grant.terms = {seconds(60), {}, true};
  const GrantLease another{LeaseId(8), seconds(10), "n", "you"};
  run(grant);
  EXPECT_EQ(look(), "");
  pass(9);
  run(another);
  EXPECT_EQ(look(), "");
  pass(1);
  EXPECT_EQ(look(), "") << "who asked before the limit has to ask again";
  EXPECT_EQ(renew({7}), "10");
  pass(10);
  EXPECT_EQ(look(), "");
  run(another);
  EXPECT_EQ(look(), "7/1");
  EXPECT_EQ(renew({7}), "by the log") << "its end may be under way";
  run(last_);
  EXPECT_EQ(renew({7}), "-");
  EXPECT_EQ(run(another), "[8,3,]");
}

TEST_F(LeaseKeeperTest, ALockDelayIsTimedAndNotRenewed) {
  GrantLease grant{LeaseId(7), seconds(10), "n", "me"};
  grant.terms.delay = seconds(4);
  run(grant);
  look();
  pass(10);
  EXPECT_EQ(look(), "7/1");
  run(last_);
  EXPECT_EQ(look(), "");
  EXPECT_EQ(renew({7}), "-");
  pass(3);
  EXPECT_EQ(look(Term(2)), "") << "a new leader gives it the whole delay";
  pass(3);
  EXPECT_EQ(look(Term(2)), "");
  pass(1);
  EXPECT_EQ(look(Term(2)), "7/2");
}

/// One random change of few leases and names.
Command some_change(Random& random, const std::vector<SeenLease>& named) {
  static const std::string names[] = {"", "a", "b", "c"};
  const LeaseId id(1 + random.below(6));
  switch (random.below(6)) {
    case 0: return RenewLeases{{id}};
    case 1: return RevokeLease{id};
    case 2:
      if (!named.empty()) return ExpireLeases{Term(1), named};
      [[fallthrough]];
    default: {
      GrantLease grant{id, seconds(1 + random.below(9)), names[random.below(4)], "me"};
      const std::uint64_t kind = random.below(4);
      if (kind >= 2) grant.terms.grace = seconds(1 + random.below(9));
      if (grant.name.empty()) return grant;
      grant.terms.soft = kind == 3;
      if (kind == 1) grant.terms.delay = seconds(1 + random.below(9));
      return grant;
    }
  }
}

// One keeper gets only the changes, the other gets everything each time.
TEST_F(LeaseKeeperTest, ChangesAreEnoughToTimeTheLeases) {
  Random random(23);
  LeaseKeeper other(clock_, [this](std::uint64_t) { return store_.lease_changes(0); });
  std::optional<Term> leads_in(Term(1));
  std::size_t named = 0;
  std::size_t renewed = 0;
  for (int step = 0; step < 20000; ++step) {
    clock_.at += std::chrono::milliseconds(random.below(400));
    if (random.chance(1, 2)) run(some_change(random, last_.leases));
    if (random.chance(1, 50)) leads_in = leads_in ? std::nullopt : std::optional(Term(1));
    if (random.chance(1, 200)) {
      const auto snapshot = store_.take_snapshot().value();
      ASSERT_TRUE(store_.install_snapshot(*snapshot).ok());
    }
    if (random.chance(1, 3)) {
      const std::string due = look(leads_in);
      const auto expected = other.look(leads_in, 100).value();
      ASSERT_EQ(last_.leases.size(), expected.size()) << due;
      for (std::size_t i = 0; i < expected.size(); ++i) {
        ASSERT_EQ(last_.leases[i].id, expected[i].id);
        ASSERT_EQ(last_.leases[i].stamp, expected[i].stamp);
      }
      named += expected.size();
    } else if (leads_in) {
      const LeaseId id(1 + random.below(6));
      const auto one = keeper_.renew({id}, *leads_in).value();
      const auto another = other.renew({id}, *leads_in).value();
      ASSERT_EQ(one.has_value(), another.has_value());
      if (!one) continue;
      ASSERT_EQ(one->ttl, another->ttl);
      const auto found = store_.find_lease(id, "").value();
      ASSERT_EQ(one->ttl[0].has_value(), found && !found->lease.delayed);
      renewed += one->ttl[0] ? 1 : 0;
    }
  }
  EXPECT_GT(named, 500U);
  EXPECT_GT(renewed, 500U);
}

}  // namespace
}  // namespace leasehold::kv::testing
