#include <leasehold/net/handshake.h>
#include <leasehold/node/node_host.h>
#include <leasehold/node/node_identity.h>
#include <leasehold/node/node_restored.h>
#include <leasehold/node/node_retired.h>
#include <leasehold/node/random_word.h>
#include <leasehold/storage/private_folder.h>

#include <fmt/format.h>

#include <algorithm>
#include <future>
#include <utility>

namespace leasehold::node {
namespace {

/// A host promises at most so many times its own D to another one, as a member of a group does.
constexpr int kLongestPromise = 10;

constexpr std::size_t kAppliersMax = 256;

/// Of the log, that may wait: each group has a few at most.
constexpr std::size_t kReadsMax = std::size_t{1} << 20U;

Error invalid(std::string message) {
  return {ErrorCode::invalid_argument, std::move(message)};
}

Result<void> validate(const HostOptions& options) {
  NodeOptions node;
  node.id = options.id;
  node.data_dir = options.data_dir;
  node.peers = options.hosts;
  node.timing = options.timing;
  node.deputy = options.deputy;
  node.peer_streams = options.peer_streams;
  if (options.hosts.empty()) return invalid("hosts: list at least this one, with its address");
  if (options.appliers == 0 || options.appliers > kAppliersMax) {
    return invalid(fmt::format("appliers: {}; 1 to {} threads call state machines",
                               options.appliers, kAppliersMax));
  }
  return validate_options(node);
}

/// Hosts of the cluster that was given up stop when they reach this one.
void refuse_given_up(const Restored& restored, net::TcpOptions& tcp) {
  if (!restored.recovered) return;
  tcp.given_up_cluster = restored.recovered->cluster_id;
  tcp.given_up_reason = given_up_text(*restored.recovered);
}

}  // namespace

// ---- What a replica sees of the hosts ----

void ReplicaLinks::send(raft::NodeId to, wire::PeerMessage message) {
  const raft::NodeId host = places_.host_of(to);
  if (host == raft::kNobody) return;  // as if it had been lost
  message.from = self_;
  message.to = to;
  loop_.transport().send(host, std::move(message));
}

void ReplicaLinks::introduce(const MemberEdit& added,
                             std::function<void(Result<wire::Hello>)> done) {
  Result<wire::Hello> answer = Error{
      ErrorCode::unavailable,
      fmt::format("no host that runs and knows this one is at {}: give the address of a host, "
                  "and start that with all hosts of the pool, this one too",
                  added.address)};
  for (const net::PeerAddress& host : loop_.transport().peers()) {
    const auto directory = host.address == added.address ? directory_of_(host) : std::nullopt;
    if (!directory) continue;
    wire::Hello hello;
    hello.from = added.id;
    hello.uuid = *directory;
    hello.witness = added.witness;
    hello.versions.max = loop_.transport().wire_version(host.id).value_or(0);
    answer = std::move(hello);
  }
  loop_.post_task([done = std::move(done), answer = std::move(answer)] { done(answer); });
}

std::optional<std::uint32_t> ReplicaLinks::wire_version(raft::NodeId member) const {
  return loop_.transport().wire_version(places_.host_of(member));
}

bool ReplicaLinks::connected(raft::NodeId member) const {
  return loop_.transport().connected(places_.host_of(member));
}

net::PeerProofs ReplicaLinks::proofs(raft::NodeId member) const {
  return loop_.transport().proofs(places_.host_of(member));
}

// ---- The host ----

Result<std::unique_ptr<Host>> Host::open(HostOptions options, const lease::Clock& clock,
                                         replica::Observer& observer) {
  if (const auto valid = validate(options); !valid.ok()) return valid.error();
  auto shell = std::make_unique<HostShell>(std::move(options), clock, observer);
  if (const auto started = shell->start(); !started.ok()) return started.error();
  return std::unique_ptr<Host>(std::move(shell));
}

Result<void> HostShell::start() {
  if (const auto made = storage::make_private_folder(options_.data_dir); !made.ok()) {
    return made.error();
  }
  if (auto usable = check_not_retired(options_.data_dir); !usable.ok()) return usable;
  const auto restored = load_restored(options_.data_dir);
  if (!restored.ok()) return restored.error();
  if (restored.value()) generation_ = restored.value()->generation;
  storage::SegmentLogOptions log;
  log.dir = options_.data_dir + "/log";
  log.cluster_id = cluster_id();
  log.id = options_.id;
  log.reads_max = kReadsMax;
  log.sync_times = options_.sync_times;
  std::unique_ptr<storage::Disk> disk;
  if (options_.log_disk) {
    auto given = options_.log_disk();
    if (!given.ok()) return given.error();
    disk = std::move(given).value();
  }
  auto opened = disk != nullptr ? storage::SharedLog::open(log, std::move(disk))
                                : storage::SharedLog::open(log);
  if (!opened.ok()) return opened.error();
  log_ = std::move(opened).value();
  for (const Peer& host : options_.hosts) name_host(host);
  const storage::NodeIdentity& self = log_->identity();
  std::vector<raft::RememberedSupport> remembered;
  for (const storage::SupportRecord& support : log_->supports()) {
    remembered.push_back({support.holder, support.directory, support.duration});
    supports_[support.directory] = remembered.back();
    remembered_ = std::max(remembered_, support.duration);
  }

  net::TcpOptions tcp;
  tcp.cluster_id = log.cluster_id;
  tcp.id = options_.id;
  tcp.uuid = self.uuid;
  tcp.incarnation = self.incarnation;
  tcp.process = random_word();
  tcp.place = log_->place();
  tcp.cluster = options_.cluster;
  tcp.address = address_of(options_.id);
  tcp.streams = options_.peer_streams;
  tcp.listen = options_.listen.empty() ? tcp.address : options_.listen;
  if (restored.value()) refuse_given_up(*restored.value(), tcp);
  auto guard = net::PeerGuard::load(options_.peer_security);
  if (!guard.ok()) return guard.error();
  tcp.guard = std::move(guard).value();
  for (const Peer& host : options_.hosts) tcp.peers.push_back({host.id, host.address});
  const raft::Peer process{self.id, self.uuid, {self.incarnation, log_->place()}};
  policy_ = policy();
  loop_.connect(std::move(tcp), policy_);
  hosts_[self.uuid] = self.id;
  loop_.share(
      std::make_unique<replica::ProcessDriver>(
          raft::ProcessOptions{process, options_.timing, kLongestPromise * options_.timing.lease},
          remembered, loop_.transport(), static_cast<replica::SupportStore&>(*this),
          loop_.clock().now()),
      *log_, [this](lease::Now now) {
        const auto [accepted, durable] = log_->progress();
        return disk_.goes_on(accepted, durable, now.promise);
      });
  log_->set_process_sink([this](std::uint64_t write) {
    loop_.post(raft::GroupId(0), replica::SupportsRemembered{write});
  });
  if (const auto listening = loop_.listen(); !listening.ok()) return listening.error();
  loop_.run();
  return {};
}

std::uint64_t HostShell::cluster_id() const {
  return net::cluster_id(options_.cluster, {}, generation_);
}

void HostShell::stop() {
  std::unique_lock one(one_at_a_time_);
  closed_.wait(one, [this] { return closing_.empty(); });
  loop_.stop([this] {
    if (log_) log_->set_process_sink([](std::uint64_t) {});
    // The replicas stay: a caller may hold one until the host ends.
    for (auto& [id, seat] : seats_) {
      seat->shell.log_ends();
      seat->log.reset();
    }
    log_.reset();
  });
}

/// The process has promised longer than before to some.
void HostShell::remember(std::vector<raft::RememberedSupport> supports, std::uint64_t write) {
  for (const raft::RememberedSupport& support : supports) supports_[support.directory] = support;
  std::vector<storage::SupportRecord> all;
  for (const auto& [directory, support] : supports_) {
    all.push_back({support.holder, support.directory, support.duration});
  }
  log_->remember(std::move(all), write);
}

// ---- Other hosts ----

net::TcpCallbacks HostShell::policy() {
  net::TcpCallbacks policy;
  policy.accept_peer = [this](raft::NodeId peer, const raft::Uuid& directory, raft::Incarnation) {
    return judge_host(peer, directory);
  };
  policy.on_peer = [this](const raft::Peer& peer) { met(peer.id, peer.uuid); };
  policy.on_met = [this](const wire::Hello& hello) { met(hello.from, hello.uuid); };
  policy.judge_stranger = [this](const wire::Hello& hello) {
    wire::Refusal refusal;
    refusal.code = wire::RefusalCode::unknown_peer;
    refusal.reason = fmt::format("host {} does not know host {}: add it to its hosts first",
                                 options_.id.value(), hello.from.value());
    return std::optional(std::move(refusal));
  };
  policy.on_reject = [this](const net::Rejection& rejection) {
    const bool replaced = rejection.reason == net::RejectReason::older_incarnation ||
                          rejection.reason == net::RejectReason::duplicate_process;
    const bool given_up = rejection.reason == net::RejectReason::given_up;
    if (!rejection.by_peer || !(replaced || given_up)) return;
    const Error why = given_up
                          ? rejection.error
                          : Error{ErrorCode::in_use,
                                  fmt::format("another process runs as this host, with a directory "
                                              "like this one; only one may: {}",
                                              rejection.error.message)};
    for (auto& [id, seat] : seats_) seat->shell.fail(why);
  };
  return policy;
}

void HostShell::met(raft::NodeId host, const raft::Uuid& directory) {
  if (const auto known = hosts_.find(directory); known != hosts_.end() && known->second == host) {
    return;
  }
  std::erase_if(hosts_, [host](const auto& known) { return known.second == host; });
  hosts_[directory] = host;
  loop_.process()->hosts_changed();
  for (auto& [id, seat] : seats_) tell_met(*seat);
}

/// Else a faulty host would get what is for another one.
Result<void> HostShell::judge_host(raft::NodeId host, const raft::Uuid& directory) const {
  const raft::NodeId known = host_of(directory);
  if (known == raft::kNobody || known == host) return {};
  return Error{ErrorCode::wrong_cluster,
               fmt::format("host {} says that its directory is the one of host {}: start each "
                           "with its own",
                           host.value(), known.value())};
}

/// A group forms once it knows the directories of all its members.
void HostShell::tell_met(Seat& seat) {
  if (seat.shell.formation() == nullptr || seat.shell.formation()->formed()) return;
  for (const auto& [directory, host] : hosts_) {
    for (const Placement& member : seat.initial) {
      if (member.host == host) seat.shell.learned(member.replica, directory);
    }
  }
}

raft::NodeId HostShell::host_of(const raft::Uuid& directory) const {
  const auto known = hosts_.find(directory);
  return known != hosts_.end() ? known->second : raft::kNobody;
}

std::optional<raft::Uuid> HostShell::directory_of(const net::PeerAddress& host) const {
  const bool self = host.id == options_.id;
  if (!self && !loop_.transport().connected(host.id)) return std::nullopt;
  if (!self && !last_at(host)) return std::nullopt;
  for (const auto& [directory, number] : hosts_) {
    if (number == host.id) return directory;
  }
  return std::nullopt;
}

std::string HostShell::address_of(raft::NodeId host) const {
  const std::lock_guard lock(mutex_);
  const auto known = addresses_.find(host);
  return known != addresses_.end() ? known->second : std::string();
}

bool HostShell::last_at(const net::PeerAddress& host) const {
  const std::lock_guard lock(mutex_);
  const auto last = last_at_.find(host.address);
  return last != last_at_.end() && last->second == host.id;
}

void HostShell::name_host(const Peer& host) {
  addresses_[host.id] = host.address;
  last_at_[host.address] = host.id;
}

Result<void> HostShell::set_hosts(const std::vector<Peer>& hosts) {
  for (const Peer& host : hosts) {
    if (const auto parsed = net::parse_address(host.address); !parsed.ok()) return parsed.error();
  }
  {
    const std::lock_guard lock(mutex_);
    for (const Peer& host : hosts) {
      if (host.id != options_.id) name_host(host);
    }
  }
  // Without waiting: a completion may call this.
  loop_.post_task([this, hosts] {
    for (const Peer& host : hosts) {
      if (host.id == options_.id) continue;
      static_cast<void>(loop_.transport().set_peer({host.id, host.address}));
    }
  });
  return {};
}

Result<void> HostShell::set_peer_security(const net::PeerSecurity& security) {
  if (auto may = loop_.transport().may_protect_by(security); !may.ok()) return may;
  auto guard = net::PeerGuard::load(security);
  if (!guard.ok()) return guard.error();
  loop_.post_task([this, fresh = std::move(guard).value()] { loop_.transport().set_guard(fresh); });
  return {};
}

void HostShell::on_loop(const std::function<void()>& task) {
  std::promise<void> done;
  loop_.post_task([&task, &done] {
    task();
    done.set_value();
  });
  done.get_future().wait();
}

void HostShell::status(std::function<void(HostStatus)> done) {
  loop_.post_task([this, done = std::move(done)] { done(make_status()); });
}

HostStatus HostShell::make_status() {
  HostStatus status;
  status.id = options_.id;
  if (!log_) return status;
  status.uuid = log_->identity().uuid;
  status.incarnation = log_->identity().incarnation;
  for (const auto& [id, seat] : seats_) {
    status.groups.push_back(id);
    if (!seat->shell.leads()) continue;
    ++status.led;
    if (seat->shell.core()->at_rest()) ++status.at_rest;
  }
  for (const net::PeerAddress& host : loop_.transport().peers()) {
    if (loop_.transport().connected(host.id)) status.connected.push_back(host.id);
  }
  status.messages_sent = loop_.transport().counters().frames_sent;
  status.syncs = log_->syncs();
  return status;
}

}  // namespace leasehold::node
