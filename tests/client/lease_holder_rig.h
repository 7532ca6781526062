// A group that holds one lease, and a clock that stands until a test moves it.
#pragma once

#include <leasehold/client/lease_holder.h>
#include <leasehold/tests/client/manual_clock.h>

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>

namespace leasehold::client {

using lease::Duration;
using lease::HolderInstant;
using std::chrono::milliseconds;
using std::chrono::seconds;
using State = LeaseHolder::State;

/// One name in memory. A test may make it fail, or act in the middle of a call.
class FakeLeases final : public LeaseService {
 public:
  Result<Granted> grant(const Request& request, Duration /*timeout*/) override {
    const std::lock_guard lock(mutex_);
    terms_ = request.terms;
    if (const auto act = std::exchange(act_during_grant_, nullptr)) act();
    if (down_) return Error{ErrorCode::unavailable, "no leader"};
    const bool taken = held_.has_value();
    if (!taken) {
      ++revision_;
      held_ = Found{{grant::LeaseId(revision_), grant::FencingToken(revision_), request.ttl},
                    request.holder};
      name_ = request.name;
    }
    if (std::exchange(lose_answer_, false)) return Error{ErrorCode::timed_out, "no answer"};
    if (taken) return Error{ErrorCode::in_use, "held by " + held_->holder};
    return *held_;
  }
  Result<Found> find(const std::string& name, Duration /*timeout*/) override {
    const std::lock_guard lock(mutex_);
    ++finds_;
    if (!held_ || name != name_) return Error{ErrorCode::not_found, "no such lease"};
    return *held_;
  }
  Result<Duration> renew(grant::LeaseId id, Duration /*timeout*/) override {
    if (const auto act = during_renewal()) act();
    const std::lock_guard lock(mutex_);
    ++renewals_;
    if (down_) return Error{ErrorCode::unavailable, "no leader"};
    if (!held_ || held_->id != id) return Error{ErrorCode::not_found, "no such lease"};
    return held_->ttl;
  }
  Result<void> revoke(grant::LeaseId id, Duration /*timeout*/) override {
    const std::lock_guard lock(mutex_);
    ++revocations_;
    if (!held_ || held_->id != id) return Error{ErrorCode::not_found, "no such lease"};
    held_.reset();
    return {};
  }

  void set_down(bool down) {
    const std::lock_guard lock(mutex_);
    down_ = down;
  }
  void lose_next_answer() {
    const std::lock_guard lock(mutex_);
    lose_answer_ = true;
  }
  void end() {
    const std::lock_guard lock(mutex_);
    held_.reset();
  }
  void act_during_renewal(std::function<void()> act) {
    const std::lock_guard lock(mutex_);
    act_ = std::move(act);
  }
  /// Acts during the next grant only.
  void act_during_grant(std::function<void()> act) {
    const std::lock_guard lock(mutex_);
    act_during_grant_ = std::move(act);
  }
  /// The terms of the last request.
  grant::LeaseTerms terms() const {
    const std::lock_guard lock(mutex_);
    return terms_;
  }
  bool is_held() const {
    const std::lock_guard lock(mutex_);
    return held_.has_value();
  }
  int renewals() const {
    const std::lock_guard lock(mutex_);
    return renewals_;
  }
  int finds() const {
    const std::lock_guard lock(mutex_);
    return finds_;
  }
  int revocations() const {
    const std::lock_guard lock(mutex_);
    return revocations_;
  }

 private:
  std::function<void()> during_renewal() const {
    const std::lock_guard lock(mutex_);
    return act_;
  }

  mutable std::mutex mutex_;
  std::optional<Found> held_;
  std::string name_;
  grant::LeaseTerms terms_;
  std::function<void()> act_;
  std::function<void()> act_during_grant_;
  std::uint64_t revision_ = 41;
  int renewals_ = 0;
  int revocations_ = 0;
  int finds_ = 0;
  bool down_ = false;
  bool lose_answer_ = false;
};

inline bool within(milliseconds time, const std::function<bool()>& holds) {
  const auto deadline = std::chrono::steady_clock::now() + time;
  while (!holds()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::yield();
  }
  return true;
}
inline bool eventually(const std::function<bool()>& holds) {
  return within(seconds(20), holds);
}

class LeaseHolderTest : public ::testing::Test {
 protected:
  static LeaseHolder::Options options() {
    LeaseHolder::Options options;
    options.name = "printer";
    options.holder = "me";
    // U is 9 s.
    options.timing.max_clock_drift_ppm = 0;
    return options;
  }
  std::unique_ptr<LeaseHolder> acquire() {
    auto held = LeaseHolder::acquire(leases, clock, options());
    EXPECT_TRUE(held.ok());
    return held ? std::move(held).value() : nullptr;
  }

  /// Half a second at a time. The holder reads the clock for an answer when it comes to that, and
  /// waits from then on.
  bool passes_until(const std::function<bool()>& holds) {
    for (int steps = 0; steps < 8; ++steps) {
      clock.advance(milliseconds(500));
      if (within(milliseconds(100), holds)) return true;
    }
    return false;
  }

  ManualClock clock;
  FakeLeases leases;
};

}  // namespace leasehold::client
