// The table of the commands that wait, against a map and a set that are searched one by one.
#include <leasehold/base/random.h>
#include <leasehold/replica/proposal_table.h>

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

namespace leasehold::replica {
namespace {

raft::PromiseInstant at(std::uint64_t instant) {
  return raft::PromiseInstant(raft::Duration(instant));
}

std::unique_ptr<Proposal> proposal(std::uint64_t sequence, std::uint64_t deadline) {
  auto made = std::make_unique<Proposal>();
  made->sequence = sequence;
  made->deadline = at(deadline);
  return made;
}

TEST(ProposalTable, FindsBySequenceAndByDeadline) {
  Random random(5);
  for (const std::uint64_t instants : {1U, 20U, 1'000'000U}) {
    ProposalTable table;
    std::map<std::uint64_t, Proposal*> by_sequence;
    std::set<std::pair<raft::PromiseInstant, std::uint64_t>> by_deadline;
    std::uint64_t last = 0;
    for (int i = 0; i < 20'000; ++i) {
      const bool more = i < 10'000 ? random.below(3) > 0 : random.below(3) == 0;
      if (more) {
        Proposal& added = table.insert(proposal(++last, random.below(instants)));
        by_sequence.emplace(last, &added);
        by_deadline.emplace(added.deadline, last);
      }
      const std::uint64_t some = 1 + random.below(last + 2);
      const auto known = by_sequence.find(some);
      ASSERT_EQ(table.find(some), known == by_sequence.end() ? nullptr : known->second);
      Proposal* gone = table.find(some);
      if (gone == nullptr) gone = table.earliest();
      if (!more && gone != nullptr) {
        by_sequence.erase(gone->sequence);
        by_deadline.erase({gone->deadline, gone->sequence});
        ASSERT_EQ(table.erase(*gone).get(), gone);
      }
      ASSERT_EQ(table.size(), by_sequence.size());
      ASSERT_EQ(table.empty(), by_sequence.empty());
      ASSERT_EQ(table.earliest() == nullptr, by_deadline.empty());
      if (!by_deadline.empty()) {
        ASSERT_EQ(table.earliest()->sequence, by_deadline.begin()->second);
      }
    }
    std::vector<Proposal*> even;
    for (const auto& [sequence, known] : by_sequence) {
      if (sequence % 2 == 0) even.push_back(known);
    }
    EXPECT_EQ(table.select([](const Proposal& p) { return p.sequence % 2 == 0; }), even);
  }
}

// As many as Limits::proposals_max. A balanced tree has a depth of 17.
TEST(ProposalTable, IsShallowWhateverTheDeadlines) {
  constexpr std::uint64_t kProposals = 65536;
  constexpr std::uint64_t kFirst = std::uint64_t{1} << 61U;
  const auto depth = [](auto deadline) {
    ProposalTable table;
    for (std::uint64_t i = 0; i < kProposals; ++i) table.insert(proposal(kFirst + i, deadline(i)));
    return table.depth();
  };
  EXPECT_LT(depth([](std::uint64_t) { return 1; }), 60U) << "all equal";
  EXPECT_LT(depth([](std::uint64_t i) { return i; }), 60U) << "in their order";
  EXPECT_LT(depth([](std::uint64_t i) { return kProposals - i; }), 60U) << "the newest first";
  EXPECT_LT(depth([](std::uint64_t i) { return i * 7919 % 1000; }), 60U) << "mixed";
}

TEST(ProposalList, KeepsTheOrderAndIsLeftFromAnywhere) {
  std::vector<std::unique_ptr<Proposal>> proposals;
  for (std::uint64_t i = 0; i < 5; ++i) proposals.push_back(proposal(i, 0));
  ProposalList list;
  ProposalList other;
  for (const auto& each : proposals) list.push_back(*each);
  for (const std::size_t gone : {2, 4, 0}) ProposalList::leave(*proposals[gone]);
  ProposalList::leave(*proposals[2]);
  EXPECT_EQ(list.size(), 2U) << "it was in no list any more";
  other.push_back(*proposals[2]);
  list.push_back(*proposals[0]);
  for (const std::size_t next : {1, 3, 0}) {
    EXPECT_EQ(&list.front(), proposals[next].get());
    ProposalList::leave(list.front());
  }
  EXPECT_TRUE(list.empty());
  EXPECT_EQ(other.size(), 1U);
  other.clear();
}

TEST(ProposalListDeathTest, OneListAtMostAndNoneAtTheEnd) {
  ProposalList held;
  ProposalList resends;
  auto first = proposal(1, 0);
  held.push_back(*first);
  EXPECT_DEATH(resends.push_back(*first), "list_ == nullptr");
  EXPECT_DEATH(first.reset(), "list_ == nullptr");
  held.clear();
}

}  // namespace
}  // namespace leasehold::replica
