// The users of the client port: their commands, asked of both stores, and their life after the
// process.
#include <leasehold/kv/evaluate.h>
#include <leasehold/kv/rocksdb/rocksdb_record.h>
#include <leasehold/kv/sessions.h>
#include <leasehold/tests/kv/snapshot_support.h>
#include <leasehold/tests/kv/store_support.h>

#include <gmock/gmock.h>
#include <rocksdb/db.h>

#include <string>
#include <vector>

namespace leasehold::kv::testing {
namespace {

std::string run(Store& store, const Command& command) {
  return apply(store, store.applied_index().value() + 1, {encoded(command)}).at(0);
}

/// "ann 1/1 on ~a*, b ..."
std::string listed(const Store& store) {
  std::string out;
  const auto users = store.users().list();
  for (const auto& [name, user] : *users) {
    if (!out.empty()) out += ", ";
    out += name + " " + std::to_string(user->version) + "/" + std::to_string(user->created) + " " +
           user->rules;
  }
  return out;
}

class UsersContract : public EachStore {
 protected:
  std::string run(const Command& command) { return testing::run(*store_, command); }
};

TEST_P(UsersContract, AUserIsWrittenAgainstItsVersion) {
  EXPECT_EQ(run(SetUser{"ann", 0, "on ~a*"}), "1");
  EXPECT_EQ(run(SetUser{"ann", 0, "off"}), "nil");
  EXPECT_EQ(run(SetUser{"ann", 2, "off"}), "nil");
  EXPECT_EQ(listed(*store_), "ann 1/1 on ~a*");
  EXPECT_EQ(run(Set{"k", "v"}), "OK");
  EXPECT_EQ(run(SetUser{"ann", 1, "on ~b*"}), "3");
  EXPECT_EQ(listed(*store_), "ann 3/1 on ~b*");
  EXPECT_EQ(store_->revision(), 3U);
}

TEST_P(UsersContract, ARemovedUserIsAnotherOneWhenItIsMadeAgain) {
  EXPECT_EQ(run(SetUser{"ann", 0, "on"}), "1");
  EXPECT_EQ(run(SetUser{"bob", 0, "on"}), "2");
  EXPECT_EQ(run(DelUsers{{"ann", "nobody", "ann"}}), "1");
  EXPECT_EQ(run(DelUsers{{"ann"}}), "0");
  EXPECT_EQ(store_->revision(), 3U) << "a removal of nobody has no revision";
  EXPECT_EQ(run(SetUser{"ann", 1, "on"}), "nil") << "version 1 has gone";
  EXPECT_EQ(run(SetUser{"ann", 0, "on"}), "4");
  EXPECT_EQ(listed(*store_), "ann 4/4 on, bob 2/2 on");
}

TEST_P(UsersContract, EveryChangeIsNoticed) {
  const std::uint64_t before = store_->users().changes();
  run(SetUser{"ann", 5, "on"});
  run(DelUsers{{"ann"}});
  run(Set{"k", "v"});
  EXPECT_EQ(store_->users().changes(), before);
  run(SetUser{"ann", 0, "on"});
  EXPECT_GT(store_->users().changes(), before);
}

TEST_P(UsersContract, TheirNumberIsBounded) {
  for (std::size_t i = 0; i < kUsersMax; ++i) {
    run(SetUser{"user" + std::to_string(i), 0, "on"});
  }
  EXPECT_EQ(run(SetUser{"one more", 0, "on"}),
            "error 3: there are 1024 users, which is the limit; nothing was done");
  EXPECT_EQ(run(SetUser{"user0", 1, "off"}), "1025") << "one that there is may change";
  EXPECT_EQ(run(DelUsers{{"user7"}}), "1");
  EXPECT_EQ(run(SetUser{"one more", 0, "on"}), "1027");
}

TEST_P(UsersContract, ATransactionAndASessionCarryNone) {
  EXPECT_EQ(run(OpenSession{}), "1");
  const Bytes command = encoded(SetUser{"ann", 0, "on"});
  EXPECT_FALSE(encode_command(Once{replica::SessionId(1), 1, 1, command.view()}));
}

TEST_P(UsersContract, ASnapshotHasThem) {
  run(SetUser{"ann", 0, "on ~a*"});
  run(SetUser{"bob", 0, "off"});
  run(SetUser{"ann", 1, "on ~b*"});
  run(DelUsers{{"bob"}});
  const auto snapshot = store_->take_snapshot();
  ASSERT_TRUE(snapshot);
  const auto other = make("other");
  run(SetUser{"later", 0, "on"});
  ASSERT_TRUE(other->install_snapshot(
      BytesSnapshot(bytes_of(*snapshot.value()), snapshot.value()->last())));
  EXPECT_EQ(listed(*other), "ann 3/1 on ~b*");
  EXPECT_EQ(testing::run(*other, SetUser{"ann", 3, "off"}), "5");
}

TEST_P(UsersContract, ASnapshotReplacesThoseThatThereAre) {
  run(Set{"k", "v"});
  run(Set{"k", "v"});
  const auto snapshot = store_->take_snapshot();
  ASSERT_TRUE(snapshot);
  const auto other = make("other");
  testing::run(*other, SetUser{"ann", 0, "on"});
  const std::uint64_t before = other->users().changes();
  ASSERT_TRUE(other->install_snapshot(
      BytesSnapshot(bytes_of(*snapshot.value()), snapshot.value()->last())));
  EXPECT_EQ(listed(*other), "");
  EXPECT_GT(other->users().changes(), before);
}

Command as(std::string_view user, const Bytes& command, bool others = false) {
  return ActAs{user, others, command.view()};
}

TEST_P(UsersContract, ALeaseBelongsToTheUserThatTookIt) {
  const Bytes grant =
      encoded(GrantLease{grant::LeaseId(7), std::chrono::seconds(1), "name", "holder"});
  const Bytes renew = encoded(RenewLeases{{grant::LeaseId(7)}});
  const Bytes renew_named = encoded(RenewNamed{{{grant::LeaseId(0), "name"}}});
  const Bytes attach = encoded(AttachKey{grant::LeaseId(7), "k"});
  const Bytes set = encoded(Set{"k", "v"});
  const Bytes keep = encoded(WithNamedLease{"name", Set{"k", "w"}});
  const Bytes revoke = encoded(RevokeLease{grant::LeaseId(7)});
  const std::string refusal =
      "error 17: User bob has no permissions to change lease 7, which is user ann's; nothing was "
      "done";
  EXPECT_EQ(run(as("ann", grant)), "[7,1,]");
  EXPECT_EQ(run(as("bob", set)), "OK");
  EXPECT_EQ(run(as("bob", renew)), "[" + refusal + ",]");
  EXPECT_EQ(run(as("bob", renew_named)), "[" + refusal + ",]");
  EXPECT_EQ(run(as("bob", attach)), refusal);
  EXPECT_EQ(run(as("bob", keep)), refusal);
  EXPECT_EQ(run(as("bob", revoke)), refusal);
  EXPECT_EQ(store_->find_lease(grant::LeaseId(7), "").value()->lease.owner, "ann");
  EXPECT_EQ(run(as("ann", renew)), "[1000,]");
  EXPECT_EQ(run(as("ann", attach)), "1");
  EXPECT_EQ(run(as("bob", set)), "OK") << "a key has its own rights";
  EXPECT_EQ(run(as("bob", renew, true)), "[1000,]") << "with the right to others' leases";
  EXPECT_EQ(run(RenewLeases{{grant::LeaseId(7)}}), "[1000,]") << "nobody's command does everything";
  EXPECT_EQ(run(as("ann", revoke)), "OK");
}

TEST_P(UsersContract, ALeaseWithoutAUserIsEverybodys) {
  run(GrantLease{grant::LeaseId(7), std::chrono::seconds(1), "", ""});
  EXPECT_EQ(run(as("bob", encoded(RenewLeases{{grant::LeaseId(7)}}))), "[1000,]");
  EXPECT_EQ(run(as("bob", encoded(RevokeLease{grant::LeaseId(7)}))), "OK");
}

TEST_P(UsersContract, ATransactionAndAnOnceAreAUsersToo) {
  EXPECT_EQ(run(OpenSession{}), "1");
  const Bytes grant = encoded(GrantLease{grant::LeaseId(7), std::chrono::seconds(1), "", ""});
  const Bytes once = encoded(Once{replica::SessionId(1), 1, 1, grant.view()});
  EXPECT_EQ(run(as("ann", once)), "[7,1,]");
  const Bytes revoke = encoded(Transaction{{}, {Set{"k", "v"}, RevokeLease{grant::LeaseId(7)}}});
  EXPECT_THAT(run(as("bob", revoke)), ::testing::HasSubstr("[OK,error 17"));
  const Bytes mine = encoded(Once{replica::SessionId(1), 2, 2, revoke.view()});
  EXPECT_EQ(run(as("ann", mine)), "[OK,OK,]");
}

TEST_P(UsersContract, AnOwnerSurvivesASnapshot) {
  const Bytes grant = encoded(GrantLease{grant::LeaseId(7), std::chrono::seconds(1), "", ""});
  run(as("ann", grant));
  const auto snapshot = store_->take_snapshot();
  ASSERT_TRUE(snapshot);
  const auto other = make("other");
  ASSERT_TRUE(other->install_snapshot(
      BytesSnapshot(bytes_of(*snapshot.value()), snapshot.value()->last())));
  EXPECT_EQ(other->find_lease(grant::LeaseId(7), "").value()->lease.owner, "ann");
}

TEST_P(UsersContract, ASessionBelongsToTheUserThatOpenedIt) {
  const Bytes set = encoded(Set{"k", "v"});
  const auto once = [&](std::uint64_t sequence) {
    return encoded(Once{replica::SessionId(1), sequence, 1, set.view()});
  };
  const Bytes touch = encoded(TouchSession{replica::SessionId(1)});
  const Bytes close = encoded(CloseSession{replica::SessionId(1)});
  EXPECT_EQ(run(as("ann", encoded(OpenSession{}))), "1");
  EXPECT_EQ(run(as("ann", once(1))), "OK");
  for (const Bytes& command : {once(1), once(2), touch, close}) {
    EXPECT_THAT(run(as("bob", command)), ::testing::HasSubstr("error 8:")) << "not bob's";
    EXPECT_THAT(run(as("bob", command, true)), ::testing::HasSubstr("error 8:"));
  }
  EXPECT_EQ(run(as("ann", once(2))), "OK") << "bob has used up no number";
  EXPECT_EQ(run(as("ann", touch)), "OK");
  const auto snapshot = store_->take_snapshot();
  ASSERT_TRUE(snapshot);
  const auto other = make("other");
  ASSERT_TRUE(other->install_snapshot(
      BytesSnapshot(bytes_of(*snapshot.value()), snapshot.value()->last())));
  EXPECT_EQ(other->sessions().value().at(0).owner, "ann");
  EXPECT_EQ(run(TouchSession{replica::SessionId(1)}), "OK") << "nobody's command does everything";
  EXPECT_EQ(run(as("ann", close)), "OK");
}

TEST_P(UsersContract, ASessionWithoutAUserIsEverybodys) {
  EXPECT_EQ(run(OpenSession{}), "1");
  EXPECT_EQ(run(as("bob", encoded(TouchSession{replica::SessionId(1)}))), "OK");
}

TEST_P(UsersContract, NoUserTakesTheSessionsOfAllOthers) {
  const Bytes open = encoded(OpenSession{});
  const std::vector<Bytes> commands(replica::kSessionsOfOwnerMax + 1, encoded(as("ann", open)));
  const auto replies = apply(*store_, 1, commands);
  EXPECT_THAT(replies.back(), ::testing::HasSubstr("7500 sessions of this user"));
  EXPECT_EQ(run(as("bob", open)), "7501");
}

TEST_P(UsersContract, AUserThatIsMadeAgainHasNothingOfItsNamesake) {
  const auto grant = [](std::uint64_t id) {
    return encoded(GrantLease{grant::LeaseId(id), std::chrono::seconds(1), "", ""});
  };
  const auto renew = [](std::uint64_t id) { return encoded(RenewLeases{{grant::LeaseId(id)}}); };
  const Bytes attach = encoded(AttachKey{grant::LeaseId(7), "k"});
  const Bytes revoke = encoded(RevokeLease{grant::LeaseId(7)});
  const Bytes set = encoded(Set{"k", "v"});
  const Bytes once = encoded(Once{replica::SessionId(1), 1, 1, set.view()});
  const Bytes touch = encoded(TouchSession{replica::SessionId(1)});
  run(SetUser{"ann", 0, "on"});
  run(SetUser{"bob", 0, "on"});
  EXPECT_EQ(run(as("ann", grant(7))), "[7,3,]");
  EXPECT_EQ(run(as("ann", encoded(OpenSession{}))), "1");
  EXPECT_EQ(run(as("bob", encoded(OpenSession{}))), "2");
  EXPECT_EQ(run(as("ann", once)), "OK");
  EXPECT_EQ(run(SetUser{"ann", 1, "on ~a*"}), "5");
  EXPECT_EQ(run(as("ann", renew(7))), "[1000,]") << "other rules do not make another user";
  EXPECT_EQ(run(as("ann", touch)), "OK");
  EXPECT_EQ(run(DelUsers{{"ann"}}), "1");
  EXPECT_EQ(store_->sessions().value().size(), 1U) << "its sessions end with it";
  EXPECT_EQ(run(SetUser{"ann", 0, "on"}), "7");
  const std::string refusal =
      "error 17: User ann has no permissions to change lease 7, which is that of an earlier user "
      "of this name; nothing was done";
  EXPECT_EQ(run(as("ann", renew(7))), "[" + refusal + ",]");
  EXPECT_EQ(run(as("ann", attach)), refusal);
  EXPECT_EQ(run(as("ann", revoke)), refusal);
  for (const Bytes& command : {once, touch}) {
    EXPECT_THAT(run(as("ann", command)), ::testing::HasSubstr("error 8:"));
  }
  EXPECT_EQ(run(as("ann", grant(8))), "[8,8,]");
  EXPECT_EQ(run(as("ann", renew(8))), "[1000,]");
  EXPECT_EQ(run(as("ann", renew(7), true)), "[1000,]") << "with the right to others' leases";
  EXPECT_EQ(run(as("bob", encoded(TouchSession{replica::SessionId(2)}))), "OK");
}

// A command of a user may be on its way when the user is removed.
TEST_P(UsersContract, ASessionThatWasOpenedBehindTheRemovalIsNotInherited) {
  run(SetUser{"ann", 0, "on"});
  run(DelUsers{{"ann"}});
  EXPECT_EQ(run(as("ann", encoded(OpenSession{}))), "1");
  run(SetUser{"ann", 0, "on"});
  EXPECT_THAT(run(as("ann", encoded(TouchSession{replica::SessionId(1)}))),
              ::testing::HasSubstr("error 8:"));
}

TEST_P(UsersContract, ActAsCarriesOnlyWhatAUserMaySend) {
  const Bytes user = encoded(SetUser{"ann", 0, "on"});
  EXPECT_FALSE(encode_command(ActAs{"ann", false, user.view()}));
  const Bytes expire = encoded(ExpireSession{replica::SessionId(1), 0});
  EXPECT_FALSE(encode_command(ActAs{"ann", false, expire.view()}));
  const Bytes set = encoded(Set{"k", "v"});
  EXPECT_FALSE(encode_command(ActAs{"", false, set.view()}));
  const Bytes acting = encoded(ActAs{"ann", false, set.view()});
  EXPECT_FALSE(encode_command(ActAs{"ann", false, acting.view()})) << "no deeper";
  EXPECT_FALSE(encode_command(Once{replica::SessionId(1), 1, 1, acting.view()}));
}

TEST_P(UsersContract, FencesAreCounted) {
  run(GrantLease{grant::LeaseId(7), std::chrono::seconds(1), "", ""});
  for (const char* key : {"a", "b", "a"}) {
    Set set{key, "v"};
    set.token = grant::FencingToken(1);
    EXPECT_EQ(run(set), "OK");
    EXPECT_EQ(run(Del{{key}}), "1");
  }
  EXPECT_EQ(store_->fences(), 2U);
  const auto snapshot = store_->take_snapshot();
  ASSERT_TRUE(snapshot);
  const auto other = make("other");
  ASSERT_TRUE(other->install_snapshot(
      BytesSnapshot(bytes_of(*snapshot.value()), snapshot.value()->last())));
  EXPECT_EQ(other->fences(), 2U);
}

/// As many fences as there may be.
class FullOfFences final : public Backend {
 public:
  Result<std::optional<Value>> load(std::string_view) override { return std::optional<Value>(); }
  void put(std::string_view key, Value) override { written_ = key; }
  void erase(std::string_view) override {}
  Result<grant::FencingToken> fence(std::string_view key) override {
    return grant::FencingToken(key == "old" ? 1 : 0);
  }
  void put_fence(std::string_view, grant::FencingToken, bool) override {}
  std::size_t fence_count() override { return kFencesMax; }
  grant::LeaseTable& leases() override { return leases_; }
  Users& users() override { return users_; }
  void tell(const Revision&) override {}

