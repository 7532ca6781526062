// Locks with a queue, over a group in memory. Each waiter has a thread; no test sleeps to wait for
// a result.
#include <leasehold/client/queue_lock.h>
#include <leasehold/tests/client/fake_group.h>
#include <leasehold/tests/client/manual_clock.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace leasehold::client {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Mode = QueueLock::Mode;
using Taken = Result<std::unique_ptr<QueueLock>>;

/// A client that asks for a lock, with connections of its own.
class Contender {
 public:
  Contender(FakeGroup& group, const lease::Clock& clock, std::string name)
      : group_(group), clock_(clock), leases_(group), keys_(group), name_(std::move(name)) {}

  ~Contender() { tired_ = true; }
  Contender(const Contender&) = delete;
  Contender& operator=(const Contender&) = delete;

  QueueLock::Options options(Mode mode, std::uint32_t permits = 1) const {
    QueueLock::Options options;
    options.lease.name = "printer";
    options.lease.holder = name_;
    options.lease.wait = hours(1);
    options.lease.give_up = [this] { return tired_.load(); };
    options.mode = mode;
    options.permits = permits;
    return options;
  }
  Taken take(QueueLock::Options options) {
    return QueueLock::acquire(leases_, keys_, clock_, options);
  }
  /// Asks in a thread, and has its place in the queue when this returns.
  void ask(const QueueLock::Options& options) {
    asked_ = std::async(std::launch::async, [this, options] {
      auto taken = take(options);
      if (taken) lock_ = std::move(taken).value();
      return !taken ? std::optional<Error>(taken.error()) : std::nullopt;
    });
    group_.wait_until([this] { return stands(); });
  }
  void ask(Mode mode, std::uint32_t permits = 1) { ask(options(mode, permits)); }
  bool stands() const {
    for (const KeyService::Row& row : group_.rows()) {
      if (row.value.substr(row.value.find(' ') + 1) == name_) return true;
    }
    return false;
  }
  /// It has asked in vain so far. It looked: another's turn comes by a change that it saw too.
  bool waits() const { return asked_.wait_for(seconds(0)) != std::future_status::ready; }
  QueueLock& lock() {
    if (asked_.valid() && asked_.wait_for(seconds(20)) != std::future_status::ready) tired_ = true;
    const auto error = asked_.valid() ? asked_.get() : std::nullopt;
    if (error) throw std::runtime_error(error->message);
    return *lock_;
  }
  Error refused() { return asked_.get().value_or(Error{ErrorCode::io, "it has the lock"}); }
  void give_back() { lock_.reset(); }
  LeaseService& leases() { return leases_; }
  KeyService& keys() { return keys_; }

 private:
  FakeGroup& group_;
  const lease::Clock& clock_;
  FakeLeaseConnection leases_;
  FakeKeyConnection keys_;
  const std::string name_;
  std::unique_ptr<QueueLock> lock_;
  /// Nobody waits for what a test that failed waits for.
  std::atomic<bool> tired_ = false;
  std::future<std::optional<Error>> asked_;
};

class QueueLockTest : public ::testing::Test {
 protected:
  /// "NAME holds" or "NAME waits", in the order of the queue.
  std::vector<std::string> queue(const std::string& name = "printer") {
    std::vector<std::string> out;
    const auto places = QueueLock::queue(a_.keys(), name, seconds(1));
    if (!places) return {"error"};
    for (const QueueLock::Place& place : places.value()) {
      out.push_back(place.holder + (place.holds ? " holds" : " waits"));
    }
    return out;
  }
  grant::LeaseId lease_of(const std::string& holder) {
    for (const KeyService::Row& row : group_.rows()) {
      if (row.value.substr(row.value.find(' ') + 1) == holder) return row.lease;
    }
    return grant::LeaseId(0);
  }

  FakeGroup group_;
  ManualClock clock_;
  Contender a_{group_, clock_, "a"};
  Contender b_{group_, clock_, "b"};
  Contender c_{group_, clock_, "c"};
  Contender d_{group_, clock_, "d"};
};

TEST_F(QueueLockTest, TheFirstToAskHasItFirst) {
  a_.ask(Mode::exclusive);
  const grant::FencingToken first = a_.lock().token();
  b_.ask(Mode::exclusive);
  c_.ask(Mode::exclusive);
  EXPECT_THAT(queue(), ElementsAre("a holds", "b waits", "c waits"));
  a_.give_back();
  const grant::FencingToken second = b_.lock().token();
  EXPECT_TRUE(c_.waits());
  EXPECT_THAT(queue(), ElementsAre("b holds", "c waits"));
  b_.give_back();
  const grant::FencingToken third = c_.lock().token();
  EXPECT_LT(first, second);
  EXPECT_LT(second, third);
  EXPECT_TRUE(c_.lock().lease().may_act());
  c_.give_back();
  EXPECT_THAT(group_.rows(), IsEmpty());
}

