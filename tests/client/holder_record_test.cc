// The record of who holds a lease, and its count of transitions, over a group in memory.
#include <leasehold/client/holder_record.h>
#include <leasehold/tests/client/fake_group.h>
#include <leasehold/tests/client/manual_clock.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace leasehold::client {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;

const std::string kKey = "leader of the printer";

class HolderRecordTest : public ::testing::Test {
 protected:
  /// The office passes to `holder`, and the one before does not know it.
  LeaseHolder& elect(const std::string& holder) {
    options_.name = "printer";
    options_.holder = holder;
    const auto found = leases_.find("printer", 1s);
    if (found) group_.end(found.value().id);
    auto held = LeaseHolder::acquire(leases_, clock_, options_);
    EXPECT_TRUE(held.ok());
    held_.push_back(std::move(held).value());
    return *held_.back();
  }
  Result<HolderRecord> record(const LeaseHolder& holder) {
    return record_holder(keys_, clock_, options_, holder, kKey);
  }
  /// What `holder` counts; fails the test if it may not write.
  std::uint64_t elected(const std::string& holder) {
    const auto written = record(elect(holder));
    EXPECT_TRUE(written.ok()) << written.error().message;
    return written ? written.value().transitions : 999;
  }
  HolderRecord stored() {
    const auto found = read_holder_record(keys_, kKey, 1s);
    EXPECT_TRUE(found.ok() && found.value());
    return found.value().value_or(HolderRecord());
  }
  static std::string of_others(std::uint64_t transitions, std::uint64_t token) {
    return HolderRecord{"another", 10s, "", transitions, grant::FencingToken(token)}.json();
  }

  FakeGroup group_;
  ManualClock clock_;
  FakeLeaseConnection leases_{group_};
  FakeKeyConnection keys_{group_};
  LeaseHolder::Options options_;
  std::vector<std::unique_ptr<LeaseHolder>> held_;
};

TEST_F(HolderRecordTest, HasTheFieldsOfKubernetesAndTheToken) {
  options_.timing.ttl = 12500ms;
  LeaseHolder& first = elect("a \"name\"");
  EXPECT_EQ(record(first).value().transitions, 0U);
  EXPECT_THAT(
      group_.rows()[0].value,
      MatchesRegex("\\{\"holderIdentity\":\"a \\\\\"name\\\\\"\",\"leaseDurationSeconds\":12.5,"
                   "\"acquireTime\":\"20..-..-..T..:..:..\\.......Z\","
                   "\"leaseTransitions\":0,\"fencingToken\":1\\}"));
  EXPECT_EQ(stored().holder, "a \"name\"");
  EXPECT_EQ(stored().duration, 12500ms);
  EXPECT_EQ(stored().token, first.token());
}

TEST_F(HolderRecordTest, AFullCountStaysReadable) {
  group_.write(kKey, of_others(INT64_MAX, 0));
  EXPECT_EQ(elected("a"), std::uint64_t{INT64_MAX});
  EXPECT_EQ(stored().holder, "a");
}

TEST_F(HolderRecordTest, CountsChangesOfTheHolder) {
  EXPECT_EQ(elected("a"), 0U);
  EXPECT_EQ(elected("a"), 0U);
  EXPECT_EQ(elected("b"), 1U);
  EXPECT_EQ(elected("a"), 2U);
  EXPECT_EQ(stored().transitions, 2U);
  EXPECT_EQ(stored().token, held_.back()->token());
}

TEST_F(HolderRecordTest, ALostAnswerCountsOnce) {
  EXPECT_EQ(elected("a"), 0U);
  group_.lose_next_answer();
  EXPECT_EQ(elected("b"), 1U);
  EXPECT_EQ(stored().transitions, 1U);
}

TEST_F(HolderRecordTest, AWriteThatArrivesLateCountsOnce) {
  EXPECT_EQ(elected("a"), 0U);
  // It arrives between the read and the write of the second try.
  group_.delay_next_replace();
  group_.before_replace(
      [this] { group_.before_replace([this] { EXPECT_TRUE(group_.arrive()); }); });
  EXPECT_EQ(elected("b"), 1U);
  EXPECT_EQ(stored().transitions, 1U);
}

TEST_F(HolderRecordTest, AnEarlierHolderThatComesLateWritesNothing) {
  LeaseHolder& late = elect("a");
  group_.delay_next_replace();
  options_.give_up = [] { return true; };
  EXPECT_EQ(record(late).error().code, ErrorCode::stopped);
  options_.give_up = [] { return false; };
  EXPECT_EQ(elected("b"), 0U);
  group_.arrive();
  EXPECT_EQ(stored().holder, "b");
  options_.holder = "a";
  EXPECT_EQ(record(late).error().code, ErrorCode::in_use);
  EXPECT_EQ(stored().holder, "b");
  // Also when the record is gone: the fence is not.
  group_.remove(kKey);
  EXPECT_EQ(record(late).error().code, ErrorCode::in_use);
  EXPECT_TRUE(group_.rows().empty());
}

