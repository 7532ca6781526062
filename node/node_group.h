// One replica on a loop: it feeds its driver, forms its group, and is what its program calls. Not
// an interface for users.
#pragma once

#include <leasehold/node/drain.h>
#include <leasehold/node/formation.h>
#include <leasehold/node/node.h>
#include <leasehold/node/node_applier.h>
#include <leasehold/node/node_changes.h>
#include <leasehold/node/node_links.h>
#include <leasehold/node/node_loop.h>
#include <leasehold/node/node_members.h>
#include <leasehold/node/node_restored.h>
#include <leasehold/node/node_snapshots.h>
#include <leasehold/node/node_status.h>
#include <leasehold/node/node_traced.h>
#include <leasehold/node/preference.h>
#include <leasehold/node/unformed_calls.h>
#include <leasehold/node/witness_machine.h>
#include <leasehold/replica/driver.h>
#include <leasehold/replica/places.h>
#include <leasehold/storage/group_log.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace leasehold::node {

/// What a replica starts from.
struct GroupGround {
  std::uint64_t cluster_id = 0;
  storage::NodeIdentity self;  ///< of the folder
  std::string address;         ///< where peers reach this node
  std::optional<Restored> restored;
  /// The initial members with which the group forms, or formed; empty at a node that joins.
  std::vector<raft::Member> members;
  storage::GroupLog* log = nullptr;
  /// Taken out of `log`, if that is formed.
  std::unique_ptr<raft::InitialState> initial;
  replica::StateMachine* machine = nullptr;
  Links* links = nullptr;
  net::Transport* transport = nullptr;  ///< to the numbers of the group
  /// Of a replica among many: where the others are. Null: at the nodes of their numbers.
  replica::Places* places = nullptr;
  raft::SharedPromises* shared = nullptr;  ///< CoreOptions::shared
  /// The replica has failed. On the loop's thread.
  std::function<void()> on_failed = [] {};
};

/// See GroupOptions, and NodeOptions.
struct ReplicaOptions {
  raft::GroupId group;
  raft::NodeId id;       ///< the replica's number in the group
  std::string data_dir;  ///< has its snapshots
  lease::Timing timing;
  std::vector<raft::NodeId> preferred_leaders;
  lease::Duration preference_settle{0};
  bool witness = false;
  Tracer* tracer = nullptr;
  replica::Limits limits;
};

/// There may be ten thousand in a process, most of them at rest: what only a moment needs is made
/// for it, and given back.
class GroupShell final : public Group, private storage::StorageSink {
 public:
  GroupShell(ReplicaOptions options, Loop& loop, replica::Observer& observer)
      : group_(options.group),
        replica_(options.id),
        data_dir_(std::move(options.data_dir)),
        timing_(options.timing),
        witness_(options.witness),
        limits_(std::make_unique<replica::Limits>(options.limits)),
        loop_(loop),
        observer_(observer),
        changes_(observer),
        drain_(timing_.election_timeout),
        preference_(replica_, std::move(options.preferred_leaders), options.preference_settle),
        unformed_(limits_->proposals_max) {
    tracer_ = options.tracer;
  }

  void propose(Bytes command, CallOptions options, replica::ProposeCompletion done) override {
    auto span = tracing().proposal(options.trace, done);
    post(replica::Propose{std::move(command), deadline(options), std::move(done), options.group,
                          options.repeatable, options.expected, std::move(span)});
  }
  void propose_batch(std::vector<Proposal> batch, CallOptions options) override;
  void read(raft::ReadMode mode, CallOptions options, replica::ReadCompletion done) override {
    auto span = tracing().read(mode_text(mode), options.trace, done);
    post(replica::Read{mode, deadline(options), std::move(done), options.group, options.max_age,
                       std::move(span)});
  }
  void wait_applied(raft::Index index, CallOptions options, replica::ReadCompletion done) override {
    auto span = tracing().read("index", options.trace, done);
    post(replica::WaitApplied{index, deadline(options), std::move(done), options.group,
                              std::move(span)});
  }
  void transfer_leadership(raft::NodeId to, CallOptions options,
                           replica::TransferCompletion done) override {
    post(replica::TransferLeadership{to, deadline(options), std::move(done), options.group});
  }
  void drain(CallOptions options, DrainCompletion done) override;
  void change_members(MemberEdits edits, CallOptions options, MembersCompletion done) override;
  void change_settings(const raft::SettingsEdit& edit, CallOptions options,
                       replica::SettingsCompletion done) override;
  void cancel(replica::CallGroup group) override { post(replica::Cancel{group}); }
  void cut_log(replica::LogCutCompletion done) override;
  void read_log(const replica::LogReadFrom& from, CallOptions options,
                replica::LogReadCompletion done) override {
    post(replica::ReadLog{from, deadline(options), std::move(done), options.group});
  }
  void machine_space(bool full) override;
  void tap(std::shared_ptr<replica::Tap> tap) override;
  const replica::LeaseView& lease_view() const override { return view_; }
  const lease::Clock& clock() const override { return loop_.clock(); }
  void status(std::function<void(NodeStatus)> done) override;
  void on_failure(std::function<void(Error)> failed) override;

  /// What can fail before its first turn, and may read much. Not on the loop's thread. `ground`:
  /// what it names outlives this.
  Result<void> prepare(GroupGround ground);

