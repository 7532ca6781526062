// Keys that end by themselves and their leases, in both stores.
#include <leasehold/kv/query.h>
#include <leasehold/tests/kv/store_support.h>

#include <gmock/gmock.h>

namespace leasehold::kv::testing {
namespace {

using grant::LeaseId;
using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;

Set timed(std::string_view key, std::string_view value, KeyTime ttl = seconds(10)) {
  Set set{key, value};
  set.ttl = ttl;
  return set;
}
ExpireKey expire(std::string_view key, KeyTime ttl, TimeCondition condition = TimeCondition::none) {
  return {key, TimeChange::set, ttl, condition};
}

class KeyTimes : public EachStore {
 protected:
  std::string run(const Command& command) {
    return apply(*store_, store_->applied_index().value() + 1, {encoded(command)}).at(0);
  }
  /// "a 10000/1; b 50/2": the keys of which leases are left, with time to live and stamp.
  std::string times() { return times(*store_); }
  static std::string times(const Store& store) {
    std::string out;
    const auto leases = store.leases_after(LeaseId(0), 1000).value();
    for (const auto& lease : leases) {
      if (!out.empty()) out += "; ";
      const auto found = store.find_lease(lease.id, "").value();
      if (!found) return "a lease that is listed and not found";
      for (const std::string& key : found->keys) {
        EXPECT_EQ(store.get(key).value()->lease, lease.id);
        out += key + " ";
      }
      out += std::to_string(lease.ttl / milliseconds(1)) + "/" + std::to_string(lease.stamp);
    }
    return out;
  }
  LeaseId lease_of(std::string_view key) { return store_->get(key).value()->lease; }
  std::string end(std::string_view key, std::uint64_t stamp) {
    return run(ExpireLeases{raft::Term(1), {{lease_of(key), stamp}}});
  }
};

TEST_P(KeyTimes, AKeyGoesWithItsOwnLease) {
  EXPECT_EQ(run(timed("k", "v")), "OK");
  EXPECT_TRUE(grant::is_of_key(lease_of("k")));
  EXPECT_EQ(times(), "k 10000/1");
  EXPECT_EQ(store_->revision(), 1U);
  EXPECT_EQ(end("k", 1), "1");
  EXPECT_FALSE(store_->exists("k").value());
  EXPECT_EQ(times(), "");
}

TEST_P(KeyTimes, ACommandThatDetachesTheKeyEndsItsLease) {
  const std::vector<Operation> ways = {Del{{"k"}},
                                       Set{"k", "w"},
                                       Set{"k", "w", SetCondition::xx, true},
                                       MSet{MSetCondition::none, {{"k", "w"}}},
                                       GetDel{"k"},
                                       ExpireKey{"k", TimeChange::remove},
                                       AttachKey{LeaseId(0), "k"},
                                       DelEqual{"1", {"k"}},
                                       expire("k", KeyTime(0)),
                                       timed("k", "w", KeyTime(0)),
                                       Rename{false, "other", "k"}};
  for (const Operation& way : ways) {
    run(timed("k", "1"));
    run(Set{"other", "o"});
    std::visit([this](const auto& o) { run(o); }, way);
    EXPECT_EQ(times(), "") << way.index();
    // And inside of one command.
    run(Transaction{{}, {timed("k", "1"), Set{"other", "o"}, way}});
    EXPECT_EQ(times(), "") << way.index();
  }
}

TEST_P(KeyTimes, AnEditOfTheValueLeavesTheTime) {
  run(timed("k", "1"));
  const LeaseId own = lease_of("k");
  Set kept{"k", "5"};
  kept.keep_lease = true;
  EXPECT_EQ(run(kept), "OK");
  run(IncrBy{"k", 2});
  run(Append{"k", "0"});
  run(SetRange{0, "k", "9"});
  EXPECT_EQ(lease_of("k"), own);
  EXPECT_EQ(times(), "k 10000/1");
}

TEST_P(KeyTimes, ARenameMovesTheTime) {
  run(timed("a", "1"));
  run(timed("b", "2", seconds(20)));
  EXPECT_EQ(run(Rename{false, "a", "c"}), "OK");
  EXPECT_EQ(times(), "c 10000/1; b 20000/2");
  EXPECT_EQ(run(Rename{false, "c", "b"}), "OK");
  EXPECT_EQ(times(), "b 10000/1");
  EXPECT_EQ(run(Rename{false, "b", "b"}), "OK");
  run(Set{"plain", "x"});
  EXPECT_EQ(run(Rename{false, "b", "plain"}), "OK");
  EXPECT_EQ(times(), "plain 10000/1");
  EXPECT_EQ(end("plain", 1), "1");
  EXPECT_EQ(store_->size(), 0U);
}

TEST_P(KeyTimes, AnotherTimeIsAnotherStampOfTheSameLease) {
  run(timed("k", "v"));
  const LeaseId own = lease_of("k");
  EXPECT_EQ(run(expire("k", seconds(3))), "1");
  EXPECT_EQ(run(timed("k", "w", seconds(4))), "OK");
  EXPECT_EQ(lease_of("k"), own);
  EXPECT_EQ(times(), "k 4000/3");
  EXPECT_EQ(end("k", 1), "0") << "what a leader saw before";
  EXPECT_EQ(end("k", 2), "0");
  EXPECT_TRUE(store_->exists("k").value());
  EXPECT_EQ(end("k", 3), "1");
}

TEST_P(KeyTimes, AConditionOfAnExpiryIsJudgedWhenApplied) {
  EXPECT_EQ(run(expire("none", seconds(1))), "0");
  run(Set{"k", "v"});
  EXPECT_EQ(run(expire("k", seconds(1), TimeCondition::xx)), "0");
  EXPECT_EQ(run(expire("k", seconds(1), TimeCondition::gt)), "0") << "it lives for ever";
  EXPECT_EQ(run(expire("k", seconds(1), TimeCondition::xx_lt)), "0");
  EXPECT_EQ(times(), "");
  EXPECT_EQ(run(expire("k", seconds(10), TimeCondition::lt)), "1") << "less than for ever";
  EXPECT_EQ(run(expire("k", seconds(1), TimeCondition::nx)), "0");
  EXPECT_EQ(run(expire("k", seconds(9), TimeCondition::gt)), "0");
  EXPECT_EQ(run(expire("k", seconds(11), TimeCondition::lt)), "0");
  EXPECT_EQ(run(expire("k", seconds(11), TimeCondition::xx_lt)), "0");
  EXPECT_EQ(run(expire("k", seconds(11), TimeCondition::gt)), "1");
  EXPECT_EQ(run(expire("k", seconds(9), TimeCondition::xx_lt)), "1");
  EXPECT_EQ(run(expire("k", seconds(8), TimeCondition::xx)), "1");
  EXPECT_EQ(times(), "k 8000/4");
  EXPECT_EQ(run(expire("k", KeyTime(0), TimeCondition::gt)), "0");
  EXPECT_EQ(run(expire("k", KeyTime(0), TimeCondition::lt)), "1");
  EXPECT_FALSE(store_->exists("k").value());
}

TEST_P(KeyTimes, WhatANodeSawCountsForThatStampOnly) {
  run(timed("k", "v"));
  ExpireKey later = expire("k", seconds(5), TimeCondition::gt);
  later.seen = {1, seconds(4)};
  EXPECT_EQ(run(later), "1") << "4 s were left of the 10";
  EXPECT_EQ(run(later), "0") << "it has had another time since: all 5 s may be left";
  ExpireKey more{"k", TimeChange::add, seconds(10)};
  more.seen = {2, seconds(3)};
  EXPECT_EQ(run(more), "1");
  EXPECT_EQ(times(), "k 13000/3");
  EXPECT_EQ(run(more), "1") << "never less than what is left";
  EXPECT_EQ(times(), "k 23000/4");
  more.seen = {4, seconds(100)};
  run(more);
  EXPECT_EQ(times(), "k 33000/5") << "and never more than all of it";
  more.ttl = grant::kLeaseTtlMax;
  run(more);
  EXPECT_EQ(store_->leases_after(LeaseId(0), 1).value()[0].ttl, grant::kLeaseTtlMax);
  run(ExpireKey{"k", TimeChange::remove});
  EXPECT_EQ(run(more), "0") << "there is nothing to add to";
}

TEST_P(KeyTimes, AValueMayBeACondition) {
  run(timed("k", "mine"));
  ExpireKey by_value = expire("k", seconds(3));
  by_value.value = "yours";
  EXPECT_EQ(run(by_value), "0");
  by_value.value = "mine";
  EXPECT_EQ(run(by_value), "1");
  EXPECT_EQ(times(), "k 3000/2");
  EXPECT_EQ(run(DelEqual{"yours", {"k", "none"}}), "0");
  EXPECT_EQ(run(MSet{MSetCondition::all_equal, {{"k", "yours"}}, seconds(5)}), "0");
  EXPECT_EQ(run(MSet{MSetCondition::all_equal, {{"k", "mine"}, {"j", "mine"}}, seconds(5)}), "0");
  EXPECT_EQ(times(), "k 3000/2");
  EXPECT_EQ(run(MSet{MSetCondition::none_exists, {{"j", "mine"}}, seconds(5)}), "1");
  EXPECT_EQ(run(MSet{MSetCondition::none_exists, {{"i", "mine"}, {"j", "x"}}, seconds(5)}), "0");
  EXPECT_EQ(run(MSet{MSetCondition::all_equal, {{"k", "mine"}, {"j", "mine"}}, seconds(7)}), "2");
  EXPECT_EQ(times(), "k 7000/4; j 7000/5");
  EXPECT_EQ(run(DelEqual{"mine", {"k", "none", "k", "j"}}), "2");
  EXPECT_EQ(store_->size(), 0U);
  EXPECT_EQ(times(), "");
}

TEST_P(KeyTimes, AnExpiryMayReturnTheValue) {
  ExpireKey get = expire("k", seconds(3));
  get.get = true;
  EXPECT_EQ(run(get), "nil");
  run(Set{"k", "v"});
  EXPECT_EQ(run(get), "\"v\"");
  EXPECT_EQ(times(), "k 3000/1");
  get.change = TimeChange::remove;
  get.ttl = KeyTime(0);
  EXPECT_EQ(run(get), "\"v\"");
  EXPECT_EQ(run(get), "\"v\"");
  EXPECT_EQ(times(), "");
}

TEST_P(KeyTimes, ASetThatDoesNotWriteLeavesTheTime) {
  run(timed("k", "v"));
  Set other = timed("k", "w", seconds(1));
  other.condition = SetCondition::nx;
  EXPECT_EQ(run(other), "nil");
  EXPECT_EQ(times(), "k 10000/1");
  other.key = "none";
  other.condition = SetCondition::xx;
  EXPECT_EQ(run(other), "nil");
  EXPECT_EQ(times(), "k 10000/1");
}

TEST_P(KeyTimes, AKeyOfAClientsLeaseHasThatTimeUntilItHasItsOwn) {
  run(GrantLease{LeaseId(7), seconds(30), "", "me"});
  Set leased{"k", "v"};
  leased.lease = LeaseId(7);
  run(leased);
  EXPECT_EQ(run(expire("k", seconds(40), TimeCondition::nx)), "0");
  EXPECT_EQ(run(expire("k", seconds(40), TimeCondition::gt)), "1");
  EXPECT_EQ(times(), "30000/1; k 40000/2");
  EXPECT_EQ(run(RevokeLease{LeaseId(7)}), "OK");
  EXPECT_TRUE(store_->exists("k").value());
}

TEST_P(KeyTimes, TheCommandsOfLeasesDoNotSeeThem) {
  run(GrantLease{LeaseId(7), seconds(30), "", "me"});
  run(timed("k", "v"));
  run(Set{"other", "v"});
  const LeaseId own = lease_of("k");
  const auto ask = [this](const Operation& question) {
    const std::string outside = text(encode_reply(query(question, *store_).value()));
    EXPECT_EQ(run(Transaction{{}, {question}}), "[" + outside + ",]");
    return outside;
  };
  EXPECT_EQ(run(RenewLeases{{own, LeaseId(7)}}), "[nil,30000,]");
  EXPECT_THAT(run(RevokeLease{own}), HasSubstr("error 14:"));
  EXPECT_THAT(run(AttachKey{own, "other"}), HasSubstr("error 14:"));
  EXPECT_THAT(run(AttachKey{own, "k"}), HasSubstr("error 14:"));
  Set leased{"k", "w"};
  leased.lease = own;
  EXPECT_THAT(run(leased), HasSubstr("error 14:"));
  EXPECT_EQ(ask(LeaseInfo{own, ""}), "nil");
  EXPECT_EQ(ask(LeaseList{LeaseId(0), 10}), "[[7,1,30000,\"\",\"me\",0,0,0,0,0,],]");
  EXPECT_EQ(ask(KeyLease{"other"}), "0");
  EXPECT_EQ(ask(KeyLease{"none"}), "nil");
  EXPECT_EQ(ask(KeyLease{"other", "w"}), "nil");
  EXPECT_EQ(ask(KeyLease{"other", "v"}), "0");
  EXPECT_EQ(ask(KeyLease{"k"}),
            "[" + std::to_string(static_cast<std::int64_t>(own.value())) + ",2,10000000000,]");
  EXPECT_EQ(store_->get("k").value()->bytes.view(), "v");
}

TEST_P(KeyTimes, ATransactionThatFailsLeavesEveryTime) {
  run(timed("a", "1"));
  run(timed("b", std::string(kValueBytesMax, 'x')));
  const std::string before = times();
  Transaction transaction{{},
                          {Rename{false, "a", "c"}, timed("d", "1"), Del{{"c"}},
                           expire("b", seconds(1)), Set{"d", "2"}}};
  // What it answers is too much, when all of it was done.
  for (int i = 0; i < 5; ++i) transaction.operations.emplace_back(Get{"b"});
  EXPECT_THAT(run(transaction), HasSubstr("nothing was done"));
  EXPECT_EQ(times(), before);
}

TEST_P(KeyTimes, ASnapshotCarriesThem) {
  run(timed("a", "1"));
  run(timed("b", "2", seconds(20)));
  run(expire("a", seconds(5)));
  const auto snapshot = store_->take_snapshot().value();
  const auto to = make("to");
  ASSERT_TRUE(to->install_snapshot(*snapshot));
  EXPECT_EQ(times(*to), "a 5000/3; b 20000/2");
  EXPECT_EQ(
      apply(*to, to->applied_index().value() + 1,
            {encoded(ExpireLeases{raft::Term(1), {{lease_of("a"), 3}}}), encoded(timed("c", "3"))}),
      (std::vector<std::string>{"1", "OK"}));
  EXPECT_EQ(times(*to), "b 20000/2; c 10000/4");
}

TEST_P(KeyTimes, TheyCountAmongTheLeases) {
  std::vector<Bytes> grants;
  for (std::size_t i = 0; i + 1 < grant::kLeasesMax; ++i) {
    grants.push_back(encoded(GrantLease{LeaseId(0), seconds(1), "", ""}));
  }
  apply(*store_, 1, grants);
  EXPECT_THAT(run(MSet{MSetCondition::none, {{"a", "1"}, {"b", "1"}}, seconds(1)}),
              HasSubstr("error 3: there would be more than 262144 leases"));
  EXPECT_EQ(store_->size(), 0U);
  EXPECT_EQ(run(timed("a", "1")), "OK");
  // One after the other, in a transaction, too: an operation that fails has done nothing.
  EXPECT_THAT(run(Transaction{{}, {Set{"x", "1"}, timed("b", "1"), expire("x", seconds(1))}}),
              HasSubstr("[OK,error 3: "));
  EXPECT_FALSE(store_->exists("b").value());
  EXPECT_EQ(run(timed("a", "2")), "OK") << "it has a lease already";
  EXPECT_EQ(run(expire("a", seconds(2))), "1");
  EXPECT_EQ(run(timed("b", "1", KeyTime(0))), "OK") << "it takes none";
}

INSTANTIATE_TEST_SUITE_P(Stores, KeyTimes, each_store(), name_of_store);

TEST(RocksdbKeyTimes, TheyAreThereWhenTheStoreIsOpenedAgain) {
  TemporaryFolder folder;
  LeaseId own{};
  {
    const auto store = open_store(folder.path("kv"));
    apply(*store, 1,
          {encoded(timed("a", "1")), encoded(timed("b", "1")), encoded(Del{{"b"}}),
           encoded(Rename{false, "a", "c"})});
    own = store->get("c").value()->lease;
  }
  const auto store = open_store(folder.path("kv"));
  ASSERT_NE(store, nullptr);
  EXPECT_EQ(store->find_lease(own, "").value()->keys, std::vector<std::string>{"c"});
  EXPECT_EQ(store->leases_after(LeaseId(0), 10).value().size(), 1U);
  EXPECT_EQ(apply(*store, 5, {encoded(ExpireLeases{raft::Term(1), {{own, 1}}})}).at(0), "1");
  EXPECT_EQ(store->size(), 0U);
}

}  // namespace
}  // namespace leasehold::kv::testing