TEST_F(HolderRecordTest, WhatWasWrittenInBetweenIsReadAgain) {
  LeaseHolder& holder = elect("a");
  group_.before_replace([this] { group_.write(kKey, of_others(5, 0)); });
  EXPECT_EQ(record(holder).value().transitions, 6U);
}

TEST_F(HolderRecordTest, AnotherValueIsRefusedAndKept) {
  LeaseHolder& holder = elect("a");
  for (const std::string& value :
       {std::string("v"), std::string("{}"), std::string(R"({"leaseTransitions":3})")}) {
    group_.write(kKey, value);
    const auto refused = record(holder);
    EXPECT_EQ(refused.error().code, ErrorCode::invalid_argument);
    EXPECT_THAT(refused.error().message, HasSubstr(kKey));
    EXPECT_EQ(group_.rows()[0].value, value);
  }
  EXPECT_EQ(read_holder_record(keys_, kKey, 1s).error().code, ErrorCode::invalid_argument);
  group_.remove(kKey);
  options_.holder = "\xff";
  EXPECT_EQ(record(holder).error().code, ErrorCode::invalid_argument);
}

TEST_F(HolderRecordTest, TriesUntilTheDeadlineOfTheLease) {
  LeaseHolder& holder = elect("a");
  group_.set_down(true);
  int tries = 0;
  options_.give_up = [&] {
    if (++tries == 2) clock_.advance(1h);
    return false;
  };
  const auto late = record(holder);
  EXPECT_EQ(late.error().code, ErrorCode::timed_out);
  EXPECT_THAT(late.error().message, HasSubstr("no leader"));
  EXPECT_EQ(tries, 2);
}

TEST_F(HolderRecordTest, AnOutageWithinTheLeaseIsWaitedOut) {
  LeaseHolder& holder = elect("a");
  group_.set_down(true);
  options_.give_up = [this] {
    group_.set_down(false);
    return false;
  };
  EXPECT_EQ(record(holder).value().transitions, 0U);
}

// ---- The bytes ----

TEST(HolderRecord, ReadsWhatOthersWrite) {
  const auto record = HolderRecord::parse(
      R"({"fencingToken": 7, "renewTime": "x", "holderIdentity": "\u0061",
          "leaseDurationSeconds": 15, "acquireTime": "t", "leaseTransitions": 3})");
  ASSERT_TRUE(record.ok()) << record.error().message;
  EXPECT_EQ(record.value().holder, "a");
  EXPECT_EQ(record.value().duration, 15s);
  EXPECT_EQ(record.value().transitions, 3U);
  EXPECT_EQ(record.value().token, grant::FencingToken(7));
}

TEST(HolderRecord, IsStrict) {
  const auto parses = [](const std::string& duration, const std::string& transitions) {
    return HolderRecord::parse(
               R"({"holderIdentity":"a","acquireTime":"t","leaseDurationSeconds":)" + duration +
               R"(,"leaseTransitions":)" + transitions + R"(,"fencingToken":1})")
        .ok();
  };
  EXPECT_TRUE(parses("0.001", "9223372036854775807"));
  EXPECT_TRUE(parses("1e1", "1")) << "JSON has two ways to write 10";
  for (const char* const duration :
       {"\"1\"", "-1", "1.0000000001", "99999999999", "9999999999999999999"}) {
    EXPECT_FALSE(parses(duration, "1")) << duration;
  }
  for (const char* const transitions : {"\"1\"", "-1", "1.0", "1e1", "9223372036854775808"}) {
    EXPECT_FALSE(parses("1", transitions)) << transitions;
  }
}

TEST(HolderRecord, WritesADurationWithoutNeedlessDigits) {
  for (const auto& [duration, text] : {std::pair<lease::Duration, const char*>(10s, ":10,"),
                                       {1h, ":3600,"},
                                       {1500ms, ":1.5,"},
                                       {1ms, ":0.001,"}}) {
    const HolderRecord record{"a", duration, "t", 0, grant::FencingToken(1)};
    EXPECT_THAT(record.json(), HasSubstr(text));
    EXPECT_EQ(HolderRecord::parse(record.json()).value().duration, duration);
  }
}

}  // namespace
}  // namespace leasehold::client
