// The variant of the lab without the check of the numbers: what follows from an inequality that is
// broken, and that nothing does from the same steps where it is kept.
#include <leasehold/lab/lab.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <set>
#include <string>

namespace leasehold::lab {
namespace {

using std::chrono::milliseconds;
using story::Kind;
using story::Record;
using testing::HasSubstr;

/// All clocks as wrong as rho allows; the leader is cut off, and another one takes a write. It is
/// the last stop of the tour.
constexpr const char* kWorstClocks =
    "&lease=2000&election=100&steps=1500.drift.1.-100000~1500.drift.2.100000~1500.drift.3.100000~"
    "1500.alone.1~3500.write.2";

struct Course {
  std::set<std::string> found;
  std::size_t lease_reads = 0;
  std::size_t leases = 0;
  std::size_t answered = 0;
};

Course course_of(const std::string& numbers, Duration end = milliseconds(4000)) {
  const Result<Visit> visit = parse_visit("seed=7&unchecked=1&" + numbers);
  EXPECT_TRUE(visit.ok()) << visit.error().message;
  Course course;
  if (!visit) return course;
  Lab lab(visit.value());
  lab.run(end);
  for (const Record& record : lab.take_records()) {
    if (record.kind == Kind::mark && record.what == "violation") course.found.insert(record.why);
    if (record.kind == Kind::lease && record.why == "gained") ++course.leases;
    if (record.kind != Kind::read || !record.why.empty()) continue;
    ++course.answered;
    if (record.what == "off_thread") ++course.lease_reads;
  }
  return course;
}

std::string refusal(const std::string& text) {
  const Result<Visit> visit = parse_visit(text);
  return visit.ok() ? "taken" : visit.error().message;
}

TEST(Unchecked, AHolderThatCountsOnMoreThanIsSureReadsAnOldValue) {
  const Course broken = course_of(std::string("margin=-350") + kWorstClocks);
  EXPECT_THAT(broken.found, testing::ElementsAre("lease_and_newer_commit", "lease_outlives_promise",
                                                 "stale_read"));
  // The same steps where sigma is zero, the least that the core takes.
  const Course kept = course_of(std::string("margin=0") + kWorstClocks);
  EXPECT_EQ(kept.found, std::set<std::string>());
  EXPECT_GT(kept.lease_reads, 10U);
}

TEST(Unchecked, WhereNothingIsLeftToUseThereIsNoLease) {
  const Course course = course_of("margin=900");
  EXPECT_EQ(course.found, std::set<std::string>());
  EXPECT_EQ(course.lease_reads, 0U);
  EXPECT_GT(course.answered, 10U) << "a quorum answers";
}

TEST(Unchecked, WhereOneRenewalIsNotEnoughTheLeaseComesAndGoes) {
  const Course course = course_of("heartbeat=800", milliseconds(8000));
  EXPECT_EQ(course.found, std::set<std::string>());
  EXPECT_GT(course.answered, 10U);
}

TEST(Unchecked, WhatTheArithmeticNeedsIsRefusedStill) {
  EXPECT_THAT(refusal("unchecked=1&margin=-182"), HasSubstr("sigma is at least -181 ms"));
  EXPECT_EQ(refusal("unchecked=1&margin=-181"), "taken");
  EXPECT_THAT(refusal("unchecked=1&heartbeat=0"), HasSubstr("from 1 to"));
  EXPECT_THAT(refusal("unchecked=2"), HasSubstr("from 0 to 1"));
  EXPECT_THAT(refusal("margin=10"), HasSubstr("takes only visits with unchecked=1"));
  EXPECT_EQ(refusal("unchecked=1&margin=10"), "taken");
}

TEST(Unchecked, ItsTextIsReadAsTheSameVisit) {
  const Result<Visit> visit = parse_visit("unchecked=1&margin=-150&heartbeat=800");
  ASSERT_TRUE(visit.ok());
  EXPECT_THAT(visit_text(visit.value()), HasSubstr("&unchecked=1&"));
  EXPECT_EQ(parse_visit(visit_text(visit.value())).value(), visit.value());
}

}  // namespace
}  // namespace leasehold::lab
