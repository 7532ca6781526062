// Keys that end in the number of their revision, asked of both stores.
#include <leasehold/kv/events.h>
#include <leasehold/tests/kv/store_support.h>

#include <gmock/gmock.h>

#include <cstdio>

namespace leasehold::kv::testing {
namespace {

using grant::LeaseId;
using std::chrono::seconds;
using ::testing::HasSubstr;
using ::testing::StartsWith;

using Keys = std::vector<std::string>;

constexpr const char* kTwice =
    "error 16: one transaction makes one sequential key of a prefix; nothing was done";

/// As the rule says it: twenty digits.
std::string named(const std::string& prefix, unsigned number) {
  char digits[21];
  std::snprintf(digits, sizeof digits, "%020u", number);
  return prefix + digits;
}
std::string quoted(const std::string& key) {
  return "\"" + key + "\"";
}
SetSequential sequential(std::string_view prefix, std::string_view value = "v",
                         std::uint64_t lease = 0) {
  return {prefix, value, LeaseId(lease)};
}
Operation grant(std::uint64_t id) {
  return GrantLease{LeaseId(id), seconds(10), "", "me"};
}

class SequentialKeys : public EachStore {
 protected:
  std::string run(const Command& command) {
    return apply(*store_, store_->applied_index().value() + 1, {encoded(command)}).at(0);
  }
  std::string run(std::vector<Operation> operations) {
    return run(Command(Transaction{{}, std::move(operations)}));
  }
  Keys keys() { return store_->keys_after(std::nullopt, 1000).value(); }
  std::string bytes_of(const std::string& key) {
    const auto value = store_->get(key).value();
    return value ? std::string(value->bytes.view()) : "none";
  }
};

TEST_P(SequentialKeys, TheNumberIsTheRevision) {
  EXPECT_EQ(run(sequential("q/", "first")), "\"q/00000000000000000001\"");
  run(Set{"x", "1"});
  EXPECT_EQ(run(sequential("q/", "second")), "\"q/00000000000000000003\"");
  EXPECT_EQ(run(sequential("", "")), "\"00000000000000000004\"");
  EXPECT_EQ(store_->revision(), 4U);
  EXPECT_EQ(store_->size(), 4U);
  const Value value = store_->get("q/00000000000000000003").value().value();
  EXPECT_EQ(value.bytes.view(), "second");
  EXPECT_EQ(value.create_revision, 3U);
  EXPECT_EQ(value.mod_revision, 3U);
  EXPECT_EQ(value.version, 1U);
  EXPECT_EQ(value.lease, LeaseId(0));
}

TEST_P(SequentialKeys, AreInTheOrderOfTheirCreation) {
  Keys made;
  for (unsigned i = 1; i <= 120; ++i) {
    EXPECT_EQ(run(sequential("q/")), quoted(named("q/", i)));
    made.push_back(named("q/", i));
  }
  EXPECT_EQ(keys(), made);
}

TEST_P(SequentialKeys, NoNumberIsGivenTwice) {
  EXPECT_EQ(run(sequential("q/")), quoted(named("q/", 1)));
  run(Del{{named("q/", 1)}});
  EXPECT_EQ(run(sequential("q/")), quoted(named("q/", 3)));
  // A replica with a snapshot continues after the numbers before it.
  const auto snapshot = store_->take_snapshot().value();
  store_ = make("another");
  ASSERT_TRUE(store_->install_snapshot(*snapshot));
  EXPECT_EQ(run(sequential("q/")), quoted(named("q/", 4)));
}

TEST_P(SequentialKeys, GoWithTheirLease) {
  run({grant(7)});
  EXPECT_EQ(run(sequential("q/", "a", 7)), quoted(named("q/", 2)));
  EXPECT_EQ(run(sequential("q/", "b")), quoted(named("q/", 3)));
  EXPECT_EQ(store_->get(named("q/", 2)).value()->lease, LeaseId(7));
  EXPECT_EQ(store_->find_lease(LeaseId(7), "").value()->keys, Keys{named("q/", 2)});
  EXPECT_EQ(run(RevokeLease{LeaseId(7)}), "OK");
  EXPECT_EQ(keys(), Keys{named("q/", 3)});
}

TEST_P(SequentialKeys, WithoutTheLeaseNothingIsDone) {
  EXPECT_THAT(run(sequential("q/", "v", 8)), StartsWith("error 14: lease 8 was never granted"));
  EXPECT_EQ(run({sequential("q/", "v", 8), sequential("q/")}),
            "[error 14: lease 8 was never granted, or has ended; nothing was done," +
                quoted(named("q/", 1)) + ",]");
  EXPECT_EQ(keys(), Keys{named("q/", 1)});
  // That of a key is not for others.
  Set timed{"timed", "v"};
  timed.ttl = seconds(10);
  run(timed);
  const LeaseId own = store_->get("timed").value()->lease;
  EXPECT_THAT(run(sequential("q/", "v", own.value())), StartsWith("error 14:"));
}

TEST_P(SequentialKeys, TheLimitsOfALeaseAndOfAKeyHold) {
  run({grant(7)});
  std::vector<Bytes> commands;
  for (std::size_t i = 0; i < grant::kLeaseKeysMax; ++i) {
    commands.push_back(encoded(sequential("q/", "", 7)));
  }
  apply(*store_, store_->applied_index().value() + 1, commands);
  EXPECT_EQ(run(sequential("q/", "", 7)),
            "error 3: lease 7 has 16384 keys, which is the limit; nothing was done");
  EXPECT_EQ(store_->size(), grant::kLeaseKeysMax);
  const std::string longest(kKeyBytesMax - kSequenceDigits, 'k');
  const auto number = static_cast<unsigned>(store_->revision() + 1);
  EXPECT_EQ(run(sequential(longest)), quoted(named(longest, number)));
  EXPECT_EQ(bytes_of(named(longest, number)), "v");
}

TEST_P(SequentialKeys, ATransactionMakesOneOfEachPrefix) {
  run(Set{"x", "1"});
  EXPECT_EQ(run({sequential("a/", "1"), sequential("b/", "2"), sequential("a/", "3")}),
            "[" + quoted(named("a/", 2)) + "," + quoted(named("b/", 2)) + "," + kTwice + ",]");
  EXPECT_EQ(keys(), (Keys{named("a/", 2), named("b/", 2), "x"}));
  EXPECT_EQ(bytes_of(named("a/", 2)), "1");
  EXPECT_EQ(store_->revision(), 2U);
  EXPECT_EQ(run(sequential("a/")), quoted(named("a/", 3)));
}

TEST_P(SequentialKeys, ANumberIsNotUsedAgainAfterItsKeyIsDeleted) {
  EXPECT_EQ(
      run({grant(7), sequential("a/", "1", 7), RevokeLease{LeaseId(7)}, sequential("a/"), Size{}}),
      "[[7,1,]," + quoted(named("a/", 1)) + ",OK," + kTwice + ",0,]");
  EXPECT_EQ(store_->revision(), 1U);
}

TEST_P(SequentialKeys, ALaterOperationSeesTheKey) {
  const std::string key = named("a/", 1);
  EXPECT_EQ(run({sequential("a/", "1"), Get{key}, Append{key, "2"}, Rename{false, key, "b"}}),
            "[" + quoted(key) + ",\"1\",2,OK,]");
  EXPECT_EQ(keys(), Keys{"b"});
  EXPECT_EQ(bytes_of("b"), "12");
}

TEST_P(SequentialKeys, AKeyThatWasWrittenByItsNameIsLeftAlone) {
  run(Set{named("q/", 2), "by hand"});
  EXPECT_THAT(run(sequential("q/")), HasSubstr("error 16: the key of this prefix and the number 2 "
                                               "exists: a client has written it by its name"));
  EXPECT_EQ(bytes_of(named("q/", 2)), "by hand");
  EXPECT_EQ(store_->revision(), 1U);
  EXPECT_EQ(store_->size(), 1U);
  EXPECT_EQ(run(sequential("other/")), quoted(named("other/", 2)));
  EXPECT_EQ(run(sequential("q/")), quoted(named("q/", 3)));
  // In the same transaction, too; a key that it has deleted does not count.
  EXPECT_THAT(run({Set{named("q/", 4), "by hand"}, sequential("q/")}),
              StartsWith("[OK,error 16: the key of this prefix and the number 4 exists"));
  EXPECT_EQ(bytes_of(named("q/", 4)), "by hand");
  EXPECT_EQ(run({Set{named("q/", 5), "by hand"}, Del{{named("q/", 5)}}, sequential("q/")}),
            "[OK,1," + quoted(named("q/", 5)) + ",]");
  EXPECT_EQ(store_->get(named("q/", 5)).value()->version, 1U);
}

// No client got the number.
TEST_P(SequentialKeys, ATransactionThatFailsMakesNone) {
  run({grant(7)});
  run(Set{"big", std::string(kValueBytesMax, 'x')});
  std::vector<Operation> operations(5, Get{"big"});
  operations.insert(operations.begin(), sequential("q/", "lost", 7));
  EXPECT_THAT(run(operations), StartsWith("error 3:"));
  EXPECT_EQ(run(Transaction{{{"big", 1}}, {sequential("q/")}}), "nil");
  EXPECT_EQ(keys(), Keys{"big"});
  EXPECT_EQ(store_->find_lease(LeaseId(7), "").value()->keys, Keys{});
  EXPECT_EQ(run(sequential("q/", "made")), quoted(named("q/", 3)));
  EXPECT_EQ(bytes_of(named("q/", 3)), "made");
}

TEST_P(SequentialKeys, InASessionOneCommandMakesOneKey) {
  run(OpenSession{});
  const Bytes carried = encoded(sequential("q/"));
  const Command once = Once{replica::SessionId(1), 1, 1, carried.view()};
  EXPECT_EQ(run(once), quoted(named("q/", 1)));
  run(Set{"x", "1"});
  EXPECT_EQ(run(once), quoted(named("q/", 1)));
  EXPECT_EQ(keys(), (Keys{named("q/", 1), "x"}));
}

TEST_P(SequentialKeys, WatchersSeeAWrite) {
  run({grant(7)});
  run({sequential("b/", "two", 7), sequential("a/", "one")});
  const auto told = store_->events().read(2, 1).revisions;
  ASSERT_EQ(told.size(), 1U);
  ASSERT_EQ(told[0].events.size(), 2U);
  const Event& first = told[0].events[0];
  EXPECT_EQ(first.key, named("a/", 2));
  EXPECT_EQ(first.kind, EventKind::set);
  EXPECT_EQ(first.cause, EventCause::none);
  EXPECT_EQ(first.value, "one");
  EXPECT_EQ(first.create_revision, 2U);
  EXPECT_EQ(first.version, 1U);
  EXPECT_EQ(told[0].events[1].key, named("b/", 2));
  EXPECT_EQ(told[0].events[1].lease, LeaseId(7));
}

INSTANTIATE_TEST_SUITE_P(Stores, SequentialKeys, each_store(), name_of_store);

TEST(RocksdbSequentialKeys, TheNumberGoesOnWhenTheStoreIsOpenedAgain) {
  const TemporaryFolder folder;
  {
    const auto store = open_store(folder.path("kv"));
    apply(*store, 1, {encoded(sequential("q/")), encoded(Del{{named("q/", 1)}})});
  }
  const auto store = open_store(folder.path("kv"));
  EXPECT_EQ(apply(*store, 3, {encoded(sequential("q/"))}).at(0), quoted(named("q/", 3)));
}

}  // namespace
}  // namespace leasehold::kv::testing
