#include <leasehold/base/random.h>
#include <leasehold/raft/log.h>

#include <gtest/gtest.h>

#include <utility>

namespace leasehold::raft {
namespace {

LogId at(std::uint64_t term, std::uint64_t index) {
  return {Term(term), Index(index)};
}

Log log_of_terms(const std::vector<std::uint64_t>& terms) {
  Log log({}, {}, {}, Index(), {});
  for (const std::uint64_t term : terms) log.append(Term(term), nullptr);
  return log;
}

TEST(LogTest, EmptyLogEndsAtItsBase) {
  const Log log({}, {}, {}, Index(), {});
  EXPECT_EQ(log.last(), at(0, 0));
  EXPECT_TRUE(log.matches(at(0, 0)));
  EXPECT_FALSE(log.term_at(Index(1)).has_value());
}

TEST(LogTest, MatchesOnlyTheTermThatWroteTheIndex) {
  const Log log = log_of_terms({1, 1, 3});
  EXPECT_TRUE(log.matches(at(1, 2)));
  EXPECT_FALSE(log.matches(at(3, 2)));
  EXPECT_TRUE(log.matches(at(3, 3)));
  EXPECT_FALSE(log.matches(at(3, 4)));
}

TEST(LogTest, HintSkipsTermsThatCannotBeInTheLeadersLog) {
  const Log log = log_of_terms({1, 1, 2, 3, 3});
  EXPECT_EQ(log.last_index_with_term_at_most(Term(2), Index(5)), Index(3));
  EXPECT_EQ(log.last_index_with_term_at_most(Term(1), Index(9)), Index(2));
  EXPECT_EQ(log.last_index_with_term_at_most(Term(3), Index(4)), Index(4));
  EXPECT_EQ(log.last_index_with_term_at_most(Term(0), Index(4)), Index(0));
}

TEST(LogTest, TruncationTakesTheMembershipAlong) {
  Log log({}, {}, {}, Index(), {});
  Membership membership;
  membership.members = {{NodeId(1), Uuid{1, 1}, "a"}};
  membership.voters = {NodeId(1)};
  log.append(Term(1), nullptr);
  log.append(Term(1), &membership);
  EXPECT_EQ(log.membership(), membership);
  EXPECT_EQ(log.membership_index(), Index(2));
  EXPECT_EQ(log.membership_at(Index(1)), Membership{});
  log.truncate(Index(2));
  EXPECT_EQ(log.membership(), Membership{});
}

// The shape against a plain list of terms.
TEST(LogTest, CountsWhatChangesItsMemberships) {
  Log log({}, {}, {}, Index(), {});
  std::uint64_t before = log.membership_changes();
  const auto changed = [&] {
    const std::uint64_t last = std::exchange(before, log.membership_changes());
    return last != before;
  };
  log.append(Term(1), nullptr);
  EXPECT_FALSE(changed());
  const Membership membership;
  log.append(Term(1), &membership);
  EXPECT_TRUE(changed());
  log.append(Term(1), nullptr);
  log.truncate(Index(3));
  EXPECT_FALSE(changed());
  log.truncate(Index(2));
  EXPECT_TRUE(changed());
  log.cut(Index(1));  // the one in effect stands at another place
  EXPECT_TRUE(changed());
  log.reset(at(2, 9), membership);
  EXPECT_TRUE(changed());
}

TEST(LogTest, AgreesWithAPlainList) {
  Random random(7);
  Log log({}, {}, {}, Index(), {});
  std::vector<std::uint64_t> plain;
  std::uint64_t term = 1;
  for (int step = 0; step < 20000; ++step) {
    const std::uint64_t what = random.below(10);
    if (what == 0 && !plain.empty()) {
      const std::uint64_t from = 1 + random.below(plain.size());
      log.truncate(Index(from));
      plain.resize(from - 1);
    } else if (what == 1) {
      ++term;
    } else {
      log.append(Term(term), nullptr);
      plain.push_back(term);
    }
    ASSERT_EQ(log.last_index().value(), plain.size());
    const std::uint64_t probe = random.below(plain.size() + 2);
    const std::optional<Term> found = log.term_at(Index(probe));
    if (probe == 0) {
      ASSERT_EQ(found, Term(0));
    } else if (probe > plain.size()) {
      ASSERT_FALSE(found.has_value());
    } else {
      ASSERT_EQ(found->value(), plain[probe - 1]);
    }
    const std::uint64_t bound = random.below(term + 1);
    std::uint64_t expected = std::min<std::uint64_t>(probe, plain.size());
    while (expected > 0 && plain[expected - 1] > bound) --expected;
    ASSERT_EQ(log.last_index_with_term_at_most(Term(bound), Index(probe)).value(), expected);
  }
}

TEST(LogTest, ACutKeepsTheTermOfItsBaseAndWhatIsAbove) {
  Log log = log_of_terms({1, 1, 3, 3, 5});
  log.cut(Index(1));
  EXPECT_EQ(log.base(), at(1, 1));
  EXPECT_TRUE(log.matches(at(1, 1)));
  EXPECT_TRUE(log.matches(at(1, 2)));
  EXPECT_FALSE(log.term_at(Index(0)).has_value());
  log.cut(Index(4));
  EXPECT_EQ(log.base(), at(3, 4));
  EXPECT_EQ(log.last(), at(5, 5));
  EXPECT_EQ(log.last_index_with_term_at_most(Term(4), Index(5)), Index(4));
  log.cut(Index(5));
  EXPECT_EQ(log.base(), at(5, 5));
  EXPECT_EQ(log.last(), at(5, 5));
  log.append(Term(5), nullptr);
  EXPECT_TRUE(log.matches(at(5, 6)));
}

TEST(LogTest, ACutKeepsTheMembershipInEffect) {
  Log log({}, {}, {}, Index(), {});
  Membership first;
  first.members = {{NodeId(1), Uuid{1, 1}, "a"}};
  Membership second;
  second.members = {{NodeId(2), Uuid{2, 2}, "b"}};
  log.append(Term(1), &first);
  log.append(Term(1), nullptr);
  log.append(Term(1), &second);
  log.cut(Index(2));
  EXPECT_EQ(log.membership_at(Index(2)), first);
  EXPECT_EQ(log.membership(), second);
  log.truncate(Index(3));
  EXPECT_EQ(log.membership(), first);
  EXPECT_EQ(log.membership_index(), Index(2));
}

TEST(LogTest, AResetLeavesOnlyTheBase) {
  Log log = log_of_terms({1, 1, 3});
  Membership membership;
  membership.members = {{NodeId(1), Uuid{1, 1}, "a"}};
  log.reset(at(2, 9), membership);
  EXPECT_EQ(log.base(), at(2, 9));
  EXPECT_EQ(log.last(), at(2, 9));
  EXPECT_EQ(log.membership(), membership);
  EXPECT_FALSE(log.term_at(Index(3)).has_value());
}

}  // namespace
}  // namespace leasehold::raft
