// The reports and plans of leasehold recover, which go from machine to machine, and what they say.
#include <leasehold/cli/recovery_file.h>
#include <leasehold/cli/recovery_text.h>

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <utility>
#include <vector>

namespace leasehold::cli {
namespace {

node::Survivor example(std::uint64_t id, std::uint64_t last) {
  node::Survivor out;
  out.cluster_id = 0xdeadbeefU;
  out.id = raft::NodeId(id);
  out.base = {raft::Term(2), raft::Index(5)};
  out.last = {raft::Term(7), raft::Index(last)};
  for (std::uint64_t member = 1; member <= 5; ++member) {
    out.membership.members.push_back(
        {raft::NodeId(member), {member, 9}, "h" + std::to_string(member) + ":7101"});
    out.membership.voters.emplace_back(member);
  }
  out.uuid = {id, 9};
  out.membership_index = raft::Index(3);
  out.promise = std::chrono::seconds(1);
  out.applied = raft::Index(last - 10);
  return out;
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

TEST(RecoveryFile, ReportsAndPlansComeBack) {
  node::Survivor without = example(4, 90);
  without.applied.reset();
  without.no_state = "there is no \"store\"";
  EXPECT_EQ(decode_reports(encode_report(without)).value(), std::vector{without});
  const std::vector survivors{example(1, 100), without};
  EXPECT_EQ(decode_reports(encode_plan(survivors)).value(), survivors);
}

TEST(RecoveryFile, WhatIsWrongIsRefused) {
  const std::string good = encode_report(example(1, 100));
  const std::pair<const char*, const char*> changes[] = {
      {"00000000deadbeef", "0000000000000000"},
      {"00000000deadbeef", "deadbeef"},
      {"\"node\": 1", "\"node\": 0"},
      {"\"node\": 1", "\"node\": -1"},
      {"\"node\": 1", "\"node\": \"1\""},
      {"\"index\": 5", "\"index\": 101"},
      {"\"index\": 100", "\"index\": 9223372036854775807"},
      {"\"term\": 2", "\"term\": 8"},
      {"\"promise_ns\"", "\"promise\""},
      {"\"applied\": 90", "\"applied\": null"},
      {"\"membership\": \"0", "\"membership\": \"f"},
      {"\"uuid\": \"0", "\"uuid\": \""},
      {"report\": 1", "reported\": 1"},
      {"\"promise_ns\": 1000000000", "\"promise_ns\": 1000000000000000"}};
  for (const auto& [from, to] : changes) {
    const auto refused = decode_reports(replaced(good, from, to));
    ASSERT_FALSE(refused) << from << " " << to;
    EXPECT_EQ(refused.error().code, ErrorCode::invalid_argument);
  }
  for (const char* text : {"", "{", "[]", "7", "{}", "{\"leasehold_recovery_plan\": 1}",
                           "{\"leasehold_recovery_plan\": 1, \"survivors\": []}",
                           "{\"leasehold_recovery_plan\": 1, \"survivors\": [7]}"}) {
    EXPECT_FALSE(decode_reports(text)) << text;
  }
  const auto later = decode_reports(replaced(good, "report\": 1", "report\": 2"));
  ASSERT_FALSE(later);
  EXPECT_EQ(later.error().code, ErrorCode::unsupported_format);
  for (std::size_t length = 0; length + 2 < good.size(); ++length) {
    EXPECT_FALSE(decode_reports(good.substr(0, length))) << length;
  }
}

TEST(RecoveryFile, TheLossComesFirst) {
  const std::vector survivors{example(1, 100), example(4, 90)};
  const auto plan = node::plan_recovery(survivors).value();
  const std::string text = loss_text(survivors, plan);
  EXPECT_LT(text.find("What may be lost"), text.find("What is kept"));
  for (const char* part : {"of cluster 00000000deadbeef", "every write behind entry 100.",
                           "Everything up to entry 100 (term 7), of the log of node 1.",
                           "do not know whether entries 91 to 100 were committed",
                           "Nodes 2 (h2:7101), 3 (h3:7101), 5 (h5:7101) are lost for good",
                           "Its log begins behind entry 1099511627876;"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  }
}

TEST(RecoveryFile, ItSaysWhatIsNotLost) {
  std::vector survivors{example(1, 100), example(4, 90)};
  for (node::Survivor& one : survivors) {
    one.membership.members.pop_back();
    one.membership.voters.pop_back();
    one.applied = raft::Index(90);
  }
  survivors.front().applied = raft::Index(100);
  const std::string text = loss_text(survivors, node::plan_recovery(survivors).value());
  EXPECT_NE(text.find("Nothing that was ever acknowledged is lost"), std::string::npos) << text;
  EXPECT_EQ(text.find("every write behind"), std::string::npos) << text;
  EXPECT_EQ(text.find("do not know whether"), std::string::npos) << text;
}

TEST(RecoveryFile, ALongerLogWithoutAStateIsNamed) {
  std::vector survivors{example(1, 100), example(4, 90)};
  survivors.front().applied.reset();
  survivors.front().no_state = "it is a witness";
  const std::string text = loss_text(survivors, node::plan_recovery(survivors).value());
  EXPECT_NE(text.find("every write behind entry 90."), std::string::npos) << text;
  EXPECT_NE(
      text.find("what node 1 has up to entry 100 (term 7): it has no state (it is a witness)"),
      std::string::npos)
      << text;
}

}  // namespace
}  // namespace leasehold::cli
