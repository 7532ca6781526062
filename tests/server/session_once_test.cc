// Sessions over a fake node: LEASEHOLD SESSION and LEASEHOLD ONCE.
#include <leasehold/server/front/session.h>
#include <leasehold/tests/server/session_fixture.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace leasehold::server {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

class SessionOnceTest : public SessionTest {
 protected:
  /// Sends a line, and commits the command that it proposes.
  std::string line(const std::string& words) {
    std::string out = feed(words + "\r\n");
    node_.commit_all();
    return out + pump();
  }
};

TEST_F(SessionOnceTest, ACommandIsExecutedOnce) {
  EXPECT_EQ(line("LEASEHOLD SESSION OPEN"), ":1\r\n");
  EXPECT_EQ(line("LEASEHOLD ONCE 1 1 INCR n"), ":1\r\n");
  EXPECT_EQ(line("leasehold once 1 1 incr n"), ":1\r\n");
  EXPECT_EQ(line("LEASEHOLD ONCE 1 2 SET n 7 GET"), "$1\r\n1\r\n");
  EXPECT_EQ(line("LEASEHOLD ONCE 1 2 SET n 7 GET"), "$1\r\n1\r\n");
  EXPECT_EQ(line("LEASEHOLD ONCE 1 3 SET text x"), "+OK\r\n");
  EXPECT_EQ(line("LEASEHOLD ONCE 1 4 INCR text"),
            "-ERR value is not an integer or out of range\r\n");
  EXPECT_EQ(line("LEASEHOLD ONCE 1 5 GETDEL nothing"), "$-1\r\n");
  EXPECT_EQ(line("LEASEHOLD SESSION LIST"),
            "$74\r\n{\"open\":1,\"open_max\":10000,\"sessions\":"
            "[{\"id\":1,\"activity\":7,\"results\":1}]}\r\n");
}

TEST_F(SessionOnceTest, ARepetitionAfterAnUnknownOutcomeIsAnswered) {
  line("LEASEHOLD SESSION OPEN");
  // The command commits, and the client never hears of it.
  EXPECT_EQ(feed("LEASEHOLD ONCE 1 1 APPEND k token\r\n"), "");
  open();
  node_.commit_all();
  EXPECT_EQ(line("LEASEHOLD ONCE 1 1 APPEND k token"), ":5\r\n");
  EXPECT_EQ(node_.store().get("k").value()->bytes.view(), "token");
}

TEST_F(SessionOnceTest, TheFirstWordSaysWhetherTheSessionIsThere) {
  const std::string nosession =
      "-NOSESSION session 1 is unknown, closed or expired; nothing was done now, an earlier try "
      "may have been executed\r\n";
  EXPECT_EQ(line("LEASEHOLD ONCE 1 1 SET k v"), nosession);
  EXPECT_EQ(line("LEASEHOLD SESSION TOUCH 1"), nosession);
  EXPECT_EQ(line("LEASEHOLD SESSION CLOSE 1"), nosession);
  line("LEASEHOLD SESSION OPEN");
  EXPECT_EQ(line("LEASEHOLD SESSION TOUCH 1"), "+OK\r\n");
  EXPECT_EQ(line("LEASEHOLD ONCE 1 2 INCR n"), ":1\r\n");
  EXPECT_THAT(line("LEASEHOLD ONCE 1 1 INCR n"),
              StartsWith("-ERR sequence 1 of session 1 is below what its client has said"));
  EXPECT_THAT(line("LEASEHOLD ONCE 1 130 ANSWERED 2 INCR n"),
              StartsWith("-ERR sequence 130 of session 1 is 128 or more ahead"));
  EXPECT_EQ(line("LEASEHOLD SESSION CLOSE 1"), "+OK\r\n");
  EXPECT_EQ(line("LEASEHOLD ONCE 1 2 INCR n"), nosession);
  EXPECT_EQ(node_.store().get("n").value()->bytes.view(), "1");
}

TEST_F(SessionOnceTest, SeveralOfOnePipelineAreRepeatedInAnyOrder) {
  line("LEASEHOLD SESSION OPEN");
  const std::string pipeline =
      "LEASEHOLD ONCE 1 2 ANSWERED 1 APPEND k bb\r\nLEASEHOLD ONCE 1 1 answered 1 APPEND k a";
  EXPECT_EQ(line(pipeline), ":2\r\n:3\r\n");
  EXPECT_EQ(line(pipeline), ":2\r\n:3\r\n");
}

