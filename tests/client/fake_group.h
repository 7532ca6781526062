// A group in memory: leases and keys that go with them.
#pragma once

#include <leasehold/client/key_service.h>
#include <leasehold/client/lease_service.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace leasehold::client {

/// What all connections see. Time passes by end() alone.
class FakeGroup {
 public:
  /// Ends it, with its keys. False: there is none.
  bool end(grant::LeaseId id) {
    const std::lock_guard lock(mutex_);
    if (leases_.erase(id) == 0) return false;
    for (auto row = rows_.begin(); row != rows_.end();) {
      row = row->second.lease == id ? rows_.erase(row) : std::next(row);
    }
    change();
    return true;
  }
  void remove(const std::string& key) {
    const std::lock_guard lock(mutex_);
    rows_.erase(key);
    change();
  }
  void set_down(bool down) {
    const std::lock_guard lock(mutex_);
    down_ = down;
  }
  /// The next put or replace is done, but its answer does not arrive.
  void lose_next_answer() {
    const std::lock_guard lock(mutex_);
    lose_answer_ = true;
  }
  /// Called in each put, before it is done.
  void during_put(std::function<void(const std::string& value)> act) {
    const std::lock_guard lock(mutex_);
    during_put_ = std::move(act);
  }
  /// Called before the next replace.
  void before_replace(std::function<void()> act) {
    const std::lock_guard lock(mutex_);
    before_replace_ = std::move(act);
  }
  /// The next replace is not answered in time, and takes effect in arrive(), if it still can.
  void delay_next_replace() {
    const std::lock_guard lock(mutex_);
    delay_ = true;
  }
  bool arrive() {
    const std::lock_guard lock(mutex_);
    return delayed_ && swap(*std::exchange(delayed_, std::nullopt)).ok();
  }
  /// As a client that knows of no records.
  void write(const std::string& key, const std::string& value) {
    const std::lock_guard lock(mutex_);
    write(key, value, {});
  }
  /// The nodes have many groups: keys that begin so are in one only behind a {tag}.
  void be_one_of_many() {
    const std::lock_guard lock(mutex_);
    of_many_ = true;
  }
  /// Called in the next list.
  void during_list(std::function<void()> act) {
    const std::lock_guard lock(mutex_);
    during_list_ = std::move(act);
  }

  std::vector<KeyService::Row> rows() const {
    const std::lock_guard lock(mutex_);
    std::vector<KeyService::Row> out;
    for (const auto& [key, row] : rows_) out.push_back(row);
    return out;
  }
  std::size_t leases() const {
    const std::lock_guard lock(mutex_);
    return leases_.size();
  }
  std::size_t puts() const {
    const std::lock_guard lock(mutex_);
    return puts_;
  }
  /// Waits until it holds; fails the test if it does not in time.
  void wait_until(const std::function<bool()>& holds) const {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!holds()) {
      ASSERT_LT(std::chrono::steady_clock::now(), deadline);
      std::unique_lock lock(mutex_);
      changed_.wait_for(lock, std::chrono::milliseconds(20));
    }
  }
  bool stands(const std::string& value) const {
    for (const KeyService::Row& row : rows()) {
      if (row.value == value) return true;
    }
    return false;
  }

 private:
  friend class FakeLeaseConnection;
  friend class FakeKeyConnection;

  /// Under the lock.
  std::optional<Error> refusal(const std::string& prefix) const {
    const std::size_t open = prefix.find('{');
    const std::size_t close = prefix.find('}', std::min(open, prefix.size()));
    if (of_many_ && (close == std::string::npos || close == open + 1)) {
      return Error{ErrorCode::invalid_argument, "CROSSSLOT a prefix with a {tag} is of one"};
    }
    if (down_) return Error{ErrorCode::unavailable, "no leader"};
    return std::nullopt;
  }
  void change() {
    ++revision_;
    changed_.notify_all();
  }

  void write(const std::string& key, const std::string& value, grant::LeaseId lease) {
    change();
    KeyService::Row& row = rows_[key];
    if (row.create_revision == 0) row.create_revision = revision_;
    row = {key, value, row.create_revision, lease, revision_};
  }
  Result<bool> swap(const KeyService::GuardedWrite& wanted) {
    const auto row = rows_.find(wanted.key);
    if ((row == rows_.end() ? 0 : row->second.mod_revision) != wanted.mod_revision) return false;
    grant::FencingToken& fence = fences_[wanted.key];
    if (fence > wanted.token) return Error{ErrorCode::in_use, "FENCED"};
    fence = wanted.token;
    write(wanted.key, wanted.value, {});
    return true;
  }

  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  std::uint64_t revision_ = 0;
  std::map<grant::LeaseId, LeaseService::Found> leases_;
  std::map<std::string, grant::LeaseId> names_;
  std::map<std::string, KeyService::Row> rows_;
  std::map<std::string, grant::FencingToken> fences_;
  std::optional<KeyService::GuardedWrite> delayed_;
  std::function<void(const std::string&)> during_put_;
  std::function<void()> before_replace_;
  std::function<void()> during_list_;
  bool down_ = false;
  bool of_many_ = false;
  bool lose_answer_ = false;
  bool delay_ = false;
  std::size_t puts_ = 0;
};

