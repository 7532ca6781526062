// Who has a place among the passwords that are being checked.
#include <leasehold/server/front/source.h>
#include <leasehold/server/users/password_queue.h>

#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

namespace leasehold::server {
namespace {

/// A queue whose thread waits until the test opens the gate.
class PasswordQueueTest : public ::testing::Test {
 protected:
  PasswordQueueTest() { gate_.lock(); }
  ~PasswordQueueTest() override {
    open();
    queue_.stop();
  }
  void open() {
    if (!std::exchange(open_, true)) gate_.unlock();
  }
  /// Of another password than all others, unless it is given.
  bool ask(
      const std::string& source, const std::string& user, std::string what = "",
      std::function<void(bool)> done = [](bool) {}) {
    PasswordCheck check;
    check.source = source;
    check.user = user;
    check.what = what.empty() ? "other" + std::to_string(++others_) : std::move(what);
    check.asker = asker_;
    check.find = [this] {
      ++checked_;
      const std::lock_guard lock(gate_);
      return StoredPassword("right");
    };
    check.done = [done = std::move(done)](const StoredPassword& right) { done(right.has_value()); };
    return queue_.check(std::move(check));
  }
  /// How many such checks find places.
  std::size_t places(const std::function<bool(std::size_t)>& one) {
    std::size_t count = 0;
    while (count < 1000 && one(count)) ++count;
    return count;
  }

  std::mutex gate_;
  bool open_ = false;
  std::size_t others_ = 0;
  std::atomic<std::size_t> checked_{0};
  std::shared_ptr<int> asker_ = std::make_shared<int>(0);
  PasswordQueue queue_;
};

std::string numbered(const char* text, std::size_t number) {
  return text + std::to_string(number);
}

TEST_F(PasswordQueueTest, IsBoundedAndLeavesRoomForChanges) {
  const auto one = [this](std::size_t i) { return ask(numbered("s", i), numbered("u", i)); };
  EXPECT_EQ(places(one), kPasswordChecksMax);
  while (checked_ == 0) std::this_thread::yield();
  std::atomic<std::size_t> changed{0};
  const auto change = [&](std::size_t) { return queue_.change([&changed] { ++changed; }); };
  EXPECT_EQ(places(change), kPasswordTasksMax - kPasswordChecksMax);
  open();
  queue_.stop();
  EXPECT_FALSE(one(0));
  EXPECT_FALSE(change(0));
}

TEST_F(PasswordQueueTest, OneSourceLeavesPlacesToOthers) {
  EXPECT_EQ(places([this](std::size_t i) { return ask("s", numbered("u", i)); }),
            kPasswordChecksOfSourceMax);
  EXPECT_TRUE(ask("another", "ann"));
}

TEST_F(PasswordQueueTest, GuessesOfOneUserLeavePlacesToOthers) {
  for (const char* user : {"ann", ""}) {
    const auto guess = [&](std::size_t i) { return ask(numbered(user, 100 + i), user); };
    EXPECT_EQ(places(guess), kPasswordChecksOfUserMax);
  }
  EXPECT_TRUE(ask("another", "bob"));
}

TEST_F(PasswordQueueTest, OnePasswordIsCheckedOnceForAllWhoSendIt) {
  EXPECT_TRUE(ask("first", "bob"));
  std::promise<void> all;
  std::atomic<int> right{0};
  for (int i = 0; i < 100; ++i) {
    EXPECT_TRUE(ask("s", "ann", "the password", [&](bool is_right) {
      if ((right += is_right ? 1 : 0) == 100) all.set_value();
    }));
  }
  open();
  all.get_future().wait();
  EXPECT_EQ(checked_, 2U);
}

TEST_F(PasswordQueueTest, AChangeOvertakesTheChecks) {
  EXPECT_TRUE(ask("first", "bob"));
  std::promise<std::string> next;
  std::atomic<bool> known{false};
  const auto say = [&](const char* what) {
    if (!known.exchange(true)) next.set_value(what);
  };
  EXPECT_TRUE(ask("s", "ann", "", [&](bool) { say("check"); }));
  while (checked_ == 0) std::this_thread::yield();
  EXPECT_TRUE(queue_.change([&] { say("change"); }));
  open();
  EXPECT_EQ(next.get_future().get(), "change");
  queue_.stop();
}

TEST_F(PasswordQueueTest, NobodyWaitsForThoseWhoHaveGone) {
  EXPECT_TRUE(ask("first", "bob"));
  while (checked_ == 0) std::this_thread::yield();
  const auto stays = std::exchange(asker_, std::make_shared<int>(0));
  std::promise<void> last;
  EXPECT_TRUE(ask("s", "ann"));
  asker_ = stays;
  EXPECT_TRUE(ask("s", "ann", "", [&](bool) { last.set_value(); }));
  open();
  last.get_future().wait();
  EXPECT_EQ(checked_, 2U);
}

TEST(Source, OfAnAddress) {
  EXPECT_EQ(source_of("10.0.0.7:5"), source_of("10.0.0.7:6"));
  EXPECT_NE(source_of("10.0.0.7:5"), source_of("10.0.0.8:5"));
  EXPECT_EQ(source_of("[2001:db8::1]:5"), source_of("[2001:db8::ffff:1]:6"));
  EXPECT_NE(source_of("[2001:db8::1]:5"), source_of("[2001:db8:0:1::1]:5"));
  EXPECT_EQ(source_of("[::ffff:10.0.0.7]:5"), source_of("[::ffff:10.0.0.7]:6"));
  EXPECT_NE(source_of("[::ffff:10.0.0.7]:5"), source_of("[::ffff:10.0.0.8]:5"));
  EXPECT_NE(source_of("127.0.0.1:5"), source_of("127.0.0.1:6"));
  EXPECT_NE(source_of("[::1]:5"), source_of("[::1]:6"));
}

}  // namespace
}  // namespace leasehold::server
