// What a change of users does to what is under way, and to who has logged in before the change was
// known here.
#include <leasehold/server/front/acting.h>
#include <leasehold/tests/server/users_fixture.h>

#include <gmock/gmock.h>

#include <chrono>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace leasehold::server {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr const char* kThisKeyIsNotMine = "-NOPERM No permissions to access a key\r\n";
constexpr const char* kNobodyAnyMore = "-NOAUTH Authentication required.\r\n";
constexpr const char* kNotThisPassword =
    "-WRONGPASS invalid username-password pair or user is disabled.\r\n";
constexpr const char* kUsersNotLearned =
    "-NOLEADER this node cannot learn the newest users of its group at present; the command was "
    "not executed, try again\r\n";

TEST_F(SessionUsersTest, AReadThatWaitsIsAnsweredByTheRightsOfThen) {
  be({"+@all", "~*"});
  EXPECT_EQ(write({"SET", "k", "v"}), "+OK\r\n");
  node_.commit_ahead(1);
  EXPECT_EQ(send({"GET", "k"}), "");
  ASSERT_EQ(node_.waits(), 1U);
  change({"resetkeys"});
  node_.end_wait(node_.granted(raft::ReadBasis::lease));
  EXPECT_EQ(pump(), kThisKeyIsNotMine);
  change({"~*"});
  EXPECT_EQ(send({"LEASEHOLD", "READMODE", "quorum"}), "+OK\r\n");
  EXPECT_EQ(feed("GET k\r\nMGET k k\r\nPING\r\n"), "");
  change({"-get"});
  node_.end_read(node_.granted(raft::ReadBasis::quorum));
  EXPECT_EQ(pump(),
            "-NOPERM User ann has no permissions to run the 'get' command\r\n"
            "*2\r\n$1\r\nv\r\n$1\r\nv\r\n+PONG\r\n");
}

TEST_F(SessionUsersTest, AReadThatWaitsShowsNothingToAUserThatHasGone) {
  be({"+@all", "~*"});
  EXPECT_EQ(write({"SET", "k", "v"}), "+OK\r\n");
  node_.commit_ahead(1);
  EXPECT_EQ(feed("GET k\r\nGET k\r\n"), "");
  change({"off"});
  node_.end_wait(node_.granted(raft::ReadBasis::lease));
  EXPECT_EQ(pump(), std::string(kNobodyAnyMore) + kNobodyAnyMore);
  EXPECT_TRUE(session_->finished());
}

TEST_F(SessionUsersTest, AWatchThatWaitsAndIsRefusedFailsItsTransaction) {
  be({"+@all", "~*"});
  node_.commit_ahead(1);
  EXPECT_EQ(send({"WATCH", "k"}), "");
  change({"resetkeys", "~other"});
  node_.end_wait(node_.granted(raft::ReadBasis::lease));
  EXPECT_EQ(pump(), kThisKeyIsNotMine);
  node_.apply_all();
  EXPECT_EQ(send({"MULTI"}), "+OK\r\n");
  EXPECT_EQ(send({"SET", "other", "v"}), "+QUEUED\r\n");
  EXPECT_THAT(send({"EXEC"}), StartsWith("-EXECABORT"));
}

TEST_F(SessionUsersTest, AChangeThatIsAppliedDuringAReadCounts) {
  be({"+@all", "~*"});
  EXPECT_EQ(write({"SET", "k", "v"}), "+OK\r\n");
  // Between the look at the rights and the answer there is a look at the clock.
  node_.manual_clock().at_the_next_look([this] { write_user("ann", "on nopass +@all"); });
  EXPECT_EQ(send({"GET", "k"}), kThisKeyIsNotMine);
}

TEST_F(SessionUsersTest, AnAnswerIsGivenUpIfTheRightsChangeWhileItIsMade) {
  kv::LeaseKeeper keeper(node_.clock(),
                         [this](std::uint64_t at) { return node_.store().lease_changes(at); });
  groups_.home().lease_keeper = &keeper;
  be({"+@all", "~*"});
  EXPECT_EQ(write({"SET", "k", "v", "EX", "100"}), "+OK\r\n");
  EXPECT_THAT(send({"TTL", "k"}), StartsWith(":"));
  // The first look judges the read, and the second one is at the time of the key.
  node_.manual_clock().at_the_next_look([this] {
    node_.manual_clock().at_the_next_look([this] { write_user("ann", "on nopass +@all"); });
  });
  EXPECT_EQ(send({"TTL", "k"}), kThisKeyIsNotMine);
  groups_.home().lease_keeper = nullptr;
}