class FakeLeaseConnection final : public LeaseService {
 public:
  explicit FakeLeaseConnection(FakeGroup& group) : group_(group) {}

  Result<Granted> grant(const Request& request, lease::Duration /*timeout*/) override {
    const std::lock_guard lock(group_.mutex_);
    if (group_.down_) return Error{ErrorCode::unavailable, "no leader"};
    const auto named = group_.names_.find(request.name);
    if (named != group_.names_.end() && group_.leases_.count(named->second) > 0) {
      return Error{ErrorCode::in_use, "held by " + group_.leases_.at(named->second).holder};
    }
    group_.change();
    const grant::LeaseId id(group_.revision_);
    const Granted granted{id, grant::FencingToken(group_.revision_), request.ttl};
    group_.leases_[id] = Found{granted, request.holder};
    group_.names_[request.name] = id;
    return granted;
  }
  Result<Found> find(const std::string& name, lease::Duration /*timeout*/) override {
    const std::lock_guard lock(group_.mutex_);
    const auto named = group_.names_.find(name);
    const auto found =
        named == group_.names_.end() ? group_.leases_.end() : group_.leases_.find(named->second);
    if (found == group_.leases_.end()) return Error{ErrorCode::not_found, "no such lease"};
    return found->second;
  }
  Result<lease::Duration> renew(grant::LeaseId id, lease::Duration /*timeout*/) override {
    const std::lock_guard lock(group_.mutex_);
    if (group_.down_) return Error{ErrorCode::unavailable, "no leader"};
    const auto found = group_.leases_.find(id);
    if (found == group_.leases_.end()) return Error{ErrorCode::not_found, "no such lease"};
    return found->second.ttl;
  }
  Result<void> revoke(grant::LeaseId id, lease::Duration /*timeout*/) override {
    if (!group_.end(id)) return Error{ErrorCode::not_found, "no such lease"};
    return {};
  }

 private:
  FakeGroup& group_;
};

class FakeKeyConnection final : public KeyService {
 public:
  explicit FakeKeyConnection(FakeGroup& group) : group_(group) {}

  Result<Listing> list(const std::string& prefix, lease::Duration /*timeout*/) override {
    const std::lock_guard lock(group_.mutex_);
    if (const auto refused = group_.refusal(prefix)) return *refused;
    if (const auto act = std::exchange(group_.during_list_, nullptr)) act();
    Listing listing;
    listing.revision = group_.revision_;
    for (const auto& [key, row] : group_.rows_) {
      if (key.compare(0, prefix.size(), prefix) == 0) listing.rows.push_back(row);
    }
    return listing;
  }
  Result<std::optional<Row>> find(const std::string& key, lease::Duration /*timeout*/) override {
    const std::lock_guard lock(group_.mutex_);
    if (const auto refused = group_.refusal(key)) return *refused;
    const auto row = group_.rows_.find(key);
    return row == group_.rows_.end() ? std::optional<Row>() : std::optional<Row>(row->second);
  }
  Result<bool> replace(const GuardedWrite& write, lease::Duration /*timeout*/) override {
    std::unique_lock lock(group_.mutex_);
    if (const auto act = std::exchange(group_.before_replace_, nullptr)) {
      lock.unlock();
      act();
      lock.lock();
    }
    if (group_.down_) return Error{ErrorCode::unavailable, "no leader"};
    if (std::exchange(group_.delay_, false)) {
      group_.delayed_ = write;
      return Error{ErrorCode::timed_out, "no answer"};
    }
    const auto done = group_.swap(write);
    if (std::exchange(group_.lose_answer_, false)) {
      return Error{ErrorCode::timed_out, "no answer"};
    }
    return done;
  }
  Result<void> put(const std::string& key, const std::string& value, grant::LeaseId lease,
                   lease::Duration /*timeout*/) override {
    std::unique_lock lock(group_.mutex_);
    if (const auto act = group_.during_put_) {
      lock.unlock();
      act(value);
      lock.lock();
    }
    if (group_.down_) return Error{ErrorCode::unavailable, "no leader"};
    if (group_.leases_.count(lease) == 0) return Error{ErrorCode::not_found, "no such lease"};
    ++group_.puts_;
    group_.write(key, value, lease);
    if (std::exchange(group_.lose_answer_, false)) {
      return Error{ErrorCode::timed_out, "no answer"};
    }
    return {};
  }
  void wait_change(const Interest& /*interest*/, std::uint64_t revision,
                   lease::Duration timeout) override {
    std::unique_lock lock(group_.mutex_);
    group_.changed_.wait_for(lock, timeout, [&] { return group_.revision_ > revision; });
  }

 private:
  FakeGroup& group_;
};

}  // namespace leasehold::client
