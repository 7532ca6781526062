// Backups of groups between which a slot moves: which of them are one of the whole.
#include <leasehold/cli/backup_file.h>
#include <leasehold/cli/remote_backup.h>
#include <leasehold/server/backup.h>
#include <leasehold/server/front/slots_text.h>
#include <leasehold/server/host_cluster.h>
#include <leasehold/tests/base/temporary_folder.h>
#include <leasehold/tests/kv/store_support.h>
#include <leasehold/tests/server/fake_node.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace leasehold::cli {
namespace {

using ::testing::HasSubstr;

constexpr std::uint32_t kBar = 5061;  // of "bar", at first of the first group
constexpr auto kTwo = "slot 5061 has two owners, groups 1 and 2";

class BackupSetTest : public ::testing::Test {
 protected:
  BackupSetTest() {
    for (std::size_t group = 1; group <= 2; ++group) {
      const std::string dir = folder_.path(std::to_string(group));
      stores_.push_back(kv::testing::open_store(dir + "/state"));
      server::Backups::Options options;
      options.data_dir = dir;
      options.cluster = server::name_of_group("shop", group);
      options.id = raft::NodeId(1);
      backups_.push_back(
          std::make_unique<server::Backups>(node_, *stores_.back(), std::move(options)));
    }
    first(kv::Set{"bar", "v"});
    second(kv::Set{"foo", "v"});
  }
  void first(const kv::Command& command) { run(*stores_[0], command); }
  void second(const kv::Command& command) { run(*stores_[1], command); }
  static void run(kv::Store& store, const kv::Command& command) {
    kv::testing::apply(store, store.applied_index().value() + 1, {kv::testing::encoded(command)});
  }

  void begin() {
    first(kv::BeginMove{1, 2, 2, {kBar}});
    move_ = stores_[0]->slots().list()->at(kBar).move;
    second(kv::ExpectSlots{2, 2, 1, move_, {{kBar, 1}}});
    kv::MovedKey moved;
    moved.key = "bar";
    moved.exists = true;
    moved.value = "v";
    moved.create_revision = moved.mod_revision = moved.version = 1;
    second(kv::ImportKeys{1, move_, {moved}});
  }
  void freeze() { first(kv::FreezeMove{move_}); }
  void end() {
    second(kv::TakeSlots{1, move_, stores_[0]->revision()});
    first(kv::LeaveSlots{move_});
  }

  Result<server::BackupDone> back_up(std::size_t group, bool settled = false) {
    std::promise<Result<server::BackupDone>> done;
    backups_[group - 1]->start(std::to_string(++made_), {true, settled},
                               [&done](Result<server::BackupDone> made) { done.set_value(made); });
    return done.get_future().get();
  }
  /// What `leasehold backup` and `leasehold restore` say of these two, which is the same; empty:
  /// they are one of the whole.
  std::string apart(const server::BackupDone& one, const server::BackupDone& other) {
    std::vector<RemoteBackup> answers;
    for (const server::BackupDone* done : {&one, &other}) {
      answers.push_back(
          {"host:1",
           "monday",
           answers.size() + 1,
           {{"revision", done->manifest.revision}, {"slots", server::slots_text(done->slots)}}});
    }
    const auto told = why_apart(answers);
    if (!told) return told.error().message;
    const auto files = verified_backups({one.path, other.path});
    EXPECT_EQ(files.ok(), !told.value());
    if (!files) {
      EXPECT_THAT(files.error().message, HasSubstr(*told.value()));
    }
    return told.value().value_or("");
  }

  TemporaryFolder folder_;
  server::FakeNode node_;
  std::vector<std::unique_ptr<kv::RocksdbStore>> stores_;
  std::vector<std::unique_ptr<server::Backups>> backups_;
  std::uint64_t move_ = 0;
  std::size_t made_ = 0;
};

TEST_F(BackupSetTest, AreOneOfTheWholeWhileNothingMoves) {
  const auto before = back_up(1, true);
  ASSERT_TRUE(before) << before.error().message;
  EXPECT_TRUE(before.value().slots.empty());
  EXPECT_EQ(apart(before.value(), back_up(2, true).value()), "");
  begin();
  freeze();
  end();
  EXPECT_EQ(apart(back_up(1, true).value(), back_up(2, true).value()), "");
}

TEST_F(BackupSetTest, AMoveBetweenThemIsFound) {
  const auto first = back_up(1).value();
  const auto second = back_up(2).value();
  begin();
  freeze();
  end();
  EXPECT_EQ(apart(first, back_up(2).value()), kTwo);
  EXPECT_EQ(apart(back_up(1).value(), second), "slot 5061 has no owner");
}

TEST_F(BackupSetTest, OfWhatMovesNoneIsWrittenThatHasToBeSettled) {
  begin();
  for (const std::size_t group : {1U, 2U}) {
    const auto refused = back_up(group, true);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::overloaded) << "a later one may be written";
    EXPECT_THAT(refused.error().message, HasSubstr("slot 5061 is moving"));
    EXPECT_THAT(refused.error().message, HasSubstr("or cancel it"));
  }
  // A group that has lost its majority cannot end its moves.
  const auto copying = back_up(1).value();
  freeze();
  const auto frozen = back_up(1).value();
  const auto arriving = back_up(2).value();
  EXPECT_EQ(apart(copying, arriving), "");
  EXPECT_EQ(apart(frozen, arriving), "") << "the move can go on";
  end();
  EXPECT_EQ(apart(frozen, back_up(2).value()), "");
  EXPECT_EQ(apart(copying, back_up(2).value()), kTwo);
}

TEST_F(BackupSetTest, ACancelledMoveIsSettledWithoutItsKeys) {
  begin();
  first(kv::CancelMove{move_});
  EXPECT_TRUE(back_up(1, true));
  EXPECT_FALSE(back_up(2, true));
  second(kv::DropKeys{1, move_, {"bar"}});
  EXPECT_EQ(apart(back_up(1, true).value(), back_up(2, true).value()), "");
}

TEST_F(BackupSetTest, OneOfManyIsNotTheWhole) {
  begin();
  freeze();
  end();
  const auto alone = verified_backups({back_up(1).value().path});
  ASSERT_FALSE(alone);
  EXPECT_EQ(alone.error().message,
            "slot 5061 has no owner: it is the backup of one group of many, and needs the others");
}

TEST_F(BackupSetTest, OnlyAListOfSlotsIsTakenForOne) {
  RemoteBackup backup{"host:1", "monday", 1, {{"revision", 1}}};
  EXPECT_FALSE(why_apart({backup}).value());
  for (const nlohmann::ordered_json& wrong : std::vector<nlohmann::ordered_json>{7, "all"}) {
    backup.reply["slots"] = wrong;
    EXPECT_EQ(why_apart({backup}).error().code, ErrorCode::malformed);
  }
}

}  // namespace
}  // namespace leasehold::cli
