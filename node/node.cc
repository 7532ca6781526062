// The doors of a node: calls from other threads, messages from peers, its status, and its end.
#include <leasehold/base/assert.h>
#include <leasehold/net/handshake.h>
#include <leasehold/node/node_ground.h>
#include <leasehold/node/node_shell.h>
#include <leasehold/replica/refusal.h>

#include <fmt/format.h>

#include <algorithm>
#include <asio/post.hpp>
#include <string>
#include <utility>

namespace leasehold::node {

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
                                         options.group, options.repeatable || one.repeatable,
                                         options.expected});
  }
  switch (mailbox_.add(events)) {
    case Mailbox::Added::first: wake(); break;
    case Mailbox::Added::behind: break;
    case Mailbox::Added::closed:
      for (replica::Event& event : events) replica::refuse(event, false);
      break;
  }
}

Result<void> NodeShell::set_peer_security(const net::PeerSecurity& security) {
  if (auto may = transport_->may_protect_by(security); !may.ok()) return may;
  auto guard = net::PeerGuard::load(security);
  if (!guard.ok()) return guard.error();
  post_task([this, fresh = std::move(guard).value()] { transport_->set_guard(fresh); });
  return {};
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
  Members::Call call{std::move(edits), options.expected_membership, deadline(options),
                     options.group, std::move(done)};
  post_task([this, call = std::move(call)]() mutable {
    const bool open = !stopping_ && !failure_;
    members_->change(open ? core() : nullptr, std::move(call));
  });
}

void NodeShell::change_settings(const raft::SettingsEdit& edit, CallOptions options,
                                replica::SettingsCompletion done) {
  replica::ChangeSettings event{edit, deadline(options), std::move(done), options.group};
  post_task([this, event = std::move(event)]() mutable {
    const bool open = !stopping_ && !failure_;
    const auto unready = open ? member_without_settings() : std::nullopt;
    if (unready) {
      replica::SettingsResult result;
      result.status = replica::GroupCallStatus::refused;
      result.refused = raft::SettingsRefused{raft::SettingsObstacle::member_unready, *unready};
      result.leader = core()->leader();
      event.done(result);
      return;
    }
    post(std::move(event));
  });
}

// At a leader of a group without settings: a member that could not read an entry with some, or that
// this node does not reach.
std::optional<raft::NodeId> NodeShell::member_without_settings() const {
  const raft::Core* running = core();
  if (running == nullptr || running->role() != raft::Role::leader) return std::nullopt;
  if (running->membership().settings) return std::nullopt;
  for (const raft::Member& member : running->membership().members) {
    if (member.id == options_.id) continue;
    const auto spoken = transport_->wire_version(member.id);
    if (!spoken || *spoken < wire::kSettingsVersion) return member.id;
  }
  return std::nullopt;
}

void NodeShell::wake() {
  asio::post(io_, [this] { turn(); });
}

void NodeShell::fail(Error error) {
  if (failure_) return;
  if (driver_) {
    // First of all: after stop() nothing else of the turn is handled.
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
  callbacks.on_peer = [this](const raft::Peer& peer) {
    refusal_.connected(peer.id);
    if (!formation_) return;
    formation_->learned(peer.id, peer.uuid);
    act_on_formation();
  };
  callbacks.on_met = [this](const wire::Hello& hello) { met(hello); };
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
  // Filled in place: g++ 12 warns that a moved temporary is uninitialised.
  replica::Event& event = batch_.emplace_back(std::in_place_type<replica::PeerMessageReceived>);
  replica::PeerMessageReceived& taken = std::get<replica::PeerMessageReceived>(event);
  taken.from = from;
  taken.message = std::move(message);
  schedule_turn();
}

void NodeShell::met(const wire::Hello& hello) {
  notices_of_ends_.met(hello, *transport_);
  // The lock of its directory let it in, so the process before it has ended.
  raft::Peer before = wire::peer_of(hello);
  if (before.process.incarnation.value() <= 1) return;
  before.process.incarnation = before.process.incarnation.prev();
  ended(before);
}

void NodeShell::ended(const raft::Peer& peer) {
  if (!driver_) return;
  batch_.push_back(replica::PeerEnded{peer});
  schedule_turn();
}

void NodeShell::rejected(const net::Rejection& rejection) {
  const raft::PromiseInstant now = clock_.now().promise;
  if (const auto line = refusal_lines_.line(rejection, now)) observer_.on_notice(*line);
  refusal_.note(rejection, now);
  if (!rejection.by_peer) return;
  const bool replaced = rejection.reason == net::RejectReason::older_incarnation ||
                        rejection.reason == net::RejectReason::duplicate_process;
  if (replaced) {
    fail({ErrorCode::in_use,
          fmt::format("another process runs as this node, with a directory like this one; "
                      "only one may: {}",
                      rejection.error.message)});
  } else if (rejection.reason == net::RejectReason::removed && driver_) {
    members_->told_removed(driver_->core(), rejection, clock_.now());
    schedule_turn();
  } else if (rejection.reason == net::RejectReason::removed) {
    fail({ErrorCode::wrong_cluster,
          fmt::format("{}. The group exists already: a new node joins it (--join)",
                      rejection.error.message)});
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
  status.problem = failure_ ? failure_->message : refusal_.text(clock_.now().promise);
  notices_of_ends_.describe(status);
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
  status.level = view_.level();
  members_->describe(driver_->core(), status);
  status.last_leader = status.leader != raft::kNobody ? status.leader : changes_.last_leader();
  return status;
}

// ---- The end ----

void NodeShell::stop_now() {
  if (thread_.joinable()) {
    post_task([this] { stop_on_loop(); });
    thread_.join();
  }
  // Before the mailbox is closed: the calls of these threads go into it, and do not wait.
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
  notices_of_ends_.stop(driver_ && driver_->core().role() == raft::Role::leader);
  transport_->stop();
  timer_.cancel();
  work_.reset();
  io_.stop();
}

}  // namespace leasehold::node