  std::string written_;

 private:
  grant::LeaseTable leases_;
  Users users_;
};

TEST(Fences, UsersDoNotMakeThemGrowWithoutEnd) {
  FullOfFences backend;
  Sessions sessions;
  Counters counters;
  counters.revision = 9;
  const auto run = [&](const Command& command) {
    backend.written_.clear();
    EXPECT_TRUE(evaluate(first_of(encoded(command)), backend, sessions, counters).ok());
    return backend.written_;
  };
  const auto set = [](std::string_view key) {
    Set one{key, "v"};
    one.token = grant::FencingToken(9);
    return one;
  };
  EXPECT_EQ(run(as("ann", encoded(set("new")))), "");
  EXPECT_EQ(run(as("ann", encoded(set("old")))), "old") << "it has one already";
  EXPECT_EQ(run(as("ann", encoded(Set{"plain", "v"}))), "plain");
  EXPECT_EQ(run(set("new")), "new") << "that of an earlier version has no limit";
}

INSTANTIATE_TEST_SUITE_P(Users, UsersContract, each_store(), name_of_store);

TEST(UsersFormat, NamesAndRulesHaveLimits) {
  const std::string name(kUserNameBytesMax, 'n');
  const std::string rules(kUserRulesBytesMax, 'r');
  EXPECT_TRUE(encode_command(SetUser{name, 0, rules}));
  EXPECT_FALSE(encode_command(SetUser{name + "n", 0, rules}));
  EXPECT_FALSE(encode_command(SetUser{name, 0, rules + "r"}));
  EXPECT_FALSE(encode_command(SetUser{"", 0, rules}));
  EXPECT_FALSE(encode_command(DelUsers{}));
  EXPECT_FALSE(encode_command(DelUsers{{"a", ""}}));
}

TEST(UsersOnDisk, OutliveTheProcessAndACrash) {
  const TemporaryFolder folder;
  {
    const auto store = open_store(folder.path("kv"));
    run(*store, SetUser{"ann", 0, "on ~a*"});
    run(*store, SetUser{"bob", 0, "on"});
    ASSERT_TRUE(store->make_durable());
    run(*store, DelUsers{{"bob"}});
    const auto old = crashed(folder, "kv");
    EXPECT_EQ(listed(*old), "ann 1/1 on ~a*, bob 2/2 on") << "the log has the rest";
  }
  EXPECT_EQ(listed(*open_store(folder.path("kv"))), "ann 1/1 on ~a*");
}

TEST(UsersOnDisk, ADamagedRecordIsRefused) {
  const TemporaryFolder folder;
  run(*open_store(folder.path("kv")), SetUser{"ann", 0, "on"});
  rocksdb::DB* raw = nullptr;
  const std::string path = folder.path("kv") + "/db-1";
  ASSERT_TRUE(rocksdb::DB::Open(rocksdb::Options(), path, &raw).ok());
  ASSERT_TRUE(raw->Put(rocksdb::WriteOptions(), std::string(kUserSpace) + "ann", "\x02later").ok());
  ASSERT_TRUE(raw->Close().ok());
  delete raw;
  const auto opened = RocksdbStore::open(store_options(folder.path("kv")));
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, ErrorCode::unsupported_format);
}

}  // namespace
}  // namespace leasehold::kv::testing
