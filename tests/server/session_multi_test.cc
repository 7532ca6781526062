// Sessions over a fake node: commands in MULTI that need no store.
#include <leasehold/tests/server/session_fixture.h>

#include <gmock/gmock.h>

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

namespace leasehold::server {
namespace {

using std::chrono::milliseconds;
using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::StartsWith;

class QueuedHere : public SessionTest {};

TEST_F(QueuedHere, AreAnsweredInTheirPlaces) {
  EXPECT_EQ(feed("MULTI\r\nPING\r\nINCR n\r\nECHO x\r\nPING y\r\nGET n\r\nTIME\r\n"),
            "+OK\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n");
  EXPECT_EQ(feed("EXEC\r\n"), "");
  node_.commit_all();
  EXPECT_THAT(pump(),
              MatchesRegex("\\*6\r\n\\+PONG\r\n:1\r\n\\$1\r\nx\r\n\\$1\r\ny\r\n"
                           "\\$1\r\n1\r\n\\*2\r\n\\$10\r\n[0-9]*\r\n\\$[1-6]\r\n[0-9]*\r\n"));
}

TEST_F(QueuedHere, AloneNeedNoNode) {
  EXPECT_EQ(feed("MULTI\r\nPING\r\nECHO x\r\nEXEC\r\n"),
            "+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n+PONG\r\n$1\r\nx\r\n");
  EXPECT_EQ(node_.proposals(), 0U);
  // A wrong number of words is refused when EXEC runs it, and the others are executed.
  EXPECT_THAT(feed("MULTI\r\nPING a b\r\nPING\r\nEXEC\r\n"),
              AllOf(HasSubstr("*2\r\n-ERR wrong number of"), EndsWith("+PONG\r\n")));
}

TEST_F(QueuedHere, AloneCompareWhatIsWatched) {
  node_.grant_lease(std::chrono::seconds(5));
  EXPECT_EQ(feed("WATCH k\r\nMULTI\r\nPING\r\n"), "+OK\r\n+OK\r\n+QUEUED\r\n");
  const Bytes other = kv::encode_command(kv::Set{"k", "9"}).value();
  node_.propose(other, milliseconds(1), [](const replica::ProposeResult&) {});
  EXPECT_EQ(feed("EXEC\r\n"), "");
  node_.commit_all();
  EXPECT_EQ(pump(), "*-1\r\n");
  EXPECT_EQ(feed("WATCH k\r\nMULTI\r\nPING\r\nEXEC\r\n"), "+OK\r\n+OK\r\n+QUEUED\r\n");
  node_.commit_all();
  EXPECT_EQ(pump(), "*1\r\n+PONG\r\n");
}

TEST_F(QueuedHere, AreBounded) {
  const std::string half(kQueuedHereBytesMax / 2, 'e');
  feed("MULTI\r\n");
  EXPECT_EQ(send({"ECHO", half}), "+QUEUED\r\n");
  EXPECT_THAT(send({"ECHO", half}), AllOf(StartsWith("-ERR "), HasSubstr("outside of MULTI")));
  EXPECT_THAT(feed("EXEC\r\n"), StartsWith("-EXECABORT "));
}

// The values alone: 144 MiB, and a command that names them thousands of times is a few kilobytes.
TEST_F(SessionTest, AWriteOfManyKeysLoadsABoundedPartOfTheStore) {
  const std::string large(kv::kValueBytesMax, 'v');
  std::vector<std::string> unlink = {"UNLINK"};
  for (std::size_t i = 0; i <= kv::kFewKeys; ++i) {
    unlink.push_back("k" + std::to_string(i));
    ASSERT_EQ(write({"SET", unlink.back(), large}), "+OK\r\n");
  }
  const auto refused = StartsWith("-ERR nothing was done: the values of the keys that the command");
  EXPECT_THAT(write(unlink), refused);
  feed("MULTI\r\n");
  for (std::size_t i = 0; i <= kv::kFewKeys; ++i) send({"STRLEN", unlink[i + 1]});
  EXPECT_EQ(send({"EXEC"}), "");
  node_.commit_all();
  EXPECT_THAT(pump(), refused);
  unlink.pop_back();
  EXPECT_EQ(write(unlink), ":8\r\n");
}

class QueuedMemory : public SessionTest {
 protected:
  std::size_t held() {
    pump();
    return session_->held_bytes();
  }
};

TEST_F(QueuedMemory, OfCommandsOnKeysIsCounted) {
  const std::size_t before = held();
  EXPECT_EQ(feed("MULTI\r\n"), "+OK\r\n");
  EXPECT_EQ(send({"SET", "k", std::string(100000, 'v')}), "+QUEUED\r\n");
  EXPECT_GE(held(), before + 100000);
  EXPECT_EQ(feed("DISCARD\r\n"), "+OK\r\n");
  EXPECT_LT(held(), before + 10000);
}

TEST_F(QueuedMemory, OfCommandsThatRunHereIsCountedWithTheirPlaces) {
  feed("MULTI\r\n");
  const std::size_t before = held();
  for (int i = 0; i < 1000; ++i) feed("PING\r\n");
  EXPECT_GE(held(), before + 1000 * 100);
}

TEST_F(QueuedMemory, OfWatchedKeysIsCounted) {
  node_.grant_lease(std::chrono::seconds(5));
  const std::size_t before = held();
  EXPECT_EQ(send({"WATCH", std::string(50000, 'k')}), "+OK\r\n");
  EXPECT_GE(held(), before + 50000);
}

TEST_F(QueuedMemory, OfManyWordsOfAnUnfinishedRequestIsCounted) {
  std::string bytes = "*65536\r\n";
  for (int i = 0; i < 60000; ++i) bytes += "$0\r\n\r\n";
  feed(bytes);
  EXPECT_GE(session_->held_bytes(), 60000U * 2 * sizeof(std::size_t));
}

TEST_F(QueuedMemory, OfSubscriptionsIsCounted) {
  const std::size_t before = held();
  send({"SUBSCRIBE", "__keyspace@0__:" + std::string(50000, 'k')});
  EXPECT_GE(held(), before + 100000);
  send({"UNSUBSCRIBE"});
  EXPECT_LT(held(), before + 10000);
  send({"LEASEHOLD", "WATCH", "KEY", std::string(50000, 'k')});
  EXPECT_GE(held(), before + 50000);
}

}  // namespace
}  // namespace leasehold::server
