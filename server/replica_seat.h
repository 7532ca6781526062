// The place of a group's replica in this process, whose replica may be exchanged.
#pragma once

#include <leasehold/base/bytes.h>
#include <leasehold/node/group.h>

#include <atomic>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

namespace leasehold::server {

/// Passes each call to the replica that is there now. One that was exchanged stays valid, and ends
/// the calls that still come to it as a stopped one does.
class ReplicaSeat final : public node::Group {
 public:
  /// Before the first call, and again with its successor. One thread.
  void put(node::Group& replica) {
    now_.store(&replica, std::memory_order_release);
    if (failed_) replica.on_failure(failed_);
  }

  void propose(Bytes command, node::CallOptions options, replica::ProposeCompletion done) override {
    now().propose(std::move(command), options, std::move(done));
  }
  void propose_batch(std::vector<node::Proposal> batch, node::CallOptions options) override {
    now().propose_batch(std::move(batch), options);
  }
  void read(raft::ReadMode mode, node::CallOptions options, replica::ReadCompletion done) override {
    now().read(mode, options, std::move(done));
  }
  void wait_applied(raft::Index index, node::CallOptions options,
                    replica::ReadCompletion done) override {
    now().wait_applied(index, options, std::move(done));
  }
  void change_members(node::MemberEdits edits, node::CallOptions options,
                      node::MembersCompletion done) override {
    now().change_members(std::move(edits), options, std::move(done));
  }
  void change_settings(const raft::SettingsEdit& edit, node::CallOptions options,
                       replica::SettingsCompletion done) override {
    now().change_settings(edit, options, std::move(done));
  }
  void cancel(replica::CallGroup group) override { now().cancel(group); }
  void transfer_leadership(raft::NodeId to, node::CallOptions options,
                           replica::TransferCompletion done) override {
    now().transfer_leadership(to, options, std::move(done));
  }
  void drain(node::CallOptions options, node::DrainCompletion done) override {
    now().drain(options, std::move(done));
  }
  void cut_log(replica::LogCutCompletion done) override { now().cut_log(std::move(done)); }
  void read_log(const replica::LogReadFrom& from, node::CallOptions options,
                replica::LogReadCompletion done) override {
    now().read_log(from, options, std::move(done));
  }
  void machine_space(bool full) override { now().machine_space(full); }
  void tap(std::shared_ptr<replica::Tap> tap) override { now().tap(std::move(tap)); }
  const replica::LeaseView& lease_view() const override { return now().lease_view(); }
  const lease::Clock& clock() const override { return now().clock(); }
  void status(std::function<void(node::NodeStatus)> done) override {
    now().status(std::move(done));
  }
  /// Of each replica that is put here. The thread of put().
  void on_failure(std::function<void(Error)> failed) override {
    failed_ = std::move(failed);
    now().on_failure(failed_);
  }

 private:
  node::Group& now() const { return *now_.load(std::memory_order_acquire); }

  std::atomic<node::Group*> now_{nullptr};
  std::function<void(Error)> failed_;
};

}  // namespace leasehold::server
