// The shell around the driver: one thread that runs the sockets and the driver, and the doors
// through which the other threads reach it.
#include <leasehold/base/assert.h>
#include <leasehold/net/handshake.h>
#include <leasehold/net/tcp_transport.h>
#include <leasehold/node/formation.h>
#include <leasehold/node/node.h>
#include <leasehold/node/node_apply_thread.h>
#include <leasehold/node/node_changes.h>
#include <leasehold/node/node_ground.h>
#include <leasehold/node/node_identity.h>
#include <leasehold/node/node_mailbox.h>
#include <leasehold/node/node_members.h>
#include <leasehold/node/node_restored.h>
#include <leasehold/node/node_snapshots.h>
#include <leasehold/node/node_status.h>
#include <leasehold/node/preference.h>
#include <leasehold/node/unformed_calls.h>
#include <leasehold/node/witness_machine.h>
#include <leasehold/replica/refusal.h>
#include <leasehold/storage/segment_log.h>

#include <pthread.h>

#include <algorithm>
#include <asio/executor_work_guard.hpp>
#include <asio/io_context.hpp>
#include <asio/post.hpp>
#include <asio/steady_timer.hpp>
#include <cstddef>
#include <mutex>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <utility>

namespace leasehold::node {

namespace {

/// While the group forms, how often a node says again what it has confirmed.
constexpr lease::Duration kFormationRepeat = std::chrono::milliseconds(200);

/// Under load the next append carries the news of a commit, and takes a quarter of the messages off
/// each write's way. A follower that waits for a commit is told at once all the same
/// (Core::listens).
constexpr lease::Duration kCommitNewsDelay = std::chrono::milliseconds(5);

Error disrupted_clock() {
  return {ErrorCode::clock_disrupted,
          "this machine was stopped from outside (a virtual machine that was paused, moved or "
          "restored), and its clocks may not have seen for how long: no lease can be judged on "
          "them. A new start of the node goes on"};
}

std::uint64_t random_u64() {
  std::random_device device;
  const std::uint64_t high = device();
  const std::uint64_t low = device();
  return (high << 32U) | (low & 0xffffffffU);
}

class NodeShell final : public Node, private storage::StorageSink {
 public:
  NodeShell(NodeOptions options, replica::StateMachine& machine, const lease::Clock& clock,
            replica::Observer& observer)
      : options_(std::move(options)),
        machine_(options_.witness ? witness_machine_ : machine),
        clock_(clock),
        observer_(observer),
        changes_(observer),
        io_(1),
        work_(io_.get_executor()),
        timer_(io_),
        drain_(options_.timing.election_timeout),
        preference_(options_.id, options_.preferred_leaders, options_.preference_settle),
        unformed_(options_.limits.proposals_max) {}
  ~NodeShell() override { stop(); }

  /// Everything of open() that can fail.
  Result<void> start();

  void propose(Bytes command, CallOptions options, replica::ProposeCompletion done) override {
    post(replica::Propose{std::move(command), deadline(options), std::move(done), options.group,
                          options.repeatable});
  }
  void propose_batch(std::vector<Proposal> batch, CallOptions options) override;
  void read(replica::ReadMode mode, CallOptions options, replica::ReadCompletion done) override {
    post(replica::Read{mode, deadline(options), std::move(done), options.group});
  }
  void wait_applied(raft::Index index, CallOptions options, replica::ReadCompletion done) override {
    post(replica::WaitApplied{index, deadline(options), std::move(done), options.group});
  }
  void hand_over(raft::NodeId to, CallOptions options, replica::HandOverCompletion done) override {
    post(replica::HandOver{to, deadline(options), std::move(done), options.group});
  }
  void drain(CallOptions options, DrainCompletion done) override {
    post_task([this, end = deadline(options), done = std::move(done)] { begin_drain(end, done); });
  }
  void change_members(MemberEdits edits, CallOptions options, MembersCompletion done) override;
  void cancel(replica::CallGroup group) override { post(replica::Cancel{group}); }
  void cut_log(replica::LogCutCompletion done) override {
    post_task([this, done = std::move(done)] { feed_cut(done); });
  }
  void machine_space(bool full) override {
    post_task([this, full] { feed_machine_space(full); });
  }
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
  const raft::Core* core() const { return driver_ ? &driver_->core() : nullptr; }
  void received(const raft::Peer& from, wire::PeerMessage&& message);
  void rejected(const net::Rejection& rejection);
  NodeStatus make_status() const;
  void stop_now();
  void stop_on_loop();

