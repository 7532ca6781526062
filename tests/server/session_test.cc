// Sessions over a fake node: order, barriers, bounds and what each command answers.
#include <leasehold/server/commands/command_table.h>
#include <leasehold/server/front/session.h>
#include <leasehold/tests/server/session_fixture.h>

#include <nlohmann/json.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace leasehold::server {
namespace {

using std::chrono::milliseconds;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

TEST_F(SessionTest, AnswersWhatNeedsNoNode) {
  EXPECT_EQ(feed("PING\r\n"), "+PONG\r\n");
  EXPECT_EQ(feed("ping hello\r\n"), "$5\r\nhello\r\n");
  EXPECT_EQ(feed("ECHO x\r\n"), "$1\r\nx\r\n");
  EXPECT_EQ(feed("SELECT 0\r\n"), "+OK\r\n");
  EXPECT_THAT(feed("SELECT 1\r\n"), StartsWith("-ERR DB index is out of range"));
  EXPECT_THAT(feed("SELECT x\r\n"), StartsWith("-ERR value is not an integer"));
  EXPECT_EQ(feed("CONFIG GET save\r\n"), "*2\r\n$4\r\nsave\r\n$0\r\n\r\n");
  EXPECT_EQ(feed("CONFIG GET APPEND* s?ve\r\n"),
            "*4\r\n$10\r\nappendonly\r\n$3\r\nyes\r\n$4\r\nsave\r\n$0\r\n\r\n");
  EXPECT_THAT(feed("CONFIG SET save 1\r\n"), HasSubstr("settings are flags"));
  EXPECT_EQ(feed("CLIENT ID\r\n"), ":7\r\n");
  EXPECT_EQ(feed("CLIENT GETNAME\r\n"), "$-1\r\n");
  EXPECT_EQ(feed("CLIENT SETNAME bob\r\n"), "+OK\r\n");
  EXPECT_EQ(feed("CLIENT GETNAME\r\n"), "$3\r\nbob\r\n");
  EXPECT_THAT(feed("CLIENT INFO\r\n"), HasSubstr("addr=127.0.0.1:5 name=bob"));
  EXPECT_EQ(feed("CLIENT SETINFO lib-name x\r\n"), "+OK\r\n");
  EXPECT_THAT(feed("CLIENT PAUSE 1\r\n"), StartsWith("-ERR unknown subcommand"));
}

TEST_F(SessionTest, RefusesUnknownCommandsAndWrongArity) {
  EXPECT_THAT(feed("NOSUCH\r\n"), StartsWith("-ERR unknown command 'NOSUCH'"));
  EXPECT_THAT(feed(std::string(300, 'x') + "\r\n"), StartsWith("-ERR unknown command 'xxx"));
  EXPECT_EQ(feed("GET\r\n"), "-ERR wrong number of arguments for 'get' command\r\n");
  EXPECT_EQ(feed("GET a b\r\n"), "-ERR wrong number of arguments for 'get' command\r\n");
  EXPECT_EQ(feed("SET a\r\n"), "-ERR wrong number of arguments for 'set' command\r\n");
  EXPECT_EQ(feed("SET a b EX 0\r\n"), "-ERR invalid expire time in 'set' command\r\n");
  EXPECT_THAT(feed("SET a b NX XX\r\n"), StartsWith("-ERR syntax error at 'XX'"));
  EXPECT_THAT(feed("INCRBY a 1.5\r\n"), StartsWith("-ERR value is not an integer"));
  EXPECT_EQ(feed("DECRBY a -9223372036854775808\r\n"), "-ERR decrement would overflow\r\n");
  EXPECT_EQ(count(&Counters::commands), 9U);
  EXPECT_EQ(count(&Counters::commands_refused), 9U);
  EXPECT_EQ(node_.proposals(), 0U);
}

TEST_F(SessionTest, EveryCommandOfTheTableIsFoundByItsName) {
  for (const char* name : {"PING", "echo", "Get", "SET", "DEL", "EXISTS", "INCR", "SELECT", "QUIT",
                           "COMMAND", "INFO", "HELLO", "CONFIG", "CLIENT", "LEASEHOLD"}) {
    EXPECT_NE(find_command_named(name), nullptr) << name;
  }
  EXPECT_EQ(find_command_named("ge"), nullptr);
  EXPECT_EQ(find_command_named("gett"), nullptr);
  EXPECT_EQ(find_command_named(""), nullptr);
  EXPECT_EQ(find_command({"CLIENT", "Id"})->name, "client|id");
  EXPECT_EQ(find_command({"CLIENT", "nope"}), nullptr);
  EXPECT_EQ(find_command({"client|id"}), nullptr);
  std::size_t listed = 0;
  for (const CommandSpec* spec = commands_begin(); spec != commands_end(); ++spec) {
    EXPECT_EQ(find_command_named(spec->name), spec) << spec->name;
    if (!is_subcommand(*spec)) ++listed;
  }
  EXPECT_EQ(feed("COMMAND COUNT\r\n"), ":" + std::to_string(listed) + "\r\n");
  EXPECT_THAT(feed("COMMAND\r\n"),
              StartsWith("*" + std::to_string(listed) + "\r\n*10\r\n$3\r\nacl\r\n:-2\r\n"));
  EXPECT_THAT(feed("COMMAND DOCS get\r\n"), StartsWith("*2\r\n$3\r\nget\r\n*4\r\n$7\r\nsummary"));
  EXPECT_EQ(feed("COMMAND INFO nope\r\n"), "*1\r\n$-1\r\n");
}

TEST_F(SessionTest, WritesAnswerWhatTheStoreSaysWhenTheyAreApplied) {
  EXPECT_EQ(write({"SET", "k", "1"}), "+OK\r\n");
  EXPECT_EQ(write({"SET", "k", "2", "NX"}), "$-1\r\n");
  EXPECT_EQ(write({"SET", "k", "3", "XX", "GET"}), "$1\r\n1\r\n");
  EXPECT_EQ(write({"INCR", "k"}), ":4\r\n");
  EXPECT_EQ(write({"INCRBY", "k", "-10"}), ":-6\r\n");
  EXPECT_EQ(write({"DECR", "k"}), ":-7\r\n");
  EXPECT_EQ(write({"DECRBY", "k", "3"}), ":-10\r\n");
  EXPECT_EQ(write({"SET", "text", "abc"}), "+OK\r\n");
  EXPECT_THAT(write({"INCR", "text"}), StartsWith("-ERR "));
  EXPECT_EQ(write({"DEL", "k", "text", "none"}), ":2\r\n");
  EXPECT_EQ(count(&Counters::writes), 10U);
  EXPECT_EQ(count(&Counters::writes_committed), 10U);
}

TEST_F(SessionTest, WritesThatDidNotCommitSayWhatIsKnown) {
  send({"SET", "k", "1"});
  replica::ProposeResult result;
  result.status = replica::ProposeStatus::dropped;
  node_.end_proposal(result);
  EXPECT_THAT(pump(), StartsWith("-NOLEADER "));
  send({"SET", "k", "1"});
  result.leader = raft::NodeId(2);
  node_.end_proposal(result);
  EXPECT_THAT(pump(), StartsWith("-TRYAGAIN "));
  send({"SET", "k", "1"});
  result.overloaded = true;
  node_.end_proposal(result);
  EXPECT_THAT(pump(), StartsWith("-TRYAGAIN too many"));
  send({"SET", "k", "1"});
  result.status = replica::ProposeStatus::unknown;
  node_.end_proposal(result);
  EXPECT_THAT(pump(), StartsWith("-UNKNOWNOUTCOME "));
  EXPECT_EQ(count(&Counters::writes_dropped), 3U);
  EXPECT_EQ(count(&Counters::writes_unknown), 1U);
}

TEST_F(SessionTest, TooLargeKeysAndValuesAreRefusedByName) {
  const std::string key(kv::kKeyBytesMax + 1, 'k');
  const std::string value(kv::kValueBytesMax + 1, 'v');
  EXPECT_THAT(send({"SET", "k", value}), StartsWith("-ERR "));
  EXPECT_THAT(send({"SET", key, "v"}), StartsWith("-ERR "));
  EXPECT_THAT(send({"DEL", key}), StartsWith("-ERR "));
  EXPECT_THAT(send({"INCR", key}), StartsWith("-ERR "));
  EXPECT_THAT(send({"GET", key}), StartsWith("-ERR the key is longer than 65536 bytes"));
  EXPECT_EQ(count(&Counters::commands_refused), 5U);
  EXPECT_FALSE(session_->closing());
  EXPECT_EQ(
      write({"SET", std::string(kv::kKeyBytesMax, 'k'), std::string(kv::kValueBytesMax, 'v')}),
      "+OK\r\n");
}

TEST_F(SessionTest, WritesOfAPipelineAreProposedTogetherAndAnsweredInOrder) {
  EXPECT_EQ(feed("SET a 1\r\nINCR a\r\nPING\r\nINCR a\r\n"), "");
  ASSERT_EQ(node_.proposals(), 3U);
  node_.commit_one();
  EXPECT_EQ(pump(), "+OK\r\n");
  node_.commit_one();
  EXPECT_EQ(pump(), ":2\r\n+PONG\r\n");
  node_.commit_one();
  EXPECT_EQ(pump(), ":3\r\n");
}

TEST_F(SessionTest, AReadSeesTheWritesBeforeItInThePipeline) {
  node_.grant_lease(milliseconds(500));
  EXPECT_EQ(feed("SET a 1\r\nSET a 2\r\nGET a\r\n"), "");
  node_.commit_one();
  EXPECT_EQ(pump(), "+OK\r\n");
  EXPECT_TRUE(session_->stalled());
  node_.commit_one();
  EXPECT_EQ(pump(), "+OK\r\n$1\r\n2\r\n");
  EXPECT_GT(progress_, 0);
}

TEST_F(SessionTest, AReadDoesNotSeeTheWritesBehindItInThePipeline) {
  write({"SET", "a", "old"});
  EXPECT_EQ(feed("GET a\r\nSET a new\r\n"), "");
  EXPECT_EQ(node_.proposals(), 0U);
  node_.end_read(node_.granted(raft::ReadBasis::quorum));
  EXPECT_EQ(pump(), "$3\r\nold\r\n");
  EXPECT_EQ(node_.proposals(), 1U);
}

TEST_F(SessionTest, ALeaseReadBehindAWaitingReadKeepsItsPlace) {
  write({"SET", "a", "1"});
  EXPECT_EQ(feed("GET a\r\n"), "");
  node_.grant_lease(milliseconds(500));
  EXPECT_EQ(feed("GET a\r\nPING\r\n"), "");
  EXPECT_EQ(count(&Counters::lease_hits), 1U);
  node_.end_read(node_.granted(raft::ReadBasis::lease));
  EXPECT_EQ(pump(), "$1\r\n1\r\n$1\r\n1\r\n+PONG\r\n");
}

TEST_F(SessionTest, CommandsUnderWayAreBounded) {
  std::string bytes;
  for (std::size_t i = 0; i < kInFlightMax + 10; ++i) bytes += "SET a 1\r\n";
  EXPECT_EQ(feed(bytes), "");
  EXPECT_EQ(node_.proposals(), kInFlightMax);
  EXPECT_TRUE(session_->stalled());
  node_.commit_all();
  pump();
  EXPECT_EQ(node_.proposals(), 10U);
  EXPECT_FALSE(session_->stalled());
}

TEST_F(SessionTest, AClientThatDoesNotReadIsNotServedFurther) {
  write({"SET", "k", std::string(100000, 'v')});
  node_.grant_lease(milliseconds(500));
  std::string bytes;
  for (int i = 0; i < 100; ++i) bytes += "GET k\r\n";
  std::size_t taken = 0;
  do {
    taken += session_->process(bytes.substr(taken));
  } while (session_->turn_over());
  EXPECT_LT(taken, bytes.size());
  EXPECT_TRUE(session_->stalled());
  EXPECT_LT(session_->output().size(), kOutputBytesMax + 200000);
  EXPECT_GT(count(&Counters::output_stalls), 0U);
  session_->output().clear();
  EXPECT_GT(session_->process(bytes.substr(taken)), 0U);
}

TEST_F(SessionTest, GrantedReadsWaitForRoomInTheOutput) {
  write({"SET", "k", std::string(1000000, 'v')});
  std::string bytes;
  for (int i = 0; i < 100; ++i) bytes += "GET k\r\n";
  EXPECT_EQ(feed(bytes), "");
  // One for each turn in which they were taken.
  while (node_.reads() > 0) node_.end_read(node_.granted(raft::ReadBasis::quorum));
  executor_.run();
  std::size_t total = 0;
  for (int sends = 0; sends < 1000 && total < 100U * 1000000U; ++sends) {
    EXPECT_LT(session_->output().size(), kOutputBytesMax + 1100000);
    total += session_->output().size();
    session_->output().clear();
    session_->process("");
  }
  EXPECT_EQ(total, 100U * (1000000U + 12U));
  EXPECT_GT(count(&Counters::output_stalls), 0U);
  EXPECT_FALSE(session_->stalled());
}

TEST_F(SessionTest, HelloChangesTheDialectBehindWhatWaits) {
  EXPECT_EQ(feed("GET k\r\nHELLO 3\r\nGET k\r\n"), "");
  node_.end_read(node_.granted(raft::ReadBasis::quorum));
  EXPECT_THAT(pump(), StartsWith("$-1\r\n%7\r\n$6\r\nserver\r\n$9\r\nleasehold\r\n"));
  node_.end_read(node_.granted(raft::ReadBasis::quorum));
  EXPECT_EQ(pump(), "_\r\n");
  EXPECT_THAT(feed("HELLO 4\r\n"), StartsWith("-NOPROTO "));
  EXPECT_THAT(feed("HELLO 3 AUTH a\r\n"), StartsWith("-ERR Syntax error in HELLO option 'AUTH'"));
  EXPECT_THAT(feed("HELLO 2 SETNAME me\r\n"), StartsWith("*14\r\n"));
  EXPECT_EQ(feed("CLIENT GETNAME\r\n"), "$2\r\nme\r\n");
  EXPECT_EQ(feed("RESET\r\nCLIENT GETNAME\r\n"), "+RESET\r\n$-1\r\n");
}

TEST_F(SessionTest, ProtocolErrorsAnswerWhatCameBeforeAndEndTheConversation) {
  EXPECT_EQ(feed("SET a 1\r\n*x\r\nPING\r\n"), "");
  EXPECT_TRUE(session_->closing());
  EXPECT_FALSE(session_->finished());
  node_.commit_all();
  EXPECT_EQ(pump(), "+OK\r\n-ERR Protocol error: invalid multibulk length\r\n");
  EXPECT_TRUE(session_->finished());
  EXPECT_EQ(feed("PING\r\n"), "");
  EXPECT_EQ(count(&Counters::protocol_errors), 1U);
}

TEST_F(SessionTest, QuitEndsTheConversation) {
  EXPECT_EQ(feed("PING\r\nQUIT\r\nPING\r\n"), "+PONG\r\n+OK\r\n");
  EXPECT_TRUE(session_->finished());
}

TEST_F(SessionTest, AClientThatHungUpIsForgotten) {
  feed("SET a 1\r\nSET b 1\r\n");
  session_.reset();
  node_.commit_all();
  executor_.run();
  EXPECT_EQ(node_.store().size(), 2U);
}

// A refusal names a command that works, and only true facts.
TEST_F(SessionTest, WhatIsNotHereNamesWhatIs) {
  const std::vector<std::pair<const char*, const char*>> told = {
      {"DUMP k", "GET and SET carry one key"},
      {"RESTORE k 0 x", "LEASEHOLD BACKUP"},
      {"MIGRATE host 1 k 0 1", "GET and SET carry one key"},
      {"MOVE k 1", "only DB 0"},
      {"SWAPDB 0 1", "only DB 0"},
      {"BITPOS k 1", "GETRANGE and SETRANGE"},
      {"LPUSH k v", "every value is a string"}};
  for (const auto& [words, use] : told) {
    EXPECT_THAT(feed(std::string(words) + "\r\n"),
                AllOf(HasSubstr("is not supported: "), HasSubstr(use)))
        << words;
  }
}

TEST_F(SessionTest, StatusIsOneJsonObjectWithTheFixedKeys) {
  write({"SET", "k", "v"});
  EXPECT_EQ(feed("LEASEHOLD STATUS\r\n"), "");
  node::NodeStatus status;
  status.id = raft::NodeId(2);
  status.role = raft::Role::leader;
  status.term = raft::Term(5);
  status.leader = raft::NodeId(2);
  status.lease_left = std::chrono::microseconds(1500);
  status.members = {{raft::NodeId(2), "127.0.0.1:1", true, true, raft::Index(9)}};
  node_.end_status(status);
  const std::string reply = pump();
  const auto json = nlohmann::json::parse(reply.substr(reply.find('{')));
  EXPECT_EQ(json.at("id"), 2);
  EXPECT_EQ(json.at("role"), "leader");
  EXPECT_EQ(json.at("term"), 5);
  EXPECT_EQ(json.at("leader"), 2);
  EXPECT_EQ(json.at("lease_left"), 1.5);
  EXPECT_EQ(json.at("members").at(0).at("match"), 9);
  EXPECT_EQ(json.at("keys"), 1);
  EXPECT_EQ(json.at("writes").at("committed"), 1);
  EXPECT_TRUE(json.contains("commit"));
  EXPECT_TRUE(json.contains("applied"));
}

TEST_F(SessionTest, InfoHasSections) {
  feed("INFO\r\nINFO replication\r\nINFO nonsense\r\n");
  for (int i = 0; i < 3; ++i) node_.end_status(node::NodeStatus{});
  const std::string reply = pump();
  for (const char* title : {"# Server", "# Clients", "# Stats", "# Replication", "# Leasehold"}) {
    EXPECT_THAT(reply, HasSubstr(title));
  }
  EXPECT_THAT(reply, HasSubstr("reads_lease_hits:0\r\n"));
  EXPECT_THAT(reply, HasSubstr("total_commands_processed:3\r\n"));
  EXPECT_THAT(reply, testing::EndsWith("$0\r\n\r\n"));
}

class Transactions : public SessionTest {};

TEST_F(Transactions, AreOneCommandOfTheLog) {
  EXPECT_EQ(feed("MULTI\r\nSET a 1\r\nINCR a\r\nGET a\r\nMGET a b\r\nTYPE a\r\nTTL b\r\n"),
            "+OK\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n");
  EXPECT_EQ(node_.proposals(), 0U);
  EXPECT_EQ(feed("EXEC\r\n"), "");
  EXPECT_EQ(node_.proposals(), 1U);
  node_.commit_all();
  EXPECT_EQ(pump(), "*6\r\n+OK\r\n:2\r\n$1\r\n2\r\n*2\r\n$1\r\n2\r\n$-1\r\n+string\r\n:-2\r\n");
  EXPECT_EQ(node_.store().revision(), 1U);
}

TEST_F(Transactions, AnErrorOfOneCommandIsItsResult) {
  feed("MULTI\r\nSET a x\r\nINCR a\r\nSET b y\r\nEXEC\r\n");
  node_.commit_all();
  EXPECT_EQ(pump(), "*3\r\n+OK\r\n-ERR value is not an integer or out of range\r\n+OK\r\n");
}

TEST_F(Transactions, AreRefusedWholeWhenAPartWas) {
  for (const char* wrong :
       {"NOSUCH", "GET", "INCRBY a x", "SET a b EX 0", "INFO", "ECHO", "SCAN 0"}) {
    EXPECT_EQ(feed("MULTI\r\nSET a 1\r\n"), "+OK\r\n+QUEUED\r\n");
    EXPECT_THAT(feed(std::string(wrong) + "\r\n"), StartsWith("-ERR ")) << wrong;
    EXPECT_THAT(feed("EXEC\r\n"), StartsWith("-EXECABORT ")) << wrong;
  }
  EXPECT_EQ(node_.proposals(), 0U);
  EXPECT_EQ(feed("EXEC\r\n"), "-ERR EXEC without MULTI\r\n");
  EXPECT_EQ(feed("DISCARD\r\n"), "-ERR DISCARD without MULTI\r\n");
  EXPECT_EQ(feed("MULTI\r\nMULTI\r\nDISCARD\r\n"),
            "+OK\r\n-ERR MULTI calls can not be nested\r\n+OK\r\n");
  EXPECT_EQ(feed("MULTI\r\nEXEC\r\n"), "+OK\r\n*0\r\n");
}

TEST_F(Transactions, WatchedKeysAreComparedWhenTheCommandIsApplied) {
  write({"SET", "k", "1"});
  node_.grant_lease(std::chrono::seconds(5));
  EXPECT_EQ(feed("WATCH k none\r\nMULTI\r\nSET k 2\r\n"), "+OK\r\n+OK\r\n+QUEUED\r\n");
  // Somebody else's write is committed behind the proposal's back.
  const Bytes other = kv::encode_command(kv::Set{"k", "9"}).value();
  node_.propose(other, milliseconds(1), [](const replica::ProposeResult&) {});
  feed("EXEC\r\n");
  node_.commit_all();
  EXPECT_EQ(pump(), "*-1\r\n");
  EXPECT_EQ(feed("GET k\r\n"), "$1\r\n9\r\n");
  feed("HELLO 3\r\n");
  EXPECT_EQ(feed("WATCH none\r\nMULTI\r\nSET k 3\r\nEXEC\r\n"), "+OK\r\n+OK\r\n+QUEUED\r\n");
  node_.commit_all();
  EXPECT_EQ(pump(), "*1\r\n+OK\r\n");
}

// A client that pipelines does not see the refusal before it has sent EXEC.
TEST_F(Transactions, ExecDoesNothingAfterAWatchThatWasRefused) {
  EXPECT_EQ(feed("WATCH k\r\nMULTI\r\nSET k 1\r\nEXEC\r\n"), "");
  node_.end_read(replica::ReadResult{});
  EXPECT_THAT(pump(), AllOf(StartsWith("-NOLEADER "), HasSubstr("+OK\r\n+QUEUED\r\n-EXECABORT ")));
  EXPECT_EQ(node_.proposals(), 0U);
  EXPECT_THAT(send({"WATCH", std::string(kv::kKeyBytesMax + 1, 'k')}), StartsWith("-ERR "));
  EXPECT_THAT(feed("MULTI\r\nEXEC\r\n"), HasSubstr("-EXECABORT "));
}

// Who has read a revision, perhaps at another node and on another connection, writes on that
// condition.
TEST_F(Transactions, TheRevisionOfAKeyMayBeExpected) {
  write({"SET", "k", "1"});
  write({"SET", "other", "1"});
  write({"SET", "k", "2"});
  const auto expecting = [this](const std::string& what) {
    EXPECT_EQ(feed("LEASEHOLD EXPECT " + what + "\r\nMULTI\r\nAPPEND k +\r\nEXEC\r\n"),
              "+OK\r\n+OK\r\n+QUEUED\r\n")
        << what;
    node_.commit_all();
    return pump();
  };
  EXPECT_EQ(expecting("k 1"), "*-1\r\n") << "it was written since";
  EXPECT_EQ(expecting("k 3 none 0"), "*1\r\n:2\r\n");
  EXPECT_EQ(expecting("k 3"), "*-1\r\n") << "that was this very write";
  EXPECT_EQ(expecting("k 4 other 0"), "*-1\r\n");
  EXPECT_EQ(expecting("k 9000000000"), "*-1\r\n") << "nobody has written it so far";
  EXPECT_EQ(node_.store().revision(), 4U);
  EXPECT_EQ(feed("LEASEHOLD EXPECT k 4\r\nUNWATCH\r\nMULTI\r\nEXEC\r\n"),
            "+OK\r\n+OK\r\n+OK\r\n*0\r\n");
}

TEST_F(Transactions, ExecDoesNothingAfterAnExpectationThatWasRefused) {
  const std::string longer(kv::kKeyBytesMax + 1, 'k');
  const std::vector<std::vector<std::string>> refused = {
      {}, {"k"}, {"k", "1", "other"}, {"k", "x"}, {"k", "-1"}, {longer, "1"}};
  for (std::vector<std::string> words : refused) {
    words.insert(words.begin(), {"LEASEHOLD", "EXPECT"});
    EXPECT_THAT(send(words), StartsWith("-ERR ")) << words.size();
    EXPECT_THAT(feed("MULTI\r\nSET k 1\r\nEXEC\r\n"), HasSubstr("-EXECABORT ")) << words.size();
  }
  EXPECT_THAT(feed("MULTI\r\nLEASEHOLD EXPECT k 0\r\nDISCARD\r\n"), HasSubstr("inside MULTI"));
  EXPECT_EQ(node_.proposals(), 0U);
}

TEST_F(Transactions, UnwatchAndDiscardForget) {
  node_.grant_lease(std::chrono::seconds(5));
  EXPECT_EQ(feed("WATCH k\r\nUNWATCH\r\nMULTI\r\nEXEC\r\n"), "+OK\r\n+OK\r\n+OK\r\n*0\r\n");
  EXPECT_EQ(feed("WATCH k\r\nMULTI\r\nDISCARD\r\nMULTI\r\nEXEC\r\n"),
            "+OK\r\n+OK\r\n+OK\r\n+OK\r\n*0\r\n");
  EXPECT_EQ(feed("MULTI\r\nWATCH k\r\nDISCARD\r\n"),
            "+OK\r\n-ERR WATCH inside MULTI is not allowed\r\n+OK\r\n");
}

TEST_F(Transactions, AreBoundedWhileTheyAreQueued) {
  const std::string value(kv::kValueBytesMax / 2, 'v');
  EXPECT_EQ(feed("MULTI\r\n"), "+OK\r\n");
  EXPECT_EQ(send({"SET", "a", value}), "+QUEUED\r\n");
  EXPECT_EQ(send({"SET", "b", value}), "+QUEUED\r\n");
  EXPECT_THAT(send({"SET", "c", value}), StartsWith("-ERR a transaction's length in bytes"));
  EXPECT_THAT(feed("EXEC\r\n"), StartsWith("-EXECABORT"));
}

TEST_F(SessionTest, RepliesThatAreNotWantedAreNotSent) {
  node_.grant_lease(std::chrono::seconds(5));
  EXPECT_EQ(feed("CLIENT REPLY SKIP\r\nPING\r\nPING\r\n"), "+PONG\r\n");
  EXPECT_EQ(feed("CLIENT REPLY OFF\r\nPING\r\nGET k\r\nNOSUCH\r\n"), "");
  send({"SET", "k", "v"});
  node_.commit_all();
  EXPECT_EQ(pump(), "");
  EXPECT_EQ(feed("CLIENT REPLY ON\r\nGET k\r\n"), "+OK\r\n$1\r\nv\r\n");
  EXPECT_EQ(send({"CLIENT", "REPLY", "SKIP"}), "");
  send({"SET", "k", "w"});
  node_.commit_all();
  EXPECT_EQ(pump() + feed("GET k\r\n"), "$1\r\nw\r\n");
}

TEST_F(SessionTest, AScanGivesEachKeyOnce) {
  node_.grant_lease(std::chrono::seconds(5));
  for (const char* key : {"a1", "a2", "b1", "a3", "b2"}) write({"SET", key, "v"});
  std::string reply = feed("SCAN 0 COUNT 2 MATCH a*\r\n");
  EXPECT_THAT(reply, HasSubstr("*2\r\n$2\r\na1\r\n$2\r\na2\r\n"));
  std::string cursor = reply.substr(4);
  cursor = cursor.substr(cursor.find('\n') + 1);
  cursor = cursor.substr(0, cursor.find('\r'));
  EXPECT_THAT(feed("SCAN " + cursor + " COUNT 10\r\n"),
              "*2\r\n$1\r\n0\r\n*3\r\n$2\r\na3\r\n$2\r\nb1\r\n$2\r\nb2\r\n");
  EXPECT_THAT(feed("SCAN 12345\r\n"), StartsWith("-ERR this node does not know the cursor"));
  EXPECT_EQ(feed("KEYS b?\r\n"), "*2\r\n$2\r\nb1\r\n$2\r\nb2\r\n");
}

TEST_F(SessionTest, CommandsOfRedisThatAreNotHereSayWhy) {
  EXPECT_THAT(feed("LPUSH k v\r\n"), HasSubstr("every value is a string"));
  EXPECT_THAT(feed("SAVE\r\n"), HasSubstr("LEASEHOLD BACKUP"));
  EXPECT_EQ(reason_of_refusal("lpush rpush"), nullptr);
  EXPECT_EQ(reason_of_refusal(" lpush"), nullptr);
  EXPECT_EQ(reason_of_refusal("get"), nullptr);
  for (const CommandSpec* spec = commands_begin(); spec != commands_end(); ++spec) {
    EXPECT_EQ(reason_of_refusal(spec->name), nullptr) << spec->name;
  }
}

TEST_F(SessionTest, SlowCommandsAreKept) {
  state_.live.set_slowlog_threshold(std::chrono::nanoseconds(1));
  send({"SET", "k", "v"});
  const auto begun = coarse_now();
  while (coarse_now() == begun) {
  }
  node_.commit_all();
  EXPECT_EQ(pump(), "+OK\r\n");
  EXPECT_EQ(feed("SLOWLOG LEN\r\n"), ":1\r\n");
  EXPECT_THAT(feed("SLOWLOG GET\r\n"),
              HasSubstr("*2\r\n$3\r\nset\r\n$1\r\nk\r\n$11\r\n127.0.0.1:5"));
  EXPECT_EQ(feed("SLOWLOG RESET\r\n"), "+OK\r\n");
  EXPECT_EQ(feed("SLOWLOG GET\r\n"), "*0\r\n");
}

}  // namespace
}  // namespace leasehold::server
