// LEASEHOLD WATCH, LEASEHOLD RANGE and SUBSCRIBE, as a client meets them.
#include <leasehold/server/front/listening.h>
#include <leasehold/server/front/people_time.h>
#include <leasehold/tests/server/session_fixture.h>

#include <gmock/gmock.h>

#include <chrono>
#include <string>
#include <vector>

namespace leasehold::server {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

/// A reply as its words: "[events 3 [[a set 3 1 0]]]". The length of `bytes` that it took off.
std::string words(std::string_view& bytes) {
  const std::size_t end = bytes.find("\r\n");
  const char type = bytes.front();
  const std::string line(bytes.substr(1, end - 1));
  bytes.remove_prefix(end + 2);
  if (type == '_') return "null";
  if (type == '+' || type == ':' || type == '-') return line;
  const auto size = std::stoll(line);
  if (size < 0) return "null";
  if (type == '$') {
    const std::string text(bytes.substr(0, static_cast<std::size_t>(size)));
    bytes.remove_prefix(static_cast<std::size_t>(size) + 2);
    return text;
  }
  std::string out = type == '>' ? ">[" : "[";
  for (std::int64_t i = 0; i < size; ++i) out += (i == 0 ? "" : " ") + words(bytes);
  return out + "]";
}

/// All replies, with a bar between.
std::string all(std::string_view bytes) {
  std::string out;
  while (!bytes.empty()) out += (out.empty() ? "" : " | ") + words(bytes);
  return out;
}

class SessionEvents : public SessionTest {
 protected:
  SessionEvents() { node_.grant_lease(std::chrono::hours(1)); }
  /// Applies a command of another client, which the hub has not read yet.
  void unseen(const kv::Command& command) {
    node_.propose(kv::encode_command(command).value(), node::CallOptions(std::chrono::seconds(1)),
                  [](const replica::ProposeResult&) {});
    node_.commit_all();
  }
  std::string other(const kv::Command& command) {
    unseen(command);
    return events();
  }
  void set(const std::string& key, const std::string& value) { other(kv::Set{key, value}); }
  /// The messages that the client gets.
  std::string events() {
    while (hub_.look()) {
    }
    return all(told_ += pump());
  }
  std::string say(const std::vector<std::string>& command) {
    told_.clear();
    return all(send(command));
  }
  std::string taken() {
    const std::string out = events();
    told_.clear();
    return out;
  }

