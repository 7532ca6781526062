// Leases of clients: asked of both stores, and their life after the process.
#include <leasehold/kv/query.h>
#include <leasehold/tests/kv/lease_support.h>
#include <leasehold/tests/kv/snapshot_support.h>
#include <leasehold/tests/kv/store_support.h>

#include <gmock/gmock.h>

#include <atomic>
#include <thread>

namespace leasehold::kv::testing {
namespace {

using grant::FencingToken;
using grant::LeaseId;
using std::chrono::seconds;
using ::testing::HasSubstr;

/// What the store chooses first.
constexpr std::uint64_t kFirst = std::uint64_t{1} << 32U;

TEST_P(LeaseContract, TheTokenIsTheRevisionOfTheGrant) {
  run(Set{"x", "1"});
  run(Set{"x", "2"});
  EXPECT_EQ(run(grant(7)), "[7,3,]");
  EXPECT_EQ(run(grant(0)), "[4294967296,4,]");
  EXPECT_EQ(run(grant(0)), "[4294967297,5,]");
  EXPECT_EQ(store_->revision(), 5U);
  EXPECT_EQ(run(RevokeLease{LeaseId(7)}), "OK");
  EXPECT_EQ(store_->revision(), 6U);
  // Again the same id: a larger token.
  EXPECT_EQ(run(grant(7)), "[7,7,]");
}

TEST_P(LeaseContract, DuplicatesAreDecidedWhenApplied) {
  const auto replies =
      apply(*store_, 1,
            {encoded(grant(0, "lock")), encoded(grant(0, "lock")), encoded(grant(5)),
             encoded(grant(5)), encoded(RevokeLease{LeaseId(kFirst)}), encoded(grant(0, "lock"))});
  EXPECT_EQ(
      replies,
      (std::vector<std::string>{
          "[4294967296,1,]", "error 13: lease 4294967296 has this name, its holder is 'me'",
          "[5,2,]", "error 13: lease 5 has this id, its holder is 'me'", "OK", "[4294967297,4,]"}));
}

// Where the slot has gone somebody may hold the name.
TEST_P(LeaseContract, ANameIsNotMissingWhereItsSlotIsNot) {
  const std::vector<Command> by_name = {
      WithNamedLease{"bar", Set{"{bar}2", "v"}}, WithNamedLease{"bar", SetSequential{"{bar}", "v"}},
      WithNamedLease{"bar", AttachKey{LeaseId(0), "{bar}2"}}, WithNamedLease{"bar", RevokeLease{}}};
  const Command in_multi = Transaction{{}, {WithNamedLease{"bar", Set{"{bar}2", "v"}}}};
  const Bytes carried = encoded(in_multi);
  run(OpenSession{});
  const std::uint64_t move = std::stoull(run(BeginMove{1, 2, 2, {slot_of("bar")}}));
  for (const Command& command : by_name) {
    EXPECT_EQ(run(command), "error 14: no lease has the name 'bar'; nothing was done");
  }
  run(FreezeMove{move});
  for (const Command& command : by_name) EXPECT_EQ(run(command).substr(0, 8), "error 18");
  EXPECT_EQ(run(in_multi).substr(0, 8), "error 18");
  EXPECT_EQ(run(Once{replica::SessionId(1), 1, 1, carried.view()}).substr(0, 8), "error 21");
  EXPECT_EQ(run(WithNamedLease{"bar", Set{"foo", "v"}}).substr(0, 8), "error 14")
      << "it is sought where the key is";
}

TEST_P(LeaseContract, ANameMeansTheLeaseThatHasItWhenTheCommandIsApplied) {
  const Command by_name = WithNamedLease{"a", Set{"k", "v"}};
  EXPECT_EQ(run(by_name), "error 14: no lease has the name 'a'; nothing was done");
  run(grant(7, "a"));
  EXPECT_EQ(run(by_name), "OK");
  EXPECT_EQ(run(WithNamedLease{"a", SetSequential{"q/", "v"}}), "\"q/00000000000000000003\"");
  run(Set{"other", "v"});
  EXPECT_EQ(run(WithNamedLease{"a", AttachKey{LeaseId(0), "other"}}), "1");
  EXPECT_EQ(run(RenewNamed{{{LeaseId(0), "a"}, {LeaseId(0), "b"}, {LeaseId(7), ""}}}),
            "[10000,nil,10000,]");
  EXPECT_EQ(list(*store_), "7 token 1 stamp 3 'a' of 'me': k other q/00000000000000000003");
  EXPECT_EQ(run(WithNamedLease{"a", RevokeLease{}}), "OK");
  EXPECT_EQ(store_->size(), 0U);
  run(grant(8, "a"));
  EXPECT_EQ(run(by_name), "OK");
  EXPECT_EQ(store_->get("k").value()->lease, LeaseId(8)) << "the name has gone to another lease";
}

TEST_P(LeaseContract, ARenewalChangesNothingButTheStamp) {
  run(grant(7, "a"));
  run(grant(8));
  EXPECT_EQ(run(RenewLeases{{LeaseId(8), LeaseId(9), LeaseId(7)}}), "[10000,nil,10000,]");
  EXPECT_EQ(list(*store_), "7 token 1 stamp 4 'a' of 'me':; 8 token 2 stamp 3 '' of 'me':");
  EXPECT_EQ(store_->revision(), 2U);
}

TEST_P(LeaseContract, KeysGoWithTheirLeaseInOneRevision) {
  run(grant(7));
  run(leased("a", "1", 7));
  run(leased("b", "2", 7));
  run(Set{"c", "3"});
  EXPECT_EQ(list(*store_), "7 token 1 stamp 1 '' of 'me': a b");
  EXPECT_EQ(store_->get("a").value()->lease, LeaseId(7));
  EXPECT_EQ(store_->size(), 3U);
  const std::uint64_t before = store_->revision();
  EXPECT_EQ(run(RevokeLease{LeaseId(7)}), "OK");
  EXPECT_EQ(store_->revision(), before + 1);
  EXPECT_EQ(store_->keys_after(std::nullopt, 10).value(), std::vector<std::string>{"c"});
  EXPECT_EQ(store_->size(), 1U);
  EXPECT_EQ(run(RevokeLease{LeaseId(7)}),
            "error 14: lease 7 was never granted, or has ended; nothing was done");
}

TEST_P(LeaseContract, AKeyIsAttachedDetachedAndAttachedAgain) {
  run(grant(7));
  run(grant(8));
  run(leased("a", "1", 7));
  EXPECT_EQ(run(AttachKey{LeaseId(8), "a"}), "1");
  EXPECT_EQ(store_->find_lease(LeaseId(7), "").value()->keys.size(), 0U);
  EXPECT_EQ(store_->get("a").value()->bytes.view(), "1");
  EXPECT_EQ(store_->get("a").value()->mod_revision, 4U);
  run(RevokeLease{LeaseId(7)});
  EXPECT_TRUE(exists("a"));
  EXPECT_EQ(run(AttachKey{LeaseId(0), "a"}), "1");
  run(RevokeLease{LeaseId(8)});
  EXPECT_TRUE(exists("a"));
  EXPECT_EQ(run(AttachKey{LeaseId(0), "nothing"}), "0");
  EXPECT_EQ(run(AttachKey{LeaseId(8), "a"}).substr(0, 9), "error 14:");
}

TEST_P(LeaseContract, KeysWithLongNamesAreNotAllRead) {
  run(grant(7));
  const std::size_t most = kReplyBytesMax / kKeyBytesMax;
  for (std::size_t i = 0; i < most + 50; ++i) {
    std::string key = std::to_string(1000 + i);
    key.resize(kKeyBytesMax, 'k');
    run(leased(key, "", 7));
  }
  EXPECT_EQ(store_->find_lease(LeaseId(7), "").value()->keys.size(), most + 1);
  EXPECT_EQ(ask(LeaseInfo{LeaseId(7), ""}).substr(0, 8), "error 3:");
  EXPECT_EQ(run(Transaction{{}, {LeaseInfo{LeaseId(7), ""}}}).substr(0, 9), "[error 3:");
  EXPECT_EQ(run(RevokeLease{LeaseId(7)}), "OK");
  EXPECT_EQ(store_->size(), 0U);
}

TEST_P(LeaseContract, AReplacedValueLeavesTheLeaseAndAnEditedOneStays) {
  run(grant(7));
  for (const char* key : {"set", "kept", "append", "incr", "range", "mset", "del", "getdel"}) {
    run(leased(key, "1", 7));
  }
  run(leased("from", "1", 7));
  run(Set{"set", "2"});
  Set kept{"kept", "2"};
  kept.keep_lease = true;
  run(kept);
  run(Append{"append", "1"});
  run(IncrBy{"incr", 1});
  run(SetRange{0, "range", "2"});
  run(MSet{MSetCondition::none, {{"mset", "2"}}});
  run(Del{{"del"}});
  run(GetDel{"getdel"});
  run(Rename{false, "from", "to"});
  EXPECT_THAT(list(*store_), HasSubstr(": append incr kept range to"));
  run(RevokeLease{LeaseId(7)});
  EXPECT_EQ(store_->keys_after(std::nullopt, 10).value(),
            (std::vector<std::string>{"mset", "set"}));
}

TEST_P(LeaseContract, WithoutTheLeaseNothingIsWritten) {
  EXPECT_EQ(run(leased("a", "1", 7)),
            "error 14: lease 7 was never granted, or has ended; nothing was done");
  EXPECT_FALSE(exists("a"));
  run(grant(7));
  run(RevokeLease{LeaseId(7)});
  EXPECT_EQ(run(leased("a", "1", 7)).substr(0, 9), "error 14:");
  EXPECT_EQ(store_->revision(), 2U);
}

TEST_P(LeaseContract, AnExpiryIsConditionalOnWhatTheLeaderSaw) {
  run(grant(7));
  run(grant(8));
  run(leased("a", "1", 7));
  run(leased("b", "1", 8));
  run(RenewLeases{{LeaseId(8)}});
  const std::uint64_t before = store_->revision();
  EXPECT_EQ(run(expire(1, {{7, 1}, {8, 2}, {9, 1}})), "1");
  EXPECT_EQ(list(*store_), "8 token 2 stamp 3 '' of 'me': b");
  EXPECT_FALSE(exists("a"));
  EXPECT_TRUE(exists("b"));
  EXPECT_EQ(store_->revision(), before + 1);
  EXPECT_EQ(run(expire(1, {{8, 2}})), "0");
  EXPECT_EQ(store_->revision(), before + 1);
}

// The entries of these tests are of term 1.
TEST_P(LeaseContract, AnExpiryOfAnotherTermDoesNothing) {
  run(grant(7));
  EXPECT_EQ(run(expire(2, {{7, 1}})), "0");
  EXPECT_EQ(run(expire(0, {{7, 1}})), "0");
  EXPECT_EQ(list(*store_), "7 token 1 stamp 1 '' of 'me':");
  EXPECT_EQ(run(expire(1, {{7, 1}})), "1");
}

// Any number of keys may be attached to leases that end at once.
TEST_P(LeaseContract, AnExpiryEndsNoMoreKeysThanALeaseMayHave) {
  for (std::uint64_t id = 1; id <= 3; ++id) run(grant(id));
  std::vector<Bytes> commands;
  for (std::size_t i = 0; i < grant::kLeaseKeysMax; ++i) {
    commands.push_back(encoded(leased("k" + std::to_string(i), "", 2 - i % 2)));
  }
  apply(*store_, store_->applied_index().value() + 1, commands);
  EXPECT_EQ(run(expire(1, {{1, 1}, {2, 2}, {3, 3}})), "2");
  EXPECT_EQ(list(*store_), "3 token 3 stamp 3 '' of 'me':");
  EXPECT_EQ(store_->size(), 0U);
  EXPECT_EQ(run(expire(1, {{3, 3}})), "1");
}

TEST_P(LeaseContract, AnOlderTokenIsRefused) {
  run(grant(7, "lock"));
  EXPECT_EQ(run(fenced("k", "first", 1)), "OK");
  run(RevokeLease{LeaseId(7)});
  run(grant(8, "lock"));
  EXPECT_EQ(run(fenced("k", "second", 4)), "OK");
  EXPECT_EQ(run(fenced("k", "late", 1)),
            "error 15: the token 1 is older than the token 4, which has written this key; the "
            "lease has gone to another");
  EXPECT_EQ(run(fenced("k", "again", 4)), "OK");
  EXPECT_EQ(store_->get("k").value()->bytes.view(), "again");
  EXPECT_EQ(run(fenced("other", "v", 1)), "OK");
}

TEST_P(LeaseContract, AFenceOutlivesItsKeyAndItsLease) {
  run(grant(7));
  run(grant(8));
  Set set = leased("k", "v", 8);
  set.token = FencingToken(2);
  EXPECT_EQ(run(set), "OK");
  run(RevokeLease{LeaseId(8)});
  EXPECT_FALSE(exists("k"));
  EXPECT_EQ(run(fenced("k", "late", 1)).substr(0, 9), "error 15:");
  run(Set{"k", "x"});
  run(Del{{"k"}});
  EXPECT_EQ(run(fenced("k", "late", 1)).substr(0, 9), "error 15:");
}

TEST_P(LeaseContract, ATokenThatWasNeverGivenIsRefused) {
  run(grant(7));
  EXPECT_EQ(run(fenced("k", "v", 2)), "error 15: no lease was granted with the token 2 yet");
  EXPECT_EQ(run(fenced("k", "v", 1)), "OK");
}

TEST_P(LeaseContract, AFencedWriteThatDidNothingLeavesTheFence) {
  run(grant(7));
  run(grant(8));
  Set only_new = fenced("k", "v", 2);
  only_new.condition = SetCondition::xx;
  EXPECT_EQ(run(only_new), "nil");
  EXPECT_EQ(run(fenced("k", "late", 1)).substr(0, 9), "error 15:");
  Set without = fenced("j", "v", 2);
  without.lease = LeaseId(99);
  EXPECT_EQ(run(without).substr(0, 9), "error 14:");
  EXPECT_EQ(run(fenced("j", "v", 1)), "OK");
}

TEST_P(LeaseContract, AnOperationOfATransactionSeesThoseBeforeIt) {
  const std::string reply = run(Transaction{
      {},
      {GrantLease{LeaseId(7), seconds(1), "n", "me"}, leased("a", "1", 7), leased("b", "1", 7),
       AttachKey{LeaseId(0), "b"}, LeaseInfo{LeaseId(0), "n"}, RevokeLease{LeaseId(7)},
       Exists{{"a", "b"}}, LeaseInfo{LeaseId(7), ""}, GrantLease{LeaseId(7), seconds(1), "", "me"},
       GrantLease{LeaseId(9), seconds(1), "m", "me"}, LeaseList{LeaseId(0), 5}}});
  EXPECT_EQ(
      reply,
      "[[7,1,],OK,OK,1,[7,1,1000,\"n\",\"me\",[\"a\",],0,0,0,0,0,],OK,1,nil,error 13: the lease "
      "of this id or name ended in the same transaction: a new one would have no larger "
      "token,[9,1,],[[9,1,1000,\"m\",\"me\",0,0,0,0,0,],],]");
  EXPECT_EQ(store_->revision(), 1U);
  EXPECT_EQ(list(*store_), "9 token 1 stamp 2 'm' of 'me':");
}

TEST_P(LeaseContract, ATransactionThatFailsChangesNoLease) {
  run(grant(7, "n"));
  run(leased("a", "1", 7));
  run(leased("big", std::string(kValueBytesMax, 'x'), 7));
  const std::string before = list(*store_);
  Transaction transaction{{},
                          {leased("c", "1", 7), GrantLease{LeaseId(8), seconds(1), "m", "me"},
                           RevokeLease{LeaseId(7)}}};
  Transaction watched = transaction;
  watched.watched.push_back({"a", 1});
  EXPECT_EQ(run(watched), "nil");
  EXPECT_EQ(list(*store_), before);
  // It fails when the leases have been changed, and before "big" is gone.
  transaction.operations.insert(transaction.operations.end() - 1, 5, Get{"big"});
  EXPECT_EQ(run(transaction).substr(0, 8), "error 3:");
  EXPECT_EQ(list(*store_), before);
  EXPECT_TRUE(exists("a"));
  EXPECT_EQ(run(grant(8, "m")), "[8,4,]");
  EXPECT_EQ(store_->find_lease(LeaseId(8), "").value()->lease.stamp, 2U);
}

TEST_P(LeaseContract, AGrantInASessionIsAnsweredAlikeEachTime) {
  run(OpenSession{});
  const Bytes carried = encoded(grant(0, "lock"));
  const Command once = Once{replica::SessionId(1), 1, 1, carried.view()};
  EXPECT_EQ(run(once), "[4294967296,1,]");
  EXPECT_EQ(run(once), "[4294967296,1,]");
  EXPECT_EQ(store_->leases_after(LeaseId(0), 10).value().size(), 1U);
}

TEST_P(LeaseContract, AreShownByIdAndByName) {
  run(grant(7, "n"));
  run(leased("a", "1", 7));
  EXPECT_EQ(ask(LeaseInfo{LeaseId(7), ""}), "[7,1,10000,\"n\",\"me\",[\"a\",],0,0,0,0,0,]");
  EXPECT_EQ(ask(LeaseInfo{LeaseId(0), "n"}), "[7,1,10000,\"n\",\"me\",[\"a\",],0,0,0,0,0,]");
  EXPECT_EQ(ask(LeaseInfo{LeaseId(8), ""}), "nil");
  EXPECT_EQ(ask(LeaseInfo{LeaseId(0), ""}), "nil");
  EXPECT_EQ(ask(LeaseInfo{LeaseId(0), "m"}), "nil");
  run(grant(8));
  run(grant(9));
  EXPECT_EQ(ask(LeaseList{LeaseId(7), 1}), "[[8,3,10000,\"\",\"me\",0,0,0,0,0,],]");
  EXPECT_EQ(ask(LeaseList{LeaseId(9), 1}), "[]");
}

TEST_P(LeaseContract, LimitsAreErrors) {
  EXPECT_THAT(run(GrantLease{LeaseId(kFirst), seconds(1), "", ""}),
              HasSubstr("at most 4294967295"));
  EXPECT_THAT(run(GrantLease{LeaseId(1), seconds(0), "", ""}), HasSubstr("from a millisecond"));
  run(grant(7));
  std::vector<Bytes> commands;
  for (std::size_t i = 0; i < grant::kLeaseKeysMax; ++i) {
    commands.push_back(encoded(leased("k" + std::to_string(i), "", 7)));
  }
  apply(*store_, store_->applied_index().value() + 1, commands);
  EXPECT_EQ(run(leased("x", "", 7)),
            "error 3: lease 7 has 16384 keys, which is the limit; nothing was done");
  EXPECT_EQ(run(leased("k1", "again", 7)), "OK");
  EXPECT_EQ(run(RevokeLease{LeaseId(7)}), "OK");
  EXPECT_EQ(store_->size(), 0U);
}

TEST_P(LeaseContract, TheTimerSeesEveryChange) {
  auto hear = [&, cursor = std::uint64_t{0}]() mutable {
    const LeaseChanges changes = store_->lease_changes(cursor).value();
    cursor = changes.cursor;
    std::string out = changes.whole ? "all:" : "";
    for (const TimedLease& lease : changes.alive) {
      out += " " + std::to_string(lease.id.value()) + "/" + std::to_string(lease.stamp);
    }
    for (const LeaseId id : changes.gone) out += " -" + std::to_string(id.value());
    return out;
  };
  run(grant(7));
  EXPECT_EQ(hear(), "all: 7/1");
  EXPECT_EQ(hear(), "");
  run(leased("a", "1", 7));
  EXPECT_EQ(hear(), "");
  run(grant(8));
  run(RenewLeases{{LeaseId(7)}});
  run(grant(9));
  run(RevokeLease{LeaseId(9)});
  EXPECT_EQ(hear(), " 8/2 7/3 -9");
  const auto snapshot = store_->take_snapshot().value();
  run(RevokeLease{LeaseId(8)});
  const auto other = make("other");
  testing::run(*other, grant(1));
  const std::uint64_t cursor = other->lease_changes(0).value().cursor;
  ASSERT_TRUE(other->install_snapshot(*snapshot));
  const LeaseChanges after = other->lease_changes(cursor).value();
  EXPECT_TRUE(after.whole);
  EXPECT_EQ(after.alive.size(), 2U);
}

TEST_P(LeaseContract, ASnapshotCarriesThem) {
  run(grant(7, "n"));
  run(grant(0));
  run(leased("a", "1", 7));
  run(fenced("k", "v", 2));
  run(RevokeLease{LeaseId(kFirst)});
  const auto snapshot = store_->take_snapshot().value();
  const std::string before = list(*store_);
  run(RevokeLease{LeaseId(7)});

  const auto to = make("to");
  testing::run(*to, grant(1, "old"));
  ASSERT_TRUE(to->install_snapshot(*snapshot));
  EXPECT_EQ(list(*to), before);
  EXPECT_EQ(to->get("a").value()->lease, LeaseId(7));
  EXPECT_EQ(testing::run(*to, fenced("k", "late", 1)).substr(0, 9), "error 15:");
  EXPECT_EQ(testing::run(*to, grant(0)), "[4294967297,6,]");
  EXPECT_EQ(testing::run(*to, grant(1, "old")), "[1,7,]");
  EXPECT_EQ(testing::run(*to, RevokeLease{LeaseId(7)}), "OK");
  EXPECT_FALSE(to->exists("a").value());
}

// A reader that has seen that a lease is gone never sees its key afterwards.
TEST_P(LeaseContract, NoReaderSeesHalfOfAnEnd) {
  std::atomic<bool> stop{false};
  std::atomic<std::size_t> odd{0};
  // The lease that has certainly been granted, and whose end may be under way; 0: none.
  std::atomic<std::uint64_t> ending{0};
  std::thread reader([&] {
    LeaseId newest{};
    while (!stop.load()) {
      const std::uint64_t before = ending.load();
      const auto found = store_->find_lease(LeaseId(0), "n").value();
      const auto value = store_->get("a").value();
      // The key is written with its lease, and goes with it.
      if (value && found && value->lease < found->lease.id) ++odd;
      if (value && !found && value->lease <= newest) ++odd;
      if (value && !found && before != 0 && before == ending.load()) ++odd;
      if (found) newest = found->lease.id;
      if (found && found->keys.size() != 1) ++odd;
    }
  });
  const std::uint64_t rounds = GetParam() == StoreKind::memory ? 30'000 : 300;
  for (std::uint64_t i = 1; i <= rounds; ++i) {
    run(Transaction{{}, {GrantLease{LeaseId(i), seconds(1), "n", ""}, leased("a", "v", i)}});
    ending = i;
    run(RevokeLease{LeaseId(i)});
    ending = 0;
  }
  stop = true;
  reader.join();
  EXPECT_EQ(odd.load(), 0U);
}

INSTANTIATE_TEST_SUITE_P(Stores, LeaseContract, each_store(), name_of_store);

}  // namespace
}  // namespace leasehold::kv::testing
