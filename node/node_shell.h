// The shell around the driver: one thread that runs the sockets and the driver, and the doors
// through which the other threads reach it. Not an interface for users.
#pragma once

#include <leasehold/net/tcp_transport.h>
#include <leasehold/node/drain.h>
#include <leasehold/node/formation.h>
#include <leasehold/node/node.h>
#include <leasehold/node/node_apply_thread.h>
#include <leasehold/node/node_changes.h>
#include <leasehold/node/node_end_notices.h>
#include <leasehold/node/node_mailbox.h>
#include <leasehold/node/node_members.h>
#include <leasehold/node/node_restored.h>
#include <leasehold/node/node_snapshots.h>
#include <leasehold/node/node_status.h>
#include <leasehold/node/preference.h>
#include <leasehold/node/unformed_calls.h>
#include <leasehold/node/witness_machine.h>
#include <leasehold/replica/driver.h>
#include <leasehold/storage/segment_log.h>

#include <asio/executor_work_guard.hpp>
#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace leasehold::node {

class NodeShell final : public Node, private storage::StorageSink {
 public:
  NodeShell(NodeOptions options, const lease::Clock& clock, replica::Observer& observer)
      : options_(std::move(options)),
        clock_(clock),
        observer_(observer),
        changes_(observer),
        io_(1),
        work_(io_.get_executor()),
        timer_(io_),
        notices_of_ends_(
            io_, options_.deputy, [this](const raft::Peer& peer) { ended(peer); },
            [this](const std::string& line) { observer_.on_notice(line); }),
        drain_(options_.timing.election_timeout),
        preference_(options_.id, options_.preferred_leaders, options_.preference_settle),
        unformed_(options_.limits.proposals_max) {}
  ~NodeShell() override { stop(); }

  /// Everything of open() that can fail.
  Result<void> start(const OpenMachine& open_machine);

  void propose(Bytes command, CallOptions options, replica::ProposeCompletion done) override {
    post(replica::Propose{std::move(command), deadline(options), std::move(done), options.group,
                          options.repeatable, options.expected});
  }
  void propose_batch(std::vector<Proposal> batch, CallOptions options) override;
  void read(raft::ReadMode mode, CallOptions options, replica::ReadCompletion done) override {
    post(replica::Read{mode, deadline(options), std::move(done), options.group, options.max_age});
  }
  void wait_applied(raft::Index index, CallOptions options, replica::ReadCompletion done) override {
    post(replica::WaitApplied{index, deadline(options), std::move(done), options.group});
  }
  void transfer_leadership(raft::NodeId to, CallOptions options,
                           replica::TransferCompletion done) override {
    post(replica::TransferLeadership{to, deadline(options), std::move(done), options.group});
  }
  void drain(CallOptions options, DrainCompletion done) override {
    post_task([this, end = deadline(options), done = std::move(done)] { begin_drain(end, done); });
  }
  void change_members(MemberEdits edits, CallOptions options, MembersCompletion done) override;
  void change_settings(const raft::SettingsEdit& edit, CallOptions options,
                       replica::SettingsCompletion done) override;
  void cancel(replica::CallGroup group) override { post(replica::Cancel{group}); }
  void cut_log(replica::LogCutCompletion done) override {
    post_task([this, done = std::move(done)] { feed_cut(done); });
  }
  void machine_space(bool full) override {
    post_task([this, full] { feed_machine_space(full); });
  }
  Result<void> set_peer_security(const net::PeerSecurity& security) override;
  const replica::LeaseView& lease_view() const override { return view_; }
  const lease::Clock& clock() const override { return clock_; }
  void status(std::function<void(NodeStatus)> done) override {
    post_task([this, done = std::move(done)] { done(make_status()); });
  }
  void on_failure(std::function<void(Error)> failed) override {
    post_task([this, failed = std::move(failed)] {
      on_failure_ = failed;
      report_failure();
    });
  }
  void stop() override {
    std::call_once(stopped_once_, [this] { stop_now(); });
  }

