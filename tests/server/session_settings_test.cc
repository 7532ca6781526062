// The settings of a group, as words and in LEASEHOLD SETTINGS.
#include <leasehold/server/front/session.h>
#include <leasehold/server/front/settings_words.h>
#include <leasehold/tests/server/session_fixture.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

namespace leasehold::server {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string problem(const std::vector<SettingWord>& words) {
  const auto edit = parse_settings(words);
  EXPECT_FALSE(edit.ok());
  return edit.ok() ? "" : edit.error().message;
}

TEST(SettingsWords, WhatIsPrintedIsReadBack) {
  raft::GroupSettings settings;
  settings.timing.lease = std::chrono::milliseconds(2500);
  settings.timing.max_clock_drift_ppm = 83'001;
  settings.timing.margin = std::chrono::nanoseconds(1);
  settings.lease_reads = false;
  const std::vector<SettingWord> words = settings_words(settings);
  EXPECT_EQ(words.size(), 7U);
  const auto edit = parse_settings(words);
  ASSERT_TRUE(edit.ok());
  EXPECT_EQ(edit.value().applied_to({}), settings);
}

TEST(SettingsWords, WhatIsNotNamedStays) {
  const auto edit = parse_settings({{"heartbeat", "50ms"}});
  ASSERT_TRUE(edit.ok());
  raft::GroupSettings wanted;
  wanted.timing.heartbeat = std::chrono::milliseconds(50);
  EXPECT_EQ(edit.value().applied_to({}), wanted);
  EXPECT_EQ(parse_settings({}).value(), raft::SettingsEdit{});
}

TEST(SettingsWords, AWrongOneSaysWhatIsAllowed) {
  EXPECT_THAT(problem({{"colour", "red"}}), HasSubstr("these are: lease, heartbeat"));
  EXPECT_THAT(problem({{"lease", "2"}}), StartsWith("lease: "));
  EXPECT_THAT(problem({{"max-clock-drift", "10%"}}), HasSubstr("as in 0.1 for 10 %"));
  EXPECT_THAT(problem({{"lease-reads", "yes"}}), HasSubstr("neither on nor off"));
  EXPECT_THAT(problem({{"lease", "2s"}, {"lease", "3s"}}), HasSubstr("given twice"));
}

TEST(SettingsWords, TheUsablePartIsShownWithItsNumbers) {
  EXPECT_EQ(usable_text({}),
            "U = D * (1 - rho) / (1 + rho) - sigma = 1s * (1 - 0.1) / (1 + 0.1) - 10ms = "
            "808181818ns");
}

class SessionSettingsTest : public SessionTest {
 protected:
  std::string answered(replica::GroupCallStatus status,
                       std::optional<raft::SettingsObstacle> obstacle = std::nullopt) {
    EXPECT_EQ(feed("LEASEHOLD SETTINGS SET lease 2s\r\n"), "");
    replica::SettingsResult result;
    result.status = status;
    if (obstacle) result.refused = raft::SettingsRefused{*obstacle, raft::NodeId(2), "the reason"};
    node_.end_settings(result);
    return pump();
  }
};

TEST_F(SessionSettingsTest, AreShownAsOneObject) {
  EXPECT_EQ(feed("LEASEHOLD SETTINGS\r\n"), "");
  node::NodeStatus status;
  status.id = raft::NodeId(1);
  status.settings = raft::GroupSettings{};
  status.settings->timing.lease = std::chrono::seconds(2);
  status.membership_committed = true;
  node_.end_status(status);
  const std::string reply = pump();
  EXPECT_THAT(reply, HasSubstr(R"("agreed":true,"committed":true,"lease":"2s")"));
  EXPECT_THAT(reply, HasSubstr(R"("max-clock-drift":"0.1")"));
  EXPECT_THAT(reply, HasSubstr(R"("lease-reads":"on")"));
}

TEST_F(SessionSettingsTest, OfTheNodeAreShownWhileTheGroupHasNone) {
  EXPECT_EQ(feed("LEASEHOLD SETTINGS\r\n"), "");
  node::NodeStatus status;
  status.timing.lease = std::chrono::seconds(3);
  node_.end_status(status);
  EXPECT_THAT(pump(), HasSubstr(R"("agreed":false,"committed":false,"lease":"3s")"));
}

TEST_F(SessionSettingsTest, AreChangedByName) {
  EXPECT_EQ(feed("leasehold settings set lease 2s max-clock-drift 0.05 lease-reads off\r\n"), "");
  raft::SettingsEdit edit;
  edit.lease = std::chrono::seconds(2);
  edit.max_clock_drift_ppm = 50'000;
  edit.lease_reads = false;
  EXPECT_EQ(node_.next_settings(), edit);
  node_.end_settings({replica::GroupCallStatus::done, {}, raft::NodeId(1)});
  EXPECT_EQ(pump(), "+OK\r\n");
}

TEST_F(SessionSettingsTest, TheFirstWordSaysWhatToDo) {
  using raft::SettingsObstacle;
  using replica::GroupCallStatus;
  EXPECT_EQ(answered(GroupCallStatus::refused, SettingsObstacle::not_leader),
            "-NOLEADER this node does not lead; ask node 2\r\n");
  EXPECT_EQ(answered(GroupCallStatus::refused, SettingsObstacle::invalid), "-ERR the reason\r\n");
  EXPECT_THAT(answered(GroupCallStatus::refused, SettingsObstacle::step_too_long),
              StartsWith("-ERR a lease grows to at most 10 times"));
  for (const auto obstacle : {SettingsObstacle::change_under_way, SettingsObstacle::leader_is_new,
                              SettingsObstacle::member_unready, SettingsObstacle::too_late,
                              SettingsObstacle::transfer_under_way}) {
    EXPECT_THAT(answered(GroupCallStatus::refused, obstacle), StartsWith("-TRYAGAIN "));
  }
  EXPECT_THAT(answered(GroupCallStatus::unknown), StartsWith("-UNKNOWNOUTCOME "));
}

TEST_F(SessionSettingsTest, AWrongFormChangesNothing) {
  for (const char* line : {"SETTINGS SET", "SETTINGS SET lease", "SETTINGS GET lease 1s",
                           "SETTINGS SET lease 1s margin"}) {
    EXPECT_THAT(feed("LEASEHOLD " + std::string(line) + "\r\n"),
                StartsWith("-ERR expected LEASEHOLD SETTINGS"));
  }
  EXPECT_THAT(feed("LEASEHOLD SETTINGS SET lease soon\r\n"), StartsWith("-ERR lease: "));
}

}  // namespace
}  // namespace leasehold::server
