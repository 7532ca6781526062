// CONFIG: what changes while the node runs.
#include <leasehold/tests/server/session_fixture.h>

#include <gmock/gmock.h>

#include <string>
#include <vector>

namespace leasehold::server {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class ConfigTest : public SessionTest {
 protected:
  ConfigTest() {
    state_.options.set_log_level = [this](const std::string& level) { levels_.push_back(level); };
    for (const char* name : {"loglevel", "log-level", "timeout", "idle-timeout"}) {
      state_.options.config.emplace_back(name, "");
    }
  }
  std::string shown(const std::string& name) {
    const std::string reply = send({"CONFIG", "GET", name});
    // *2, the name, and the value: each text behind its length.
    std::vector<std::string> lines;
    for (std::size_t at = 0; at < reply.size();) {
      const std::size_t end = reply.find("\r\n", at);
      lines.push_back(reply.substr(at, end - at));
      at = end + 2;
    }
    return lines.size() == 5 ? lines[4] : reply;
  }

  std::vector<std::string> levels_;
};

TEST_F(ConfigTest, ChangesWhatIsLogged) {
  EXPECT_EQ(send({"CONFIG", "SET", "log-level", "trace"}), "+OK\r\n");
  EXPECT_EQ(shown("log-level"), "trace");
  EXPECT_EQ(shown("loglevel"), "debug");
  EXPECT_EQ(send({"CONFIG", "SET", "loglevel", "WARNING"}), "+OK\r\n");
  EXPECT_EQ(shown("log-level"), "warn");
  EXPECT_EQ(shown("loglevel"), "warning");
  EXPECT_EQ(send({"CONFIG", "SET", "loglevel", "verbose"}), "+OK\r\n");
  EXPECT_EQ(shown("loglevel"), "verbose");
  EXPECT_THAT(send({"CONFIG", "SET", "loglevel", "warn"}), HasSubstr("must be one of"));
  EXPECT_THAT(send({"CONFIG", "SET", "log-level", "notice"}), HasSubstr("it is trace, debug"));
  EXPECT_THAT(levels_, ElementsAre("trace", "warn", "debug"));
}

TEST_F(ConfigTest, ChangesAllOrNothing) {
  EXPECT_THAT(send({"CONFIG", "SET", "log-level", "off", "timeout", "soon"}),
              HasSubstr("argument 'timeout'"));
  EXPECT_THAT(levels_, IsEmpty());
  EXPECT_EQ(shown("log-level"), "");
  EXPECT_EQ(send({"CONFIG", "SET", "log-level", "off", "timeout", "7"}), "+OK\r\n");
  EXPECT_THAT(levels_, ElementsAre("off"));
  EXPECT_EQ(shown("loglevel"), "nothing");
  EXPECT_EQ(shown("idle-timeout"), "7s");
  EXPECT_EQ(state_.live.idle_timeout(), std::chrono::seconds(7));
}

}  // namespace
}  // namespace leasehold::server