TEST_F(SessionUsersTest, ALongReadIsMadeAgainByTheRightsOfThen) {
  for (const char* key : {"a:1", "b:1"}) write({"SET", key, "v"});
  ManualExecutor slow;
  session_ = std::make_shared<Session>(
      Session::Context{groups_, state_, &state_.counters[0], &executor_, &slow, &hubs_}, 8,
      "127.0.0.1:5", [this] { ++progress_; });
  be({"+@all", "~*"});
  EXPECT_EQ(send({"KEYS", "*"}), "");
  ASSERT_TRUE(slow.waits());
  slow.run();  // it has read, and its answer is on its way
  write_user("ann", "on nopass +@all ~b:*");
  EXPECT_EQ(pump(), "");
  slow.run();
  EXPECT_EQ(pump(), "*1\r\n$3\r\nb:1\r\n");
  EXPECT_EQ(send({"KEYS", "*"}), "");
  slow.run();
  write_user("ann", "on nopass +@all -keys ~b:*");
  EXPECT_EQ(pump(), "-NOPERM User ann has no permissions to run the 'keys' command\r\n");
}

// A node that has not joined yet, or has missed the newest changes.

TEST_F(SessionUsersTest, BeforeItKnowsTheUsersANodeLetsNobodyListenOrLookAtOthers) {
  state_.users_known = false;
  const std::vector<std::vector<std::string>> commands = {{"SUBSCRIBE", "__keyspace@0__:k"},
                                                          {"CLIENT", "LIST"},
                                                          {"CLIENT", "KILL", "ID", "1"},
                                                          {"ACL", "LIST"},
                                                          {"SLOWLOG", "GET"},
                                                          {"CONFIG", "GET", "*"}};
  for (const auto& words : commands) {
    EXPECT_EQ(send(words), "") << words[0] << words[1];
    ASSERT_EQ(node_.reads(), 1U) << words[0] << words[1];
    node_.end_read({});
    EXPECT_EQ(pump(), kUsersNotLearned);
  }
  EXPECT_THAT(send({"LEASEHOLD", "HELP"}), StartsWith("*"));
  EXPECT_EQ(send({"PING"}), "+PONG\r\n");
}

// The group has users, but this node has not heard of any: its default user is not the group's.
TEST_F(SessionUsersTest, TheOwnerOfACertificateIsNotTheOpenDefaultUserOfANodeThatKnowsNoUsers) {
  state_.users_known = false;
  session_->certificate_user = "ann";
  EXPECT_FALSE(session_->authenticate_as("ann"));
  EXPECT_EQ(send({"LEASEHOLD", "RELOAD"}), "");
  ASSERT_EQ(node_.reads(), 1U);
  node_.end_read({});
  EXPECT_EQ(pump(), kUsersNotLearned);
  EXPECT_EQ(send({"PING"}), "+PONG\r\n") << "it may ask how the node is";
  EXPECT_EQ(send({"LEASEHOLD", "RELOAD"}), "");
  write_user("ann", "on -@all +get ~*");
  write_user("default", "off");
  node_.end_read(node_.granted(raft::ReadBasis::quorum));
  EXPECT_EQ(pump(), "-NOPERM User ann has no permissions to run the 'leasehold|reload' command\r\n")
      << "it is who its certificate says, from now on";
  EXPECT_EQ(send({"GET", "k"}), "$-1\r\n");
}

TEST_F(SessionUsersTest, ANewGroupGetsItsFirstUsersFromTheOwnerOfACertificate) {
  state_.users_known = false;
  session_->certificate_user = "root";
  EXPECT_FALSE(session_->authenticate_as("root"));
  EXPECT_EQ(send({"ACL", "SETUSER", "root", "on", "~*", "&*", "+@all"}), "");
  node_.end_read(node_.granted(raft::ReadBasis::quorum));
  EXPECT_EQ(pump(), "");
  node_.commit_all();
  EXPECT_EQ(pump(), "+OK\r\n");
  EXPECT_EQ(acl({"SETUSER", "default", "off"}), "+OK\r\n");
  EXPECT_EQ(send({"ACL", "WHOAMI"}), "$4\r\nroot\r\n");
}

TEST_F(SessionUsersTest, AUserThatANodeDoesNotKnowYetWaitsForTheNewestUsers) {
  state_.users_known = false;
  EXPECT_EQ(send({"AUTH", "ann", "secret"}), "");
  ASSERT_EQ(node_.reads(), 1U) << "not WRONGPASS: the group may have such a user";
  node_.end_read({});
  EXPECT_EQ(pump(), kUsersNotLearned);
  EXPECT_EQ(send({"HELLO", "3", "AUTH", "ann", "secret"}), "");
  node_.end_read(node_.granted(raft::ReadBasis::quorum));
  EXPECT_EQ(pump(), kNotThisPassword);
}

