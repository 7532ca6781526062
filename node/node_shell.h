// A node: a loop with one group. Not an interface for users.
#pragma once

#include <leasehold/net/tcp_transport.h>
#include <leasehold/node/node.h>
#include <leasehold/node/node_ground.h>
#include <leasehold/node/node_group.h>
#include <leasehold/node/node_links.h>
#include <leasehold/node/node_loop.h>
#include <leasehold/storage/segment_log.h>

#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace leasehold::node {

class NodeShell final : public Node {
 public:
  NodeShell(NodeOptions options, const lease::Clock& clock, replica::Observer& observer)
      : options_(std::move(options)),
        loop_({.deputy = options_.deputy, .io = options_.io_context}, clock, observer),
        group_(of_replica(options_), loop_, observer) {
    tracer_ = options_.tracer;
  }
  ~NodeShell() override { stop(); }

  /// Everything of open() that can fail.
  Result<void> start(const OpenMachine& open_machine);

  void propose(Bytes command, CallOptions options, replica::ProposeCompletion done) override {
    group_.propose(std::move(command), options, std::move(done));
  }
  void propose_batch(std::vector<Proposal> batch, CallOptions options) override {
    group_.propose_batch(std::move(batch), options);
  }
  void read(raft::ReadMode mode, CallOptions options, replica::ReadCompletion done) override {
    group_.read(mode, options, std::move(done));
  }
  void wait_applied(raft::Index index, CallOptions options, replica::ReadCompletion done) override {
    group_.wait_applied(index, options, std::move(done));
  }
  void transfer_leadership(raft::NodeId to, CallOptions options,
                           replica::TransferCompletion done) override {
    group_.transfer_leadership(to, options, std::move(done));
  }
  void drain(CallOptions options, DrainCompletion done) override {
    group_.drain(options, std::move(done));
  }
  void change_members(MemberEdits edits, CallOptions options, MembersCompletion done) override {
    group_.change_members(std::move(edits), options, std::move(done));
  }
  void change_settings(const raft::SettingsEdit& edit, CallOptions options,
                       replica::SettingsCompletion done) override {
    group_.change_settings(edit, options, std::move(done));
  }
  void cancel(replica::CallGroup group) override { group_.cancel(group); }
  void cut_log(replica::LogCutCompletion done) override { group_.cut_log(std::move(done)); }
  void read_log(const replica::LogReadFrom& from, CallOptions options,
                replica::LogReadCompletion done) override {
    group_.read_log(from, options, std::move(done));
  }
  void machine_space(bool full) override { group_.machine_space(full); }
  void tap(std::shared_ptr<replica::Tap> tap) override { group_.tap(std::move(tap)); }
  Result<void> set_peer_security(const net::PeerSecurity& security) override;
  const replica::LeaseView& lease_view() const override { return group_.lease_view(); }
  const lease::Clock& clock() const override { return loop_.clock(); }
  void status(std::function<void(NodeStatus)> done) override { group_.status(std::move(done)); }
  void on_failure(std::function<void(Error)> failed) override {
    group_.on_failure(std::move(failed));
  }
  void stop() override;

 private:
  static ReplicaOptions of_replica(const NodeOptions& options);
  net::TcpCallbacks policy();
  void rejected(const net::Rejection& rejection);

  const NodeOptions options_;
  /// What other nodes may, and what they say.
  net::TcpCallbacks policy_;
  std::unique_ptr<storage::SegmentLog> log_;
  Loop loop_;
  std::unique_ptr<Links> links_;
  GroupShell group_;
};

}  // namespace leasehold::node
