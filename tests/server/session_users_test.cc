// Who a connection is, and what it may do.
#include <leasehold/server/users/password.h>
#include <leasehold/tests/server/users_fixture.h>

#include <gmock/gmock.h>

#include <string>
#include <vector>

namespace leasehold::server {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr const char* kNoAuth = "-NOAUTH Authentication required.\r\n";
constexpr const char* kWrongPassword =
    "-WRONGPASS invalid username-password pair or user is disabled.\r\n";
constexpr const char* kNoKey = "-NOPERM No permissions to access a key\r\n";
constexpr const char* kNoChannel = "-NOPERM No permissions to access a channel\r\n";

std::string no_command(const std::string& user, const std::string& command) {
  return "-NOPERM User " + user + " has no permissions to run the '" + command + "' command\r\n";
}

TEST_F(SessionUsersTest, ANewGroupIsOpen) {
  EXPECT_EQ(send({"ACL", "WHOAMI"}), "$7\r\ndefault\r\n");
  EXPECT_EQ(send({"ACL", "LIST"}), "*1\r\n$34\r\nuser default on nopass ~* &* +@all\r\n");
  EXPECT_EQ(send({"ACL", "USERS"}), "*1\r\n$7\r\ndefault\r\n");
  EXPECT_THAT(send({"AUTH", "x"}), StartsWith("-ERR AUTH <password> called without any password"));
  EXPECT_EQ(send({"AUTH", "default", "anything"}), "+OK\r\n") << "it needs none";
  EXPECT_EQ(write({"SET", "k", "v"}), "+OK\r\n");
}

TEST_F(SessionUsersTest, AStrangerSendsLittleUntilItHasLoggedIn) {
  const std::string large(20000, 'v');
  EXPECT_EQ(write({"SET", "k", large}), "+OK\r\n");
  EXPECT_FALSE(session_->is_stranger());
  EXPECT_EQ(acl({"SETUSER", "default", ">secret"}), "+OK\r\n");
  // Both in one piece: what comes behind AUTH is a user's.
  std::string bytes = "AUTH secret\r\n*3\r\n$3\r\nSET\r\n$1\r\nk\r\n";
  append_bulk(bytes, large);
  EXPECT_EQ(feed(bytes), "+OK\r\n");
  node_.commit_all();
  EXPECT_EQ(pump(), "+OK\r\n");
  open();
  EXPECT_THAT(send({"SET", "k", large}),
              StartsWith("-ERR Protocol error: unauthenticated bulk length"));
  EXPECT_TRUE(session_->is_stranger());
  EXPECT_TRUE(session_->closing());
}

TEST_F(SessionUsersTest, AnOpenDoorThatIsClosedMakesStrangers) {
  EXPECT_EQ(send({"GET", "k"}), "$-1\r\n");
  auto mine = std::move(session_);
  open();
  EXPECT_EQ(acl({"SETUSER", "default", ">secret"}), "+OK\r\n");
  session_ = std::move(mine);
  // Not even a complete request is needed to see it.
  EXPECT_THAT(feed("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$15000000\r\n"),
              StartsWith("-ERR Protocol error: unauthenticated bulk length"));
}

TEST_F(SessionUsersTest, APasswordClosesThePort) {
  EXPECT_EQ(acl({"SETUSER", "default", ">secret"}), "+OK\r\n");
  for (const auto& words : std::vector<std::vector<std::string>>{{"GET", "k"},
                                                                 {"PING"},
                                                                 {"ACL", "WHOAMI"},
                                                                 {"MULTI"},
                                                                 {"INFO"},
                                                                 {"LEASEHOLD", "STATUS"}}) {
    EXPECT_EQ(send(words), kNoAuth) << words[0];
  }
  EXPECT_TRUE(session_->is_stranger());
  EXPECT_EQ(send({"AUTH", "wrong"}), kWrongPassword);
  EXPECT_EQ(send({"GET", "k"}), kNoAuth);
  EXPECT_EQ(send({"AUTH", "secret"}), "+OK\r\n");
  EXPECT_EQ(send({"GET", "k"}), "$-1\r\n");
  EXPECT_EQ(send({"RESET"}), "+RESET\r\n");
  EXPECT_EQ(send({"GET", "k"}), kNoAuth);
  open();
  EXPECT_EQ(send({"GET", "k"}), kNoAuth) << "so is a new connection";
  EXPECT_EQ(send({"QUIT"}), "+OK\r\n");
}

TEST_F(SessionUsersTest, HelloProvesAUserToo) {
  acl({"SETUSER", "default", ">secret"});
  EXPECT_THAT(send({"HELLO", "3"}), StartsWith("-NOAUTH HELLO must be called"));
  EXPECT_EQ(session_->protocol, Protocol::resp2);
  EXPECT_EQ(send({"HELLO", "3", "AUTH", "default", "wrong", "SETNAME", "me"}), kWrongPassword);
  EXPECT_EQ(session_->protocol, Protocol::resp2);
  EXPECT_EQ(session_->name, "");
  EXPECT_THAT(send({"HELLO", "3", "AUTH", "default", "secret", "SETNAME", "me"}),
              StartsWith("%7\r\n"));
  EXPECT_EQ(session_->name, "me");
  EXPECT_EQ(send({"ACL", "WHOAMI"}), "$7\r\ndefault\r\n");
}

TEST_F(SessionUsersTest, WhatFollowsAPasswordWaitsForIt) {
  acl({"SETUSER", "default", ">secret"});
  EXPECT_EQ(feed("AUTH secret\r\nGET k\r\nPING\r\n"), "+OK\r\n$-1\r\n+PONG\r\n");
  open();
  EXPECT_EQ(feed("AUTH wrong\r\nGET k\r\n"), std::string(kWrongPassword) + kNoAuth);
}

TEST_F(SessionUsersTest, AUserThatIsOffOrUnknownHasNoPassword) {
  acl({"SETUSER", "ann", ">secret", "+@all", "~*"});
  EXPECT_EQ(send({"AUTH", "ann", "secret"}), kWrongPassword);
  EXPECT_EQ(send({"AUTH", "nobody", "secret"}), kWrongPassword);
  acl({"SETUSER", "ann", "on"});
  EXPECT_EQ(send({"AUTH", "ann", "secret"}), "+OK\r\n");
  EXPECT_EQ(send({"AUTH", "ann", "secret", "more"}), "-ERR syntax error\r\n");
}

TEST_F(SessionUsersTest, CommandsAndKeysAreChecked) {
  be({"+@read", "+set", "+config|get", "~mine:*", "%R~shared:*"});
  EXPECT_EQ(send({"GET", "mine:1"}), "$-1\r\n");
  EXPECT_EQ(send({"get", "other"}), kNoKey);
  EXPECT_EQ(send({"MGET", "mine:1", "other"}), kNoKey);
  EXPECT_EQ(send({"GET", "shared:1"}), "$-1\r\n");
  EXPECT_EQ(send({"SET", "shared:1", "v"}), kNoKey);
  EXPECT_EQ(write({"SET", "mine:1", "v"}), "+OK\r\n");
  EXPECT_EQ(send({"DEL", "mine:1"}), no_command("ann", "del"));
  EXPECT_EQ(send({"LEASEHOLD", "MEMBER", "LIST"}), no_command("ann", "leasehold|member"));
  // Clients of many groups begin with it, whatever their users may do.
  EXPECT_EQ(send({"LEASEHOLD", "GROUP", "KEY", "other"}), "+OK\r\n");
  EXPECT_EQ(send({"CLIENT", "KILL", "ID", "1"}), no_command("ann", "client|kill"));
  EXPECT_EQ(send({"ACL", "SETUSER", "ann", "+@all"}), no_command("ann", "acl|setuser"));
  EXPECT_THAT(send({"CONFIG", "GET", "save"}), StartsWith("*2\r\n"));
  EXPECT_EQ(send({"CONFIG", "SET", "a", "b"}), no_command("ann", "config|set"));
  EXPECT_THAT(send({"NOTHING"}), StartsWith("-ERR unknown command"));
  EXPECT_THAT(send({"GET"}), StartsWith("-ERR wrong number"));
}

TEST_F(SessionUsersTest, WhatReturnsTheOldValueNeedsBoth) {
  be({"+@all", "%W~w", "%R~r", "~b"});
  EXPECT_EQ(send({"SET", "w", "1", "GET"}), kNoKey);
  EXPECT_EQ(send({"INCR", "w"}), kNoKey);
  EXPECT_EQ(send({"RENAME", "w", "b"}), kNoKey);
  EXPECT_EQ(send({"RENAME", "b", "r"}), kNoKey);
  EXPECT_EQ(write({"SET", "w", "1"}), "+OK\r\n");
  EXPECT_EQ(write({"SET", "b", "1"}), "+OK\r\n");
  EXPECT_EQ(write({"INCR", "b"}), ":2\r\n");
  EXPECT_EQ(write({"RENAME", "b", "w"}), "+OK\r\n");
}

TEST_F(SessionUsersTest, CommandsInsideOfOthersAreChecked) {
  be({"+@all", "-del", "-mget", "~mine:*"});
  EXPECT_EQ(send({"LEASEHOLD", "READ", "quorum", "GET", "other"}), kNoKey);
  EXPECT_EQ(send({"LEASEHOLD", "READ", "quorum", "MGET", "mine:1"}), no_command("ann", "mget"));
  EXPECT_EQ(write({"LEASEHOLD", "SESSION", "OPEN"}), ":1\r\n");
  EXPECT_EQ(send({"LEASEHOLD", "ONCE", "1", "1", "SET", "other", "v"}), kNoKey);
  EXPECT_EQ(send({"LEASEHOLD", "ONCE", "1", "1", "DEL", "mine:1"}), no_command("ann", "del"));
  EXPECT_EQ(write({"LEASEHOLD", "ONCE", "1", "1", "SET", "mine:1", "v"}), "+OK\r\n");
  EXPECT_EQ(send({"LEASEHOLD", "EXPECT", "other", "1"}), kNoKey);
  EXPECT_EQ(send({"LEASE.ATTACH", "1", "other"}), kNoKey);
  EXPECT_EQ(send({"SETSEQ", "other:", "v"}), kNoKey);
}

TEST_F(SessionUsersTest, AScriptNeedsItsKeysAndItsCommands) {
  const std::string unlock =
      "if redis.call('get',KEYS[1]) == ARGV[1] then return redis.call('del',KEYS[1]) else return 0 "
      "end";
  be({"+eval", "~lock:*"});
  EXPECT_EQ(send({"EVAL", unlock, "1", "other", "t"}), kNoKey);
  EXPECT_EQ(send({"EVAL", unlock, "1", "lock:a", "t"}), no_command("ann", "del"));
  change({"+del"});
  EXPECT_EQ(write({"EVAL", unlock, "1", "lock:a", "t"}), ":0\r\n");
}

TEST_F(SessionUsersTest, AQueuedCommandIsCheckedWhenItIsQueued) {
  be({"+@all", "-del", "~mine:*"});
  send({"MULTI"});
  EXPECT_EQ(send({"DEL", "mine:1"}), no_command("ann", "del"));
  EXPECT_EQ(send({"SET", "mine:1", "v"}), "+QUEUED\r\n");
  EXPECT_THAT(send({"EXEC"}), StartsWith("-EXECABORT"));
  send({"MULTI"});
  EXPECT_EQ(send({"SET", "other", "v"}), kNoKey);
  EXPECT_THAT(send({"EXEC"}), StartsWith("-EXECABORT"));
  EXPECT_EQ(send({"WATCH", "other"}), kNoKey);
  send({"MULTI"});
  send({"SET", "mine:1", "v"});
  EXPECT_THAT(send({"EXEC"}), StartsWith("-EXECABORT")) << "the client may rely on the watch";
}

TEST_F(SessionUsersTest, ExecLooksAtTheRightsAgain) {
  be({"+@all", "~*"});
  send({"MULTI"});
  EXPECT_EQ(send({"SET", "k", "v"}), "+QUEUED\r\n");
  change({"resetkeys"});
  EXPECT_THAT(send({"EXEC"}), AllOf(StartsWith("-EXECABORT"), HasSubstr("rights were changed")));
  change({"~*"});
  send({"MULTI"});
  EXPECT_EQ(send({"SET", "k", "v"}), "+QUEUED\r\n");
  change({"+@all"}, "another");
  EXPECT_EQ(write({"EXEC"}), "*1\r\n+OK\r\n") << "another user's rights are none of its business";
  EXPECT_EQ(send({"WATCH", "k"}), "+OK\r\n");
  change({"-get"});
  send({"MULTI"});
  EXPECT_THAT(send({"EXEC"}), HasSubstr("rights were changed"));
}

TEST_F(SessionUsersTest, ScansShowOnlyKeysThatMayBeRead) {
  for (const char* key : {"a:1", "b:1", "a:2", "c"}) write({"SET", key, "v"});
  be({"+@all", "%R~a:*", "%W~b:*"});
  EXPECT_EQ(send({"KEYS", "*"}), "*2\r\n$3\r\na:1\r\n$3\r\na:2\r\n");
  EXPECT_EQ(send({"SCAN", "0"}), "*2\r\n$1\r\n0\r\n*2\r\n$3\r\na:1\r\n$3\r\na:2\r\n");
  EXPECT_THAT(send({"RANDOMKEY"}), HasSubstr("a:"));
  EXPECT_EQ(send({"LEASEHOLD", "RANGE", ""}), kNoKey);
  EXPECT_EQ(send({"LEASEHOLD", "RANGE", "b:1", "EXACT"}), kNoKey);
  EXPECT_THAT(send({"LEASEHOLD", "RANGE", "a:"}), HasSubstr("a:2"));
}

TEST_F(SessionUsersTest, WatchesNeedTheRightToRead) {
  be({"+@all", "%R~a:*", "%W~b:*", "&__keyspace@0__:a:*"});
  EXPECT_EQ(send({"LEASEHOLD", "WATCH", "KEY", "b:1"}), kNoKey);
  EXPECT_EQ(send({"LEASEHOLD", "WATCH", "VALUES", "PREFIX", ""}), kNoKey);
  EXPECT_EQ(send({"LEASEHOLD", "WATCH", "FROM", "1", "PREFIX", "b:"}), kNoKey);
  EXPECT_EQ(send({"SUBSCRIBE", "__keyspace@0__:a:1", "__keyspace@0__:b:1"}), kNoChannel);
  EXPECT_EQ(send({"PSUBSCRIBE", "__keyspace@0__:*"}), kNoChannel);
  EXPECT_THAT(send({"PSUBSCRIBE", "__keyspace@0__:a:*"}), HasSubstr("psubscribe"));
}

TEST_F(SessionUsersTest, ChangedRightsReachAConnectionThatExists) {
  be({"+@all", "~*"});
  EXPECT_EQ(write({"SET", "k", "v"}), "+OK\r\n");
  change({"-set"});
  EXPECT_EQ(send({"SET", "k", "v"}), no_command("ann", "set"));
  change({"resetkeys"});
  EXPECT_EQ(send({"GET", "k"}), kNoKey);
  EXPECT_FALSE(session_->closing());
}

TEST_F(SessionUsersTest, AUserThatIsOffLosesItsConnections) {
  be({"+@all", "~*"});
  change({"off"});
  EXPECT_EQ(send({"GET", "k"}), "");
  EXPECT_TRUE(session_->finished());
}

TEST_F(SessionUsersTest, ARemovedUserLosesItsConnectionsEvenIfItIsMadeAgain) {
  be({"+@all", "~*"});
  EXPECT_EQ(write({"ACL", "DELUSER", "ann", "nobody"}), ":1\r\n");
  change({"on", "nopass", "+@all", "~*"});
  EXPECT_TRUE(session_->wants_progress(coarse_now())) << "an idle one is noticed, too";
  EXPECT_EQ(send({"GET", "k"}), "");
  EXPECT_TRUE(session_->finished());
}

TEST_F(SessionUsersTest, AWatcherThatMayNotReadAnyMoreIsClosed) {
  be({"+@all", "~a:*"});
  EXPECT_THAT(send({"LEASEHOLD", "WATCH", "PREFIX", "a:"}), HasSubstr("watching"));
  change({"~b"});
  EXPECT_FALSE(session_->wants_progress(coarse_now()));
  EXPECT_FALSE(session_->closing());
  change({"resetkeys"});
  EXPECT_TRUE(session_->wants_progress(coarse_now()));
  EXPECT_TRUE(session_->closing());
}

TEST_F(SessionUsersTest, ACertificateNamesAUser) {
  acl({"SETUSER", "ann", "on", ">secret", "+get", "~*"});
  acl({"SETUSER", "bob"});
  EXPECT_FALSE(session_->authenticate_as("bob")) << "it is off";
  EXPECT_FALSE(session_->authenticate_as("nobody"));
  EXPECT_EQ(send({"ACL", "WHOAMI"}), "$7\r\ndefault\r\n");
  EXPECT_TRUE(session_->authenticate_as("ann"));
  EXPECT_EQ(send({"GET", "k"}), "$-1\r\n");
  EXPECT_EQ(send({"PING"}), no_command("ann", "ping"));
}

TEST_F(SessionUsersTest, ResetLeavesTheUserOfTheCertificate) {
  acl({"SETUSER", "ann", "on", "+get", "+reset", "~*"});
  acl({"SETUSER", "default", "off"});
  session_->certificate_user = "ann";
  ASSERT_TRUE(session_->authenticate_as("ann"));
  EXPECT_EQ(send({"RESET"}), "+RESET\r\n");
  EXPECT_EQ(send({"GET", "k"}), "$-1\r\n");
  session_->certificate_user = "nobody";
  EXPECT_EQ(send({"RESET"}), "+RESET\r\n");
  EXPECT_EQ(send({"GET", "k"}), kNoAuth);
}

TEST_F(SessionUsersTest, ANewBeginningNeedsNothingOfRulesThatCannotBeRead) {
  auto command = kv::encode_command(kv::SetUser{"ann", 0, "on what-is-this"});
  ASSERT_TRUE(command);
  node_.propose(std::move(command).value(), node::CallOptions(std::chrono::seconds(1)),
                [](const replica::ProposeResult&) {});
  node_.commit_one();
  EXPECT_THAT(send({"ACL", "SETUSER", "ann", "+get"}), HasSubstr("or begin with 'reset'"));
  EXPECT_EQ(acl({"SETUSER", "ann", "reset", "on", "+get"}), "+OK\r\n");
  EXPECT_EQ(acl({"SETUSER", "ann", "+set"}), "+OK\r\n");
}

TEST_F(SessionUsersTest, TheDefaultUserStays) {
  EXPECT_EQ(send({"ACL", "DELUSER", "ann", "default"}),
            "-ERR The 'default' user cannot be removed\r\n");
  EXPECT_EQ(node_.proposals(), 0U);
}

TEST_F(SessionUsersTest, AUserIsShownInParts) {
  acl({"SETUSER", "ann", "on", "+@read", "-get", "~a", "%R~b", "&c"});
  EXPECT_EQ(send({"ACL", "GETUSER", "ann"}),
            "*12\r\n$5\r\nflags\r\n*1\r\n$2\r\non\r\n$9\r\npasswords\r\n*0\r\n$8\r\ncommands\r\n"
            "$17\r\n-@all +@read -get\r\n$4\r\nkeys\r\n$7\r\n~a %R~b\r\n$8\r\nchannels\r\n"
            "$2\r\n&c\r\n$9\r\nselectors\r\n*0\r\n");
  EXPECT_EQ(send({"ACL", "GETUSER", "nobody"}), "$-1\r\n");
}

TEST_F(SessionUsersTest, WrongRulesSayWhyWithoutThePassword) {
  EXPECT_EQ(send({"ACL", "SETUSER", "ann", ">secret", "+nothing"}),
            "-ERR Error in ACL SETUSER modifier '+nothing': Unknown command or category name in "
            "ACL\r\n");
  EXPECT_THAT(send({"ACL", "SETUSER", "ann", "<secret"}), Not(HasSubstr("secret")));
  EXPECT_THAT(send({"ACL", "SETUSER", "a b", "on"}), StartsWith("-ERR Usernames can't contain"));
  EXPECT_THAT(send({"ACL", "SETUSER", std::string(129, 'n')}), StartsWith("-ERR a user's name"));
  EXPECT_THAT(send({"ACL", "SETUSER", "ann", "~" + std::string(65530, 'p')}), HasSubstr("limit"));
  EXPECT_EQ(node_.proposals(), 0U);
}

TEST_F(SessionUsersTest, TwoChangesAtOnceLoseNone) {
  acl({"SETUSER", "ann", "on"});
  auto mine = session_;
  auto input = input_;
  EXPECT_EQ(send({"ACL", "SETUSER", "ann", "+get"}), "");
  open();
  EXPECT_EQ(send({"ACL", "SETUSER", "ann", "+set"}), "");
  ASSERT_EQ(node_.proposals(), 2U);
  node_.commit_all();  // the second one is refused, and proposed again
  EXPECT_EQ(pump(), "+OK\r\n");
  EXPECT_THAT(send({"ACL", "LIST"}), HasSubstr("user ann on resetchannels -@all +get +set"));
}

TEST_F(SessionUsersTest, ALeaseBelongsToTheUserThatTookIt) {
  be({"+@all", "~*", "&*"});
  EXPECT_THAT(write({"LEASE.GRANT", "5000", "ID", "7"}), StartsWith("*2\r\n:7\r\n"));
  acl({"SETUSER", "bob", "on", "nopass", "+@all", "-@lease-others", "~*"});
  EXPECT_EQ(send({"AUTH", "bob", ""}), "+OK\r\n");
  const std::string refusal =
      "-NOPERM User bob has no permissions to change lease 7, which is user ann's; nothing was "
      "done\r\n";
  EXPECT_EQ(write({"LEASE.RENEW", "7"}), "*1\r\n" + refusal);
  EXPECT_EQ(write({"LEASE.REVOKE", "7"}), refusal);
  EXPECT_EQ(write({"SET", "k", "v", "LEASE", "7"}), refusal);
  EXPECT_EQ(write({"SETSEQ", "k", "v", "LEASE", "7"}), refusal);
  EXPECT_EQ(write({"SET", "k", "v"}), "+OK\r\n");
  EXPECT_EQ(write({"LEASE.ATTACH", "7", "k"}), refusal);
  send({"MULTI"});
  send({"LEASE.REVOKE", "7"});
  EXPECT_EQ(write({"EXEC"}), "*1\r\n" + refusal);
  EXPECT_THAT(write({"LEASEHOLD", "SESSION", "OPEN"}), StartsWith(":"));
  EXPECT_EQ(write({"LEASEHOLD", "ONCE", "1", "1", "LEASE.REVOKE", "7"}), refusal);
  change({"+@lease-others"}, "bob");
  EXPECT_EQ(write({"LEASE.RENEW", "7"}), "*1\r\n:5000\r\n");
  EXPECT_EQ(write({"LEASE.REVOKE", "7"}), "+OK\r\n");
}

TEST_F(SessionUsersTest, ASessionBelongsToTheUserThatOpenedIt) {
  be({"+@all", "~*", "&*"});
  EXPECT_EQ(write({"LEASEHOLD", "SESSION", "OPEN"}), ":1\r\n");
  EXPECT_EQ(write({"LEASEHOLD", "ONCE", "1", "1", "INCR", "n"}), ":1\r\n");
  EXPECT_THAT(send({"LEASEHOLD", "SESSION", "LIST"}), HasSubstr(R"("user":"ann")"));
  acl({"SETUSER", "bob", "on", "nopass", "+@all", "~*"});
  EXPECT_EQ(send({"AUTH", "bob", ""}), "+OK\r\n");
  EXPECT_THAT(write({"LEASEHOLD", "ONCE", "1", "1", "INCR", "n"}), StartsWith("-NOSESSION"));
  EXPECT_THAT(write({"LEASEHOLD", "ONCE", "1", "2", "INCR", "n"}), StartsWith("-NOSESSION"));
  EXPECT_THAT(write({"LEASEHOLD", "SESSION", "TOUCH", "1"}), StartsWith("-NOSESSION"));
  EXPECT_THAT(write({"LEASEHOLD", "SESSION", "CLOSE", "1"}), StartsWith("-NOSESSION"));
}

TEST_F(SessionUsersTest, ARenewalWithoutTheLogLooksAtTheOwnerToo) {
  kv::LeaseKeeper keeper(node_.clock(),
                         [this](std::uint64_t at) { return node_.store().lease_changes(at); });
  groups_.home().lease_keeper = &keeper;
  be({"+@all", "~*", "&*"});
  write({"LEASE.GRANT", "5000", "ID", "7"});
  EXPECT_EQ(send({"LEASE.RENEW", "7"}), "*1\r\n:5000\r\n") << "without the log";
  acl({"SETUSER", "bob", "on", "nopass", "+@all", "-@lease-others", "~*"});
  EXPECT_EQ(send({"AUTH", "bob", ""}), "+OK\r\n");
  EXPECT_THAT(write({"LEASE.RENEW", "7"}), StartsWith("*1\r\n-NOPERM User bob"));
  groups_.home().lease_keeper = nullptr;
}

TEST_F(SessionUsersTest, ALeaseOfTheOpenDefaultUserIsEverybodys) {
  write({"LEASE.GRANT", "5000", "ID", "7"});
  be({"+@all", "-@lease-others", "~*"});
  EXPECT_EQ(write({"LEASE.RENEW", "7"}), "*1\r\n:5000\r\n");
  EXPECT_EQ(write({"LEASE.REVOKE", "7"}), "+OK\r\n");
}

TEST_F(SessionUsersTest, AWriteAfterTheStartWaitsForTheNewestUsers) {
  acl({"SETUSER", "default", "-set"});
  open();
  state_.users_known = false;
  EXPECT_EQ(send({"GET", "k"}), "$-1\r\n") << "a read is justified anyway";
  EXPECT_THAT(send({"LEASEHOLD", "HELP"}), StartsWith("*"));
  EXPECT_EQ(send({"SET", "k", "v"}), "");
  EXPECT_EQ(feed("PING\r\n"), "") << "what follows waits too";
  EXPECT_TRUE(session_->busy());
  ASSERT_EQ(node_.reads(), 1U);
  EXPECT_EQ(node_.proposals(), 0U);
  node_.end_read({});
  EXPECT_EQ(
      pump(),
      "-NOLEADER this node cannot learn the newest users of its group at present; the command "
      "was not executed, try again\r\n+PONG\r\n");
  EXPECT_EQ(send({"SET", "k", "v"}), "");
  node_.end_read(node_.granted(raft::ReadBasis::quorum));
  EXPECT_EQ(pump(), no_command("default", "set"));
  EXPECT_TRUE(state_.users_known);
  EXPECT_EQ(write({"DEL", "k"}), ":0\r\n");
}

TEST_F(SessionUsersTest, WhatAMemberMayNotBeAbleToReadIsNotProposed) {
  open();
  node_.be_of_the_oldest_level();
  const auto refused = StartsWith("-ERR this command needs the group's level 2");
  EXPECT_THAT(send({"SET", "k", "v", "LEASE", "server1"}), refused);
  EXPECT_EQ(node_.proposals(), 0U);
  EXPECT_EQ(send({"SET", "k", "v"}), "");
  EXPECT_EQ(node_.proposals(), 1U) << "every member reads it";
  node_.commit_one();
  EXPECT_EQ(pump(), "+OK\r\n");
}

TEST_F(SessionUsersTest, AWriteToAStateThatIsNotServedWaitsForNobody) {
  open();
  state_.users_known = false;
  node_.health().set_refused("its disk lies");
  EXPECT_THAT(send({"SET", "k", "v"}), StartsWith("-TRYAGAIN this node's state is not served"));
  EXPECT_EQ(node_.reads(), 0U);
  node_.health().set_refused("");
  EXPECT_EQ(send({"SET", "k", "v"}), "");
  ASSERT_EQ(node_.reads(), 1U);
  node_.health().set_refused("its disk lies");
  node_.end_read({});
  EXPECT_THAT(pump(), StartsWith("-TRYAGAIN this node's state is not served"))
      << "it was found while the command waited";
  node_.health().set_refused("");
}

TEST_F(SessionUsersTest, DryRunAsksForAnotherUser) {
  acl({"SETUSER", "ann", "+get", "~a"});
  EXPECT_EQ(send({"ACL", "DRYRUN", "ann", "GET", "a"}), "+OK\r\n");
  EXPECT_THAT(send({"ACL", "DRYRUN", "ann", "GET", "b"}),
              HasSubstr("No permissions to access a key"));
  EXPECT_THAT(send({"ACL", "DRYRUN", "ann", "SET", "a", "b"}),
              HasSubstr("User ann has no permissions to run the 'set' command"));
  EXPECT_EQ(send({"ACL", "DRYRUN", "bob", "GET", "a"}), "-ERR User 'bob' not found\r\n");
  EXPECT_EQ(send({"ACL", "LOG"}), "*0\r\n") << "nothing was refused";
}

TEST_F(SessionUsersTest, RefusalsAreCountedAndShownWithoutPasswords) {
  acl({"SETUSER", "ann", "on", ">secret", "+get", "+acl|log", "~a"});
  send({"AUTH", "ann", "hunter2"});
  send({"AUTH", "ann", "secret"});
  send({"GET", "b"});
  send({"GET", "b"});
  send({"SET", "a", "v"});
  const std::string log = send({"ACL", "LOG"});
  EXPECT_THAT(log, StartsWith("*3\r\n"));
  EXPECT_THAT(log, Not(HasSubstr("hunter2")));
  EXPECT_THAT(log, HasSubstr("auth"));
  EXPECT_EQ(state_.accounts.log.refused(AclReason::auth), 1U);
  EXPECT_EQ(state_.accounts.log.refused(AclReason::key), 2U);
  EXPECT_EQ(state_.accounts.log.refused(AclReason::command), 1U);
  EXPECT_EQ(send({"ACL", "LOG", "RESET"}), "+OK\r\n");
  EXPECT_EQ(send({"ACL", "LOG"}), "*0\r\n");
}

TEST_F(SessionUsersTest, TheSlowLogHasNoPassword) {
  state_.live.set_slowlog_threshold(lease::Duration(1));
  send({"AUTH", "default", "secret"});
  send({"AUTH", "secret"});
  send({"HELLO", "2", "AUTH", "default", "secret"});
  acl({"SETUSER", "ann", ">secret"});
  for (const SlowCommand& entry : state_.slow_log.newest(100)) {
    EXPECT_THAT(entry.key, Not(HasSubstr("secret"))) << entry.command;
    if (entry.command == "acl|setuser") {
      EXPECT_EQ(entry.key, "");
    }
  }
}

TEST_F(SessionUsersTest, CategoriesAreListed) {
  EXPECT_THAT(send({"ACL", "CAT"}), AllOf(HasSubstr("cluster-admin"), HasSubstr("leasehold")));
  EXPECT_THAT(send({"ACL", "CAT", "CLUSTER-ADMIN"}),
              AllOf(HasSubstr("leasehold|member"), Not(HasSubstr("$3\r\nget"))));
  EXPECT_THAT(send({"ACL", "CAT", "nothing"}), StartsWith("-ERR Unknown category"));
  EXPECT_THAT(send({"ACL", "GENPASS"}), StartsWith("$64\r\n"));
  EXPECT_THAT(send({"ACL", "GENPASS", "5"}), StartsWith("$2\r\n"));
  EXPECT_THAT(send({"ACL", "GENPASS", "0"}), StartsWith("-ERR ACL GENPASS"));
  EXPECT_THAT(send({"ACL", "HELP"}), HasSubstr("SETUSER"));
}

}  // namespace
}  // namespace leasehold::server
