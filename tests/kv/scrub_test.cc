// The sum that a store keeps is the sum of what it has stored, and a scrub sees when it is not.
#include <leasehold/kv/key_slot.h>
#include <leasehold/kv/reply.h>
#include <leasehold/kv/rocksdb/rocksdb_store.h>
#include <leasehold/tests/kv/command_source.h>
#include <leasehold/tests/kv/flipped_value.h>
#include <leasehold/tests/kv/lease_support.h>
#include <leasehold/tests/kv/snapshot_support.h>
#include <leasehold/tests/kv/store_support.h>

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace leasehold::kv::testing {
namespace {

bool go_on(std::uint64_t) {
  return true;
}

Scrubbed scrubbed(const RocksdbStore& store) {
  const auto found = store.scrub(go_on);
  if (!found || !found.value()) {
    ADD_FAILURE() << (found ? "interrupted" : found.error().message);
    return {};
  }
  return *found.value();
}

class Scrub : public ::testing::Test {
 protected:
  void SetUp() override { open(); }
  void open() {
    store_.reset();
    store_ = open_store(dir_);
    ASSERT_NE(store_, nullptr);
  }
  void run(const Command& command) { apply(*store_, ++last_, {encoded(command)}); }
  /// Only after it is closed.
  void flip(std::string_view key) {
    store_.reset();
    ASSERT_TRUE(flip_bit(dir_, key));
    open();
  }
  std::string get(std::string_view key) {
    const auto found = store_->get(key);
    if (!found) return found.error().message;
    return found.value() ? std::string(found.value()->bytes.view()) : "none";
  }

  TemporaryFolder folder_;
  std::string dir_ = folder_.path("kv");
  std::unique_ptr<RocksdbStore> store_;
  std::uint64_t last_ = 0;
};

/// Commands of every kind of record.
std::vector<Bytes> all_kinds(std::uint64_t seed, std::size_t count) {
  CommandSource source(seed);
  std::vector<Bytes> commands;
  std::uint64_t session = 0;
  std::uint64_t lease = 0;
  const std::string set = std::string(encoded(Set{"of a session", "v"}).view());
  for (std::size_t i = 0; i < count; ++i) {
    switch (source.random().below(12)) {
      case 0:
        commands.push_back(encoded(OpenSession{}));
        ++session;
        break;
      case 1: commands.push_back(encoded(CloseSession{replica::SessionId(session / 2)})); break;
      case 2: commands.push_back(encoded(Once{replica::SessionId(session), i, 0, set})); break;
      case 3: {
        const std::string name = "n" + std::to_string(source.random().below(9));
        commands.push_back(
            encoded(GrantLease{grant::LeaseId(++lease), std::chrono::seconds(9), name, "h"}));
        break;
      }
      case 4: {
        const grant::LeaseId id(source.random().below(lease + 1) + 1);
        commands.push_back(encoded(AttachKey{id, "key1"}));
        commands.push_back(encoded(RenewLeases{{id}}));
        break;
      }
      case 5:
        commands.push_back(
            encoded(RevokeLease{grant::LeaseId(source.random().below(lease + 1) + 1)}));
        break;
      case 6: {
        const std::string name = "u" + std::to_string(source.random().below(5));
        commands.push_back(encoded(SetUser{name, 0, "on"}));
        if (source.random().chance(1, 2)) commands.push_back(encoded(DelUsers{{name}}));
        break;
      }
      case 7: {
        Set fenced{"key2", "fenced"};
        fenced.token = grant::FencingToken(source.random().below(20) + 1);
        commands.push_back(encoded(fenced));
        break;
      }
      default: commands.push_back(source.next());
    }
  }
  return commands;
}

TEST_F(Scrub, TheKeptSumIsThatOfTheStoredRecordsWhateverWasApplied) {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    const TemporaryFolder folder;
    auto store = open_store(folder.path("a"));
    auto other = open_store(folder.path("b"));
    ASSERT_TRUE(store && other);
    const std::vector<Bytes> commands = all_kinds(seed, 800);
    Random random(seed);
    for (std::size_t at = 0; at < commands.size();) {
      const std::size_t count = std::min(commands.size() - at, random.below(20) + 1);
      const std::vector<Bytes> part(commands.begin() + static_cast<std::ptrdiff_t>(at),
                                    commands.begin() + static_cast<std::ptrdiff_t>(at + count));
      apply(*store, at + 1, part);
      // The other one gets them one by one: the sum is the state's, and not that of the batches.
      for (std::size_t i = 0; i < count; ++i) apply(*other, at + i + 1, {part[i]});
      at += count;
      const Scrubbed found = scrubbed(*store);
      ASSERT_EQ(found.kept, found.stored) << "seed " << seed << ", command " << at;
      ASSERT_EQ(found.index, raft::Index(at));
      if (random.chance(1, 9)) {
        store.reset();
        store = open_store(folder.path("a"));
        ASSERT_TRUE(store);
      }
    }
    EXPECT_EQ(scrubbed(*store).kept, scrubbed(*other).kept);
  }
}

TEST_F(Scrub, FindsABitThatFlippedUnderAGoodChecksum) {
  for (int i = 0; i < 100; ++i) run(Set{"key" + std::to_string(i), "value"});
  const Scrubbed before = scrubbed(*store_);
  EXPECT_EQ(before.keys, 100U);
  EXPECT_EQ(before.kept, before.stored);
  flip("key50");
  EXPECT_EQ(get("key50"), "valud");
  const Scrubbed found = scrubbed(*store_);
  EXPECT_EQ(found.kept, before.kept);
  EXPECT_NE(found.stored, before.stored);
}

TEST_F(Scrub, AFlippedBitThatIsOverwrittenStaysInTheSum) {
  const TemporaryFolder folder;
  const auto other = open_store(folder.path("other"));
  for (const char* value : {"value", "again"}) {
    run(Set{"key", value});
    apply(*other, last_, {encoded(Set{"key", value})});
    if (std::string(value) == "value") flip("key");
  }
  EXPECT_EQ(get("key"), "again");
  EXPECT_NE(scrubbed(*store_).kept, scrubbed(*other).kept);
}

TEST_F(Scrub, TheComparedSumIsThatOfTheEntryWhateverFollowsInTheSameRun) {
  const TemporaryFolder folder;
  const auto other = open_store(folder.path("other"));
  const std::vector<Bytes> commands = {encoded(Set{"a", "1"}), encoded(CompareState{}),
                                       encoded(Set{"a", "2"}), encoded(Del{{"a"}})};
  EXPECT_EQ(apply(*store_, 1, commands).at(1), "OK");
  for (std::size_t i = 0; i < commands.size(); ++i) apply(*other, i + 1, {commands[i]});
  const auto point = store_->comparison().newest();
  ASSERT_TRUE(point);
  EXPECT_EQ(point->index, raft::Index(2));
  EXPECT_EQ(point->kept, other->comparison().newest()->kept);
  EXPECT_EQ(store_->revision(), 3U);
}

TEST_F(Scrub, TheComparedSumKnowsTheCounters) {
  const TemporaryFolder folder;
  const auto other = open_store(folder.path("other"));
  apply(*store_, 1, {encoded(CompareState{})});
  apply(*other, 1, {encoded(Set{"a", "1"}), encoded(Del{{"a"}}), encoded(CompareState{})});
  EXPECT_NE(store_->comparison().newest()->kept, other->comparison().newest()->kept);
}

TEST_F(Scrub, ReportsComeThroughTheLog) {
  apply(*store_, 1, {encoded(CompareState{})});
  const auto point = *store_->comparison().newest();
  const std::vector<raft::NodeId> voters = {raft::NodeId(1), raft::NodeId(2), raft::NodeId(3)};
  StateReport report{raft::NodeId(2), point.index, kSumVersion, {1, 2}, {1, 2}};
  apply(*store_, 2, {encoded(ReportState{report})}, raft::NodeId(2));
  report.node = raft::NodeId(3);
  EXPECT_EQ(apply(*store_, 3, {encoded(ReportState{report})}, raft::NodeId(3)).at(0), "OK");
  EXPECT_EQ(store_->comparison().judge(raft::NodeId(1), voters).verdict,
            Comparison::Verdict::differs);
}

// One member that lies could make every other one distrust itself, for good.
TEST_F(Scrub, ANodeReportsForItselfAlone) {
  apply(*store_, 1, {encoded(CompareState{})});
  const auto point = *store_->comparison().newest();
  const std::vector<raft::NodeId> voters = {raft::NodeId(1), raft::NodeId(2), raft::NodeId(3)};
  std::uint64_t index = 2;
  for (const raft::NodeId named : voters) {
    const StateReport report{named, point.index, kSumVersion, {1, 2}, {1, 2}};
    const bool own = named == raft::NodeId(2);
    EXPECT_EQ(apply(*store_, index++, {encoded(ReportState{report})}, raft::NodeId(2)).at(0),
              own ? "OK" : "nil");
  }
  const auto judged = store_->comparison().judge(raft::NodeId(1), voters);
  EXPECT_EQ(judged.verdict, Comparison::Verdict::open) << "two of three have not said a word";
  const StateReport damage{raft::NodeId(1), point.index, kSumVersion, {1, 2}, {3, 4}};
  apply(*store_, index, {encoded(ReportState{damage})}, raft::NodeId(2));
  EXPECT_EQ(store_->comparison().damage(damage), Comparison::Damage::unheard);
}

TEST_F(Scrub, AStoreOfABuildWithoutSumsGetsOne) {
  run(Set{"a", "1"});
  run(Set{"b", "2"});
  store_.reset();
  ASSERT_TRUE(forget_sum(dir_));
  open();
  const Scrubbed found = scrubbed(*store_);
  EXPECT_EQ(found.kept, found.stored);
  EXPECT_NE(found.kept, StateSum{});
}

// The counter of keys leaves out those that are on their way to this group.
TEST_F(Scrub, KeysThatArriveAreNoDamage) {
  run(Set{"foo", "1"});
  run(ExpectSlots{2, 2, 1, 2, {{slot_of("bar"), 1}}});
  MovedKey moved;
  moved.key = "bar";
  moved.exists = true;
  moved.value = "v";
  moved.create_revision = moved.mod_revision = moved.version = 1;
  run(ImportKeys{1, 2, {moved}});
  const Scrubbed found = scrubbed(*store_);
  EXPECT_EQ(found.keys, 2U) << "also what arrives";
  EXPECT_EQ(found.kept, found.stored);
  const auto taken = store_->take_snapshot();
  ASSERT_TRUE(taken);
  const auto other = open_store(folder_.path("other"));
  ASSERT_TRUE(other->install_snapshot(*taken.value()));
  EXPECT_EQ(other->distrusted(), "");
  run(TakeSlots{1, 2, 3});
  EXPECT_EQ(scrubbed(*store_).keys, 2U);
}

TEST_F(Scrub, EndsWhenItIsToldTo) {
  for (int i = 0; i < 100; ++i) run(Set{"key" + std::to_string(i), std::string(10000, 'x')});
  int asked = 0;
  const auto found = store_->scrub([&](std::uint64_t) { return ++asked < 3; });
  ASSERT_TRUE(found);
  EXPECT_FALSE(found.value());
  EXPECT_EQ(asked, 3);
}

TEST_F(Scrub, AnotherStateEndsIt) {
  for (int i = 0; i < 10; ++i) run(Set{"key" + std::to_string(i), std::string(20000, 'x')});
  const auto taken = store_->take_snapshot();
  ASSERT_TRUE(taken);
  ASSERT_GT(store_->events().figures().events, 0U);
  std::thread installs;
  const auto found = store_->scrub([&](std::uint64_t) {
    if (!installs.joinable()) {
      installs = std::thread([&] { EXPECT_TRUE(store_->install_snapshot(*taken.value())); });
    }
    // The other database is the live one now, and waits for the readers of this one.
    while (store_->events().figures().events > 0) std::this_thread::yield();
    return true;
  });
  installs.join();
  ASSERT_TRUE(found);
  EXPECT_FALSE(found.value());
}

TEST_F(Scrub, AStoreThatIsNotTrustedServesNothing) {
  run(Set{"key", "value"});
  EXPECT_EQ(store_->distrusted(), "");
  store_->distrust("it differs");
  EXPECT_NE(get("key").find("it differs"), std::string::npos);
  EXPECT_FALSE(store_->rows("", {}, 1, Load::whole));
  EXPECT_FALSE(store_->take_snapshot());
  EXPECT_EQ(apply(*store_, ++last_, {encoded(IncrBy{"n", 1})}).at(0).substr(0, 7), "error 6");
  EXPECT_EQ(store_->applied_index(), raft::Index(last_));
  // The log may still be cut.
  EXPECT_EQ(store_->make_durable().value(), raft::Index(last_));
  open();
  EXPECT_EQ(store_->distrusted(), "it differs");
  EXPECT_NE(get("key").find("it differs"), std::string::npos);
}

/// A store that is damaged, and the state of another member.
class Rebuild : public Scrub {
 protected:
  void SetUp() override {
    Scrub::SetUp();
    other_ = open_store(folder_.path("other"));
    both(Set{"key", "value"});
    both(Set{"n", "1"});
    flip("key");
    store_->distrust("it differs");
  }
  void both(const Command& command) {
    run(command);
    apply(*other_, last_, {encoded(command)});
  }
  void stage() {
    const auto archive = other_->take_snapshot();
    ASSERT_TRUE(archive);
    store_.reset();
    const auto staged = RocksdbStore::stage_successor(dir_, *archive.value());
    ASSERT_TRUE(staged) << staged.error().message;
    EXPECT_EQ(staged.value(), other_->applied_index());
    open();
  }
  std::unique_ptr<RocksdbStore> other_;
};

TEST_F(Rebuild, AStateOfTheSameIndexIsLiveAtOnce) {
  stage();
  EXPECT_EQ(store_->distrusted(), "");
  EXPECT_EQ(get("key"), "value");
  EXPECT_EQ(store_->durable_index(), raft::Index(2));
  open();
  EXPECT_EQ(get("key"), "value");
  EXPECT_EQ(store_->durable_index(), raft::Index(2));
}

TEST_F(Rebuild, ALaterStateWaitsForItsIndex) {
  apply(*other_, 3, {encoded(IncrBy{"n", 1}), encoded(IncrBy{"n", 1})});
  stage();
  EXPECT_EQ(store_->durable_index(), raft::Index(2));
  EXPECT_NE(get("key").find("waits for entry 4"), std::string::npos) << get("key");
  EXPECT_EQ(apply(*store_, 3, {encoded(IncrBy{"n", 1})}).at(0).substr(0, 7), "error 6");
  // The log must not lose what a crash would ask for again.
  EXPECT_EQ(store_->make_durable().value(), raft::Index(2));
  EXPECT_FALSE(store_->take_snapshot());
  open();
  EXPECT_EQ(store_->durable_index(), raft::Index(2));
  apply(*other_, 5, {encoded(IncrBy{"n", 1}), encoded(IncrBy{"n", 1})});
  const auto replies = apply(*store_, 3,
                             {encoded(IncrBy{"n", 1}), encoded(IncrBy{"n", 1}),
                              encoded(IncrBy{"n", 1}), encoded(IncrBy{"n", 1})});
  EXPECT_EQ(replies.at(1).substr(0, 7), "error 6");
  EXPECT_EQ(replies.at(2), "4");
  EXPECT_EQ(replies.at(3), "5");
  EXPECT_EQ(get("key"), "value");
  EXPECT_EQ(get("n"), "5");
  EXPECT_EQ(scrubbed(*store_).kept, scrubbed(*other_).kept);
  EXPECT_EQ(scrubbed(*store_).stored, scrubbed(*other_).kept);
}

TEST_F(Rebuild, ARunMayEndAtItsIndex) {
  apply(*other_, 3, {encoded(IncrBy{"n", 1})});
  stage();
  EXPECT_EQ(apply(*store_, 3, {encoded(IncrBy{"n", 1})}).at(0).substr(0, 7), "error 6");
  EXPECT_EQ(get("n"), "2");
  EXPECT_EQ(store_->make_durable().value(), raft::Index(3));
}

TEST_F(Rebuild, ASnapshotOfTheLeaderMakesItNeedless) {
  apply(*other_, 3, {encoded(IncrBy{"n", 1})});
  stage();
  apply(*other_, 4, {encoded(IncrBy{"n", 1})});
  const auto taken = other_->take_snapshot();
  ASSERT_TRUE(taken);
  const auto installed = store_->install_snapshot(*taken.value());
  ASSERT_TRUE(installed) << installed.error().message;
  EXPECT_EQ(store_->distrusted(), "");
  EXPECT_EQ(get("n"), "3");
  open();
  EXPECT_EQ(get("n"), "3");
  EXPECT_EQ(store_->durable_index(), raft::Index(4));
}

TEST_F(Rebuild, RefusesAnOlderStateAndThatOfAnotherGroup) {
  const auto archive = other_->take_snapshot();
  run(Set{"more", "1"});
  store_.reset();
  const auto older = RocksdbStore::stage_successor(dir_, *archive.value());
  ASSERT_FALSE(older);
  EXPECT_EQ(older.error().code, ErrorCode::invalid_argument);
  auto options = store_options(folder_.path("foreign"));
  options.cluster_id = 78;
  const auto foreign = RocksdbStore::open(options);
  ASSERT_TRUE(foreign);
  for (std::uint64_t i = 1; i <= 5; ++i) apply(*foreign.value(), i, {encoded(Set{"a", "b"})});
  const auto theirs = foreign.value()->take_snapshot();
  const auto staged = RocksdbStore::stage_successor(dir_, *theirs.value());
  ASSERT_FALSE(staged);
  EXPECT_EQ(staged.error().code, ErrorCode::wrong_cluster);
  open();
  const auto busy = RocksdbStore::stage_successor(dir_, *archive.value());
  ASSERT_FALSE(busy);
  EXPECT_EQ(busy.error().code, ErrorCode::in_use);
}

TEST_F(Rebuild, ADamagedSnapshotIsNotServed) {
  other_.reset();
  ASSERT_TRUE(flip_bit(folder_.path("other"), "n"));
  other_ = open_store(folder_.path("other"));
  both(Set{"key", "other"});
  const auto taken = other_->take_snapshot();
  ASSERT_TRUE(taken);
  const auto installed = store_->install_snapshot(*taken.value());
  ASSERT_TRUE(installed) << installed.error().message;
  EXPECT_NE(store_->distrusted().find("has a damaged store"), std::string::npos);
  EXPECT_NE(get("key").find("has a damaged store"), std::string::npos);
  const auto restored =
      RocksdbStore::restore(store_options(folder_.path("restored")), *taken.value());
  ASSERT_FALSE(restored);
  EXPECT_EQ(restored.error().code, ErrorCode::corrupted);
}

TEST_F(Rebuild, ADamagedStateIsNotTakenOver) {
  other_.reset();
  ASSERT_TRUE(flip_bit(folder_.path("other"), "n"));
  other_ = open_store(folder_.path("other"));
  stage();
  EXPECT_NE(store_->distrusted(), "");
  EXPECT_FALSE(store_->rebuilding());
  open();
  EXPECT_NE(store_->distrusted(), "");
}

}  // namespace
}  // namespace leasehold::kv::testing
