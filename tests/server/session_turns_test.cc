// What a session does in one turn, and what it leaves to the background.
#include <leasehold/server/front/session.h>
#include <leasehold/server/front/store_reader.h>
#include <leasehold/tests/server/session_fixture.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

namespace leasehold::server {
namespace {

using ::testing::EndsWith;
using ::testing::StartsWith;
using SessionTurns = SessionTest;

TEST_F(SessionTurns, ATurnIsBounded) {
  node_.grant_lease(std::chrono::hours(1));
  const std::string one = "GET k\r\n";
  std::string bytes;
  const std::size_t count = 4 * kTurnWork;
  for (std::size_t i = 0; i < count; ++i) bytes += one;
  std::size_t turns = 0;
  for (std::size_t taken = 0; taken < bytes.size(); ++turns) {
    const std::size_t now = session_->process(std::string_view(bytes).substr(taken));
    taken += now;
    EXPECT_LE(now, one.size() * kTurnWork / 2);
    EXPECT_EQ(session_->turn_over(), taken < bytes.size());
    EXPECT_FALSE(session_->stalled());
  }
  EXPECT_EQ(turns, 2 * count / kTurnWork);
  EXPECT_EQ(session_->output().size(), count * std::string_view("$-1\r\n").size());
}

TEST_F(SessionTurns, GrantedReadsAreMadeInBoundedTurns) {
  std::string bytes;
  for (int i = 0; i < 1000; ++i) bytes += "EXISTS k k k k k k k\r\n";
  EXPECT_EQ(feed(bytes), "");
  while (node_.reads() > 0) node_.end_read(node_.granted(raft::ReadBasis::quorum));
  executor_.run();
  std::size_t turns = 0;
  do {
    session_->process("");
    ++turns;
  } while (session_->turn_over());
  EXPECT_GE(turns, 1000 * 8 / kTurnWork);
  EXPECT_EQ(session_->output().size(), 1000 * std::string_view(":0\r\n").size());
}

TEST_F(SessionTurns, LongReadsAreMadeInTheBackgroundAndKeepTheirPlaces) {
  write({"SET", "k", "1"});
  node_.grant_lease(std::chrono::hours(1));
  const std::vector<std::string> words(kShortReadWords, "k");
  std::string many;
  append_array(many, 1 + words.size());
  append_bulk(many, "MGET");
  for (const std::string& word : words) append_bulk(many, word);
  const std::string bytes = many + "GET k\r\nKEYS *\r\nSET k 2\r\nPING\r\n";
  std::size_t taken = session_->process(bytes);
  // Nothing has been read, and the write waits for the reads before it.
  EXPECT_EQ(session_->output(), "");
  EXPECT_TRUE(executor_.waits());
  EXPECT_TRUE(session_->stalled());
  EXPECT_EQ(node_.proposals(), 0U);
  input_ = bytes.substr(taken);
  const std::string reads = pump();
  EXPECT_THAT(reads, StartsWith("*" + std::to_string(words.size()) + "\r\n$1\r\n1\r\n"));
  EXPECT_THAT(reads, EndsWith("$1\r\n1\r\n*1\r\n$1\r\nk\r\n"));
  node_.commit_all();
  EXPECT_EQ(pump(), "+OK\r\n+PONG\r\n");
}

TEST_F(SessionTurns, ALongReadThatIsRefusedIsCounted) {
  node_.grant_lease(std::chrono::hours(1));
  EXPECT_THAT(feed("SCAN x\r\n"), StartsWith("-ERR invalid cursor"));
  EXPECT_EQ(count(&Counters::commands_refused), 1U);
}

TEST_F(SessionTurns, IsProvenByQuickAndRightCommands) {
  node_.grant_lease(std::chrono::hours(1));
  const auto get = [&](std::size_t times) {
    for (std::size_t i = 0; i < times; ++i) feed("GET k\r\n");
  };
  get(kProvingCommands - 1);
  EXPECT_FALSE(session_->proven());
  feed("NOSUCH\r\n");
  get(kProvingCommands - 1);
  EXPECT_FALSE(session_->proven());
  feed("KEYS *\r\n");
  get(kProvingCommands - 1);
  EXPECT_FALSE(session_->proven());
  get(1);
  EXPECT_TRUE(session_->proven());
}

}  // namespace
}  // namespace leasehold::server