  NodeOptions options_;
  /// In place of the caller's, at a witness.
  WitnessMachine witness_machine_;
  replica::StateMachine& machine_;
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
  /// turn finds nothing to do and sets it anew, which is cheaper than moving it with each turn.
  raft::PromiseInstant armed_for_ = raft::PromiseInstant::never();

  std::uint64_t cluster_id_ = 0;
  std::optional<Restored> restored_;
  std::unique_ptr<storage::SegmentLog> log_;
  /// Of a log that is formed; until the driver starts.
  std::optional<raft::InitialState> initial_;
  /// None at a node that joins, or joined.
  std::unique_ptr<Formation> formation_;
  std::unique_ptr<net::TcpTransport> transport_;
  std::unique_ptr<Members> members_;
  std::unique_ptr<SnapshotThread> snapshots_;
  std::unique_ptr<ApplyThread> applier_;
  // They outlive the driver, which calls them back.
  Drain drain_;
  Preference preference_;
  /// None until the group is formed.
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
  std::string problem_;

  std::once_flag stopped_once_;
  /// Held while the shell is taken apart, and by each task that runs on its caller's thread after
  /// that. Such a task may call the node again.
  std::recursive_mutex ending_;
  std::thread thread_;
};

Result<void> NodeShell::start() {
  if (const auto valid = validate_options(options_); !valid.ok()) return valid.error();
  auto found = find_ground(options_, machine_.durable_index());
  if (!found.ok()) return found.error();
  Ground ground = std::move(found).value();
  cluster_id_ = ground.cluster_id;
  restored_ = ground.restored;
  log_ = std::move(ground.log);
  initial_ = std::move(ground.initial);
  const storage::NodeIdentity& self = log_->identity();
  if (!log_->joined()) {
    formation_ = std::make_unique<Formation>(options_.id, self.uuid, ground.members,
                                             log_->confirmed_set(), log_->formed());
  }

  net::TcpOptions tcp;
  tcp.cluster_id = cluster_id_;
  tcp.id = options_.id;
  tcp.uuid = self.uuid;
  tcp.incarnation = self.incarnation;
  tcp.process = random_u64();
  tcp.listen = options_.listen.empty() ? ground.address : options_.listen;
  tcp.cluster = options_.cluster;
  tcp.address = ground.address;
  tcp.witness = options_.witness;
  if (!log_->formed()) {
    for (const Peer& peer : options_.peers) tcp.peers.push_back({peer.id, peer.address});
  }
  transport_ = std::make_unique<net::TcpTransport>(io_, std::move(tcp), callbacks());
  members_ = std::make_unique<Members>(
      Members::Self{options_.id, self.uuid, ground.address, options_.witness}, *transport_,
      [this](replica::Event event) {
        batch_.push_back(std::move(event));
        schedule_turn();
      });
  if (const auto started = transport_->start(); !started.ok()) return started.error();

  if (log_->formed()) {
    if (const auto started = start_driver(); !started.ok()) return started.error();
  } else if (const auto fits =
                 check_new_log(options_.data_dir, restored_, machine_.durable_index());
             !fits.ok()) {
    return fits.error();
  }
  act_on_formation();
  if (failure_) return *failure_;
  schedule_turn();
  thread_ = std::thread([this] { io_.run(); });
  pthread_setname_np(thread_.native_handle(), "lh-node");
  return {};
}

Result<void> NodeShell::start_driver() {
  const storage::NodeIdentity& self = log_->identity();
  raft::InitialState initial = initial_ ? std::move(*initial_) : log_->take_initial_state();
  initial_.reset();
  if (options_.witness) {
    witness_machine_.begin_at(initial.base.index);
  } else if (machine_.durable_index() < initial.base.index) {
    if (const auto done =
            SnapshotThread::install_at_start(options_.data_dir, initial.base, machine_);
        !done.ok())
      return done;
  }
  initial.applied = machine_.durable_index();
  if (initial.applied > initial.last_index) {
    return Error{ErrorCode::corrupted,
                 options_.data_dir + ": the state machine has applied entry " +
                     std::to_string(initial.applied.value()) + ", but the log ends at " +
                     std::to_string(initial.last_index.value()) +
                     ": they do not belong together, or the log lost entries. Restore both from "
                     "one backup, or remove this node from the group and add it anew"};
  }
  replica::DriverOptions options = options_.limits;
  options.core.group = kGroup;
  options.core.id = options_.id;
  options.core.uuid = self.uuid;
  options.core.incarnation = self.incarnation;
  options.core.timing = options_.timing;
  options.core.witness = options_.witness;
  options.core.seed = random_u64();
  options.core.commit_news_delay = kCommitNewsDelay;
  start_threads();
  log_->start(*this);
  driver_ = std::make_unique<replica::Driver>(
      options, std::move(initial),
      replica::Driver::Ports{*transport_, *log_, *applier_, *snapshots_, view_, callers_,
                             observer_},
      clock_.now());
  if (machine_full_) feed_machine_space(true);
  members_->look(driver_->core(), clock_.now());
  return {};
}

void NodeShell::start_threads() {
  snapshots_ = std::make_unique<SnapshotThread>(
      machine_, options_.data_dir, cluster_id_, machine_.durable_index(),
      [this](replica::Event event) { post(std::move(event)); });
  applier_ = std::make_unique<ApplyThread>(
      machine_, view_, callers_, options_.id, log_->identity().incarnation,
      [this](const raft::SnapshotId& id) { return install(id); },
      [this](Result<replica::Applied> applied) {
        if (applied.ok()) {
          post(std::move(applied).value(), Mailbox::Haste::when_awaited);
        } else {
          post(replica::StorageFailed{applied.error()});
        }
      });
}

/// Thread of the applier.
Result<void> NodeShell::install(const raft::SnapshotId& id) {
  if (options_.witness) {
    witness_machine_.begin_at(id.last.index);
    return {};
  }
  const auto staged = SnapshotThread::complete(options_.data_dir);
  if (!staged.ok()) return staged.error();
  LEASEHOLD_ASSERT(staged.value()->id() == id);
  const Result<void> done = machine_.install_snapshot(*staged.value());
  if (done.ok()) snapshots_->installed();
  return done;
}

// ---- The other threads ----

void NodeShell::post(replica::Event event, Mailbox::Haste haste) {
  switch (mailbox_.add(event, haste)) {
    case Mailbox::Added::first: wake(); break;
    case Mailbox::Added::behind: break;
    case Mailbox::Added::closed: replica::refuse(event, false); break;
  }
}

void NodeShell::propose_batch(std::vector<Proposal> batch, CallOptions options) {
  if (batch.empty()) return;
  std::vector<replica::Event> events;
  events.reserve(batch.size());
  const raft::PromiseInstant end = deadline(options);
  for (Proposal& one : batch) {
    events.emplace_back(replica::Propose{std::move(one.command), end, std::move(one.done),
                                         options.group, options.repeatable || one.repeatable});
  }
  switch (mailbox_.add(events)) {
    case Mailbox::Added::first: wake(); break;
    case Mailbox::Added::behind: break;
    case Mailbox::Added::closed:
      for (replica::Event& event : events) replica::refuse(event, false);
      break;
  }
}

void NodeShell::post_task(Mailbox::Task task) {
  switch (mailbox_.add(task)) {
    case Mailbox::Added::first: wake(); break;
    case Mailbox::Added::behind: break;
    case Mailbox::Added::closed: {
      const std::lock_guard lock(ending_);
      task();
      break;
    }
  }
}

void NodeShell::change_members(MemberEdits edits, CallOptions options, MembersCompletion done) {
  post_task([this, edits = std::move(edits), end = deadline(options), group = options.group,
             done = std::move(done)]() mutable {
    const bool open = !stopping_ && !failure_;
    members_->change(open ? core() : nullptr, std::move(edits), end, group, std::move(done));
  });
}

void NodeShell::wake() {
  asio::post(io_, [this] { turn(); });
}

// ---- The node's thread ----

/// Everything that arrives before the turn comes shares it.
void NodeShell::schedule_turn() {
  if (turn_scheduled_) return;
  turn_scheduled_ = true;
  wake();
}

void NodeShell::turn() {
  turn_scheduled_ = false;
  mailbox_.take(batch_, tasks_);
  if (drain_.begun() || (driver_ && !members_->seated())) {
    replica::refuse_calls(batch_, driver_ ? driver_->core().leader() : raft::kNobody);
  }
  // After the events are in memory: a promise or a lease judged on an older time would be unsafe.
  const lease::Now now = clock_.now();
  if (clock_.disrupted()) fail(disrupted_clock());
  if (driver_) {
    run_driver(now);
  } else {
    before_formation(now);
  }
  for (Mailbox::Task& task : tasks_) task();
  tasks_.clear();
  if (stopping_) return;
  look_at_leadership(now);
  arm_timer(now);
  // At a follower nobody waits for what is applied, as a rule: its news comes along with the next
  // message, and each write costs a wake-up less.
  const bool awaited = driver_ && (drain_.begun() || driver_->awaits_applied());
  if (driver_ && mailbox_.set_awaiting(awaited)) wake();
}

void NodeShell::run_driver(lease::Now now) {
  driver_->handle_batch(now, batch_);
  changes_.look(driver_->core(), now.holder, !stopping_ && !driver_->failure());
  members_->look(driver_->core(), now);
  notices_.look(*driver_, options_.data_dir, observer_);
  for (auto& completion : driver_->take_completions()) completion();
  if (!failure_ && driver_->failure()) {
    failure_ = driver_->failure();
    members_->complete_all();
    transport_->stop();
    report_failure();
  } else if (!failure_) {
    if (const auto gone = members_->gone(now)) fail(*gone);
  }
}

void NodeShell::feed_cut(const replica::LogCutCompletion& done) {
  if (stopping_) return done(Error{ErrorCode::stopped, "the node is stopping"});
  if (!driver_) return done(Error{ErrorCode::unavailable, "the group has not formed yet"});
  batch_.push_back(replica::CutLog{done});
  schedule_turn();
}

void NodeShell::begin_drain(raft::PromiseInstant deadline, const DrainCompletion& done) {
  drain_.begin(deadline, done);
  stopping_ ? drain_.end(true) : schedule_turn();
}

void NodeShell::look_at_leadership(lease::Now now) {
  if (!driver_ || failure_) return drain_.end(true);
  const auto reached = [this](raft::NodeId id) { return connected(id); };
  drain_.look(now, *driver_, reached, batch_);
  if (!drain_.begun() && preference_.look(now, *driver_, reached, batch_)) {
    observer_.on_notice("another node is preferred, and has been well for a while: handing over");
  }
  if (!batch_.empty()) schedule_turn();
}

/// Kept too: it may be full before there is a driver.
void NodeShell::feed_machine_space(bool full) {
  machine_full_ = full;
  if (!driver_) return;
  batch_.push_back(replica::MachineSpace{full});
  schedule_turn();
}

void NodeShell::before_formation(lease::Now now) {
  if (now.promise >= next_repeat_ && !failure_ && !stopping_) {
    next_repeat_ = now.promise + kFormationRepeat;
    if (formation_) formation_->repeat();
    act_on_formation();
    if (driver_) {
      schedule_turn();
      return;
    }
  }
  unformed_.take(now, batch_, failure_ || stopping_);
}

void NodeShell::arm_timer(lease::Now now) {
  raft::PromiseInstant due = driver_ ? driver_->next_deadline() : next_repeat_;
  due = std::min({due, drain_.next_deadline(), preference_.next_deadline()});
  if (driver_ && !failure_) due = std::min(due, members_->due());
  if (due >= armed_for_) return;
  armed_for_ = due;
  timer_.expires_after(std::max(due - now.promise, lease::Duration{0}));
  timer_.async_wait([this](const asio::error_code& error) {
    if (error) return;  // set anew meanwhile
    armed_for_ = raft::PromiseInstant::never();
    schedule_turn();
  });
}

void NodeShell::act_on_formation() {
  if (!formation_) return;
  for (Formation::Output& output : formation_->take_outputs()) {
    if (failure_) return;
    Result<void> done;
    if (auto* confirm = std::get_if<Formation::Confirm>(&output)) {
      done = log_->confirm_set(std::move(confirm->members));
    } else if (auto* send = std::get_if<Formation::Send>(&output)) {
      transport_->send(send->to, {kGroup, std::move(send->message)});
    } else {
      done = log_->form(restored_ ? restored_->begin() : raft::LogId{});
      if (done.ok()) done = start_driver();
      if (done.ok()) {
        observer_.on_notice("the group has formed");
        unformed_.release(batch_);
        schedule_turn();
      }
    }
    if (!done.ok()) fail(done.error());
  }
}

void NodeShell::fail(Error error) {
  if (failure_) return;
  if (driver_) {
    // Before whatever came with it: nothing is judged any more.
    batch_.insert(batch_.begin(), replica::StorageFailed{std::move(error)});
  } else {
    failure_ = std::move(error);
    post_task([this] {
      transport_->stop();
      report_failure();
    });
  }
  schedule_turn();
}

void NodeShell::report_failure() {
  if (!failure_ || !on_failure_) return;
  std::exchange(on_failure_, nullptr)(*failure_);
}

net::TcpCallbacks NodeShell::callbacks() {
  net::TcpCallbacks callbacks;
  callbacks.on_message = [this](const raft::Peer& from, wire::PeerMessage message) {
    received(from, std::move(message));
  };
  callbacks.on_peer = [this](raft::NodeId peer, raft::Uuid uuid, raft::Incarnation) {
    if (!formation_) return;
    formation_->learned(peer, uuid);
    act_on_formation();
  };
  callbacks.accept_peer = [this](raft::NodeId peer, raft::Uuid uuid, raft::Incarnation) {
    return driver_ ? members_->accept_peer(driver_->core(), peer, uuid)
                   : formation_->judge(peer, uuid);
  };
  callbacks.judge_stranger = [this](const wire::Hello& hello) {
    return members_->judge_stranger(core(), hello);
  };
  callbacks.judge_introduction = [this](const wire::Hello& hello) {
    return members_->judge_introduction(core(), hello);
  };
  callbacks.on_reject = [this](const net::Rejection& rejection) { rejected(rejection); };
  return callbacks;
}

void NodeShell::received(const raft::Peer& from, wire::PeerMessage&& message) {
  if (message.group != kGroup || failure_) return;
  if (const auto* confirm = std::get_if<wire::FormationConfirm>(&message.payload)) {
    if (!formation_) return;
    const Result<void> taken = formation_->received(from.id, *confirm);
    if (!taken.ok()) fail(taken.error());
    act_on_formation();
    return;
  }
  if (!driver_) return;  // as if it had been lost
  // Filled in place: g++ 12 takes the move of a temporary for a read of what is not there.
  replica::Event& event = batch_.emplace_back(std::in_place_type<replica::PeerMessageReceived>);
  replica::PeerMessageReceived& taken = std::get<replica::PeerMessageReceived>(event);
  taken.from = from;
  taken.message = std::move(message);
  schedule_turn();
}

void NodeShell::rejected(const net::Rejection& rejection) {
  std::string text = text_of(rejection);
  observer_.on_notice(text);
  problem_ = std::move(text);
  if (!rejection.by_peer) return;
  const bool replaced = rejection.reason == net::RejectReason::older_incarnation ||
                        rejection.reason == net::RejectReason::duplicate_process;
  if (replaced) {
    fail({ErrorCode::in_use,
          "another process runs as this node, with a directory like this one; "
          "only one may: " +
              rejection.error.message});
  } else if (rejection.reason == net::RejectReason::removed && driver_) {
    members_->told_removed(driver_->core(), rejection, clock_.now());
    schedule_turn();
  } else if (rejection.reason == net::RejectReason::removed) {
    fail({ErrorCode::wrong_cluster,
          rejection.error.message + ". The group exists already: a new node joins it (--join)"});
  } else if (rejection.reason == net::RejectReason::refused_by_node && !driver_) {
    fail({ErrorCode::wrong_cluster, rejection.error.message});
  }
}

bool NodeShell::connected(raft::NodeId id) const {
  return id == options_.id || (transport_ && transport_->connected(id));
}

NodeStatus NodeShell::make_status() const {
  NodeStatus status;
  status.id = options_.id;
  status.cluster_id = cluster_id_;
  status.witness = options_.witness;
  status.formed = !formation_ || formation_->formed();
  if (formation_) status.missing = formation_->missing();
  status.problem = failure_ ? failure_->message : problem_;
  status.frames_rejected = transport_ ? transport_->counters().rejected_total() : 0;
  if (log_) {
    status.uuid = log_->identity().uuid;
    status.incarnation = log_->identity().incarnation;
    status.syncs = log_->syncs();
  }
  if (!driver_) {
    for (const Peer& peer : options_.peers) {
      const bool connected =
          peer.id == options_.id || (transport_ && transport_->connected(peer.id));
      status.members.push_back({peer.id, peer.address, true, connected, {}});
    }
    return status;
  }
  describe(*driver_, clock_.holder_now(), failure_.has_value(), status);
  members_->describe(driver_->core(), status);
  return status;
}

// ---- The end ----

void NodeShell::stop_now() {
  if (thread_.joinable()) {
    post_task([this] { stop_on_loop(); });
    thread_.join();
  }
  // Before the mailbox is closed: what these threads call goes into it, and waits for nobody.
  if (applier_) applier_->stop();
  if (snapshots_) snapshots_->stop();
  // From here on this is the only thread that runs the shell; tasks that come now wait for it.
  const std::lock_guard lock(ending_);
  mailbox_.close();
  if (transport_) transport_->stop();
  stopping_ = true;
  if (members_) turn();  // what came in between
  log_.reset();
}

void NodeShell::stop_on_loop() {
  stopping_ = true;
  if (driver_) {
    batch_.push_back(replica::Stop{});
    run_driver(clock_.now());
  } else {
    before_formation(clock_.now());
  }
  drain_.end(false);
  members_->complete_all();
  transport_->stop();
  timer_.cancel();
  work_.reset();
  io_.stop();
}

}  // namespace

Result<std::unique_ptr<Node>> Node::open(NodeOptions options, replica::StateMachine& machine,
                                         const lease::Clock& clock, replica::Observer& observer) {
  auto shell = std::make_unique<NodeShell>(std::move(options), machine, clock, observer);
  if (const auto started = shell->start(); !started.ok()) return started.error();
  return std::unique_ptr<Node>(std::move(shell));
}

}  // namespace leasehold::node