  // The loop's thread, or the one that starts it.

  /// Behind prepare(): takes part from now on. Loop::add() is next.
  void begin();
  void act_on_formation();
  raft::GroupId id() const { return group_; }
  replica::Driver* driver() const { return driver_.get(); }
  const replica::Places* places() const { return ground_.places; }
  const raft::Core* core() const { return driver_ ? &driver_->core() : nullptr; }
  bool leads() const {
    return driver_ && !failure_ && driver_->core().role() == raft::Role::leader;
  }
  const std::optional<Error>& failure() const { return failure_; }
  Members& members() { return *members_; }
  /// Null at a replica that joins, or joined, and as a rule once the group has formed.
  Formation* formation() { return formation_.get(); }

  /// Whether the message is for this replica; `from`, the node that it came from, becomes the
  /// member that has sent it.
  bool addressed(const wire::PeerMessage& message, raft::Peer& from) const;
  /// For the next turn.
  void take(replica::Event event);
  /// The process of a node, or of a host.
  void ended(const raft::Peer& node);
  void turn(lease::Now now);
  /// Of a host's group that has no timer, and may have nothing to do for as long as it likes: gives
  /// back what its busiest turn took. At the end of a turn, and when due() has become never().
  void rest();
  /// When a turn is due even if nothing comes.
  raft::PromiseInstant due() const;
  bool awaits_applied() const { return driver_ && (drain_.begun() || driver_->awaits_applied()); }
  /// A member runs, under this directory.
  void learned(raft::NodeId member, raft::Uuid uuid);
  void fail(Error error);
  /// The last turn of the driver: it publishes that it has no lease, and answers its callers.
  void stop_turns(lease::Now now);

  /// Not the loop's thread. Ends what the pools do for it.
  void stop_work();
  /// Behind that, on the loop's thread: what takes memory ends.
  void forget() {
    driver_.reset();
    // It is no member, and does not say that it was.
    ground_.members.clear();
  }
  /// Behind all that: the log is about to end.
  void log_ends() { ground_.log = nullptr; }

 private:
  // The other threads.
  raft::PromiseInstant deadline(const CallOptions& options) const {
    return clock().now().promise + options.timeout;
  }
  Tracing tracing() const { return {tracer_, &clock()}; }
  void post(replica::Event event, Mailbox::Haste haste = Mailbox::Haste::now) {
    loop_.post(id(), std::move(event), haste);
  }
  void persisted(raft::ReadyId id) override { post(replica::Persisted{id}); }
  void entries_read(std::uint64_t token, Result<std::vector<raft::Entry>> entries) override {
    post(replica::EntriesRead{token, std::move(entries)});
  }
  void space(bool full) override { post(replica::StorageSpace{full}); }
  void failed(Error error) override { post(replica::StorageFailed{std::move(error)}); }

  void make_formation();
  void take_confirm(const raft::Peer& from, const wire::FormationConfirm& confirm);
  bool take_unformed(replica::Event& event);
  void laid();
  void run_driver(lease::Now now);
  void learn_places();
  void before_formation(lease::Now now);
  void look_at_leadership(lease::Now now);
  bool connected(raft::NodeId id) const;
  std::optional<raft::NodeId> member_without_settings() const;
  Result<void> prepare_driver();
  void start_driver();
  void start_work();
  Result<void> install(const raft::SnapshotId& id);
  void report_failure();
  NodeStatus make_status() const;

  const raft::GroupId group_;
  const raft::NodeId replica_;
  const std::string data_dir_;
  const lease::Timing timing_;
  const bool witness_;
  std::unique_ptr<const replica::Limits> limits_;  ///< null once the driver has them
  /// Replaces the caller's state machine, at a witness.
  WitnessMachine witness_machine_;
  Loop& loop_;
  replica::Observer& observer_;
  GroupGround ground_;
  Changes changes_;
  replica::LeaseView view_;
  replica::Callers callers_;

  /// See formation().
  std::unique_ptr<Formation> formation_;
  /// Of formation_, in order. Those behind a set that is confirmed, or the group that is formed,
  /// wait until that is durable.
  std::vector<Formation::Output> to_do_;
  bool laying_ = false;
  std::unique_ptr<Members> members_;
  std::unique_ptr<GroupSnapshots> snapshots_;
  std::unique_ptr<GroupApplier> applier_;
  // They outlive the driver, which calls them back.
  Drain drain_;
  Preference preference_;
  /// Null until the group is formed.
  std::unique_ptr<replica::Driver> driver_;
  std::shared_ptr<replica::Tap> tap_;  ///< for driver_, as long as that is null

  /// Events of the next turn.
  std::vector<replica::Event> batch_;
  UnformedCalls unformed_;
  raft::PromiseInstant next_repeat_ = raft::PromiseInstant::earliest();
  lease::Duration repeat_after_ = std::chrono::milliseconds(200);

  /// The newest membership of which ground_.places knows.
  raft::LogId placed_;
  // What the driver has to know when it begins.
  bool machine_full_ = false;
  bool log_full_ = false;
  LogNotices notices_;

  std::optional<Error> failure_;
  std::function<void(Error)> on_failure_;
  bool stopped_ = false;
};

}  // namespace leasehold::node
