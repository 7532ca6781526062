// Which additions to the mailbox wake the node's thread.
#include <leasehold/node/node_mailbox.h>

#include <gtest/gtest.h>

#include <vector>

namespace leasehold::node {
namespace {

using Added = Mailbox::Added;
using Haste = Mailbox::Haste;

constexpr raft::GroupId kGroup{1};

Added add(Mailbox& mailbox, replica::Event event, Haste haste = Haste::now) {
  return mailbox.add(kGroup, event, haste);
}

replica::Event applied(std::uint64_t index) {
  return replica::Applied{raft::Index(index), {}};
}

std::size_t taken(Mailbox& mailbox) {
  std::vector<Mailbox::Task> admissions;
  std::vector<Posted> events;
  std::vector<Mailbox::Task> tasks;
  mailbox.take(admissions, events, tasks);
  return events.size();
}

TEST(Mailbox, OneWakeUpForEverythingThatArrivesMeanwhile) {
  Mailbox mailbox;
  EXPECT_EQ(add(mailbox, replica::Tick{}), Added::first);
  EXPECT_EQ(add(mailbox, replica::Tick{}), Added::behind);
  EXPECT_EQ(taken(mailbox), 2U);
  EXPECT_EQ(add(mailbox, replica::Tick{}), Added::first);
}

TEST(Mailbox, AnEventWithoutAWaiterComesWithTheNextTurn) {
  Mailbox mailbox;
  EXPECT_EQ(add(mailbox, applied(1), Haste::when_awaited), Added::behind);
  EXPECT_EQ(add(mailbox, applied(2), Haste::when_awaited), Added::behind);
  EXPECT_EQ(add(mailbox, replica::Tick{}), Added::first) << "the turn is still to be caused";
  EXPECT_EQ(taken(mailbox), 3U);
}

TEST(Mailbox, WhatIsAwaitedWakesByItself) {
  Mailbox mailbox;
  EXPECT_FALSE(mailbox.set_awaiting(true));
  EXPECT_EQ(add(mailbox, applied(1), Haste::when_awaited), Added::first);
  EXPECT_EQ(add(mailbox, applied(2), Haste::when_awaited), Added::behind);
}

TEST(Mailbox, ALaterWaiterLearnsOfWaitingEvents) {
  Mailbox mailbox;
  EXPECT_FALSE(mailbox.set_awaiting(false));
  EXPECT_EQ(add(mailbox, applied(1), Haste::when_awaited), Added::behind);
  EXPECT_FALSE(mailbox.set_awaiting(false));
  EXPECT_TRUE(mailbox.set_awaiting(true));
  EXPECT_FALSE(mailbox.set_awaiting(true)) << "the turn was asked for already";
  EXPECT_EQ(add(mailbox, replica::Tick{}), Added::behind);
  EXPECT_EQ(taken(mailbox), 2U);
}

TEST(Mailbox, ANewerPersistedCoversTheOlder) {
  Mailbox mailbox;
  EXPECT_EQ(add(mailbox, replica::Persisted{raft::ReadyId(1)}), Added::first);
  EXPECT_EQ(add(mailbox, replica::Persisted{raft::ReadyId(2)}), Added::behind);
  std::vector<Mailbox::Task> admissions;
  std::vector<Posted> events;
  std::vector<Mailbox::Task> tasks;
  mailbox.take(admissions, events, tasks);
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(std::get<replica::Persisted>(events.front().event).id, raft::ReadyId(2));
}

TEST(Mailbox, ANewerPersistedOfAnotherGroupCoversNothing) {
  Mailbox mailbox;
  replica::Event first = replica::Persisted{raft::ReadyId(1)};
  replica::Event second = replica::Persisted{raft::ReadyId(2)};
  EXPECT_EQ(mailbox.add(kGroup, first), Added::first);
  EXPECT_EQ(mailbox.add(kGroup.next(), second), Added::behind);
  EXPECT_EQ(taken(mailbox), 2U);
}

TEST(Mailbox, AnAdmissionWakesAndComesApart) {
  Mailbox mailbox;
  int admitted = 0;
  EXPECT_EQ(mailbox.admit([&admitted] { ++admitted; }), Added::first);
  EXPECT_EQ(mailbox.admit([&admitted] { ++admitted; }), Added::behind);
  EXPECT_EQ(add(mailbox, replica::Tick{}), Added::behind);
  std::vector<Mailbox::Task> admissions;
  std::vector<Posted> events;
  std::vector<Mailbox::Task> tasks;
  mailbox.take(admissions, events, tasks);
  EXPECT_EQ(events.size(), 1U);
  EXPECT_TRUE(tasks.empty());
  for (Mailbox::Task& admission : admissions) admission();
  EXPECT_EQ(admitted, 2);
}

TEST(Mailbox, AClosedOneLeavesTheEventWithItsOwner) {
  Mailbox mailbox;
  mailbox.close();
  replica::Event event = replica::Applied{raft::Index(7), {}};
  EXPECT_EQ(mailbox.add(kGroup, event), Added::closed);
  EXPECT_EQ(std::get<replica::Applied>(event).last, raft::Index(7));
}

}  // namespace
}  // namespace leasehold::node
