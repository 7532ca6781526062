// What the patterns of a user may cost.
#include <leasehold/tests/server/users_fixture.h>

#include <gmock/gmock.h>

#include <string>
#include <vector>

namespace leasehold::server {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST_F(SessionUsersTest, PatternsThatCostTooMuchRefuseTheCommand) {
  be({"+@all", "~*" + std::string(40, 'a') + "b", "~app:*"});
  // More than a million steps.
  EXPECT_THAT(send({"GET", std::string(60000, 'a')}),
              AllOf(StartsWith("-NOPERM The patterns of user ann cost too much time"),
                    HasSubstr("shorten its keys")));
  // Nine keys share what one may have.
  std::vector<std::string> words = {"DEL"};
  for (int i = 0; i < 9; ++i) words.push_back(std::string(5000, 'a') + "b");
  EXPECT_THAT(send(words), HasSubstr("cost too much time"));
  words.resize(3);
  EXPECT_EQ(write(words), ":0\r\n");
  // Many keys of an ordinary user.
  words = {"MGET"};
  for (int i = 0; i < 20000; ++i) words.push_back("app:" + std::to_string(i));
  EXPECT_THAT(send(words), StartsWith("*20000\r\n$-1\r\n"));
}

TEST_F(SessionUsersTest, TheStepsOfPatternsAreWorkOfTheTurn) {
  be({"+@all", "~*" + std::string(40, 'a') + "b"});
  std::string command;
  append_array(command, 2);
  append_bulk(command, "EXISTS");
  append_bulk(command, std::string(15000, 'a') + "b");
  const std::string two = command + command;
  EXPECT_EQ(session_->process(two), command.size());
  EXPECT_TRUE(session_->turn_over());
}

}  // namespace
}  // namespace leasehold::server
