// What a node finds in its folder, and how its threads begin.
#include <leasehold/base/assert.h>
#include <leasehold/net/handshake.h>
#include <leasehold/node/node_ground.h>
#include <leasehold/node/node_identity.h>
#include <leasehold/node/node_shell.h>

#include <fmt/format.h>

#include <pthread.h>

#include <algorithm>
#include <random>
#include <string>
#include <utility>

namespace leasehold::node {

namespace {

/// Under load the next append carries the news of a commit, which saves a quarter of the messages
/// of each write. A follower that waits for a commit still hears of it at once (Core::listens).
constexpr lease::Duration kCommitNewsDelay = std::chrono::milliseconds(5);

std::uint64_t random_u64() {
  std::random_device device;
  const std::uint64_t high = device();
  const std::uint64_t low = device();
  return (high << 32U) | (low & 0xffffffffU);
}

/// An earlier version believed every term and index that a peer named.
Result<void> check_reachable(const std::string& data_dir, const raft::InitialState& state) {
  if (state.hard_state.term <= raft::kTermMax && state.last_index <= raft::kIndexMax) return {};
  return Error{
      ErrorCode::corrupted,
      fmt::format("{}: the log is in term {} and ends at entry {}, which no group can have "
                  "reached: an earlier version stored what a faulty or hostile peer "
                  "claimed. Remove this node from the group, and add it again with an "
                  "empty directory; if most members say this, restore a new group from a "
                  "backup (leasehold restore)",
                  data_dir, state.hard_state.term.value(), state.last_index.value())};
}

}  // namespace

Result<void> NodeShell::start(const OpenMachine& open_machine) {
  if (const auto valid = validate_options(options_); !valid.ok()) return valid.error();
  auto found = find_ground(options_, [&]() -> Result<raft::Index> {
    const auto machine = open_machine();
    if (!machine.ok()) return machine.error();
    machine_ = options_.witness ? &witness_machine_ : machine.value();
    return machine_->durable_index();
  });
  if (!found.ok()) return found.error();
  Ground ground = std::move(found).value();
  cluster_id_ = ground.cluster_id;
  restored_ = ground.restored;
  log_ = std::move(ground.log);
  initial_ = std::move(ground.initial);
  const storage::NodeIdentity& self = log_->identity();
  if (!log_->joined()) {
    raft::GroupSettings proposed;
    proposed.timing = options_.timing;
    formation_ = std::make_unique<Formation>(
        options_.id, self.uuid, InitialSet{ground.members, proposed},
        InitialSet{log_->confirmed_set(), log_->confirmed_settings()}, log_->formed());
  }

  net::TcpOptions tcp;
  tcp.cluster_id = cluster_id_;
  tcp.id = options_.id;
  tcp.uuid = self.uuid;
  tcp.incarnation = self.incarnation;
  tcp.process = random_u64();
  tcp.place = log_->place();
  tcp.listen = options_.listen.empty() ? ground.address : options_.listen;
  tcp.cluster = options_.cluster;
  tcp.address = ground.address;
  tcp.witness = options_.witness;
  auto guard = net::PeerGuard::load(options_.peer_security);
  if (!guard.ok()) return guard.error();
  tcp.guard = std::move(guard).value();
  if (!log_->formed()) {
    for (const Peer& peer : options_.peers) tcp.peers.push_back({peer.id, peer.address});
  }
  notices_of_ends_.prepare(tcp);
  transport_ = std::make_unique<net::TcpTransport>(io_, std::move(tcp), callbacks());
  members_ = std::make_unique<Members>(
      Members::Self{options_.id, self.uuid, ground.address, options_.witness}, *transport_,
      [this](replica::Event event) {
        batch_.push_back(std::move(event));
        schedule_turn();
      },
      [this](const std::string& text) { observer_.on_notice(text); });
  if (const auto started = transport_->start(); !started.ok()) return started.error();
  notices_of_ends_.start(*transport_);

  if (log_->formed()) {
    if (const auto started = start_driver(); !started.ok()) return started.error();
  } else if (const auto fits =
                 check_new_log(options_.data_dir, restored_, machine_->durable_index());
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
  } else if (machine_->durable_index() < initial.base.index) {
    if (const auto done =
            SnapshotThread::install_at_start(options_.data_dir, initial.base, *machine_);
        !done.ok())
      return done;
  }
  initial.applied = machine_->durable_index();
  if (initial.applied > initial.last_index) {
    return Error{
        ErrorCode::corrupted,
        fmt::format("{}: the state machine has applied entry {}, but the log ends at {}: "
                    "they do not belong together, or the log lost entries. Restore both "
                    "from one backup, or remove this node from the group and add it again",
                    options_.data_dir, initial.applied.value(), initial.last_index.value())};
  }
  if (const auto possible = check_reachable(options_.data_dir, initial); !possible.ok()) {
    return possible;
  }
  replica::DriverOptions options;
  static_cast<replica::Limits&>(options) = options_.limits;
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
      *machine_, options_.data_dir, cluster_id_, machine_->durable_index(),
      [this](replica::Event event) { post(std::move(event)); });
  applier_ = std::make_unique<ApplyThread>(
      *machine_, view_, callers_, options_.id, log_->identity().incarnation,
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
  const Result<void> done = machine_->install_snapshot(*staged.value());
  if (done.ok()) snapshots_->installed();
  return done;
}

Result<std::unique_ptr<Node>> Node::open(NodeOptions options, replica::StateMachine& machine,
                                         const lease::Clock& clock, replica::Observer& observer) {
  const auto opened = [&machine]() -> Result<replica::StateMachine*> { return &machine; };
  return open(std::move(options), opened, clock, observer);
}

Result<std::unique_ptr<Node>> Node::open(NodeOptions options, const OpenMachine& open_machine,
                                         const lease::Clock& clock, replica::Observer& observer) {
  auto shell = std::make_unique<NodeShell>(std::move(options), clock, observer);
  if (const auto started = shell->start(open_machine); !started.ok()) return started.error();
  return std::unique_ptr<Node>(std::move(shell));
}

}  // namespace leasehold::node