// Leases are granted in one order, and the queue may have another.
TEST_F(QueueLockTest, TokensRiseInTheOrderOfTheQueue) {
  std::promise<void> late;
  const std::shared_future<void> go = late.get_future().share();
  group_.during_put([go](const std::string& value) {
    if (value == "exclusive a") go.wait();
  });
  auto slow =
      std::async(std::launch::async, [this] { return a_.take(a_.options(Mode::exclusive)); });
  group_.wait_until([this] { return a_.leases().find("queue printer a", seconds(1)).ok(); });
  b_.ask(Mode::exclusive);
  const grant::FencingToken first = b_.lock().token();
  late.set_value();
  group_.wait_until([this] { return a_.stands(); });
  b_.give_back();
  const Taken second = slow.get();
  ASSERT_TRUE(second.ok());
  EXPECT_LT(first, second.value()->token());
  EXPECT_LT(second.value()->lease().token(), first) << "its lease was granted before";
}

TEST_F(QueueLockTest, SharedHoldersShareItAndPassNoExclusiveOne) {
  a_.ask(Mode::shared);
  b_.ask(Mode::shared);
  a_.lock();
  b_.lock();
  c_.ask(Mode::exclusive);
  d_.ask(Mode::shared);
  EXPECT_THAT(queue(), ElementsAre("a holds", "b holds", "c waits", "d waits"));
  a_.give_back();
  EXPECT_THAT(queue(), ElementsAre("b holds", "c waits", "d waits"));
  b_.give_back();
  c_.lock();
  EXPECT_TRUE(d_.waits());
  c_.give_back();
  d_.lock();
  EXPECT_THAT(queue(), ElementsAre("d holds"));
}

TEST_F(QueueLockTest, ASemaphoreHasItsNumberOfPermits) {
  a_.ask(Mode::permits, 2);
  b_.ask(Mode::permits, 2);
  a_.lock();
  b_.lock();
  c_.ask(Mode::permits, 2);
  d_.ask(Mode::permits, 2);
  EXPECT_THAT(queue(), ElementsAre("a holds", "b holds", "c waits", "d waits"));
  // Not the one before it, but any of them.
  a_.give_back();
  c_.lock();
  EXPECT_TRUE(d_.waits());
  c_.give_back();
  d_.lock();
  EXPECT_THAT(queue(), ElementsAre("b holds", "d holds"));
}

TEST_F(QueueLockTest, WithoutAWaitTheHolderIsNamedAndTheQueueLeft) {
  a_.ask(Mode::exclusive);
  a_.lock();
  QueueLock::Options at_once = b_.options(Mode::exclusive);
  at_once.lease.wait = seconds(0);
  const Taken refused = b_.take(at_once);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::in_use);
  EXPECT_THAT(refused.error().message, HasSubstr("'printer' is held by a"));
  EXPECT_THAT(queue(), ElementsAre("a holds"));
}

TEST_F(QueueLockTest, AClientThatGivesUpOrDiesIsPassed) {
  a_.ask(Mode::exclusive);
  a_.lock();
  std::atomic<bool> tired = false;
  QueueLock::Options impatient = b_.options(Mode::exclusive);
  impatient.lease.give_up = [&tired] { return tired.load(); };
  b_.ask(impatient);
  c_.ask(Mode::exclusive);
  tired = true;
  EXPECT_EQ(b_.refused().code, ErrorCode::stopped);
  EXPECT_THAT(queue(), ElementsAre("a holds", "c waits"));
  group_.end(lease_of("a"));
  c_.lock();
}

// Its lease ended while it waited in the queue: its place is lost.
TEST_F(QueueLockTest, AClientThatLostItsLeaseQueuesAtTheEnd) {
  a_.ask(Mode::exclusive);
  a_.lock();
  b_.ask(Mode::exclusive);
  c_.ask(Mode::exclusive);
  const grant::LeaseId old = lease_of("b");
  group_.end(old);
  // The renewal hears of it: time has to pass for one.
  group_.wait_until([&] {
    if (b_.stands()) return true;
    clock_.advance(milliseconds(500));
    return false;
  });
  EXPECT_THAT(queue(), ElementsAre("a holds", "c waits", "b waits"));
  EXPECT_NE(lease_of("b"), old);
  a_.give_back();
  c_.lock();
  c_.give_back();
  b_.lock();
}

// The group still has its lease, and says that it is its turn; but the answer took long.
TEST_F(QueueLockTest, AClientThatCouldNotRenewInTimeTakesNothing) {
  a_.ask(Mode::exclusive);
  a_.lock();
  b_.ask(Mode::exclusive);
  const grant::LeaseId old = lease_of("b");
  group_.during_list([this] { clock_.advance(seconds(60)); });
  group_.end(lease_of("a"));
  QueueLock& lock = b_.lock();
  EXPECT_TRUE(lock.lease().may_act());
  EXPECT_NE(lock.lease().id(), old);
  EXPECT_THAT(queue(), ElementsAre("b holds"));
}

