// A node without peers, disk or threads: the test decides what the lease is and when commands
// commit.
#pragma once

#include <leasehold/kv/memory_store.h>
#include <leasehold/node/node.h>
#include <leasehold/server/front/state_health.h>

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace leasehold::server {

/// Stands still until the test moves it.
class ManualClock final : public lease::Clock {
 public:
  lease::Now now() const override { return {holder_now(), lease::PromiseInstant(at_)}; }
  lease::HolderInstant holder_now() const override {
    if (const auto once = std::exchange(at_the_next_look_, nullptr)) once();
    return lease::HolderInstant(std::exchange(at_, at_ + step_));
  }
  /// Calls this once.
  void at_the_next_look(std::function<void()> once) { at_the_next_look_ = std::move(once); }
  void advance(lease::Duration d) { at_ += d; }
  /// From here on each look at the holder's clock takes so long.
  void set_step(lease::Duration step) { step_ = step; }

 private:
  mutable lease::Duration at_ = std::chrono::seconds(1000);
  mutable std::function<void()> at_the_next_look_;
  lease::Duration step_{0};
};

/// Every call waits in a queue until the test completes it. One mutex guards all of it, so that io
/// threads may call while a test thread completes.
class FakeNode final : public node::Node {
 public:
  /// `ids_above`: of the store.
  explicit FakeNode(std::uint64_t ids_above = 0) : store_({}, ids_above) {
    view_.fresh_since().set_drift_ppm(0);
    view_.publish_level(raft::kNewestLevel);
  }
  void propose(Bytes command, node::CallOptions options, replica::ProposeCompletion done) override {
    note_trace(options);
    queue(proposals_, Proposal{std::move(command), std::move(done)});
  }
  void read(raft::ReadMode mode, node::CallOptions options, replica::ReadCompletion done) override {
    note_trace(options);
    queue(reads_, ReadCall{mode, std::move(done)});
  }
  void wait_applied(raft::Index index, node::CallOptions, replica::ReadCompletion done) override {
    queue(waits_, WaitCall{index, std::move(done)});
  }
  void propose_batch(std::vector<node::Proposal> batch, node::CallOptions options) override {
    for (node::Proposal& one : batch) propose(std::move(one.command), options, std::move(one.done));
  }
  void transfer_leadership(raft::NodeId to, node::CallOptions,
                           replica::TransferCompletion done) override {
    queue(transfers_, TransferCall{to, std::move(done)});
  }
  void drain(node::CallOptions, node::DrainCompletion done) override { done({}); }
  void cancel(replica::CallGroup) override {}
  void change_members(node::MemberEdits edits, node::CallOptions options,
                      node::MembersCompletion done) override {
    queue(changes_, ChangeCall{std::move(edits), options.expected_membership, std::move(done)});
  }
  void change_settings(const raft::SettingsEdit& edit, node::CallOptions,
                       replica::SettingsCompletion done) override {
    queue(settings_changes_, SettingsCall{edit, std::move(done)});
  }
  Result<void> set_peer_security(const net::PeerSecurity&) override { return {}; }
  void machine_space(bool /*full*/) override {}
  void tap(std::shared_ptr<replica::Tap> tap) override {
    const std::lock_guard lock(mutex_);
    tap_ = std::move(tap);
  }
  std::shared_ptr<replica::Tap> tapped() {
    const std::lock_guard lock(mutex_);
    return tap_;
  }
  void read_log(const replica::LogReadFrom&, node::CallOptions,
                replica::LogReadCompletion done) override {
    done(Error{ErrorCode::unsupported, "this node has no log"});
  }
  void cut_log(replica::LogCutCompletion done) override { queue(cuts_, std::move(done)); }
  const replica::LeaseView& lease_view() const override { return old_ ? old_view_ : view_; }
  const lease::Clock& clock() const override { return clock_; }
  void status(std::function<void(node::NodeStatus)> done) override {
    queue(statuses_, std::move(done));
  }
  void on_failure(std::function<void(Error)>) override {}
  void stop() override {}

  /// From here on the group has the oldest level.
  void be_of_the_oldest_level() { old_ = true; }

  kv::MemoryStore& store() { return store_; }
  StateHealth& health() { return health_; }
  ManualClock& manual_clock() { return clock_; }
  /// Those that proposals and reads have named.
  std::vector<replica::TraceContext> take_traces() {
    const std::lock_guard lock(mutex_);
    return std::exchange(traces_, {});
  }
  std::size_t proposals() const { return proposals_.size(); }
  std::size_t reads() const { return reads_.size(); }
  std::size_t waits() const { return waits_.size(); }
  std::size_t statuses() const { return statuses_.size(); }

  /// From here on this node has a lease for `d`, at its commit index.
  void grant_lease(lease::Duration d) {
    lease_ = clock_.holder_now() + d;
    publish();
  }
  /// Commits without applying, and other nodes hear of it: reads under the lease have to wait.
  void commit_ahead(std::uint64_t entries) {
    commit_untold(entries);
    sent_commit_ = commit_;
    publish();
  }
  /// Reads in the order of the log need not wait.
  void commit_untold(std::uint64_t entries) {
    commit_ = commit_ + entries;
    publish();
  }
  void apply_all() {
    if (commit_ > store_.applied_index()) store_.apply({}, commit_);
    view_.publish_applied(commit_);
  }

  /// Commits, applies and answers the oldest proposal.
  void commit_one() {
    const Proposal proposal = take(proposals_);
    commit_ = commit_ + 1;
    const raft::LogId id{raft::Term(1), commit_};
    const auto results = store_.apply({{id, proposal.command.view()}}, commit_);
    publish();
    view_.publish_applied(commit_);
    replica::ProposeResult result;
    result.status = replica::ProposeStatus::committed;
    result.id = id;
    result.result = results.at(0);
    proposal.done(result);
  }
  /// Commits a command of another node, in front of what is proposed here.
  void commit_first(const Bytes& command) {
    commit_ = commit_ + 1;
    store_.apply({{{raft::Term(1), commit_}, command.view()}}, commit_);
    publish();
    view_.publish_applied(commit_);
  }
  /// Commits everything that is proposed.
  void commit_all() {
    while (proposals() > 0) commit_one();
  }
  void end_proposal(const replica::ProposeResult& result) { take(proposals_).done(result); }
  raft::ReadMode next_read_mode() const { return reads_.front().mode; }
  void end_read(const replica::ReadResult& result) { take(reads_).done(result); }
  void end_wait(const replica::ReadResult& result) { take(waits_).done(result); }
  void end_status(node::NodeStatus status) { take(statuses_)(std::move(status)); }
  std::size_t transfers() const { return transfers_.size(); }
  raft::NodeId next_transfer() const { return transfers_.front().to; }
  void end_transfer(const replica::TransferResult& result) { take(transfers_).done(result); }
  const node::MemberEdits& next_edits() const { return changes_.front().edits; }
  std::optional<raft::MembershipId> next_expected() const { return changes_.front().expected; }
  void end_change(node::MembersResult result) { take(changes_).done(std::move(result)); }
  const raft::SettingsEdit& next_settings() const { return settings_changes_.front().edit; }
  void end_settings(const replica::SettingsResult& result) { take(settings_changes_).done(result); }
  void end_cut(Result<replica::LogCut> result) { take(cuts_)(std::move(result)); }
  /// A granted read at what is applied.
  replica::ReadResult granted(raft::ReadBasis basis) const {
    replica::ReadResult result;
    result.index = commit_;
    result.basis = basis;
    return result;
  }
  /// For tests with real io threads: waits until there is a call to complete, for a moment at most.
  void wait_for_calls() {
    std::unique_lock lock(mutex_);
    queued_.wait_for(lock, std::chrono::milliseconds(5), [this] { return has_calls(); });
  }
  /// Completes all waiting calls. False: nothing waited.
  bool complete_some() {
    std::deque<std::function<void(node::NodeStatus)>> statuses;
    bool some = false;
    {
      const std::lock_guard lock(mutex_);
      some = has_calls();
      statuses.swap(statuses_);
    }
    for (auto& done : statuses) done(node::NodeStatus{});
    while (has(reads_)) end_read(granted(raft::ReadBasis::quorum));
    while (has(proposals_)) commit_one();
    while (has(cuts_)) end_cut(replica::LogCut{});
    while (has(transfers_)) end_transfer({});
    while (has(changes_)) end_change(node::MembersResult{});
    while (has(settings_changes_)) end_settings({});
    return some;
  }

 private:
  void note_trace(const node::CallOptions& options) {
    const std::lock_guard lock(mutex_);
    if (options.trace != nullptr) traces_.push_back(*options.trace);
  }
  struct Proposal {
    Bytes command;
    replica::ProposeCompletion done;
  };
  struct ReadCall {
    raft::ReadMode mode;
    replica::ReadCompletion done;
  };
  struct TransferCall {
    raft::NodeId to;
    replica::TransferCompletion done;
  };
  struct WaitCall {
    raft::Index index;
    replica::ReadCompletion done;
  };

  struct SettingsCall {
    raft::SettingsEdit edit;
    replica::SettingsCompletion done;
  };
  struct ChangeCall {
    node::MemberEdits edits;
    std::optional<raft::MembershipId> expected;
    node::MembersCompletion done;
  };

  /// The mutex is locked.
  bool has_calls() const {
    return !statuses_.empty() || !reads_.empty() || !proposals_.empty() || !cuts_.empty() ||
           !transfers_.empty() || !changes_.empty() || !settings_changes_.empty();
  }
  template <class T>
  void queue(std::deque<T>& calls, T call) {
    {
      const std::lock_guard lock(mutex_);
      calls.push_back(std::move(call));
    }
    queued_.notify_one();
  }
  template <class T>
  T take(std::deque<T>& calls) {
    const std::lock_guard lock(mutex_);
    LEASEHOLD_ASSERT(!calls.empty());
    T front = std::move(calls.front());
    calls.pop_front();
    return front;
  }
  template <class T>
  bool has(const std::deque<T>& calls) {
    const std::lock_guard lock(mutex_);
    return !calls.empty();
  }
  void publish() {
    const raft::LeaseState state{raft::Term(1), lease_, commit_, sent_commit_, raft::kNoClass};
    view_.publish(state);
    old_view_.publish(state);
  }

  std::mutex mutex_;
  std::shared_ptr<replica::Tap> tap_;
  std::condition_variable queued_;
  ManualClock clock_;
  kv::MemoryStore store_;
  StateHealth health_;
  replica::LeaseView view_;
  replica::LeaseView old_view_;
  bool old_ = false;
  lease::HolderInstant lease_ = lease::HolderInstant::earliest();
  raft::Index commit_;
  raft::Index sent_commit_;  ///< at most commit_
  std::vector<replica::TraceContext> traces_;
  std::deque<Proposal> proposals_;
  std::deque<ReadCall> reads_;
  std::deque<WaitCall> waits_;
  std::deque<std::function<void(node::NodeStatus)>> statuses_;
  std::deque<replica::LogCutCompletion> cuts_;
  std::deque<TransferCall> transfers_;
  std::deque<ChangeCall> changes_;
  std::deque<SettingsCall> settings_changes_;
};

}  // namespace leasehold::server
