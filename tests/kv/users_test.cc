// The users of the client port: their commands, asked of both stores, and their life after the
// process.
#include <leasehold/kv/rocksdb/rocksdb_record.h>
#include <leasehold/tests/kv/snapshot_support.h>
#include <leasehold/tests/kv/store_support.h>

#include <rocksdb/db.h>

#include <string>
#include <vector>

namespace leasehold::kv::testing {
namespace {

std::string run(Store& store, const Command& command) {
  return apply(store, store.applied_index().value() + 1, {encoded(command)}).at(0);
}

/// "ann 1/1 on ~a*, b ..."
std::string list(const Store& store) {
  std::string out;
  for (const auto& [name, user] : *store.users().list()) {
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
  EXPECT_EQ(list(*store_), "ann 1/1 on ~a*");
  EXPECT_EQ(run(Set{"k", "v"}), "OK");
  EXPECT_EQ(run(SetUser{"ann", 1, "on ~b*"}), "3");
  EXPECT_EQ(list(*store_), "ann 3/1 on ~b*");
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
  EXPECT_EQ(list(*store_), "ann 4/4 on, bob 2/2 on");
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
  EXPECT_EQ(list(*other), "ann 3/1 on ~b*");
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
  EXPECT_EQ(list(*other), "");
  EXPECT_GT(other->users().changes(), before);
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
    EXPECT_EQ(list(*old), "ann 1/1 on ~a*, bob 2/2 on") << "the log has the rest";
  }
  EXPECT_EQ(list(*open_store(folder.path("kv"))), "ann 1/1 on ~a*");
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
