// The events of both stores, and the history itself.
#include <leasehold/kv/events.h>
#include <leasehold/tests/kv/command_source.h>
#include <leasehold/tests/kv/snapshot_support.h>
#include <leasehold/tests/kv/store_support.h>

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace leasehold::kv::testing {
namespace {

using grant::FencingToken;
using grant::LeaseId;
using std::chrono::seconds;

constexpr const char* kKinds[] = {"set", "deleted", "expired", "revoked"};
constexpr const char* kCauses[] = {"",        "/incr",    "/append", "/range", "/rename", "/attach",
                                   "/expire", "/persist", "/float",  "/copy",  "/bit"};

/// "5: set a=1, expired b of 7".
std::string text(const Revision& revision) {
  std::string out = std::to_string(revision.number) + ":";
  for (const Event& event : revision.events) {
    out += std::string(out.back() == ':' ? " " : ", ") + kKinds[static_cast<int>(event.kind)] +
           kCauses[static_cast<int>(event.cause)] + " " + std::string(event.key);
    if (event.kind == EventKind::set) {
      out += event.value_kept ? "=" + std::string(event.value) : " (long)";
    }
    if (event.lease != LeaseId(0)) out += " of " + std::to_string(event.lease.value());
  }
  return out;
}

std::vector<std::string> read(const EventHistory& history, std::uint64_t from,
                              std::size_t count = 1000) {
  const auto batch = history.read(from, count);
  if (batch.lost) return {"lost"};
  std::vector<std::string> out;
  for (const Revision& revision : batch.revisions) out.push_back(text(revision));
  return out;
}

using Told = std::vector<std::string>;

enum class Kind { memory, rocksdb };

class Events : public ::testing::TestWithParam<Kind> {
 protected:
  std::unique_ptr<Store> make(const std::string& name, EventHistory::Limits limits = {}) {
    if (GetParam() == Kind::memory) return std::make_unique<MemoryStore>(limits);
    auto options = store_options(folder_.path(name));
    options.events = limits;
    auto opened = RocksdbStore::open(std::move(options));
    EXPECT_TRUE(opened);
    return std::move(opened).value();
  }
  void SetUp() override {
    store_ = make("kv");
    ASSERT_NE(store_, nullptr);
  }
  std::string run(const Command& command) {
    return apply(*store_, store_->applied_index().value() + 1, {encoded(command)}).at(0);
  }
  void grant(std::uint64_t id) { run(GrantLease{LeaseId(id), seconds(10), "", "me"}); }
  void set_leased(std::string_view key, std::uint64_t id) {
    Set set{key, "v"};
    set.lease = LeaseId(id);
    EXPECT_EQ(run(set), "OK");
  }
  void expire(std::uint64_t id, std::uint64_t stamp) {
    EXPECT_EQ(run(ExpireLeases{raft::Term(1), {{LeaseId(id), stamp}}}), "1");
  }
  Told told(std::uint64_t from = 1) { return read(store_->events(), from); }

  TemporaryFolder folder_;
  std::unique_ptr<Store> store_;
};

TEST_P(Events, EachRevisionSaysWhatItChanged) {
  run(Set{"a", "1"});
  run(IncrBy{"a", 4});
  run(Append{"a", "6"});
  run(SetRange{0, "a", "7"});
  run(Rename{false, "a", "b"});
  run(GetDel{"b"});
  run(MSet{MSetCondition::none, {{"z", "1"}, {"y", "2"}}});
  run(Del{{"y", "none", "z"}});
  run(IncrByFloat{"f", "1.50"});
  run(Copy{false, "f", "g"});
  run(SetBit{1, true, "h"});
  run(SetBit{1, true, "h"});
  EXPECT_EQ(told(), (Told{"1: set a=1", "2: set/incr a=5", "3: set/append a=56",
                          "4: set/range a=76", "5: deleted/rename a, set/rename b=76",
                          "6: deleted b", "7: set y=2, set z=1", "8: deleted y, deleted z",
                          "9: set/float f=1.5", "10: set/copy g=1.5", "11: set/bit h=@"}));
}

TEST_P(Events, WhatChangesNothingIsNoRevision) {
  run(Set{"a", "1"});
  run(Set{"a", "2", SetCondition::nx});
  run(Get{"a"});
  run(Del{{"b"}});
  run(IncrBy{"a", 1});
  run(Append{"b", std::string(1, 'x')});
  run(IncrBy{"b", 1});  // an error
  EXPECT_EQ(told(), (Told{"1: set a=1", "2: set/incr a=2", "3: set/append b=x"}));
  EXPECT_EQ(store_->events().head(), store_->revision());
}

TEST_P(Events, ATransactionIsOneRevisionOfWhatItLeft) {
  run(Set{"gone", "1"});
  Transaction transaction;
  transaction.operations = {Set{"a", "1"}, IncrBy{"a", 1},   Set{"b", "2"}, Del{{"b"}},
                            Del{{"gone"}}, Set{"back", "1"}, Del{{"back"}}, Set{"back", "3"}};
  run(transaction);
  // "b" was made and deleted again: no reader has ever seen it.
  EXPECT_EQ(told(2), (Told{"2: set/incr a=2, set back=3, deleted gone"}));
}

TEST_P(Events, ATransactionThatIsRefusedTellsNothing) {
  run(Set{"a", "1"});
  Transaction transaction;
  transaction.watched.push_back({"a", 7});
  transaction.operations = {Set{"a", "2"}};
  EXPECT_EQ(run(transaction), "nil");
  EXPECT_EQ(told(2), Told{});
  EXPECT_EQ(store_->events().head(), 1U);
}

TEST_P(Events, AnExpiryIsNoDeletionAndNoRevocation) {
  grant(7);
  set_leased("a", 7);
  set_leased("b", 7);
  expire(7, 1);
  grant(8);
  set_leased("c", 8);
  EXPECT_EQ(run(RevokeLease{LeaseId(8)}), "OK");
  EXPECT_EQ(told(),
            (Told{"1:", "2: set a=v of 7", "3: set b=v of 7", "4: expired a of 7, expired b of 7",
                  "5:", "6: set c=v of 8", "7: revoked c of 8"}));
}

TEST_P(Events, ATimeToLiveIsToldAndTakenAway) {
  ExpireKey expire;
  expire.key = "a";
  expire.ttl = seconds(5);
  run(Set{"a", "1"});
  EXPECT_EQ(run(expire), "1");
  EXPECT_EQ(run(ExpireKey{"a", TimeChange::remove}), "1");
  expire.ttl = KeyTime(0);
  EXPECT_EQ(run(expire), "1");
  Set timed{"b", "2"};
  timed.ttl = seconds(5);
  run(timed);
  run(Rename{false, "b", "c"});
  const auto leases = store_->lease_changes(0);
  ASSERT_EQ(leases.value().alive.size(), 1U);
  const LeaseId own = leases.value().alive[0].id;
  EXPECT_EQ(run(ExpireLeases{raft::Term(1), {{own, leases.value().alive[0].stamp}}}), "1");
  const std::string of_first = " of " + std::to_string(own.value() - 1);
  const std::string of_own = " of " + std::to_string(own.value());
  EXPECT_EQ(told(),
            (Told{"1: set a=1", "2: set/expire a=1" + of_first, "3: set/persist a=1",
                  "4: deleted/expire a", "5: set b=2" + of_own,
                  "6: deleted/rename b, set/rename c=2" + of_own, "7: expired c" + of_own}));
}

TEST_P(Events, SeveralLeasesThatExpireTogetherAreOneRevision) {
  grant(7);
  grant(8);
  set_leased("a", 7);
  set_leased("b", 8);
  EXPECT_EQ(run(ExpireLeases{raft::Term(1), {{LeaseId(8), 2}, {LeaseId(7), 1}}}), "2");
  EXPECT_EQ(told(5), (Told{"5: expired a of 7, expired b of 8"}));
}

TEST_P(Events, ALeaseThatEndsWithoutKeysIsARevisionWithoutEvents) {
  grant(7);
  EXPECT_EQ(run(RevokeLease{LeaseId(7)}), "OK");
  EXPECT_EQ(told(), (Told{"1:", "2:"}));
}

TEST_P(Events, AttachingIsAWrite) {
  grant(7);
  run(Set{"a", "1"});
  run(AttachKey{LeaseId(7), "a"});
  run(AttachKey{LeaseId(0), "a"});
  EXPECT_EQ(told(2), (Told{"2: set a=1", "3: set/attach a=1 of 7", "4: set/attach a=1"}));
}

TEST_P(Events, TellTheRevisionsOfTheKey) {
  run(Set{"a", "1"});
  run(Set{"a", "2"});
  run(Del{{"a"}});
  run(Set{"a", "3"});
  const auto batch = store_->events().read(2, 3);
  ASSERT_EQ(batch.revisions.size(), 3U);
  EXPECT_EQ(batch.revisions[0].events[0].create_revision, 1U);
  EXPECT_EQ(batch.revisions[0].events[0].version, 2U);
  EXPECT_EQ(batch.revisions[1].events[0].create_revision, 0U);
  EXPECT_EQ(batch.revisions[2].events[0].create_revision, 4U);
  EXPECT_EQ(batch.revisions[2].events[0].version, 1U);
}

TEST_P(Events, ReadsBeginWhereTheyAreAskedTo) {
  for (int i = 0; i < 10; ++i) run(IncrBy{"a", 1});
  EXPECT_EQ(read(store_->events(), 4, 2), (Told{"4: set/incr a=4", "5: set/incr a=5"}));
  EXPECT_EQ(told(10), (Told{"10: set/incr a=10"}));
  EXPECT_EQ(told(11), Told{});
  EXPECT_EQ(told(12), (Told{"lost"})) << "it has never been so far";
  EXPECT_EQ(told(0), (Told{"lost"}));
}

/// A watcher that gets a revision finds its effects in the store.
TEST_P(Events, AreToldWhenTheirEffectsAreShown) {
  std::uint64_t next = 1;
  std::uint64_t seen = 0;
  const auto listener = store_->events().listen([&] {
    const auto batch = store_->events().read(next, 1000);
    for (const Revision& revision : batch.revisions) {
      for (const Event& event : revision.events) {
        const auto found = store_->get(event.key).value();
        EXPECT_EQ(found.has_value(), event.kind == EventKind::set);
        if (found) {
          EXPECT_GE(found->mod_revision, revision.number);
        }
      }
      next = revision.number + 1;
      ++seen;
    }
  });
  run(Set{"a", "1"});
  run(Set{"b", "1"});
  run(Del{{"a"}});
  EXPECT_EQ(seen, 3U);
  store_->events().forget(listener);
  run(Set{"a", "2"});
  EXPECT_EQ(seen, 3U);
}

TEST_P(Events, AreForgottenBeyondTheirNumber) {
  EventHistory::Limits limits;
  limits.events_max = 3;
  store_ = make("few", limits);
  for (int i = 0; i < 5; ++i) run(IncrBy{"a", 1});
  EXPECT_EQ(told(2), (Told{"lost"}));
  EXPECT_EQ(told(3), (Told{"3: set/incr a=3", "4: set/incr a=4", "5: set/incr a=5"}));
  const auto figures = store_->events().figures();
  EXPECT_EQ(figures.first, 3U);
  EXPECT_EQ(figures.head, 5U);
  EXPECT_EQ(figures.events, 3U);
  EXPECT_EQ(figures.forgotten, 2U);
  // More than may be kept at all: nothing is, and the head still says which one it was.
  run(MSet{MSetCondition::none, {{"a", "1"}, {"b", "2"}, {"c", "3"}, {"d", "4"}}});
  EXPECT_EQ(store_->events().figures().events, 0U);
  EXPECT_EQ(told(6), (Told{"lost"}));
  EXPECT_EQ(told(7), Told{});
}

TEST_P(Events, AreForgottenBeyondTheirBytes) {
  EventHistory::Limits limits;
  limits.bytes_max = 100'000;
  store_ = make("few", limits);
  const std::string value(5'000, 'x');
  for (int i = 0; i < 100; ++i) {
    run(Set{"a", value});
    EXPECT_LE(store_->events().figures().bytes, limits.bytes_max);
  }
  EXPECT_GT(store_->events().figures().events, 10U);
  EXPECT_EQ(store_->events().figures().events + store_->events().figures().forgotten, 100U);
}

TEST_P(Events, ALongValueIsReadByTheWatcherThatWantsIt) {
  EventHistory::Limits limits;
  limits.value_bytes_max = 3;
  store_ = make("short", limits);
  run(Set{"a", "123"});
  run(Set{"a", "1234"});
  EXPECT_EQ(told(), (Told{"1: set a=123", "2: set a (long)"}));
}

TEST_P(Events, BothStoresTellTheSame) {
  MemoryStore other;
  CommandSource source(20261122);
  std::vector<Bytes> commands;
  for (int i = 0; i < 2000; ++i) commands.push_back(source.next());
  for (std::size_t at = 0; at < commands.size();) {
    const std::size_t count =
        std::min<std::size_t>(1 + source.random().below(20), commands.size() - at);
    const std::vector<Bytes> run(commands.begin() + static_cast<std::ptrdiff_t>(at),
                                 commands.begin() + static_cast<std::ptrdiff_t>(at + count));
    apply(*store_, at + 1, run);
    apply(other, at + 1, run);
    at += count;
  }
  EXPECT_EQ(read(store_->events(), 1, 5000), read(other.events(), 1, 5000));
  EXPECT_EQ(store_->events().head(), store_->revision());
}

/// A copy to which every event is applied equals the store.
TEST_P(Events, AreEnoughToCopyTheStore) {
  CommandSource source(77);
  std::map<std::string, std::string> copy;
  std::uint64_t next = 1;
  for (std::uint64_t i = 1; i <= 1500; ++i) {
    apply(*store_, i, {source.next()});
    const auto batch = store_->events().read(next, 100);
    for (const Revision& revision : batch.revisions) {
      EXPECT_EQ(revision.number, next++);
      for (const Event& event : revision.events) {
        const std::string key(event.key);
        if (event.kind == EventKind::set) {
          copy[key] = event.value;
        } else {
          EXPECT_EQ(copy.erase(key), 1U) << key;
        }
      }
    }
  }
  std::map<std::string, std::string> found;
  const auto rows = store_->rows("", std::nullopt, 1000, Load::whole);
  for (const Row& row : rows.value().rows) {
    found[row.key] = row.value.bytes.view();
  }
  EXPECT_EQ(copy, found);
}

TEST_P(Events, AnInstalledSnapshotTakesTheHistoryWithIt) {
  for (int i = 0; i < 4; ++i) run(IncrBy{"a", 1});
  const auto other = make("other");
  apply(*other, 1, {encoded(Set{"a", "1"})});
  int news = 0;
  const auto listener = other->events().listen([&] { ++news; });
  ASSERT_TRUE(other->install_snapshot(*store_->take_snapshot().value()));
  other->events().forget(listener);
  EXPECT_EQ(news, 1);
  // Its own first revision is not the other's past: it lacks 2 to 4.
  EXPECT_EQ(read(other->events(), 1), (Told{"lost"}));
  EXPECT_EQ(read(other->events(), 4), (Told{"lost"}));
  EXPECT_EQ(read(other->events(), 5), Told{});
  EXPECT_EQ(read(other->events(), 6), (Told{"lost"})) << "it has been further";
  apply(*other, 5, {encoded(IncrBy{"a", 1})});
  EXPECT_EQ(read(other->events(), 5), (Told{"5: set/incr a=5"}));
}

TEST_P(Events, RowsOfAPrefixComeWithTheirRevision) {
  run(MSet{MSetCondition::none, {{"a", "0"}, {"b", "1"}, {"b/1", "2"}, {"b/2", "3"}, {"c", "4"}}});
  run(Set{"b/1", "5"});
  const auto names = [&](std::string_view prefix, std::optional<std::string_view> after,
                         std::size_t count) {
    const auto rows = store_->rows(prefix, after, count, Load::whole).value();
    EXPECT_EQ(rows.revision, 2U);
    std::string out;
    for (const Row& row : rows.rows)
      out += row.key + "=" + std::string(row.value.bytes.view()) + " ";
    return out + (rows.more ? "..." : "");
  };
  EXPECT_EQ(names("b/", std::nullopt, 10), "b/1=5 b/2=3 ");
  EXPECT_EQ(names("b", std::nullopt, 2), "b=1 b/1=5 ...");
  EXPECT_EQ(names("b", "b/1", 2), "b/2=3 ");
  EXPECT_EQ(names("b", "a", 1), "b=1 ...");
  EXPECT_EQ(names("b", "c", 1), "");
  EXPECT_EQ(names("", "b/2", 9), "c=4 ");
  EXPECT_EQ(names("x", std::nullopt, 9), "");
  const auto bare = store_->rows("a", std::nullopt, 1, Load::revisions).value();
  ASSERT_EQ(bare.rows.size(), 1U);
  EXPECT_EQ(bare.rows[0].value.mod_revision, 1U);
  EXPECT_TRUE(bare.rows[0].value.bytes.empty());
}

TEST_P(Events, ManyRowsComeInParts) {
  const std::string value(kValueBytesMax / 4, 'x');
  for (const char* key : {"a", "b", "c"}) run(Set{key, value});
  const auto rows = store_->rows("", std::nullopt, 10, Load::whole).value();
  EXPECT_EQ(rows.rows.size(), 2U);
  EXPECT_TRUE(rows.more);
}

INSTANTIATE_TEST_SUITE_P(Both, Events, ::testing::Values(Kind::memory, Kind::rocksdb),
                         [](const auto& tested) {
                           return tested.param == Kind::memory ? "memory" : "rocksdb";
                         });

TEST(RocksdbEvents, AfterARestartOnlyWhatIsAppliedAgainIsTold) {
  TemporaryFolder folder;
  {
    const auto store = open_store(folder.path("kv"));
    apply(*store, 1, {encoded(Set{"a", "1"}), encoded(Set{"a", "2"})});
    ASSERT_TRUE(store->make_durable());
    apply(*store, 3, {encoded(Set{"a", "3"})});
    const auto after = crashed(folder, "kv");
    EXPECT_EQ(after->durable_index(), raft::Index(2));
    EXPECT_EQ(read(after->events(), 2), (Told{"lost"}));
    EXPECT_EQ(read(after->events(), 3), Told{});
    apply(*after, 3, {encoded(Set{"a", "3"})});
    EXPECT_EQ(read(after->events(), 3), (Told{"3: set a=3"}));
  }
}

TEST(KeyFilter, WantsKeysAndPrefixes) {
  KeyFilter filter;
  EXPECT_TRUE(filter.empty());
  EXPECT_FALSE(filter.wants(""));
  filter.add_key("a");
  filter.add_prefix("b/");
  EXPECT_TRUE(filter.wants("a"));
  EXPECT_FALSE(filter.wants("aa"));
  EXPECT_FALSE(filter.wants("b"));
  EXPECT_TRUE(filter.wants("b/"));
  EXPECT_TRUE(filter.wants("b/1"));
  EXPECT_FALSE(filter.wants("c/b/"));
  filter.add_prefix("");
  EXPECT_TRUE(filter.wants("c"));
}

}  // namespace
}  // namespace leasehold::kv::testing