TEST_F(SessionOnceTest, ATransactionIsExecutedOnce) {
  line("LEASEHOLD SESSION OPEN");
  const std::string transaction = "MULTI\r\nINCR n\r\nTYPE n\r\nSET k v\r\nLEASEHOLD ONCE 1 1 EXEC";
  const std::string queued = "+OK\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n";
  EXPECT_EQ(line(transaction), queued + "*3\r\n:1\r\n+string\r\n+OK\r\n");
  EXPECT_EQ(line(transaction), queued + "*3\r\n:1\r\n+string\r\n+OK\r\n");
  // PING has its place each time; with the number of another transaction it has none.
  const std::string with_ping = "MULTI\r\nPING\r\nINCR m\r\nLEASEHOLD ONCE 1 4 EXEC";
  EXPECT_EQ(line(with_ping), "+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n+PONG\r\n:1\r\n");
  EXPECT_EQ(line(with_ping), "+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n+PONG\r\n:1\r\n");
  EXPECT_EQ(line("MULTI\r\nPING\r\nLEASEHOLD ONCE 1 4 EXEC"), "+OK\r\n+QUEUED\r\n*1\r\n:1\r\n");
  // What is watched is compared once too.
  node_.grant_lease(std::chrono::hours(1));
  EXPECT_EQ(line("WATCH n"), "+OK\r\n");
  EXPECT_EQ(line("INCR n"), ":2\r\n");
  EXPECT_EQ(line("MULTI\r\nINCR n\r\nLEASEHOLD ONCE 1 5 EXEC"), "+OK\r\n+QUEUED\r\n*-1\r\n");
  EXPECT_EQ(line("MULTI\r\nINCR n\r\nLEASEHOLD ONCE 1 5 EXEC"), "+OK\r\n+QUEUED\r\n*-1\r\n");
  EXPECT_EQ(line("LEASEHOLD ONCE 1 6 EXEC"), "-ERR EXEC without MULTI\r\n");
  EXPECT_EQ(line("MULTI\r\nNONSENSE\r\nLEASEHOLD ONCE 1 6 EXEC").substr(0, 5), "+OK\r\n");
  EXPECT_EQ(line("MULTI"), "+OK\r\n") << "the spoiled transaction is over";
  EXPECT_THAT(line("LEASEHOLD ONCE 1 6 INCR n"), StartsWith("-ERR inside MULTI only EXEC"));
  EXPECT_THAT(line("EXEC"), StartsWith("-EXECABORT "));
  EXPECT_THAT(line("MULTI\r\nLEASEHOLD SESSION OPEN\r\nDISCARD"), HasSubstr("-ERR 'leasehold|"));
  EXPECT_EQ(node_.store().get("n").value()->bytes.view(), "2");
}

TEST_F(SessionOnceTest, WrongWordsAreRefusedAndNothingIsProposed) {
  for (const char* words : {"LEASEHOLD SESSION",
                            "LEASEHOLD SESSION NEW",
                            "LEASEHOLD SESSION OPEN 1",
                            "LEASEHOLD SESSION CLOSE",
                            "LEASEHOLD SESSION CLOSE x",
                            "LEASEHOLD SESSION TOUCH 0",
                            "LEASEHOLD SESSION TOUCH -1",
                            "LEASEHOLD SESSION LIST 1",
                            "LEASEHOLD ONCE 1 1",
                            "LEASEHOLD ONCE x 1 INCR n",
                            "LEASEHOLD ONCE 1 0 INCR n",
                            "LEASEHOLD ONCE 1 1 ANSWERED 1",
                            "LEASEHOLD ONCE 1 1 ANSWERED x INCR n",
                            "LEASEHOLD ONCE 1 1 ANSWERED 0 INCR n",
                            "LEASEHOLD ONCE 1 1 GET n",
                            "LEASEHOLD ONCE 1 1 KEYS *",
                            "LEASEHOLD ONCE 1 1 NONSENSE",
                            "LEASEHOLD ONCE 1 1 MULTI",
                            "LEASEHOLD ONCE 1 1 WATCH k",
                            "LEASEHOLD ONCE 1 1 INCR",
                            "LEASEHOLD ONCE 1 1 LEASEHOLD ONCE 1 2 INCR n",
                            "LEASEHOLD ONCE 1 1 SET k v EX 0",
                            "LEASEHOLD ONCE 1 1 LEASEHOLD SESSION OPEN"}) {
    EXPECT_THAT(feed(std::string(words) + "\r\n"), StartsWith("-ERR ")) << words;
  }
  state_.draining = true;
  for (const char* words : {"LEASEHOLD SESSION OPEN", "LEASEHOLD SESSION CLOSE 1",
                            "LEASEHOLD SESSION TOUCH 1", "LEASEHOLD ONCE 1 1 INCR n"}) {
    EXPECT_THAT(feed(std::string(words) + "\r\n"), StartsWith("-TRYAGAIN ")) << words;
  }
  EXPECT_EQ(node_.proposals(), 0U);
}

TEST_F(SessionOnceTest, SessionsAreListedAfterTheirOpening) {
  EXPECT_EQ(feed("LEASEHOLD SESSION OPEN\r\nLEASEHOLD SESSION OPEN\r\nLEASEHOLD SESSION LIST\r\n"),
            "");
  node_.commit_all();
  EXPECT_EQ(pump(), ":1\r\n");
  node_.commit_all();
  const std::string rest = pump();
  EXPECT_THAT(rest, StartsWith(":2\r\n"));
  EXPECT_THAT(rest, HasSubstr("\"open\":2,"));
}

}  // namespace
}  // namespace leasehold::server