TEST_F(QueueLockTest, AKeyThatWasDeletedIsMadeAgain) {
  a_.ask(Mode::exclusive);
  a_.lock();
  b_.ask(Mode::exclusive);
  const std::string key = group_.rows().back().key;
  group_.remove(key);
  group_.remove("another, so that it looks");
  group_.wait_until([this] { return b_.stands(); });
  a_.give_back();
  b_.lock();
}

TEST_F(QueueLockTest, ALostAnswerCostsNoPlace) {
  group_.lose_next_answer();
  a_.ask(Mode::exclusive);
  a_.lock();
  EXPECT_THAT(queue(), ElementsAre("a holds"));
  EXPECT_EQ(group_.puts(), 2U);
}

TEST_F(QueueLockTest, AGroupThatIsAwayForAWhileIsWaitedFor) {
  a_.ask(Mode::exclusive);
  a_.lock();
  b_.ask(Mode::exclusive);
  group_.set_down(true);
  group_.end(lease_of("a"));
  EXPECT_TRUE(b_.waits());
  group_.set_down(false);
  b_.lock();
}

TEST_F(QueueLockTest, OneNameIsOneKindOfLock) {
  a_.ask(Mode::permits, 2);
  a_.lock();
  QueueLock::Options alone = b_.options(Mode::exclusive);
  alone.lease.wait = seconds(0);
  const Taken exclusive = b_.take(alone);
  ASSERT_FALSE(exclusive.ok());
  EXPECT_EQ(exclusive.error().code, ErrorCode::invalid_argument);
  EXPECT_THAT(exclusive.error().message, HasSubstr("permits/2 there, exclusive here"));
  QueueLock::Options third = b_.options(Mode::permits, 3);
  third.lease.wait = seconds(0);
  EXPECT_EQ(b_.take(third).error().code, ErrorCode::invalid_argument);
  EXPECT_THAT(queue(), ElementsAre("a holds"));
}

TEST_F(QueueLockTest, ANameThatContinuesAfterASlashIsAnotherLock) {
  a_.ask(Mode::exclusive);
  a_.lock();
  QueueLock::Options below = b_.options(Mode::exclusive);
  below.lease.name = "printer/second";
  below.lease.wait = seconds(0);
  const Taken other = b_.take(below);
  ASSERT_TRUE(other.ok()) << other.error().message;
  EXPECT_THAT(queue(), ElementsAre("a holds"));
  EXPECT_THAT(queue("printer/second"), ElementsAre("b holds"));
}

TEST_F(QueueLockTest, WhatCannotBeALockIsRefused) {
  QueueLock::Options nameless = a_.options(Mode::exclusive);
  nameless.lease.name.clear();
  EXPECT_EQ(a_.take(nameless).error().code, ErrorCode::invalid_argument);
  QueueLock::Options longish = a_.options(Mode::exclusive);
  longish.lease.name = std::string(240, 'n');
  EXPECT_EQ(a_.take(longish).error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(a_.take(a_.options(Mode::permits, 0)).error().code, ErrorCode::invalid_argument);
  QueueLock::Options graced = a_.options(Mode::exclusive);
  graced.lease.terms.grace = seconds(5);
  EXPECT_EQ(a_.take(graced).error().code, ErrorCode::invalid_argument);
}

TEST_F(QueueLockTest, OfManyGroupsANameWithoutATagIsRefusedAtOnce) {
  group_.be_one_of_many();
  // Also while no group has a leader, and before there is a lease that others would wait for.
  for (const bool down : {true, false}) {
    group_.set_down(down);
    for (const char* name : {"printer", "prin{ter", "{}printer", "}{printer"}) {
      QueueLock::Options options = a_.options(Mode::exclusive);
      options.lease.name = name;
      const auto taken = a_.take(options);
      ASSERT_FALSE(taken);
      EXPECT_EQ(taken.error().code, ErrorCode::invalid_argument);
      EXPECT_EQ(taken.error().message,
                "CROSSSLOT '" + std::string(name) +
                    "' has no {tag}, and the nodes have many groups: the lock and its queue would "
                    "be in different ones. Call it '{" +
                    name + "}', for example");
      EXPECT_EQ(group_.leases(), 0U);
    }
  }
  const auto places = QueueLock::queue(a_.keys(), "printer", seconds(1));
  ASSERT_FALSE(places);
  EXPECT_THAT(places.error().message, HasSubstr("has no {tag}"));
  QueueLock::Options options = a_.options(Mode::exclusive);
  options.lease.name = "{office}printer";
  EXPECT_TRUE(a_.take(options));
}

}  // namespace
}  // namespace leasehold::client
