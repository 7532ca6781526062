// Settings: durations, peers, the file and how they are checked together.
#include <leasehold/server/settings.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

namespace leasehold::server {
namespace {

using ::testing::HasSubstr;
using namespace std::chrono_literals;

const SettingTexts kGood = {{"id", "2"}, {"data-dir", "d"}, {"peers", "1=a:1,2=b:2,3=c:3"}};

SettingTexts with(const std::string& name, const std::string& text) {
  SettingTexts texts = kGood;
  texts[name] = text;
  return texts;
}

std::string refusal(const SettingTexts& texts) {
  const auto settings = make_settings(texts);
  return settings ? "accepted" : settings.error().message;
}

/// A file that is removed at the end of the test.
class SettingsFile {
 public:
  explicit SettingsFile(const std::string& text)
      : path_(::testing::TempDir() + "leasehold_settings_" +
              ::testing::UnitTest::GetInstance()->current_test_info()->name() + ".toml") {
    std::ofstream(path_) << text;
  }
  ~SettingsFile() { std::remove(path_.c_str()); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

TEST(Settings, TheHistoryOfWatchersHasBounds) {
  const auto settings = make_settings(kGood);
  ASSERT_TRUE(settings.ok());
  EXPECT_EQ(settings.value().events.bytes_max, 2U << 20U);
  EXPECT_EQ(settings.value().events.events_max, 100'000U);
  EXPECT_EQ(make_settings(with("watch-history", "64K")).value().events.bytes_max, 64U << 10U);
  EXPECT_EQ(make_settings(with("watch-history-events", "100")).value().events.events_max, 100U);
  EXPECT_THAT(refusal(with("watch-history", "0")),
              HasSubstr("--watch-history: the history for watchers"));
  EXPECT_THAT(refusal(with("watch-history", "some")), HasSubstr("is not a number of bytes"));
  EXPECT_THAT(refusal(with("watch-history-events", "1")), HasSubstr("is not a number from 100"));
}

TEST(Settings, ManyGroupsNeedTheNodesByTheirNumbers) {
  EXPECT_EQ(make_settings(with("groups", "16")).value().groups, 16U);
  EXPECT_THAT(refusal(with("groups", "1025")), HasSubstr("is not a number from 1 to 1024"));
  SettingTexts joins = {
      {"id", "4"}, {"data-dir", "d"}, {"groups", "16"}, {"join", "a:1"}, {"peer-listen", "d:4"}};
  EXPECT_THAT(refusal(joins), HasSubstr("all nodes as ID=HOST:PORT"));
  joins["join"] = "1=a:1,2=b:2";
  const auto settings = make_settings(joins);
  ASSERT_TRUE(settings.ok());
  EXPECT_EQ(settings.value().join_hosts.size(), 2U);
  EXPECT_EQ(settings.value().node.join, (std::vector<std::string>{"a:1", "b:2"}));
  EXPECT_TRUE(settings.value().server.many_groups);
  joins["join"] = "1=a:1,10000=b:2";
  EXPECT_THAT(refusal(joins), HasSubstr("a number below 10000, and 10000 is not"));
  joins["join"] = "1=a:1,2=b:2";
  joins["id"] = "10004";
  EXPECT_THAT(refusal(joins), HasSubstr("a number below 10000, and 10004 is not"));
  joins["id"] = "4";
  joins["witness"] = "on";
  EXPECT_THAT(refusal(joins), HasSubstr("a witness has one group"));
}

TEST(Settings, ClientsUseTlsOnceThereIsACertificate) {
  using Mode = ClientTls::Mode;
  SettingTexts texts = kGood;
  EXPECT_EQ(make_settings(texts).value().server.client_tls, Mode::off);
  texts["client-tls"] = "on";
  EXPECT_THAT(refusal(texts), HasSubstr("clients are to use TLS: --tls-cert"));
  texts["client-tls"] = "optional";
  EXPECT_THAT(refusal(texts), HasSubstr("clients are to use TLS: --tls-cert"));
  texts = kGood;
  for (const char* file : {"tls-cert", "tls-key", "tls-ca"}) texts[file] = "file";
  EXPECT_EQ(make_settings(texts).value().server.client_tls, Mode::on);
  EXPECT_EQ(make_settings(texts).value().server.client_certificates,
            tls::ClientCertificates::optional);
  texts["client-tls"] = "off";
  EXPECT_EQ(make_settings(texts).value().server.client_tls, Mode::off);
  texts["client-tls"] = "optional";
  texts["client-certs"] = "required";
  EXPECT_EQ(make_settings(texts).value().server.client_tls, Mode::optional);
  EXPECT_EQ(make_settings(texts).value().server.client_certificates,
            tls::ClientCertificates::required);
  texts["client-tls"] = "perhaps";
  EXPECT_THAT(refusal(texts), HasSubstr("--client-tls: 'perhaps' is none of off, optional and on"));
  EXPECT_THAT(refusal(with("client-certs", "yes")), HasSubstr("none of none, optional"));
}

TEST(Durations, HaveAUnit) {
  EXPECT_EQ(parse_duration("100ms").value(), 100ms);
  EXPECT_EQ(parse_duration("1s").value(), 1s);
  EXPECT_EQ(parse_duration("1.5s").value(), 1500ms);
  EXPECT_EQ(parse_duration("250us").value(), 250us);
  EXPECT_EQ(parse_duration("7ns").value(), 7ns);
  EXPECT_EQ(parse_duration("2m").value(), 2min);
  EXPECT_EQ(parse_duration("0s").value(), 0s);
  EXPECT_EQ(parse_duration("0.001ms").value(), 1us);
  // As format_duration() writes it, too.
  EXPECT_EQ(parse_duration("664406.16666664m").value(), 39'864'369'999'998'400ns);
  EXPECT_EQ(parse_duration("39864369999998400ns").value(), 39'864'369'999'998'400ns);
  EXPECT_EQ(parse_duration("9223372036854775807ns").value(), lease::Duration::max());
}

TEST(Durations, AreStrict) {
  for (const char* text : {"",
                           "1",
                           "s",
                           "ms",
                           "1 s",
                           " 1s",
                           "1s ",
                           "-1s",
                           "+1s",
                           "1S",
                           "1sec",
                           ".5s",
                           "1.s",
                           "1.2.3s",
                           "1e3ms",
                           "0.5ns",
                           "1h",
                           "9999999999999m",
                           "99999999999999999999s",
                           "1.0000000001s"}) {
    EXPECT_FALSE(parse_duration(text).ok()) << text;
  }
}

TEST(Durations, AreShownInTheLargestUnitWithoutFraction) {
  EXPECT_EQ(format_duration(1500ms), "1500ms");
  EXPECT_EQ(format_duration(2s), "2s");
  EXPECT_EQ(format_duration(120s), "2m");
  EXPECT_EQ(format_duration(1us + 1ns), "1001ns");
  EXPECT_EQ(format_duration(0s), "0s");
}

TEST(Peers, AreIdsAndAddresses) {
  const auto peers = parse_peers("1=127.0.0.1:7101,2=host.example:80,30=[::1]:9");
  ASSERT_TRUE(peers.ok());
  ASSERT_EQ(peers.value().size(), 3U);
  EXPECT_EQ(peers.value()[2].id, raft::NodeId(30));
  EXPECT_EQ(peers.value()[2].address, "[::1]:9");
}

TEST(Peers, AreChecked) {
  for (const char* text :
       {"", "1", "1=", "1=host", "1=host:", "1=:1", "1=host:0", "1=host:65536", "0=host:1",
        "x=host:1", "1=a:1,", "1=a:1,1=b:1", "1=a:1,2=a:1", "1=a:1x"}) {
    EXPECT_FALSE(parse_peers(text).ok()) << text;
  }
}

TEST(Settings, HaveDefaults) {
  const auto settings = make_settings(kGood);
  ASSERT_TRUE(settings.ok()) << settings.error().message;
  EXPECT_EQ(settings.value().node.id, raft::NodeId(2));
  EXPECT_EQ(settings.value().node.timing.lease, 1s);
  EXPECT_EQ(settings.value().node.timing.max_clock_drift_ppm, 100'000);
  EXPECT_EQ(settings.value().listen, "127.0.0.1:7201");
  EXPECT_EQ(settings.value().server.advertise, "127.0.0.1:7201");
  EXPECT_TRUE(settings.value().server.lease_reads);
}

TEST(Settings, DefaultsOfTheTableAreThoseOfTheTypes) {
  const lease::Timing timing;
  const auto settings = make_settings(kGood);
  ASSERT_TRUE(settings.ok());
  EXPECT_EQ(settings.value().node.timing.heartbeat, timing.heartbeat);
  EXPECT_EQ(settings.value().node.timing.election_timeout, timing.election_timeout);
  EXPECT_EQ(settings.value().node.timing.max_round_trip, timing.max_round_trip);
  EXPECT_EQ(settings.value().node.timing.margin, timing.margin);
  EXPECT_EQ(settings.value().server.command_timeout, ServerOptions().command_timeout);
  EXPECT_EQ(settings.value().server.clients_max, ServerOptions().clients_max);
  EXPECT_EQ(settings.value().session_idle_max, ServeSettings().session_idle_max);
}

TEST(Settings, WrongOnesAreRefusedByName) {
  EXPECT_THAT(refusal(with("id", "0")), HasSubstr("--id: '0' is not a number from 1"));
  EXPECT_THAT(refusal(with("lease", "1")), HasSubstr("--lease: '1' is not a duration"));
  EXPECT_THAT(refusal(with("max-clock-drift", "10%")), HasSubstr("--max-clock-drift: '10%'"));
  EXPECT_THAT(refusal(with("max-clock-drift", "0.1234567")), HasSubstr("--max-clock-drift"));
  EXPECT_THAT(refusal(with("lease-reads", "yes")), HasSubstr("--lease-reads: 'yes' is neither"));
  EXPECT_THAT(refusal(with("listen", "7201")), HasSubstr("--listen: '7201' is not an address"));
  EXPECT_THAT(refusal(with("listen", "a:99999")), HasSubstr("'99999' is not a number from 0 to"));
  EXPECT_THAT(refusal(with("log-level", "loud")), HasSubstr("--log-level: 'loud'"));
  EXPECT_THAT(refusal(with("log-format", "xml")), HasSubstr("--log-format: 'xml'"));
  EXPECT_THAT(refusal(with("spans-ratio", "1.01")), HasSubstr("--spans-ratio: '1.01'"));
  EXPECT_THAT(refusal(with("spans-ratio", "-0.1")), HasSubstr("--spans-ratio: '-0.1'"));
  EXPECT_THAT(refusal(with("spans-bytes", "64K")), HasSubstr("--spans-bytes"));
  EXPECT_THAT(refusal(with("io-threads", "0")), HasSubstr("--io-threads: '0'"));
  EXPECT_THAT(refusal(with("busy-poll", "11ms")), HasSubstr("--busy-poll: it is 10ms or less"));
  EXPECT_THAT(refusal(with("busy-poll", "-1us")), HasSubstr("--busy-poll: '-1us'"));
  EXPECT_EQ(make_settings(with("busy-poll", "50us")).value().server.busy_poll, 50us);
  EXPECT_EQ(make_settings(with("busy-poll", "off")).value().server.busy_poll, 0us);
  EXPECT_THAT(refusal(with("cluster", "")), HasSubstr("--cluster"));
  EXPECT_THAT(refusal(with("command-timeout", "0s")), HasSubstr("--command-timeout"));
  EXPECT_THAT(refusal(with("session-idle-max", "0s")), HasSubstr("--session-idle-max"));
  EXPECT_THAT(refusal(with("session-idle-max", "999ms")), HasSubstr("1s or longer"));
  EXPECT_EQ(make_settings(with("session-idle-max", "1s")).value().session_idle_max, 1s);
}

TEST(Settings, DrainTimeoutAndPreferredLeaders) {
  SettingTexts texts = kGood;
  EXPECT_EQ(make_settings(texts).value().drain_timeout, 5s);
  EXPECT_TRUE(make_settings(texts).value().node.preferred_leaders.empty());
  texts["drain-timeout"] = "0s";
  texts["preferred-leaders"] = "3,1";
  const auto settings = make_settings(texts);
  ASSERT_TRUE(settings.ok()) << settings.error().message;
  EXPECT_EQ(settings.value().drain_timeout, 0s);
  EXPECT_EQ(settings.value().node.preferred_leaders,
            (std::vector<raft::NodeId>{raft::NodeId(3), raft::NodeId(1)}));
  for (const char* wrong : {"0", "x", "1,", "1,,2", "1,1", "-1"}) {
    texts["preferred-leaders"] = wrong;
    EXPECT_FALSE(make_settings(texts).ok()) << wrong;
  }
}

TEST(Settings, ANodeJoinsThroughSeveral) {
  const auto settings =
      make_settings({{"id", "4"}, {"data-dir", "d"}, {"join", "a:1,b:2"}, {"peer-listen", "d:4"}});
  ASSERT_TRUE(settings.ok()) << settings.error().message;
  EXPECT_EQ(settings.value().node.join, (std::vector<std::string>{"a:1", "b:2"}));
  EXPECT_EQ(settings.value().node.listen, "d:4");
  EXPECT_TRUE(settings.value().node.peers.empty());
  EXPECT_THAT(refusal(with("join", "a:1,,b:2")), HasSubstr("--join: '' is not an address"));
}

TEST(Settings, AreCheckedTogether) {
  EXPECT_THAT(refusal(with("id", "4")), HasSubstr("--peers does not name this node"));
  EXPECT_THAT(refusal({{"id", "1"}}), HasSubstr("--data-dir is missing"));
  EXPECT_THAT(refusal({{"id", "1"}, {"data-dir", "d"}}), HasSubstr("--peers is missing"));
  EXPECT_THAT(refusal({{"data-dir", "d"}, {"peers", "1=a:1"}}), HasSubstr("--id is missing"));
  EXPECT_THAT(refusal(with("join", "a:1")), HasSubstr("--peers and --join are both given"));
  EXPECT_THAT(refusal({{"id", "4"}, {"data-dir", "d"}, {"join", "a:1"}}),
              HasSubstr("--join needs --peer-listen"));
  EXPECT_THAT(refusal(with("admin-addresses", "1=a:7301")), HasSubstr("go with --admin:"));
  EXPECT_THAT(refusal(with("admin-open", "on")), HasSubstr("go with --admin:"));
  // The lease's own inequalities, with their numbers.
  EXPECT_NE(refusal(with("heartbeat", "900ms")), "accepted");
  EXPECT_NE(refusal(with("max-clock-drift", "0.9")), "accepted");
}

TEST(SettingsFile, HasTheNamesOfTheFlags) {
  const SettingsFile file(
      "id = 2\n"
      "data-dir = \"d\"\n"
      "peers = [\"1=a:1\", \"2=b:2\"]  # a list\n"
      "lease = \"2s\"\n"
      "max-clock-drift = 0.05\n"
      "lease-reads = false\n");
  const auto texts = read_settings_file(file.path());
  ASSERT_TRUE(texts.ok()) << texts.error().message;
  const auto settings = make_settings(texts.value());
  ASSERT_TRUE(settings.ok()) << settings.error().message;
  EXPECT_EQ(settings.value().node.peers.size(), 2U);
  EXPECT_EQ(settings.value().node.timing.lease, 2s);
  EXPECT_EQ(settings.value().node.timing.max_clock_drift_ppm, 50'000);
  EXPECT_FALSE(settings.value().server.lease_reads);
}

TEST(SettingsFile, UnknownKeysAreRefusedByName) {
  const SettingsFile file("id = 1\nleese = \"1s\"\n");
  const auto texts = read_settings_file(file.path());
  ASSERT_FALSE(texts.ok());
  EXPECT_THAT(texts.error().message, HasSubstr("unknown key 'leese'"));
}

TEST(SettingsFile, WrongTypesAreRefusedByName) {
  const SettingsFile file("[id]\nx = 1\n");
  const auto texts = read_settings_file(file.path());
  ASSERT_FALSE(texts.ok());
  EXPECT_THAT(texts.error().message, HasSubstr("id: expected"));
}

TEST(SettingsFile, BrokenFilesAreRefusedWithTheirPlace) {
  const SettingsFile file("id = 1\npeers = [\n");
  const auto texts = read_settings_file(file.path());
  ASSERT_FALSE(texts.ok());
  EXPECT_THAT(texts.error().message, HasSubstr(file.path()));
  EXPECT_FALSE(read_settings_file("no-such-file.toml").ok());
}

// The library asserts there; see server/settings_file.cc.
TEST(SettingsFile, ATableWithoutANameIsRefused) {
  for (const char* text : {"[?]\n", "[[=]]\n", "[ #\n"}) {
    const SettingsFile file(text);
    const auto texts = read_settings_file(file.path());
    ASSERT_FALSE(texts.ok()) << text;
    EXPECT_EQ(texts.error().code, ErrorCode::malformed) << text;
  }
}

// The library says that it cannot get there; see server/CMakeLists.txt. The letters are the first
// and the last such, and some between.
TEST(SettingsFile, LettersThatAreNoSpacesAreRefusedOutsideOfAString) {
  for (const char* letter : {"\u00a1", "\u00e9", "\u0100", "\u03a9", "\u0416", "\u0499"}) {
    const SettingsFile outside("id = 1\n" + std::string(letter) + "lease = \"2s\"\n");
    const auto refused = read_settings_file(outside.path());
    ASSERT_FALSE(refused.ok()) << letter;
    EXPECT_THAT(refused.error().message, HasSubstr("(line 2, column ")) << letter;

    const SettingsFile inside("data-dir = \"" + std::string(letter) + "\"\n");
    EXPECT_TRUE(read_settings_file(inside.path()).ok()) << letter;
  }
}

}  // namespace
}  // namespace leasehold::server