  std::string told_;
};

TEST_F(SessionEvents, AWatcherIsToldWhatItWants) {
  set("a", "0");
  EXPECT_EQ(say({"LEASEHOLD", "WATCH", "KEY", "a", "PREFIX", "b/"}), "[watching 2]");
  set("a", "1");
  set("b", "2");
  set("b/1", "3");
  other(kv::Del{{"a", "b"}});
  EXPECT_EQ(taken(),
            "[events 2 [[a set 1 2 0]]] | [events 4 [[b/1 set 4 1 0]]] | [events 5 [[a deleted 0 0 "
            "0]]]");
  EXPECT_EQ(count(&Counters::watch_messages), 3U);
  EXPECT_EQ(count(&Counters::watch_events), 3U);
  EXPECT_EQ(state_.watchers.load(), 1U);
}

TEST_F(SessionEvents, OneRevisionIsOneMessage) {
  say({"LEASEHOLD", "WATCH", "PREFIX", "", "VALUES"});
  other(kv::MSet{kv::MSetCondition::none, {{"b", "1"}, {"a", "2"}}});
  EXPECT_EQ(taken(), "[events 1 [[a set 1 1 0 2] [b set 1 1 0 1]]]");
}

TEST_F(SessionEvents, AnExpirySaysSo) {
  say({"LEASEHOLD", "WATCH", "PREFIX", "k"});
  other(kv::GrantLease{grant::LeaseId(7), std::chrono::seconds(10), "", "me"});
  kv::Set leased{"k1", "v"};
  leased.lease = grant::LeaseId(7);
  other(leased);
  other(kv::ExpireLeases{raft::Term(1), {{grant::LeaseId(7), 1}}});
  other(kv::GrantLease{grant::LeaseId(8), std::chrono::seconds(10), "", "me"});
  leased.lease = grant::LeaseId(8);
  other(leased);
  other(kv::RevokeLease{grant::LeaseId(8)});
  EXPECT_EQ(
      taken(),
      "[events 2 [[k1 set 2 1 7]]] | [events 3 [[k1 expired 0 0 7]]] | [events 5 [[k1 set 5 1 "
      "8]]] | [events 6 [[k1 revoked 0 0 8]]]");
}

// Clients do not see the lease of a key that ends by itself.
TEST_F(SessionEvents, AKeyThatEndsByItselfHasNoLeaseToAWatcher) {
  say({"LEASEHOLD", "WATCH", "KEY", "k"});
  kv::Set timed{"k", "v"};
  timed.ttl = std::chrono::seconds(10);
  other(timed);
  EXPECT_EQ(taken(), "[events 1 [[k set 1 1 0]]]");
  EXPECT_EQ(say({"LEASEHOLD", "UNWATCH"}), "OK");
  EXPECT_EQ(say({"LEASEHOLD", "RANGE", "k"}), "[1 null [[k 1 1 1 0]]]");
}

TEST_F(SessionEvents, ValuesComeWithSetsUnlessTheyAreLong) {
  say({"LEASEHOLD", "WATCH", "KEY", "a", "VALUES"});
  set("a", "1");
  set("a", std::string(kv::EventHistory::Limits().value_bytes_max + 1, 'x'));
  other(kv::Del{{"a"}});
  EXPECT_EQ(
      taken(),
      "[events 1 [[a set 1 1 0 1]]] | [events 2 [[a set 1 2 0 null]]] | [events 3 [[a deleted "
      "0 0 0 null]]]");
}

TEST_F(SessionEvents, AWatchGoesOnWhereAnotherEnded) {
  for (int i = 0; i < 5; ++i) set("a", std::to_string(i));
  EXPECT_EQ(say({"LEASEHOLD", "WATCH", "KEY", "a", "FROM", "4"}),
            "[watching 4] | [events 4 [[a set 1 4 0]]] | [events 5 [[a set 1 5 0]]]");
  set("a", "6");
  EXPECT_EQ(taken(), "[events 6 [[a set 1 6 0]]]");
}

TEST_F(SessionEvents, ForgottenRevisionsAreReported) {
  set("a", "1");
  ASSERT_TRUE(node_.store().install_snapshot(*node_.store().take_snapshot().value()));
  set("a", "2");
  EXPECT_EQ(say({"LEASEHOLD", "WATCH", "KEY", "a", "FROM", "1"}), "[resync 3]");
  EXPECT_EQ(count(&Counters::watch_resyncs), 1U);
  set("a", "3");
  EXPECT_EQ(taken(), "[events 3 [[a set 1 3 0]]]");
}

TEST_F(SessionEvents, ARevisionThatNeverWasIsRefused) {
  set("a", "1");
  EXPECT_THAT(say({"LEASEHOLD", "WATCH", "KEY", "a", "FROM", "3"}),
              StartsWith("ERR revision 2 does not exist yet, the newest one is 1"));
  EXPECT_EQ(say({"LEASEHOLD", "WATCH", "KEY", "a", "FROM", "2"}), "[watching 2]");
}

/// Earlier revisions are not sent, and the read that the watch begins with sees all of them.
TEST_F(SessionEvents, AWatchBeginsAsAReadDoes) {
  node_.commit_ahead(1);
  EXPECT_EQ(say({"LEASEHOLD", "WATCH", "KEY", "a"}), "");
  EXPECT_EQ(node_.waits(), 1U);
  node_.apply_all();
  node_.end_wait(node_.granted(raft::ReadBasis::lease));
  EXPECT_EQ(all(pump()), "[watching 1]");
}

TEST_F(SessionEvents, WithoutALeaderNoWatchBegins) {
  node_.grant_lease(std::chrono::hours(-1));
  say({"LEASEHOLD", "WATCH", "KEY", "a"});
  node_.end_read({});
  EXPECT_THAT(all(pump()), StartsWith("NOLEADER"));
  EXPECT_FALSE(session_->listening());
}

TEST_F(SessionEvents, AWatchThatIsWrongIsRefused) {
  const auto refusal = [&](std::vector<std::string> more) {
    std::vector<std::string> command = {"LEASEHOLD", "WATCH"};
    command.insert(command.end(), more.begin(), more.end());
    return say(command);
  };
  EXPECT_THAT(refusal({"KEY", "a", "FROM"}), StartsWith("ERR expected LEASEHOLD WATCH"));
  EXPECT_THAT(refusal({"VALUES", "VALUES"}), StartsWith("ERR expected LEASEHOLD WATCH"));
  EXPECT_THAT(refusal({"WHAT", "a"}), StartsWith("ERR expected LEASEHOLD WATCH"));
  EXPECT_THAT(refusal({"KEY", "a", "FROM", "0"}), StartsWith("ERR '0' is not a revision"));
  EXPECT_THAT(refusal({"KEY", "a", "FROM", "x"}), StartsWith("ERR 'x' is not a revision"));
  std::vector<std::string> many;
  for (std::size_t i = 0; i <= kInterestsMax; ++i) {
    many.insert(many.end(), {"KEY", std::to_string(i)});
  }
  EXPECT_THAT(refusal(many), StartsWith("ERR a connection watches at most 1024"));
  EXPECT_EQ(refusal({"KEY", "a"}), "[watching 1]");
  say({"HELLO", "3"});
}

TEST_F(SessionEvents, InResp2OnlyRepliesUnlikeMessagesAreSent) {
  say({"LEASEHOLD", "WATCH", "KEY", "a"});
  EXPECT_THAT(say({"GET", "a"}), StartsWith("ERR Can't execute 'get'"));
  EXPECT_THAT(say({"LEASEHOLD", "WATCH", "KEY", "b"}), StartsWith("ERR Can't execute"));
  EXPECT_THAT(say({"SUBSCRIBE", "__keyevent@0__:set"}), StartsWith("ERR Can't execute"));
  EXPECT_EQ(say({"PING"}), "[pong ]");
  EXPECT_EQ(say({"LEASEHOLD", "UNWATCH"}), "OK");
  EXPECT_EQ(say({"PING"}), "PONG");
  set("a", "1");
  EXPECT_EQ(taken(), "");
  EXPECT_EQ(state_.watchers.load(), 0U);
}

TEST_F(SessionEvents, InResp3EverythingIsAnsweredBesideMessages) {
  say({"HELLO", "3"});
  EXPECT_EQ(say({"LEASEHOLD", "WATCH", "KEY", "a"}), "[watching 1]");
  EXPECT_THAT(say({"LEASEHOLD", "WATCH", "KEY", "b"}), StartsWith("ERR this connection watches"));
  EXPECT_THAT(say({"SUBSCRIBE", "__keyevent@0__:set"}), StartsWith("ERR this connection watches"));
  set("a", "1");
  EXPECT_EQ(taken(), ">[events 1 [[a set 1 1 0]]]");
  EXPECT_EQ(say({"GET", "a"}), "1");
  EXPECT_EQ(say({"PING"}), "PONG");
  EXPECT_EQ(say({"RESET"}), "RESET");
  set("a", "2");
  EXPECT_EQ(taken(), "");
}

TEST_F(SessionEvents, NoTransactionWatches) {
  say({"MULTI"});
  EXPECT_THAT(say({"LEASEHOLD", "WATCH", "KEY", "a"}), HasSubstr("cannot be in a transaction"));
  EXPECT_THAT(say({"SUBSCRIBE", "__keyevent@0__:set"}), HasSubstr("cannot be in a transaction"));
}

TEST_F(SessionEvents, MessagesFollowTheReplyThatBeginsThem) {
  node_.grant_lease(std::chrono::hours(-1));
  say({"HELLO", "3"});
  const std::string many = "LEASEHOLD WATCH KEY a\r\nGET a\r\n";
  EXPECT_EQ(feed(many), "");
  node_.end_read(node_.granted(raft::ReadBasis::quorum));
  unseen(kv::Set{"a", "1"});
  EXPECT_EQ(events(), "[watching 2] | 1");
  set("a", "2");
  EXPECT_EQ(taken(), "[watching 2] | 1 | >[events 2 [[a set 1 2 0]]]");
}

TEST_F(SessionEvents, ASlowWatcherIsToldAtItsOwnPaceAndHoldsABoundedOutput) {
  say({"LEASEHOLD", "WATCH", "KEY", "a", "VALUES"});
  // More than a connection holds, and less than the history.
  const std::string value(10'000, 'x');
  for (int i = 0; i < 150; ++i) {
    unseen(kv::Set{"a", value});
  }
  while (hub_.look()) {
  }
  std::size_t messages = 0;
  for (int turn = 0; turn < 10'000 && messages < 150; ++turn) {
    // Nothing is read: it does not grow.
    for (int i = 0; i < 50; ++i) session_->process({});
    EXPECT_LE(session_->output().size(), kOutputBytesMax + value.size() + 200);
    EXPECT_TRUE(session_->stalled() || session_->turn_over() ||
                session_->output().size() < kOutputBytesMax);
    const std::string sent = std::exchange(session_->output(), {});
    for (std::size_t at = 0; (at = sent.find("events", at)) != std::string::npos; ++at) ++messages;
  }
  EXPECT_EQ(messages, 150U);
  EXPECT_EQ(count(&Counters::watch_resyncs), 0U);
}

TEST_F(SessionEvents, AWatcherThatIsTooSlowHasToReadAgain) {
  say({"LEASEHOLD", "WATCH", "KEY", "a"});
  set("a", "1");
  ASSERT_TRUE(node_.store().install_snapshot(*node_.store().take_snapshot().value()));
  told_.clear();
  unseen(kv::Set{"a", "2"});
  unseen(kv::Set{"a", "3"});
  ASSERT_TRUE(node_.store().install_snapshot(*node_.store().take_snapshot().value()));
  EXPECT_EQ(taken(), "[resync 4]");
  set("a", "4");
  EXPECT_EQ(taken(), "[events 4 [[a set 1 4 0]]]");
}

TEST_F(SessionEvents, AnIdleWatcherHearsHowFarItIs) {
  say({"LEASEHOLD", "WATCH", "KEY", "a"});
  const auto now = coarse_now();
  EXPECT_FALSE(session_->wants_progress(now + kProgressPause));  // it is where it was
  set("b", "1");
  set("b", "2");
  EXPECT_EQ(taken(), "");
  EXPECT_FALSE(session_->wants_progress(now + kProgressPause / 2));
  EXPECT_TRUE(session_->wants_progress(coarse_now() + kProgressPause));
  EXPECT_EQ(taken(), "[progress 2]");
  EXPECT_FALSE(session_->wants_progress(coarse_now() + kProgressPause));
  EXPECT_TRUE(session_->wants_progress(coarse_now() + kQuietPause));
  EXPECT_EQ(taken(), "[progress 2]");
}

TEST_F(SessionEvents, ProgressPassesNoEvent) {
  say({"LEASEHOLD", "WATCH", "KEY", "a"});
  set("b", "1");
  EXPECT_TRUE(session_->wants_progress(coarse_now() + kProgressPause));
  unseen(kv::Set{"a", "1"});
  // The hub has not looked at revision 2 yet.
  EXPECT_EQ(all(pump()), "[progress 1]");
  EXPECT_EQ(taken(), "[events 2 [[a set 2 1 0]]]");
}

TEST_F(SessionEvents, AWatcherIsProvenAtOnce) {
  EXPECT_FALSE(session_->proven());
  say({"LEASEHOLD", "WATCH", "KEY", "a"});
  EXPECT_TRUE(session_->proven());
}

TEST_F(SessionEvents, AWatcherMovesWithoutLossOrRepetition) {
  say({"LEASEHOLD", "WATCH", "KEY", "a"});
  set("a", "1");
  EXPECT_EQ(taken(), "[events 1 [[a set 1 1 0]]]");
  EventHubs elsewhere(groups_);
  session_->leave_thread();
  set("a", "2");
  session_->move_to(state_.counters[1], executor_, &elsewhere);
  EXPECT_EQ(all(pump()), "[events 2 [[a set 1 2 0]]]");
  set("a", "3");
  while (elsewhere.of(0).look()) {
  }
  EXPECT_EQ(all(pump()), "[events 3 [[a set 1 3 0]]]");
  session_.reset();
}

TEST_F(SessionEvents, ARangeTellsItsRevision) {
  other(kv::MSet{kv::MSetCondition::none, {{"k/1", "a"}, {"k/2", "b"}, {"k/3", "c"}, {"x", "d"}}});
  set("k/2", "e");
  EXPECT_EQ(say({"LEASEHOLD", "RANGE", "k/", "COUNT", "2", "VALUES"}),
            "[2 k/2 [[k/1 1 1 1 0 a] [k/2 2 1 2 0 e]]]");
  EXPECT_EQ(say({"LEASEHOLD", "RANGE", "k/", "AFTER", "k/2"}), "[2 null [[k/3 1 1 1 0]]]");
  EXPECT_EQ(say({"LEASEHOLD", "RANGE", "none"}), "[2 null []]");
  EXPECT_THAT(say({"LEASEHOLD", "RANGE", "k", "COUNT", "0"}), StartsWith("ERR COUNT"));
  EXPECT_THAT(say({"LEASEHOLD", "RANGE", "k", "COUNT", "1001"}), StartsWith("ERR COUNT"));
  EXPECT_THAT(say({"LEASEHOLD", "RANGE", "k", "WHAT", "1"}), StartsWith("ERR expected"));
  EXPECT_THAT(say({"LEASEHOLD", "RANGE", "k", "AFTER"}), StartsWith("ERR expected"));
  EXPECT_EQ(say({"LEASEHOLD", "RANGE", "k/", "EXACT"}), "[2 null []]") << "they come behind it";
  EXPECT_EQ(say({"LEASEHOLD", "RANGE", "k/3", "EXACT"}), "[2 null [[k/3 1 1 1 0]]]");
  EXPECT_THAT(say({"LEASEHOLD", "RANGE", "k/3", "EXACT", "COUNT", "1"}),
              StartsWith("ERR expected"));
}

TEST_F(SessionEvents, SubscribersGetTheNotificationsOfRedis) {
  EXPECT_EQ(say({"SUBSCRIBE", "__keyspace@0__:a", "__keyevent@0__:del"}),
            "[subscribe __keyspace@0__:a 1] | [subscribe __keyevent@0__:del 2]");
  set("a", "1");
  set("b", "1");
  other(kv::IncrBy{"a", 1});
  other(kv::Del{{"a", "b"}});
  EXPECT_EQ(taken(),
            "[message __keyspace@0__:a set] | [message __keyspace@0__:a incrby] | [message "
            "__keyspace@0__:a del] | [message __keyevent@0__:del a] | [message __keyevent@0__:del "
            "b]");
  EXPECT_EQ(state_.subscribers.load(), 1U);
  EXPECT_EQ(say({"UNSUBSCRIBE"}),
            "[unsubscribe __keyevent@0__:del 1] | [unsubscribe __keyspace@0__:a 0]");
  EXPECT_EQ(state_.subscribers.load(), 0U);
  EXPECT_EQ(say({"UNSUBSCRIBE"}), "[unsubscribe null 0]");
  EXPECT_EQ(say({"UNSUBSCRIBE", "x"}), "[unsubscribe x 0]");
  EXPECT_THAT(say({"GET", "a"}), Not(StartsWith("ERR")));
}

TEST_F(SessionEvents, ASequentialKeyIsToldAsAKeyThatWasSet) {
  EXPECT_EQ(say({"PSUBSCRIBE", "__keyspace@0__:q/*"}), "[psubscribe __keyspace@0__:q/* 1]");
  other(kv::SetSequential{"q/", "v"});
  EXPECT_EQ(taken(), "[pmessage __keyspace@0__:q/* __keyspace@0__:q/00000000000000000001 set]");
}

TEST_F(SessionEvents, PatternsMatchBothChannels) {
  EXPECT_EQ(say({"PSUBSCRIBE", "__key*__:*", "__keyspace@0__:a?"}),
            "[psubscribe __key*__:* 1] | [psubscribe __keyspace@0__:a? 2]");
  set("a", "1");
  EXPECT_EQ(taken(),
            "[pmessage __key*__:* __keyspace@0__:a set] | [pmessage __key*__:* __keyevent@0__:set "
            "a]");
  say({"PUNSUBSCRIBE", "__key*__:*"});
  set("a", "1");
  set("a1", "1");
  EXPECT_EQ(taken(), "[pmessage __keyspace@0__:a? __keyspace@0__:a1 set]");
}

// A fuzzer's find: the interest had the name twice, and the second leaving of its list was a fault.
TEST_F(SessionEvents, AChannelMayBeAPatternToo) {
  const std::string del = "__keyevent@0__:del";
  say({"PSUBSCRIBE", del});
  EXPECT_EQ(say({"SUBSCRIBE", del}), "[subscribe " + del + " 2]");
  set("a", "1");
  other(kv::Del{{"a"}});
  EXPECT_EQ(taken(), "[message " + del + " a] | [pmessage " + del + " " + del + " a]");
  EXPECT_EQ(say({"UNSUBSCRIBE"}), "[unsubscribe " + del + " 1]");
  set("a", "1");
  other(kv::Del{{"a"}});
  EXPECT_EQ(taken(), "[pmessage " + del + " " + del + " a]");
  EXPECT_EQ(say({"PUNSUBSCRIBE"}), "[punsubscribe " + del + " 0]");
}

TEST_F(SessionEvents, ExpiredKeysAreReported) {
  say({"HELLO", "3"});
  EXPECT_EQ(say({"PSUBSCRIBE", "__keyevent@*__:expired"}),
            ">[psubscribe __keyevent@*__:expired 1]");
  EXPECT_EQ(say({"PING"}), "PONG");
  other(kv::GrantLease{grant::LeaseId(7), std::chrono::seconds(10), "", "me"});
  kv::Set leased{"k1", "v"};
  leased.lease = grant::LeaseId(7);
  other(leased);
  other(kv::ExpireLeases{raft::Term(1), {{grant::LeaseId(7), 1}}});
  EXPECT_EQ(taken(), ">[pmessage __keyevent@*__:expired __keyevent@0__:expired k1]");
}

TEST_F(SessionEvents, OtherChannelsAreRefused) {
  EXPECT_THAT(say({"SUBSCRIBE", "news"}), StartsWith("ERR there is no publish/subscribe here"));
  EXPECT_THAT(say({"PSUBSCRIBE", "news.*"}), StartsWith("ERR there is no publish/subscribe here"));
  EXPECT_THAT(say({"SUBSCRIBE", "__keyspace@1__:a"}), StartsWith("ERR there is no publish"));
  EXPECT_THAT(say({"PUBLISH", "news", "x"}), StartsWith("ERR 'PUBLISH' is not supported"));
  EXPECT_FALSE(session_->listening());
  // One that is wrong refuses all of them.
  say({"SUBSCRIBE", "__keyevent@0__:set", "news"});
  EXPECT_FALSE(session_->listening());
}

TEST_F(SessionEvents, SubscriptionsAreBounded) {
  std::vector<std::string> command = {"SUBSCRIBE"};
  for (std::size_t i = 0; i <= kInterestsMax; ++i) {
    command.push_back("__keyspace@0__:" + std::to_string(i));
  }
  const std::string said = say(command);
  EXPECT_THAT(said, HasSubstr(" 1024] | ERR a connection subscribes to at most 1024"));
  EXPECT_EQ(say({"UNSUBSCRIBE", "__keyspace@0__:0"}), "[unsubscribe __keyspace@0__:0 1023]");
}

TEST_F(SessionEvents, ASubscriberWithCostlyPatternsIsClosed) {
  std::vector<std::string> command = {"PSUBSCRIBE"};
  for (int i = 0; i < 20; ++i) {
    command.push_back("__keyspace@0__:" + std::string(1000, '*') + std::to_string(i));
  }
  command.push_back("__keyspace@0__:*" + std::string(900, 'a') + "b");
  say(command);
  set(std::string(60'000, 'a'), "1");
  EXPECT_TRUE(session_->finished());
}

// One event is sent once for each pattern that matches it.
TEST_F(SessionEvents, ASubscriberWhosePatternsMultiplyLongKeysIsClosed) {
  std::vector<std::string> command = {"PSUBSCRIBE"};
  for (int i = 0; i < 100; ++i) {
    command.push_back("__keyspace@0__:k[k" + std::to_string(i) + "]*");
  }
  say(command);
  unseen(kv::Set{"kk" + std::string(60'000, 'x'), "1"});
  while (hub_.look()) {
  }
  session_->process({});
  EXPECT_LE(session_->output().size(), kOutputBytesMax);
  EXPECT_TRUE(session_->finished());
}

TEST_F(SessionEvents, ASubscriberIsToldOfALargeRevisionInParts) {
  say({"PSUBSCRIBE", "__key*__:*"});
  kv::MSet many;
  std::vector<std::string> keys;
  for (int i = 0; i < 1500; ++i) keys.push_back(std::to_string(i) + std::string(1000, 'k'));
  for (const std::string& key : keys) many.pairs.emplace_back(key, "");
  unseen(many);
  unseen(kv::Set{"last", ""});
  while (hub_.look()) {
  }
  std::size_t messages = 0;
  for (int turn = 0; turn < 10'000 && messages < 2 * 1501; ++turn) {
    // Nothing is read: it does not grow.
    for (int i = 0; i < 50; ++i) session_->process({});
    EXPECT_LE(session_->output().size(), kOutputBytesMax + 2 * 1100);
    const std::string sent = std::exchange(session_->output(), {});
    for (std::size_t at = 0; (at = sent.find("pmessage", at)) != std::string::npos; ++at) {
      ++messages;
    }
  }
  EXPECT_EQ(messages, 2 * 1501U);
  EXPECT_FALSE(session_->closing());
  EXPECT_EQ(count(&Counters::watch_messages), 2 * 1501U);
}

TEST_F(SessionEvents, ASubscriberThatIsTooSlowIsClosed) {
  say({"SUBSCRIBE", "__keyspace@0__:a"});
  set("a", "1");
  taken();
  other(kv::Set{"a", "2"});
  ASSERT_TRUE(node_.store().install_snapshot(*node_.store().take_snapshot().value()));
  unseen(kv::Set{"a", "3"});
  ASSERT_TRUE(node_.store().install_snapshot(*node_.store().take_snapshot().value()));
  events();
  EXPECT_TRUE(session_->finished());
  EXPECT_EQ(count(&Counters::watch_resyncs), 1U);
}

}  // namespace
}  // namespace leasehold::server