 private:
  // The other threads.
  raft::PromiseInstant deadline(const CallOptions& options) const {
    return clock_.now().promise + options.timeout;
  }
  void post(replica::Event event, Mailbox::Haste haste = Mailbox::Haste::now);
  void post_task(Mailbox::Task task);
  void persisted(raft::ReadyId id) override { post(replica::Persisted{id}); }
  void entries_read(std::uint64_t token, Result<std::vector<raft::Entry>> entries) override {
    post(replica::EntriesRead{token, std::move(entries)});
  }
  void space(bool full) override { post(replica::StorageSpace{full}); }
  void failed(Error error) override { post(replica::StorageFailed{std::move(error)}); }

  // The node's thread.
  void wake();
  void schedule_turn();
  void turn();
  void run_driver(lease::Now now);
  void feed_cut(const replica::LogCutCompletion& done);
  void feed_machine_space(bool full);
  void begin_drain(raft::PromiseInstant deadline, const DrainCompletion& done);
  void look_at_leadership(lease::Now now);
  bool connected(raft::NodeId id) const;
  void before_formation(lease::Now now);
  void arm_timer(lease::Now now);
  void act_on_formation();
  Result<void> start_driver();
  Result<void> install(const raft::SnapshotId& id);
  void start_threads();
  void fail(Error error);
  void report_failure();
  net::TcpCallbacks callbacks();
  std::optional<raft::NodeId> member_without_settings() const;
  const raft::Core* core() const { return driver_ ? &driver_->core() : nullptr; }
  void met(const wire::Hello& hello);
  void ended(const raft::Peer& peer);
  void received(const raft::Peer& from, wire::PeerMessage&& message);
  void rejected(const net::Rejection& rejection);
  NodeStatus make_status() const;
  void stop_now();
  void stop_on_loop();

  NodeOptions options_;
  /// Replaces the caller's state machine, at a witness.
  WitnessMachine witness_machine_;
  /// Set by start().
  replica::StateMachine* machine_ = nullptr;
  const lease::Clock& clock_;
  replica::Observer& observer_;
  Changes changes_;
  replica::LeaseView view_;
  replica::Callers callers_;
  Mailbox mailbox_;

  asio::io_context io_;
  asio::executor_work_guard<asio::io_context::executor_type> work_;
  asio::steady_timer timer_;
  /// What timer_ is set to; never() when it is not set. It may be earlier than what is due: then a
  /// turn finds nothing to do and sets it again, which is cheaper than moving it with each turn.
  raft::PromiseInstant armed_for_ = raft::PromiseInstant::never();

  std::uint64_t cluster_id_ = 0;
  std::optional<Restored> restored_;
  std::unique_ptr<storage::SegmentLog> log_;
  /// Of a log that is formed; until the driver starts.
  std::optional<raft::InitialState> initial_;
  /// Null at a node that joins, or joined.
  std::unique_ptr<Formation> formation_;
  std::unique_ptr<net::TcpTransport> transport_;
  EndNotices notices_of_ends_;
  std::unique_ptr<Members> members_;
  std::unique_ptr<SnapshotThread> snapshots_;
  std::unique_ptr<ApplyThread> applier_;
  // They outlive the driver, which calls them back.
  Drain drain_;
  Preference preference_;
  /// Null until the group is formed.
  std::unique_ptr<replica::Driver> driver_;

  /// Events of this turn.
  std::vector<replica::Event> batch_;
  std::vector<Mailbox::Task> tasks_;
  bool turn_scheduled_ = false;
  UnformedCalls unformed_;
  raft::PromiseInstant next_repeat_ = raft::PromiseInstant::earliest();

  bool machine_full_ = false;
  LogNotices notices_;

  std::optional<Error> failure_;
  std::function<void(Error)> on_failure_;
  bool stopping_ = false;
  LastRefusal refusal_;
  RefusalLines refusal_lines_;

  std::once_flag stopped_once_;
  /// Held while the shell is destroyed, and by each task that runs on its caller's thread after
  /// that. Such a task may call the node again.
  std::recursive_mutex ending_;
  std::thread thread_;
};

}  // namespace leasehold::node
