// Exactly once: the commands of sessions, asked of both stores, and their life after the process.
#include <leasehold/kv/key_slot.h>
#include <leasehold/kv/rocksdb/rocksdb_record.h>
#include <leasehold/tests/kv/command_source.h>
#include <leasehold/tests/kv/snapshot_support.h>
#include <leasehold/tests/kv/store_support.h>
#include <leasehold/tests/kv/store_twin.h>

#include <rocksdb/db.h>

#include <gmock/gmock.h>

#include <atomic>
#include <thread>

namespace leasehold::kv::testing {
namespace {

using replica::SessionId;

Bytes once(std::uint64_t session, std::uint64_t sequence, std::uint64_t answered_below,
           const Command& command) {
  const Bytes carried = encoded(command);
  return encoded(Once{SessionId(session), sequence, answered_below, carried.view()});
}
/// The command of a client that sends one command after the other.
Bytes once(std::uint64_t session, std::uint64_t sequence, const Command& command) {
  return once(session, sequence, sequence, command);
}

std::string run(Store& store, const Bytes& command) {
  return apply(store, store.applied_index().value() + 1, {command}).at(0);
}

/// "1 after 3 with 2 results, 4 after ..."
std::string list(const Store& store) {
  const auto sessions = store.sessions();
  if (!sessions) return sessions.error().message;
  std::string out;
  for (const auto& session : sessions.value()) {
    if (!out.empty()) out += ", ";
    out += std::to_string(session.id.value()) + " after " + std::to_string(session.activity) +
           " with " + std::to_string(session.results) + " results";
  }
  return out;
}

class SessionContract : public EachStore {
 protected:
  std::string run(const Bytes& command) { return testing::run(*store_, command); }
  std::string run(const Command& command) { return run(encoded(command)); }
};

// Its client executes it in a session of the other group. A copy of it may still be on its way to
// this one when the slot has come back.
TEST_P(SessionContract, ACommandThatCameForASlotElsewhereIsNeverExecuted) {
  EXPECT_EQ(run(OpenSession{}), "1");
  EXPECT_EQ(run(once(1, 1, Append{"bar", "v"})), "1");
  const std::uint64_t move = std::stoull(run(BeginMove{1, 2, 2, {slot_of("bar")}}));
  EXPECT_EQ(run(once(1, 2, Append{"bar", "v"})), "2");
  run(FreezeMove{move});
  const Bytes third = once(1, 3, 3, Append{"bar", "v"});
  const std::string refused = run(third);
  EXPECT_EQ(refused.substr(0, 8), "error 21");
  EXPECT_EQ(list(*store_), "1 after 3 with 1 results");
  run(LeaveSlots{move});
  EXPECT_EQ(run(third), refused);
  EXPECT_EQ(run(once(1, 4, 3, Append{"foo", "v"})), "1") << "its slot is here";
  run(DropKeys{2, move, {"bar"}});
  run(ForgetSlots{2, move, false});
  run(ExpectSlots{1, 2, 2, 1, {{slot_of("bar"), 2}}});
  run(TakeSlots{2, 1, 0});
  EXPECT_EQ(run(once(1, 5, 3, Append{"bar", "w"})), "1") << "the slot is back";
  EXPECT_EQ(run(third), refused);
  EXPECT_EQ(store_->get("bar").value()->bytes.view(), "w");
}

TEST_P(SessionContract, WhatWasExecutedOnceIsAnsweredWhenItsSlotHasGone) {
  EXPECT_EQ(run(OpenSession{}), "1");
  EXPECT_EQ(run(once(1, 1, 1, Append{"bar", "v"})), "1");
  EXPECT_EQ(run(once(1, 2, 1, Append{"bar", "v"})), "2");
  const std::uint64_t move = std::stoull(run(BeginMove{1, 2, 2, {slot_of("bar")}}));
  for (const Command& step : {Command(FreezeMove{move}), Command(LeaveSlots{move})}) {
    run(step);
    EXPECT_EQ(run(once(1, 1, 1, Append{"bar", "v"})), "1");
    EXPECT_EQ(run(once(1, 2, 1, Append{"bar", "v"})), "2");
    EXPECT_EQ(run(once(1, 3, 1, Append{"bar", "v"})).substr(0, 8), "error 21");
  }
  EXPECT_EQ(run(once(1, 4, 2, Append{"foo", "v"})), "1");
  EXPECT_EQ(run(once(1, 1, 1, Append{"bar", "v"})).substr(0, 8), "error 9:")
      << "the client has said that it has this answer";
  EXPECT_EQ(store_->get("bar").value()->bytes.view(), "vv");
}

// A session that is over says nothing of what it has executed. One of another group was sent here
// by a node that has not heard of the move.
TEST_P(SessionContract, BehindAMoveASessionOfThisGroupIsOverAndOneOfAnotherIsElsewhere) {
  const std::uint64_t move = std::stoull(run(BeginMove{1, 2, 2, {slot_of("bar")}}));
  run(FreezeMove{move});
  EXPECT_EQ(run(once(7, 1, Append{"bar", "v"})).substr(0, 8), "error 8:");
  const std::uint64_t of_the_second = kIdsOfGroup + 1;
  EXPECT_EQ(run(once(of_the_second, 1, Append{"bar", "v"})).substr(0, 8), "error 18");
  EXPECT_EQ(run(once(of_the_second, 1, Append{"foo", "v"})).substr(0, 8), "error 8:");
}

TEST_P(SessionContract, ACommandIsExecutedOnceAndAnsweredEachTime) {
  EXPECT_EQ(run(OpenSession{}), "1");
  const Bytes first = once(1, 1, IncrBy{"n", 5});
  EXPECT_EQ(run(first), "5");
  EXPECT_EQ(run(first), "5");
  EXPECT_EQ(run(once(1, 2, IncrBy{"n", 1})), "6");
  EXPECT_EQ(run(once(1, 2, IncrBy{"n", 1})), "6");
  EXPECT_EQ(store_->get("n").value()->bytes.view(), "6");
  EXPECT_EQ(list(*store_), "1 after 4 with 1 results");
}

TEST_P(SessionContract, ARepetitionInTheSameRunSeesTheFirst) {
  const Bytes add = once(1, 1, Append{"list", "a"});
  const auto replies =
      apply(*store_, 1, {encoded(OpenSession{}), add, add, encoded(Append{"list", "b"}), add});
  EXPECT_EQ(replies, (std::vector<std::string>{"1", "1", "1", "2", "1"}));
  EXPECT_EQ(store_->get("list").value()->bytes.view(), "ab");
}

TEST_P(SessionContract, ARepetitionHasTheSameBytes) {
  run(OpenSession{});
  run(Set{"k", std::string("a\0b", 3)});
  std::uint64_t sequence = 0;
  for (const Command& command :
       {Command(Set{"k", "v", SetCondition::none, true}), Command(Del{{"k"}}),
        Command(Transaction{{}, {IncrBy{"n", 1}, Get{"n"}, IncrBy{"text", 1}}}),
        Command(Rename{false, "nothing", "x"}), Command(GetDel{"n"})}) {
    const Bytes bytes = once(1, ++sequence, command);
    const auto apply_one = [&] {
      const raft::Index index = store_->applied_index() + 1;
      return store_->apply({{{raft::Term(1), index}, bytes.view()}}, index).at(0);
    };
    const Bytes first = apply_one();
    EXPECT_EQ(apply_one(), first) << text(first);
  }
}

TEST_P(SessionContract, AnErrorIsAResultLikeAnyOther) {
  run(OpenSession{});
  run(Set{"k", "text"});
  const std::string refused = run(once(1, 1, IncrBy{"k", 1}));
  EXPECT_EQ(refused.substr(0, 8), "error 4:");
  run(Set{"k", "1"});
  EXPECT_EQ(run(once(1, 1, IncrBy{"k", 1})), refused);
  EXPECT_EQ(store_->get("k").value()->bytes.view(), "1");
}

TEST_P(SessionContract, OnlyWhatACommandChangesHasARevision) {
  run(OpenSession{});
  run(TouchSession{SessionId(1)});
  EXPECT_EQ(store_->revision(), 0U);
  run(once(1, 1, Set{"k", "v"}));
  EXPECT_EQ(store_->revision(), 1U);
  run(once(1, 1, Set{"k", "v"}));
  run(once(1, 2, Del{{"nothing"}}));
  run(ExpireSession{SessionId(1), 0});
  run(CloseSession{SessionId(1)});
  EXPECT_EQ(store_->revision(), 1U);
  EXPECT_EQ(store_->get("k").value()->version, 1U);
}

TEST_P(SessionContract, AnOldDuplicateBehindNewerOnesIsNotExecuted) {
  run(OpenSession{});
  run(once(1, 1, IncrBy{"n", 1}));
  run(once(1, 2, IncrBy{"n", 1}));
  EXPECT_EQ(run(once(1, 1, IncrBy{"n", 1})),
            "error 9: sequence 1 of session 1 is below what its client has said it has the answers "
            "to; not executed now");
  EXPECT_EQ(store_->get("n").value()->bytes.view(), "2");
}

TEST_P(SessionContract, SeveralMayBeUnderWayInAnyOrder) {
  run(OpenSession{});
  EXPECT_EQ(run(once(1, 3, 1, Append{"k", "ccc"})), "3");
  EXPECT_EQ(run(once(1, 1, 1, Append{"k", "a"})), "4");
  EXPECT_EQ(run(once(1, 3, 1, Append{"k", "ccc"})), "3");
  EXPECT_EQ(run(once(1, 2, 1, Append{"k", "bb"})), "6");
  EXPECT_EQ(list(*store_), "1 after 4 with 3 results");
  EXPECT_EQ(run(once(1, 1, 1, Append{"k", "a"})), "4");
  EXPECT_EQ(run(once(1, 4, 4, Append{"k", ""})), "6");
  EXPECT_EQ(list(*store_), "1 after 6 with 1 results");
  EXPECT_EQ(store_->get("k").value()->bytes.view(), "cccabb");
}

TEST_P(SessionContract, NoSequenceIsTooFarAhead) {
  run(OpenSession{});
  const std::uint64_t end = replica::kSessionWindow;
  EXPECT_EQ(run(once(1, end, 1, IncrBy{"n", 1})), "1");
  EXPECT_EQ(run(once(1, end + 1, 1, IncrBy{"n", 1})),
            "error 10: sequence 129 of session 1 is 128 or more ahead of the first one that is not "
            "answered; not executed");
  EXPECT_EQ(run(once(1, end + 1, 2, IncrBy{"n", 1})), "2");
}

TEST_P(SessionContract, AResultTooLargeToKeepIsForgottenAndItsCommandIsNotRepeated) {
  run(OpenSession{});
  const std::string large(replica::kSessionResultBytesMax, 'x');
  run(Set{"k", large});
  const Bytes take = once(1, 1, GetDel{"k"});
  EXPECT_EQ(run(take), "\"" + large + "\"");
  run(Set{"k", "new"});
  EXPECT_EQ(run(take),
            "error 11: sequence 1 of session 1 was executed before, and its result was too large "
            "to keep");
  EXPECT_EQ(store_->get("k").value()->bytes.view(), "new");
}

TEST_P(SessionContract, WithoutASessionNothingIsExecuted) {
  const std::string unknown =
      "error 8: session 7 is unknown, closed or expired; nothing was done now, an earlier try may "
      "have been executed";
  EXPECT_EQ(run(once(7, 1, Set{"k", "v"})), unknown);
  EXPECT_EQ(run(TouchSession{SessionId(7)}), unknown);
  EXPECT_EQ(run(CloseSession{SessionId(7)}), unknown);
  EXPECT_EQ(run(ExpireSession{SessionId(7), 0}), "0");
  EXPECT_EQ(run(once(0, 1, Set{"k", "v"})).substr(0, 8), "error 8:");
  run(OpenSession{});
  EXPECT_EQ(run(CloseSession{SessionId(1)}), "OK");
  EXPECT_EQ(run(once(1, 1, Set{"k", "v"})).substr(0, 8), "error 8:");
  EXPECT_EQ(run(OpenSession{}), "2");
  EXPECT_FALSE(store_->exists("k").value());
}

TEST_P(SessionContract, OnlyAnIdleSessionExpires) {
  run(OpenSession{});
  run(TouchSession{SessionId(1)});
  EXPECT_EQ(run(ExpireSession{SessionId(1), 0}), "0");
  EXPECT_EQ(list(*store_), "1 after 1 with 0 results");
  run(once(1, 1, Set{"k", "v"}));
  EXPECT_EQ(run(ExpireSession{SessionId(1), 1}), "0");
  EXPECT_EQ(run(ExpireSession{SessionId(1), 2}), "1");
  EXPECT_EQ(list(*store_), "");
  EXPECT_EQ(run(once(1, 1, Set{"k", "v"})).substr(0, 8), "error 8:");
}

TEST_P(SessionContract, AMalformedCommandUsesUpNoNumber) {
  run(OpenSession{});
  std::string bytes(once(1, 1, Append{"k", "v"}).view());
  bytes.replace(bytes.size() - 6, 4, std::string(4, '\xff'));  // the key's length
  const std::string wrong = run(Bytes(std::string(bytes)));
  EXPECT_EQ(wrong.substr(0, 8), "error 1:");
  EXPECT_EQ(run(Bytes(std::string(bytes))), wrong);
  EXPECT_EQ(run(once(1, 1, Append{"k", "v"})), "1");
}

TEST_P(SessionContract, TheTableIsBounded) {
  std::vector<Bytes> commands(replica::kSessionsMax + 1, encoded(OpenSession{}));
  const auto replies = apply(*store_, 1, commands);
  EXPECT_EQ(replies.at(replica::kSessionsMax - 1), "10000");
  EXPECT_EQ(replies.back(),
            "error 12: 10000 sessions are open, which is the limit; none was opened");
  run(CloseSession{SessionId(77)});
  EXPECT_EQ(run(OpenSession{}), "10001");
  EXPECT_EQ(store_->sessions().value().size(), replica::kSessionsMax);
}

TEST_P(SessionContract, ASnapshotCarriesThem) {
  run(OpenSession{});
  run(OpenSession{});
  run(OpenSession{});
  run(once(2, 1, IncrBy{"n", 1}));
  run(CloseSession{SessionId(1)});
  run(CloseSession{SessionId(3)});
  const auto snapshot = store_->take_snapshot().value();
  run(once(2, 2, IncrBy{"n", 1}));

  const auto to = make("to");
  for (int i = 0; i < 3; ++i) testing::run(*to, encoded(OpenSession{}));
  ASSERT_TRUE(to->install_snapshot(*snapshot));
  EXPECT_EQ(list(*to), "2 after 1 with 1 results");
  EXPECT_EQ(testing::run(*to, once(2, 1, IncrBy{"n", 1})), "1");
  EXPECT_EQ(testing::run(*to, once(2, 2, IncrBy{"n", 1})), "2");
  // Not even the newest one's id is used again.
  EXPECT_EQ(testing::run(*to, encoded(OpenSession{})), "4");
}

// More than apply() collects in memory: the sessions are written with the values of their commands.
TEST_P(SessionContract, LongRunsAreWrittenInParts) {
  std::vector<Bytes> commands;
  std::vector<std::string> expected;
  constexpr std::uint64_t kSessions = 1500;
  for (std::uint64_t id = 1; id <= kSessions; ++id) {
    commands.push_back(encoded(OpenSession{}));
    commands.push_back(once(id, 1, SetRange{(1U << 16U) - 1, "k" + std::to_string(id % 7), "x"}));
    expected.push_back(std::to_string(id));
    expected.push_back(std::to_string(1U << 16U));
  }
  EXPECT_EQ(apply(*store_, 1, commands), expected);
  EXPECT_EQ(store_->sessions().value().size(), kSessions);
  EXPECT_EQ(run(commands.back()), expected.back());
}

TEST_P(SessionContract, TheyAreListedWhileCommandsRun) {
  std::atomic<bool> stop{false};
  std::atomic<std::size_t> odd{0};
  std::thread reader([&] {
    std::uint64_t newest = 0;
    while (!stop.load()) {
      const auto sessions = store_->sessions();
      for (const auto& session : sessions.value()) {
        if (session.results > 1) ++odd;
        if (session.id.value() == 1 && session.activity < newest) ++odd;
        if (session.id.value() == 1) newest = session.activity;
      }
    }
  });
  run(OpenSession{});
  for (std::uint64_t i = 1; i <= 300; ++i) {
    run(once(1, i, IncrBy{"n", 1}));
    run(OpenSession{});
    run(CloseSession{SessionId(i + 1)});
  }
  stop = true;
  reader.join();
  EXPECT_EQ(odd.load(), 0U);
  EXPECT_EQ(list(*store_), "1 after 300 with 1 results");
}

/// Random commands of few sessions, half of them repetitions of what was sent before.
class OnceSource {
 public:
  explicit OnceSource(std::uint64_t seed) : commands_(seed) {}

