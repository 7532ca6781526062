#include <leasehold/base/random.h>
#include <leasehold/grant/lease_table.h>

#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>
#include <utility>

namespace leasehold::grant {
namespace {

using std::chrono::seconds;
using Verdict = LeaseTable::Verdict;

LeaseTable::Request named(std::string_view name) {
  return {LeaseId(0), name, "me", seconds(10)};
}

constexpr LeaseId kFirst = kChosenLeaseIdMax.next();

TEST(LeaseTable, ALeaseIsGrantedRenewedAndEnded) {
  LeaseTable table;
  EXPECT_EQ(table.grant(named("a"), FencingToken(5)).id, kFirst);
  const LeaseTable::Lease* lease = table.find("a");
  ASSERT_NE(lease, nullptr);
  EXPECT_EQ(*lease, (LeaseTable::Lease{kFirst, "a", "me", seconds(10), FencingToken(5), 1, 0, {}}));
  EXPECT_TRUE(table.renew(kFirst));
  EXPECT_EQ(table.find(kFirst)->stamp, 2U);
  EXPECT_EQ(table.find(kFirst)->token, FencingToken(5));
  EXPECT_NE(table.end(kFirst), nullptr);
  EXPECT_EQ(table.find("a"), nullptr);
  EXPECT_EQ(table.end(kFirst), nullptr);
  EXPECT_FALSE(table.renew(kFirst));
  EXPECT_EQ(table.size(), 0U);
}

TEST(LeaseTable, ANameAndAnIdAreHeldOnce) {
  LeaseTable table;
  EXPECT_EQ(table.grant({LeaseId(7), "a", "", seconds(1)}, FencingToken(1)).id, LeaseId(7));
  const auto same_name = table.grant(named("a"), FencingToken(2));
  EXPECT_EQ(same_name.verdict, Verdict::name_taken);
  EXPECT_EQ(same_name.id, LeaseId(7));
  EXPECT_EQ(table.grant({LeaseId(7), "b", "", seconds(1)}, FencingToken(2)).verdict,
            Verdict::id_taken);
  EXPECT_EQ(table.grant(named(""), FencingToken(2)).verdict, Verdict::granted);
  EXPECT_EQ(table.grant(named(""), FencingToken(3)).verdict, Verdict::granted);
  EXPECT_EQ(table.size(), 3U);
}

TEST(LeaseTable, AnIdThatTheTableChoseIsNeverGivenAgain) {
  LeaseTable table;
  table.grant(named("a"), FencingToken(1));
  table.end(kFirst);
  table.keep();
  EXPECT_EQ(table.grant(named("a"), FencingToken(2)).id, kFirst.next());
}

TEST(LeaseTable, AnExpiryIsVoidAfterARenewalOrAGrant) {
  LeaseTable table;
  table.grant({LeaseId(7), "a", "", seconds(1)}, FencingToken(1));
  const std::uint64_t seen = table.find(LeaseId(7))->stamp;
  table.renew(LeaseId(7));
  EXPECT_EQ(table.expire(LeaseId(7), seen), nullptr);
  table.end(LeaseId(7));
  table.keep();
  table.grant({LeaseId(7), "a", "", seconds(1)}, FencingToken(2));
  EXPECT_EQ(table.expire(LeaseId(7), seen), nullptr);
  EXPECT_EQ(table.expire(LeaseId(7), seen + 1), nullptr);
  EXPECT_NE(table.expire(LeaseId(7), seen + 2), nullptr);
  EXPECT_EQ(table.expire(LeaseId(8), 1), nullptr);
}

// The token of the second would be that of the first, whose writes it has to fence.
TEST(LeaseTable, WhatEndedInAStepIsNotGrantedInIt) {
  LeaseTable table;
  table.grant({LeaseId(7), "a", "", seconds(1)}, FencingToken(1));
  table.keep();
  table.end(LeaseId(7));
  EXPECT_EQ(table.grant(named("a"), FencingToken(2)).verdict, Verdict::ended_in_this_step);
  EXPECT_EQ(table.grant({LeaseId(7), "b", "", seconds(1)}, FencingToken(2)).verdict,
            Verdict::ended_in_this_step);
  EXPECT_EQ(table.grant(named("b"), FencingToken(2)).verdict, Verdict::granted);
  table.keep();
  EXPECT_EQ(table.grant(named("a"), FencingToken(3)).verdict, Verdict::granted);
}

TEST(LeaseTable, KeysGoWithTheirLease) {
  LeaseTable table;
  table.grant({LeaseId(7), "", "", seconds(1)}, FencingToken(1));
  EXPECT_EQ(table.attach(LeaseId(7), "x"), LeaseTable::Attached::attached);
  EXPECT_EQ(table.attach(LeaseId(7), "y"), LeaseTable::Attached::attached);
  EXPECT_EQ(table.attach(LeaseId(8), "z"), LeaseTable::Attached::no_lease);
  table.detach(LeaseId(7), "x");
  EXPECT_EQ(*table.keys(LeaseId(7)), LeaseTable::Keys{"y"});
  EXPECT_EQ(*table.end(LeaseId(7)), LeaseTable::Keys{"y"});
  EXPECT_EQ(table.keys(LeaseId(7)), nullptr);
}

TEST(LeaseTable, EveryLimitHolds) {
  LeaseTable table;
  const std::string longest(255, 'n');
  const auto verdict = [&](LeaseId id, std::string_view name, std::string_view holder,
                           lease::Duration ttl) {
    return table.grant({id, name, holder, ttl}, FencingToken(1)).verdict;
  };
  EXPECT_EQ(verdict(LeaseId(0), longest, longest, kLeaseTtlMin), Verdict::granted);
  EXPECT_EQ(verdict(kChosenLeaseIdMax, "", "", kLeaseTtlMax), Verdict::granted);
  EXPECT_EQ(verdict(LeaseId(0), longest + "n", "", seconds(1)), Verdict::out_of_range);
  EXPECT_EQ(verdict(LeaseId(0), "", longest + "n", seconds(1)), Verdict::out_of_range);
  EXPECT_EQ(verdict(LeaseId(0), "", "", kLeaseTtlMin - lease::Duration(1)), Verdict::out_of_range);
  EXPECT_EQ(verdict(LeaseId(0), "", "", kLeaseTtlMax + lease::Duration(1)), Verdict::out_of_range);
  EXPECT_EQ(verdict(kChosenLeaseIdMax.next(), "", "", seconds(1)), Verdict::out_of_range);
  for (std::size_t i = 0; i < kLeaseKeysMax; ++i) {
    ASSERT_EQ(table.attach(kFirst, std::to_string(i)), LeaseTable::Attached::attached);
  }
  EXPECT_EQ(table.attach(kFirst, "x"), LeaseTable::Attached::too_many_keys);
  while (table.size() < kLeasesMax) {
    ASSERT_EQ(verdict(LeaseId(0), "", "", seconds(1)), Verdict::granted);
  }
  EXPECT_EQ(verdict(LeaseId(0), "", "", seconds(1)), Verdict::too_many);
}

TEST(LeaseTable, OneOwnerLeavesSomeToOthers) {
  LeaseTable table;
  const auto grant = [&](std::string_view owner) {
    LeaseTable::Request request{LeaseId(0), "", "", seconds(1)};
    request.owner = owner;
    const auto granted = table.grant(request, FencingToken(1));
    table.keep();
    return granted.verdict;
  };
  while (table.size_of("ann") < kLeasesOfOwnerMax) ASSERT_EQ(grant("ann"), Verdict::granted);
  EXPECT_EQ(grant("ann"), Verdict::too_many_of_owner);
  EXPECT_EQ(grant("bob"), Verdict::granted);
  EXPECT_EQ(grant(""), Verdict::granted);
  const LeaseId first = table.list(LeaseId(0), 1).at(0).id;
  table.end(first);
  table.roll_back();
  EXPECT_EQ(grant("ann"), Verdict::too_many_of_owner) << "nothing ended";
  table.end(first);
  table.keep();
  EXPECT_EQ(LeaseTable(table).size_of("ann"), kLeasesOfOwnerMax - 1);
  EXPECT_EQ(grant("ann"), Verdict::granted);
}

TEST(LeaseTable, IsListedInParts) {
  LeaseTable table;
  for (std::uint64_t id = 1; id <= 5; ++id) {
    table.grant({LeaseId(id), "", "", seconds(1)}, FencingToken(1));
  }
  const auto part = table.list(LeaseId(2), 2);
  ASSERT_EQ(part.size(), 2U);
  EXPECT_EQ(part[0].id, LeaseId(3));
  EXPECT_EQ(part[1].id, LeaseId(4));
  EXPECT_EQ(table.list(LeaseId(4), 9).size(), 1U);
  EXPECT_TRUE(table.list(LeaseId(5), 9).empty());
}

TEST(LeaseTable, WhatIsRestoredFitsTogether) {
  LeaseTable table;
  table.restore_newest(kFirst, 9);
  const LeaseTable::Lease good{kFirst, "a", "me", seconds(1), FencingToken(4), 9, 0, {}};
  EXPECT_TRUE(table.restore(good, {"x"}));
  EXPECT_FALSE(table.restore(good, {}));
  const auto refuses = [&](LeaseTable::Lease lease) { return !table.restore(lease, {}); };
  LeaseTable::Lease other = good;
  other.id = LeaseId(1);
  EXPECT_TRUE(refuses(other)) << "the name is held";
  other.name = "b";
  other.stamp = 10;
  EXPECT_TRUE(refuses(other));
  other.stamp = 8;
  other.token = FencingToken(0);
  EXPECT_TRUE(refuses(other));
  other.token = FencingToken(3);
  other.ttl = lease::Duration(0);
  EXPECT_TRUE(refuses(other));
  other.ttl = seconds(1);
  other.id = kFirst.next();
  EXPECT_TRUE(refuses(other));
  other.id = LeaseId(0);
  EXPECT_TRUE(refuses(other));
  other.id = LeaseId(1);
  EXPECT_FALSE(refuses(other));
  EXPECT_TRUE(table.restore_key(LeaseId(1), "y"));
  EXPECT_FALSE(table.restore_key(LeaseId(1), "y"));
  EXPECT_FALSE(table.restore_key(LeaseId(2), "y"));
  EXPECT_EQ(*table.end(kFirst), LeaseTable::Keys{"x"});
}

// ---- The terms ----

LeaseTable::Request with(std::string_view name, LeaseTerms terms) {
  return {LeaseId(7), name, "me", seconds(1), terms};
}
constexpr std::chrono::milliseconds kSome(5);

TEST(LeaseTable, TermsThatMakeNoSenseAreRefused) {
  LeaseTable table;
  const auto verdict = [&](std::string_view name, LeaseTerms terms) {
    const auto granted = table.grant(with(name, terms), FencingToken(1));
    table.roll_back();
    return granted.verdict;
  };
  EXPECT_EQ(verdict("", {kSome, {}, false}), Verdict::granted);
  EXPECT_EQ(verdict("n", {kSome, kSome, false}), Verdict::granted);
  EXPECT_EQ(verdict("n", {kSome, {}, true}), Verdict::granted);
  EXPECT_EQ(verdict("", {kSome, {}, true}), Verdict::out_of_range);
  EXPECT_EQ(verdict("n", {{}, {}, true}), Verdict::out_of_range);
  EXPECT_EQ(verdict("n", {kSome, kSome, true}), Verdict::out_of_range);
  EXPECT_EQ(verdict("", {{}, kSome, false}), Verdict::out_of_range);
  const LeaseTerms::Milliseconds grace_max(std::chrono::hours(24 * 30));
  const LeaseTerms::Milliseconds delay_max(std::chrono::hours(24));
  EXPECT_EQ(verdict("n", {grace_max, delay_max, false}), Verdict::granted);
  EXPECT_EQ(verdict("n", {grace_max + kSome, {}, false}), Verdict::out_of_range);
  EXPECT_EQ(verdict("n", {{}, delay_max + kSome, false}), Verdict::out_of_range);
}

TEST(LeaseTable, AfterAnExpiryALockDelayKeepsTheName) {
  LeaseTable table;
  table.grant(with("a", {{}, kSome, false}), FencingToken(1));
  table.attach(LeaseId(7), "k");
  table.keep();
  EXPECT_EQ(*table.expire(LeaseId(7), 1), LeaseTable::Keys{"k"});
  table.keep();
  ASSERT_NE(table.find("a"), nullptr);
  EXPECT_TRUE(table.find("a")->delayed);
  EXPECT_TRUE(table.keys(LeaseId(7))->empty());
  EXPECT_EQ(table.grant(named("a"), FencingToken(2)).verdict, Verdict::name_taken);
  EXPECT_FALSE(table.renew(LeaseId(7)));
  EXPECT_EQ(table.attach(LeaseId(7), "k"), LeaseTable::Attached::no_lease);
  EXPECT_EQ(table.expire(LeaseId(7), 1), nullptr) << "named before it was delayed";
  EXPECT_TRUE(table.expire(LeaseId(7), 2)->empty());
  table.keep();
  EXPECT_EQ(table.grant(named("a"), FencingToken(3)).verdict, Verdict::granted);
}

TEST(LeaseTable, ARevokedLeaseHasNoLockDelay) {
  LeaseTable table;
  table.grant(with("a", {{}, kSome, false}), FencingToken(1));
  table.keep();
  table.end(LeaseId(7));
  table.keep();
  table.grant(with("a", {{}, kSome, false}), FencingToken(2));
  table.expire(LeaseId(7), 2);
  table.keep();
  EXPECT_NE(table.end(LeaseId(7)), nullptr) << "an operator may end the delay";
  table.keep();
  EXPECT_EQ(table.size(), 0U);
}

TEST(LeaseTable, ReportsWantedLeasesWithASoftLimit) {
  LeaseTable table;
  table.grant(with("a", {kSome, {}, true}), FencingToken(1));
  table.grant({LeaseId(8), "b", "me", seconds(1), {kSome, {}, false}}, FencingToken(1));
  table.keep();
  table.grant(named("b"), FencingToken(2));
  EXPECT_TRUE(table.take_wanted().empty());
  table.grant(named("a"), FencingToken(2));
  table.roll_back();
  EXPECT_EQ(table.take_wanted(), std::set<LeaseId>{LeaseId(7)});
  EXPECT_TRUE(table.take_wanted().empty());
  EXPECT_EQ(table.grant(with("a", {}), FencingToken(2)).verdict, Verdict::id_taken);
  EXPECT_EQ(table.take_wanted(), std::set<LeaseId>{LeaseId(7)}) << "who has an id for each name";
  EXPECT_EQ(table.grant(with("c", {}), FencingToken(2)).verdict, Verdict::id_taken);
  EXPECT_TRUE(table.take_wanted().empty()) << "no client has asked for the name";
}

TEST(LeaseTable, WhatIsRestoredHasTermsThatMakeSense) {
  LeaseTable table;
  table.restore_newest(kFirst, 9);
  LeaseTable::Lease lease{LeaseId(1), "", "", seconds(1), FencingToken(4), 9, 0, {}};
  lease.terms.delay = kSome;
  EXPECT_FALSE(table.restore(lease, {}));
  lease.name = "n";
  lease.delayed = true;
  EXPECT_FALSE(table.restore(lease, {"k"}));
  lease.terms.delay = {};
  EXPECT_FALSE(table.restore(lease, {}));
  lease.terms.delay = kSome;
  EXPECT_TRUE(table.restore(lease, {}));
  EXPECT_FALSE(table.restore_key(LeaseId(1), "k"));
}

// ---- The leases of keys ----

TEST(LeaseTable, TheLeaseOfAKeyEndsWithIt) {
  LeaseTable table;
  const LeaseId id = *table.grant_to_key(seconds(10), FencingToken(5));
  EXPECT_TRUE(is_of_key(id));
  EXPECT_FALSE(is_of_key(kFirst));
  EXPECT_EQ(table.attach(id, "k"), LeaseTable::Attached::attached);
  table.keep();
  EXPECT_EQ(*table.find(id),
            (LeaseTable::Lease{id, "", "", seconds(10), FencingToken(5), 1, 0, {}}));
  table.detach(id, "k");
  EXPECT_EQ(table.find(id), nullptr);
  table.roll_back();
  EXPECT_EQ(*table.keys(id), LeaseTable::Keys{"k"});
  table.detach(id, "k");
  table.keep();
  EXPECT_EQ(table.size(), 0U);
}

TEST(LeaseTable, TheLeaseOfAKeyIsNeverGivenTwice) {
  LeaseTable table;
  const LeaseId first = *table.grant_to_key(seconds(10), FencingToken(5));
  table.attach(first, "k");
  table.detach(first, "k");
  const LeaseId second = *table.grant_to_key(seconds(10), FencingToken(5));
  EXPECT_LT(first, second);
  EXPECT_EQ(table.grant({LeaseId(0), "", "", seconds(1)}, FencingToken(5)).id, kFirst);
  EXPECT_EQ(table.grant({second, "", "", seconds(1)}, FencingToken(5)).verdict,
            LeaseTable::Verdict::out_of_range);
}

TEST(LeaseTable, AnotherTimeIsAnotherStamp) {
  LeaseTable table;
  const LeaseId id = *table.grant_to_key(seconds(10), FencingToken(5));
  table.attach(id, "k");
  table.keep();
  table.retime(id, seconds(2));
  EXPECT_EQ(table.find(id)->ttl, seconds(2));
  EXPECT_EQ(table.find(id)->stamp, 2U);
  EXPECT_EQ(table.expire(id, 1), nullptr);
  table.roll_back();
  EXPECT_EQ(table.find(id)->ttl, seconds(10));
  EXPECT_EQ(table.find(id)->stamp, 1U);
}

TEST(LeaseTable, ALeaseGoesAlongToAnotherKey) {
  LeaseTable table;
  const LeaseId id = *table.grant_to_key(seconds(10), FencingToken(5));
  table.attach(id, "a");
  table.keep();
  table.move(id, "a", "b");
  EXPECT_EQ(*table.keys(id), LeaseTable::Keys{"b"});
  table.roll_back();
  EXPECT_EQ(*table.keys(id), LeaseTable::Keys{"a"});
}

TEST(LeaseTable, WhatIsRestoredOfAKeyHasOneKey) {
  LeaseTable table;
  table.restore_newest(kFirst, 9);
  const LeaseId id(kKeyLeaseIdMin.value() + 4);
  LeaseTable::Lease lease{id, "", "", seconds(1), FencingToken(4), 3, 0, {}};
  EXPECT_FALSE(table.restore(lease, {})) << "its first stamp was 4";
  lease.stamp = 5;
  EXPECT_FALSE(table.restore(lease, {"a", "b"}));
  lease.name = "n";
  EXPECT_FALSE(table.restore(lease, {}));
  lease.name.clear();
  lease.holder = "h";
  EXPECT_FALSE(table.restore(lease, {}));
  lease.holder.clear();
  EXPECT_TRUE(table.restore(lease, {}));
  EXPECT_FALSE(table.restored());
  EXPECT_TRUE(table.restore_key(id, "a"));
  EXPECT_FALSE(table.restore_key(id, "b"));
  EXPECT_TRUE(table.restored());
}

LeaseTerms some_terms(Random& random, bool named) {
  LeaseTerms terms;
  if (random.chance(1, 2)) terms.grace = std::chrono::milliseconds(7);
  if (named && random.chance(1, 2)) terms.delay = std::chrono::milliseconds(8);
  terms.soft = named && terms.delay.count() == 0 && terms.grace.count() != 0;
  return terms;
}

/// One random change.
void change(LeaseTable& table, Random& random, FencingToken token) {
  const LeaseId id(random.below(6) + 1);
  const std::string name = random.chance(1, 2) ? "" : "n" + std::to_string(random.below(4));
  const std::string key = "k" + std::to_string(random.below(12));
  // A key is attached to one lease at most.
  const auto detach = [&](const std::string& which) {
    for (const auto& lease : table.list(LeaseId(0), 100)) table.detach(lease.id, which);
  };
  switch (random.below(10)) {
    case 0:
      table.grant({id, name, "h", seconds(1), some_terms(random, !name.empty())}, token);
      break;
    case 1: table.grant({LeaseId(0), name, "h", seconds(1)}, token); break;
    case 2: table.renew(id); break;
    case 3: table.end(id); break;
    case 4: table.expire(id, table.newest_stamp() - random.below(3)); break;
    case 5:
      detach(key);
      table.attach(id, key);
      break;
    case 6:
      detach(key);
      if (const auto own = table.grant_to_key(seconds(2), token)) table.attach(*own, key);
      break;
    case 7:
    case 8: {
      const auto own = table.list(LeaseId(kKeyLeaseIdMin.value() - 1), 1);
      if (own.empty()) break;
      table.retime(own[0].id, seconds(3));
      detach(key);
      if (table.find(own[0].id) == nullptr) break;
      table.move(own[0].id, std::string(*table.keys(own[0].id)->begin()), key);
      break;
    }
    default: table.detach(id, key);
  }
}

TEST(LeaseTable, AStepThatIsRolledBackNeverWas) {
  Random random(17);
  LeaseTable table;
  std::size_t undone = 0;
  for (std::uint64_t step = 1; step <= 20000; ++step) {
    const LeaseTable before = table;
    const std::uint64_t changes = random.below(8);
    for (std::uint64_t i = 0; i < changes; ++i) change(table, random, FencingToken(step));
    if (random.chance(1, 2)) {
      table.keep();
    } else {
      undone += table == before ? 0 : 1;
      table.roll_back();
      ASSERT_EQ(table, before);
    }
    ASSERT_TRUE(table.step().empty());
    std::set<std::string> keys;
    for (const auto& lease : table.list(LeaseId(0), 100)) {
      if (!lease.name.empty()) {
        ASSERT_EQ(table.find(lease.name)->id, lease.id);
      }
      const LeaseTable::Keys& attached = *table.keys(lease.id);
      for (const std::string& key : attached) ASSERT_TRUE(keys.insert(key).second);
      ASSERT_TRUE(!is_of_key(lease.id) || table.keys(lease.id)->size() == 1);
    }
    for (int i = 0; i < 4; ++i) {
      const auto* found = table.find("n" + std::to_string(i));
      ASSERT_TRUE(found == nullptr || found->name == "n" + std::to_string(i));
    }
    if (table.size() > 40) table = LeaseTable();
  }
  EXPECT_GT(undone, 1000U);
}

// Names are looked up in the leases that have them.
TEST(LeaseTable, ACopyIsATableOfItsOwn) {
  const std::string longer(100, 'n');
  auto first = std::make_unique<LeaseTable>();
  first->grant(named("n"), FencingToken(1));
  first->grant(named(longer), FencingToken(2));
  first->keep();
  LeaseTable copy = *first;
  LeaseTable assigned;
  assigned.grant(named("gone"), FencingToken(1));
  assigned = *first;
  const LeaseTable moved = std::move(*first);
  first.reset();
  copy.end(copy.find(longer)->id);
  EXPECT_EQ(copy.find(longer), nullptr);
  copy.roll_back();
  EXPECT_EQ(assigned.find("gone"), nullptr);
  for (const LeaseTable* table : {&std::as_const(copy), &std::as_const(assigned), &moved}) {
    for (const std::string& name : {std::string("n"), longer}) {
      const LeaseTable::Lease* found = table->find(name);
      ASSERT_NE(found, nullptr);
      EXPECT_EQ(found, table->find(found->id));
      EXPECT_EQ(found->name, name);
    }
  }
}

TEST(Fence, PassesTheLargestTokenAndLargerOnes) {
  EXPECT_TRUE(fence_passes(FencingToken(0), FencingToken(1)));
  EXPECT_TRUE(fence_passes(FencingToken(7), FencingToken(7)));
  EXPECT_TRUE(fence_passes(FencingToken(7), FencingToken(8)));
  EXPECT_FALSE(fence_passes(FencingToken(7), FencingToken(6)));
}

}  // namespace
}  // namespace leasehold::grant