// The group has acknowledged another password; this node has not heard of it.
TEST_F(SessionUsersTest, ALoginWithAPasswordThatWasReplacedDoesNotLast) {
  acl({"SETUSER", "ann", "on", ">old", "+@all", "~*"});
  EXPECT_EQ(send({"AUTH", "ann", "old"}), "+OK\r\n");
  change({">new"});
  EXPECT_EQ(send({"GET", "k"}), "$-1\r\n") << "both are right";
  change({"-set"});
  EXPECT_EQ(send({"GET", "k"}), "$-1\r\n");
  change({"<old"});
  EXPECT_TRUE(session_->wants_progress(coarse_now())) << "an idle one is noticed, too";
  EXPECT_EQ(send({"GET", "k"}), "");
  EXPECT_TRUE(session_->finished());
  open();
  EXPECT_EQ(send({"AUTH", "ann", "old"}), kNotThisPassword);
  EXPECT_THAT(send({"HELLO", "3", "AUTH", "ann", "new"}), StartsWith("%7\r\n"));
  open();
  EXPECT_EQ(send({"AUTH", "ann", "new"}), "+OK\r\n");
  change({">newer"});
  open();
  EXPECT_EQ(send({"AUTH", "ann", "new"}), "+OK\r\n");
  open();
  EXPECT_EQ(send({"AUTH", "ann", "new"}), "+OK\r\n") << "the node remembers which one it is";
  change({"<new"});
  EXPECT_EQ(send({"GET", "k"}), "");
  open();
  EXPECT_EQ(send({"AUTH", "ann", "newer"}), "+OK\r\n");
  change({"nopass"});
  EXPECT_EQ(send({"GET", "k"}), "$-1\r\n") << "every password is right";
  change({">newest"});
  EXPECT_EQ(send({"GET", "k"}), "");
  EXPECT_TRUE(session_->finished());
}

TEST_F(SessionUsersTest, ALoginWithoutAPasswordEndsWhenOneIsNeeded) {
  be({"+@all", "~*"});
  change({">secret"});
  EXPECT_EQ(send({"GET", "k"}), "");
  EXPECT_TRUE(session_->finished());
}

TEST_F(SessionUsersTest, WhoReplacesItsOwnPasswordIsAnsweredFirst) {
  acl({"SETUSER", "ann", "on", ">old", "+@all", "~*"});
  EXPECT_EQ(send({"AUTH", "ann", "old"}), "+OK\r\n");
  EXPECT_EQ(acl({"SETUSER", "ann", "resetpass", ">new"}), "+OK\r\n");
  EXPECT_EQ(send({"GET", "k"}), "");
  EXPECT_TRUE(session_->finished());
}

TEST_F(SessionUsersTest, AnotherPasswordDoesNotEndWhatACertificateHasProven) {
  acl({"SETUSER", "ann", "on", ">old", "+@all", "~*"});
  ASSERT_TRUE(session_->authenticate_as("ann"));
  change({"resetpass", ">new"});
  EXPECT_EQ(send({"GET", "k"}), "$-1\r\n");
}

TEST_F(SessionUsersTest, ALeaseOfAnEarlierUserOfTheNameIsNotRenewedWithoutTheLog) {
  kv::LeaseKeeper keeper(node_.clock(),
                         [this](std::uint64_t at) { return node_.store().lease_changes(at); });
  groups_.home().lease_keeper = &keeper;
  be({"+@all", "-@lease-others", "~*", "&*"});
  write({"LEASE.GRANT", "5000", "ID", "7"});
  EXPECT_EQ(send({"LEASE.RENEW", "7"}), "*1\r\n:5000\r\n") << "without the log";
  open();
  EXPECT_EQ(write({"ACL", "DELUSER", "ann"}), ":1\r\n");
  be({"+@all", "-@lease-others", "~*"});
  EXPECT_THAT(write({"LEASE.RENEW", "7"}), HasSubstr("an earlier user of this name"));
  groups_.home().lease_keeper = nullptr;
}

/// Other groups than the one with the users cannot see that a user was deleted and made again.
TEST_F(SessionUsersTest, AnOwnerInAGroupWithoutUsersHasItsTimeOfBirth) {
  be({"+@all", "~*", "&*"});
  const auto first = session_->user().rights;
  EXPECT_EQ(owner_in(*first, true), "ann");
  open();
  acl({"DELUSER", "ann"});
  be({"+@all", "~*", "&*"});
  const auto second = session_->user().rights;
  EXPECT_EQ(owner_in(*second, true), "ann");
  EXPECT_NE(owner_in(*second, false), owner_in(*first, false));
  EXPECT_EQ(user_of(owner_in(*second, false), false), "ann");
  EXPECT_EQ(user_of("a#b", true), "a#b") << "a name may have the sign in it";
}

TEST_F(SessionUsersTest, AnOwnerWithALongNameIsOneUser) {
  std::set<std::string> users;
  for (const std::size_t length : {std::size_t{100}, std::size_t{115}, kv::kUserNameBytesMax}) {
    for (const char* last : {"a", "b"}) {
      open();
      const std::string name = std::string(length - 1, 'n') + last;
      ASSERT_EQ(acl({"SETUSER", name, "on", "nopass", "+@all", "~*"}), "+OK\r\n");
      ASSERT_EQ(send({"AUTH", name, ""}), "+OK\r\n");
      const Rights& rights = *session_->user().rights;
      const std::string owner = owner_in(rights, false);
      EXPECT_TRUE(users.emplace(user_of(owner, false)).second) << owner;
      auto grant = kv::encode_command(kv::GrantLease{});
      ASSERT_TRUE(grant);
      EXPECT_TRUE(in_name_of(rights, false, std::move(grant).value())) << length;
    }
  }
}

}  // namespace
}  // namespace leasehold::server
