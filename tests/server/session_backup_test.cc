// Sessions over a fake node: the commands that store what the node has.
#include <leasehold/server/front/session.h>
#include <leasehold/tests/server/session_fixture.h>

#include <nlohmann/json.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace leasehold::server {
namespace {

using ::testing::HasSubstr;

class SessionBackupTest : public SessionTest {};

TEST_F(SessionBackupTest, ABackupIsWrittenBehindTheWritesBeforeIt) {
  EXPECT_EQ(feed("LEASEHOLD BACKUP x\r\n"), "-ERR this server writes no backups\r\n");
  struct Call {
    std::string name;
    BackupWanted wanted;
    std::function<void(Result<BackupDone>)> done;
  };
  std::vector<Call> calls;
  groups_.home().backups.write = [&calls](std::string_view name, BackupWanted wanted,
                                          std::function<void(Result<BackupDone>)> done) {
    calls.push_back({std::string(name), wanted, std::move(done)});
  };
  for (const char* wrong : {"y", "stale y", "stale stale", "settled settled", "stale settled x"}) {
    EXPECT_EQ(feed("LEASEHOLD BACKUP x " + std::string(wrong) + "\r\n"),
              "-ERR expected LEASEHOLD BACKUP name [STALE] [SETTLED]\r\n");
  }
  EXPECT_EQ(feed("SET k v\r\nLEASEHOLD BACKUP monday\r\n"), "");
  EXPECT_TRUE(calls.empty()) << "the write is not acknowledged yet";
  node_.commit_all();
  EXPECT_EQ(pump(), "+OK\r\n");
  EXPECT_EQ(feed("LEASEHOLD BACKUP old stale\r\nPING\r\n"), "");
  ASSERT_EQ(calls.size(), 2U);
  EXPECT_EQ(calls[0].name, "monday");
  EXPECT_FALSE(calls[0].wanted.stale || calls[0].wanted.settled);
  EXPECT_TRUE(calls[1].wanted.stale && !calls[1].wanted.settled);
  BackupDone made;
  made.path = "/data/monday";
  made.manifest.index = raft::Index(7);
  made.manifest.generation = 1;
  made.bytes = 5000;
  calls[0].done(made);
  calls[1].done(Error{ErrorCode::unavailable, "no leader is known"});
  const std::string reply = pump();
  EXPECT_THAT(reply, HasSubstr(R"("path":"/data/monday","node":0,"term":0,"index":7,)"));
  EXPECT_THAT(reply, HasSubstr(R"("bytes":5000,"generation":"0000000000000001"})"));
  EXPECT_THAT(reply, HasSubstr("-NOLEADER no leader is known\r\n+PONG\r\n"));
}

TEST_F(SessionBackupTest, ABackupTellsOfTheSlotsInIt) {
  groups_.home().backups.write = [](std::string_view /*name*/, BackupWanted wanted,
                                    const std::function<void(Result<BackupDone>)>& done) {
    if (wanted.settled) return done(Error{ErrorCode::overloaded, "slot 7 is moving"});
    BackupDone made;
    made.slots.emplace(7, kv::SlotRecord{kv::SlotPhase::copying, 1, 2, 50, 0});
    done(made);
  };
  EXPECT_THAT(feed("LEASEHOLD BACKUP x\r\n"), HasSubstr(R"(,"slots":"7 7 2 1 2 50 0"})"));
  EXPECT_EQ(feed("LEASEHOLD BACKUP x SETTLED\r\n"), "-TRYAGAIN slot 7 is moving\r\n");
}

TEST_F(SessionBackupTest, ABackupIsReadInParts) {
  EXPECT_EQ(feed("LEASEHOLD READBACKUP x 0\r\n"), "-ERR this server writes no backups\r\n");
  groups_.home().backups.read = [](std::string_view name,
                                   std::uint64_t offset) -> Result<std::string> {
    if (name != "monday") return Error{ErrorCode::not_found, "there is no such backup"};
    return std::string("archive").substr(std::min<std::size_t>(offset, 7));
  };
  for (const char* wrong : {"-1", "x", "", "9223372036854775808"}) {
    EXPECT_EQ(send({"LEASEHOLD", "READBACKUP", "monday", wrong}),
              "-ERR the offset is a number of bytes, 0 or more\r\n");
  }
  EXPECT_EQ(feed("LEASEHOLD READBACKUP monday 0\r\n"), "$7\r\narchive\r\n");
  EXPECT_EQ(feed("LEASEHOLD READBACKUP monday 3\r\n"), "$4\r\nhive\r\n");
  EXPECT_EQ(feed("LEASEHOLD READBACKUP monday 9223372036854775807\r\n"), "$0\r\n\r\n");
  EXPECT_EQ(feed("LEASEHOLD READBACKUP tuesday 0\r\n"), "-ERR there is no such backup\r\n");
}

TEST_F(SessionBackupTest, StatusTellsOfTheBackupThatIsBeingWritten) {
  const auto backup = [this] {
    feed("LEASEHOLD STATUS\r\n");
    node_.end_status(node::NodeStatus{});
    const std::string reply = pump();
    return nlohmann::json::parse(reply.substr(reply.find('{'))).at("backup");
  };
  EXPECT_TRUE(backup().is_null());
  std::optional<BackupProgress> progress;
  groups_.home().backups.progress = [&progress] { return progress; };
  EXPECT_TRUE(backup().is_null());
  progress = BackupProgress{"monday", 10, 40};
  EXPECT_EQ(backup().dump(), R"({"bytes":10,"name":"monday","size":40})");
}

TEST_F(SessionBackupTest, ASnapshotSaysWhatWasCut) {
  replica::LogCut cut;
  cut.durable = raft::Index(9);
  cut.first_before = raft::Index(2);
  cut.first = raft::Index(8);
  cut.bytes_before = 900;
  cut.bytes = 100;
  EXPECT_EQ(feed("LEASEHOLD SNAPSHOT\r\n"), "");
  node_.end_cut(cut);
  EXPECT_THAT(pump(),
              HasSubstr(R"({"index":9,"first_before":2,"first":8,"log_bytes_before":900,)"));
  feed("LEASEHOLD SNAPSHOT\r\n");
  node_.end_cut(Error{ErrorCode::overloaded, "too many"});
  EXPECT_EQ(pump(), "-TRYAGAIN too many\r\n");
  feed("LEASEHOLD SNAPSHOT\r\n");
  node_.end_cut(Error{ErrorCode::unsupported, "never"});
  EXPECT_EQ(pump(), "-ERR never\r\n");
}

}  // namespace
}  // namespace leasehold::server