  Bytes next() {
    Random& random = commands_.random();
    const std::uint64_t kind = random.below(20);
    if (kind == 0) return encoded(OpenSession{});
    if (kind == 1) return encoded(CloseSession{draw()});
    if (kind == 2) return encoded(ExpireSession{draw(), random.below(8)});
    if (kind == 3) return encoded(TouchSession{draw()});
    if (kind < 10 && !sent_.empty()) return sent_[random.below(sent_.size())];
    const Bytes carried = commands_.next();
    sequence_ += random.below(3);
    const std::uint64_t answered = sequence_ - random.below(std::min(sequence_, std::uint64_t{9}));
    sent_.push_back(encoded(Once{draw(), sequence_, answered, carried.view()}));
    return sent_.back();
  }

 private:
  SessionId draw() { return SessionId(commands_.random().below(12) + 1); }
  CommandSource commands_;
  std::uint64_t sequence_ = 1;
  std::vector<Bytes> sent_;
};

INSTANTIATE_TEST_SUITE_P(Stores, SessionContract, each_store(), name_of_store);

// ---- A life after the process ----

TEST(RocksdbSessions, ACleanRestartKnowsThem) {
  const TemporaryFolder folder;
  const std::string dir = folder.path("kv");
  {
    const auto store = open_store(dir);
    for (int i = 0; i < 3; ++i) run(*store, encoded(OpenSession{}));
    run(*store, once(2, 1, IncrBy{"n", 5}));
    run(*store, encoded(CloseSession{SessionId(3)}));
  }
  const auto store = open_store(dir);
  EXPECT_EQ(list(*store), "1 after 0 with 0 results, 2 after 1 with 1 results");
  EXPECT_EQ(run(*store, once(2, 1, IncrBy{"n", 5})), "5");
  EXPECT_EQ(run(*store, encoded(OpenSession{})), "4");
  EXPECT_EQ(store->keys_after(std::nullopt, 10).value(), std::vector<std::string>{"n"});
  EXPECT_EQ(store->size(), 1U);
}

TEST(RocksdbSessions, AfterACrashTheLogGivesTheSameAgain) {
  OnceSource source(91);
  std::vector<Bytes> commands;
  for (int i = 0; i < 1500; ++i) commands.push_back(source.next());
  execute_over_crashes(commands, 92, [](const Store& one, const Store& another) {
    EXPECT_EQ(list(one), list(another));
    EXPECT_EQ(one.size(), another.size());
  });
}

/// What a store says that is opened on a record of sessions that no build writes.
std::string refusal_of(std::string_view key, std::string_view record) {
  const TemporaryFolder folder;
  const std::string dir = folder.path("kv");
  {
    const auto store = open_store(dir);
    run(*store, encoded(OpenSession{}));
    run(*store, encoded(OpenSession{}));
  }
  rocksdb::DB* opened = nullptr;
  EXPECT_TRUE(rocksdb::DB::Open(rocksdb::Options(), dir + "/db-1", &opened).ok());
  EXPECT_TRUE(
      opened->Put(rocksdb::WriteOptions(), {key.data(), key.size()}, {record.data(), record.size()})
          .ok());
  delete opened;
  const auto store = RocksdbStore::open(store_options(dir));
  return store ? "accepted" : store.error().message;
}

TEST(RocksdbSessions, WrongRecordsAreRefusedByName) {
  const std::string second = std::string(kSessionSpace) + std::string("\0\0\0\0\0\0\0\2", 8);
  const std::string third = std::string(kSessionSpace) + std::string("\0\0\0\0\0\0\0\3", 8);
  std::string session(21, '\0');
  session[0] = 1;
  session[9] = 1;
  using ::testing::HasSubstr;
  EXPECT_EQ(refusal_of(second, session), "accepted");
  EXPECT_THAT(refusal_of(third, session), HasSubstr("the record of session 3: "));
  EXPECT_THAT(refusal_of(second, session + "x"), HasSubstr("the record of session 2: "));
  EXPECT_THAT(refusal_of(second, ""), HasSubstr("the record of session 2: "));
  session[0] = 9;
  EXPECT_THAT(refusal_of(second, session), HasSubstr("format 9"));
  EXPECT_THAT(refusal_of(second + "x", session), HasSubstr("the key of a session record"));
  EXPECT_THAT(refusal_of(kNewestSessionKey, "x"),
              HasSubstr("the newest session record has format"));
  EXPECT_THAT(refusal_of(kNewestSessionKey, encode_record({1})),
              HasSubstr("the record of session 2: "));
}

TEST(RocksdbSessions, ARestoredStoreGoesOnWithTheirIds) {
  const TemporaryFolder folder;
  const auto from = open_store(folder.path("from"));
  run(*from, encoded(OpenSession{}));
  run(*from, once(1, 1, IncrBy{"n", 1}));
  const auto snapshot = from->take_snapshot().value();
  auto options = store_options(folder.path("to"));
  options.cluster_id = 78;
  ASSERT_TRUE(RocksdbStore::restore(options, *snapshot));
  const auto to = RocksdbStore::open(options).value();
  EXPECT_EQ(run(*to, once(1, 1, IncrBy{"n", 1})), "1");
  EXPECT_EQ(run(*to, encoded(OpenSession{})), "2");
}

}  // namespace
}  // namespace leasehold::kv::testing
