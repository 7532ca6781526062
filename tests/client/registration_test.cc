// A key that exists while its process lives, over a group in memory.
#include <leasehold/client/registration.h>
#include <leasehold/tests/client/fake_group.h>
#include <leasehold/tests/client/manual_clock.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace leasehold::client {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using State = Registration::State;

class RegistrationTest : public ::testing::Test {
 protected:
  Registration::Options options() {
    Registration::Options options;
    options.lease.holder = "web 7";
    options.key = "services/web/7";
    options.value = "10.0.0.7:80";
    options.changed = [this](State state, const std::string& why) {
      const std::lock_guard lock(mutex_);
      told_.push_back(state == State::registered ? "registered" : why);
    };
    return options;
  }
  void begin() {
    auto begun = Registration::begin(leases_, keys_, clock_, options());
    ASSERT_TRUE(begun.ok()) << begun.error().message;
    registration_ = std::move(begun).value();
  }
  std::vector<std::string> told() const {
    const std::lock_guard lock(mutex_);
    return told_;
  }
  void wait_for_told(std::size_t count) {
    group_.wait_until([&] { return told().size() >= count; });
  }
  void wait_for_value(const std::string& value) {
    group_.wait_until([&] { return group_.stands(value); });
  }

  FakeGroup group_;
  ManualClock clock_;
  FakeLeaseConnection leases_{group_};
  FakeKeyConnection keys_{group_};
  mutable std::mutex mutex_;
  std::vector<std::string> told_;
  std::unique_ptr<Registration> registration_;
};

TEST_F(RegistrationTest, KeepsItsKeyUntilItEnds) {
  begin();
  wait_for_told(1);
  EXPECT_EQ(registration_->state(), State::registered);
  ASSERT_EQ(group_.rows().size(), 1U);
  EXPECT_EQ(group_.rows()[0].key, "services/web/7");
  EXPECT_EQ(group_.rows()[0].value, "10.0.0.7:80");
  registration_.reset();
  EXPECT_THAT(group_.rows(), IsEmpty());
  EXPECT_THAT(told(), ElementsAre("registered"));
}

TEST_F(RegistrationTest, ItsValueMayChange) {
  begin();
  wait_for_value("10.0.0.7:80");
  registration_->set_value("10.0.0.7:81");
  wait_for_value("10.0.0.7:81");
  ASSERT_EQ(group_.rows().size(), 1U);
}

TEST_F(RegistrationTest, AKeyThatTheGroupEndedComesBack) {
  begin();
  wait_for_told(1);
  group_.end(group_.rows()[0].lease);
  group_.wait_until([this] {
    if (!group_.rows().empty()) return true;
    clock_.advance(milliseconds(500));
    return false;
  });
  wait_for_told(3);
  EXPECT_THAT(told(), ElementsAre("registered", "the group ended the lease", "registered"));
}

TEST_F(RegistrationTest, AGroupThatIsAwayIsWaitedForAndTheReasonToldOnce) {
  group_.set_down(true);
  begin();
  wait_for_told(1);
  EXPECT_EQ(registration_->state(), State::registering);
  group_.set_down(false);
  wait_for_told(2);
  EXPECT_THAT(told(), ElementsAre(HasSubstr("no leader"), "registered"));
}

TEST_F(RegistrationTest, ALostAnswerIsSentAgain) {
  group_.lose_next_answer();
  begin();
  wait_for_told(1);
  EXPECT_THAT(told(), ElementsAre("registered"));
  EXPECT_EQ(group_.puts(), 2U);
}

TEST_F(RegistrationTest, AnInvalidRegistrationIsRefused) {
  Registration::Options keyless = options();
  keyless.key.clear();
  EXPECT_EQ(Registration::begin(leases_, keys_, clock_, keyless).error().code,
            ErrorCode::invalid_argument);
  Registration::Options nobody = options();
  nobody.lease.holder.clear();
  EXPECT_EQ(Registration::begin(leases_, keys_, clock_, nobody).error().code,
            ErrorCode::invalid_argument);
  Registration::Options graced = options();
  graced.lease.terms.grace = std::chrono::seconds(5);
  EXPECT_EQ(Registration::begin(leases_, keys_, clock_, graced).error().code,
            ErrorCode::invalid_argument);
}

}  // namespace
}  // namespace leasehold::client
