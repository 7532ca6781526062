// The replicas of a host: how they are opened, closed and removed.
#include <leasehold/node/node_host.h>
#include <leasehold/node/node_restored.h>

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <system_error>
#include <utility>

namespace leasehold::node {
namespace {

Error invalid_group(std::string message) {
  return {ErrorCode::invalid_argument, std::move(message)};
}

Result<void> validate(const GroupOptions& options, const HostOptions& host) {
  if (options.group == raft::GroupId(0)) return invalid_group("group 0: choose numbers from 1 on");
  if (options.replica == raft::kNobody) return invalid_group("replica 0: choose numbers from 1 on");
  if (options.members.size() > raft::kMembersMax) {
    return invalid_group(fmt::format("members: {}; a group has up to {}", options.members.size(),
                                     raft::kMembersMax));
  }
  if (options.witness && !options.members.empty()) {
    return invalid_group("witness: a group forms without, and adds one (MemberEdit)");
  }
  std::set<raft::NodeId> replicas;
  std::set<raft::NodeId> hosts;
  bool here = options.members.empty();
  for (const Placement& member : options.members) {
    if (member.replica == raft::kNobody || member.host == raft::kNobody) {
      return invalid_group("members: 0 is no number of a replica or a host");
    }
    if (!replicas.insert(member.replica).second || !hosts.insert(member.host).second) {
      return invalid_group(fmt::format("members: replica {} or host {} is there twice",
                                       member.replica.value(), member.host.value()));
    }
    here = here || (member.replica == options.replica && member.host == host.id);
  }
  if (!here) {
    return invalid_group(
        fmt::format("members: replica {} at host {} is not among them; list every "
                    "initial member, or none if it joins",
                    options.replica.value(), host.id.value()));
  }
  // A core judges this machine's clock by the bound that its group was opened with.
  if (options.timing.max_clock_drift_ppm < host.timing.max_clock_drift_ppm) {
    return invalid_group(fmt::format(
        "timing.max_clock_drift_ppm: {}, but the clock of this host may drift by {} (the host's "
        "timing): give no less",
        options.timing.max_clock_drift_ppm, host.timing.max_clock_drift_ppm));
  }
  if (auto limits = options.limits.validate(); !limits.ok()) return limits;
  return options.timing.validate();
}

/// What the node has in the folder of a group (node_snapshots.cc, node_restored.cc). The rest is
/// its state machine's.
Result<void> remove_own_files(const std::string& folder) {
  std::error_code failed;
  for (const char* name : {"/snapshot", "/RESTORED", "/RESTORING"}) {
    std::filesystem::remove_all(folder + name, failed);
    if (!failed) continue;
    return Error{ErrorCode::io, fmt::format("cannot remove {}{}: {}; the replica is gone", folder,
                                            name, failed.message())};
  }
  // Unless there is something of the state machine.
  std::filesystem::remove(folder, failed);
  return {};
}

/// As which replica the members name this host's directory, if it is not `replica`. While a host's
/// replica is replaced by another one there, they name it twice.
std::optional<raft::NodeId> other_replica(const std::vector<raft::Member>& members,
                                          const raft::Uuid& self, raft::NodeId replica) {
  std::optional<raft::NodeId> other;
  for (const raft::Member& member : members) {
    if (member.uuid != self) continue;
    if (member.id == replica) return std::nullopt;
    other = member.id;
  }
  return other;
}

Error other_replicas_log(const GroupOptions& options, raft::NodeId other) {
  return {ErrorCode::wrong_cluster,
          fmt::format("group {}: the log here is that of replica {}, not of {}",
                      options.group.value(), other.value(), options.replica.value())};
}

}  // namespace

HostShell::Seat::Seat(HostShell& host, const GroupOptions& options, replica::Observer& observer)
    : places([&host](const raft::Uuid& directory) { return host.host_of(directory); }),
      links(options.replica, host.loop_, places,
            [&host](const net::PeerAddress& at) { return host.directory_of(at); }),
      promises(host.loop_.process()->promises(), host.remembered_),
      replica(options.replica),
      initial(options.members),
      shell({options.group, options.replica, host.folder_of(options.group), options.timing,
             options.preferred_leaders, options.preference_settle, options.witness, options.tracer,
             options.limits},
            host.loop_, observer) {
  for (const Placement& member : initial) places.assign(member.replica, member.host);
}

/// What is in the log is of this replica, and it can begin.
Result<void> HostShell::prepare(Seat& seat, const GroupOptions& options,
                                replica::StateMachine& machine) {
  GroupGround ground;
  const auto restored = load_restored(folder_of(options.group));
  if (!restored.ok()) return restored.error();
  ground.restored = restored.value();
  ground.cluster_id = log_->identity().cluster_id;
  ground.self = log_->identity();
  ground.address = address_of(options_.id);
  ground.members = seat.log->confirmed_set();
  if (const auto other = other_replica(ground.members, ground.self.uuid, options.replica)) {
    return other_replicas_log(options, *other);
  }
  if (ground.members.empty()) ground.members = members_of(options.members);
  if (!seat.log->formed() && ground.members.empty()) {
    if (const auto joined = seat.log->join(); !joined.ok()) return joined.error();
  }
  if (seat.log->formed()) {
    ground.initial = std::make_unique<raft::InitialState>(seat.log->take_initial_state());
    const raft::InitialState& state = *ground.initial;
    const raft::Membership& newest =
        state.memberships.empty() ? state.base_membership : state.memberships.back().membership;
    if (const auto other = other_replica(newest.members, ground.self.uuid, options.replica)) {
      return other_replicas_log(options, *other);
    }
  }
  ground.log = seat.log.get();
  ground.machine = &machine;
  ground.links = &seat.links;
  ground.transport = &seat.links;
  ground.places = &seat.places;
  ground.shared = &seat.promises;
  return seat.shell.prepare(std::move(ground));
}

Result<std::unique_ptr<HostShell::Seat>> HostShell::make_seat(const GroupOptions& options,
                                                              replica::StateMachine& machine,
                                                              replica::Observer& observer) {
  if (const raft::NodeId retired = log_->retired(options.group); options.replica <= retired) {
    return invalid_group(fmt::format(
        "group {}: replica {} was removed from this host, with what it had promised: a new one "
        "needs a number above {}",
        options.group.value(), options.replica.value(), retired.value()));
  }
  auto seat = std::make_unique<Seat>(*this, options, observer);
  auto log = log_->open_group(options.group);
  if (!log.ok()) return log.error();
  seat->log = std::move(log).value();

  const Result<void> ready = prepare(*seat, options, machine);
  if (ready.ok()) return seat;
  log_->give_back(std::move(seat->log));
  return ready.error();
}

std::vector<raft::Member> HostShell::members_of(const std::vector<Placement>& placements) const {
  std::vector<raft::Member> members;
  members.reserve(placements.size());
  for (const Placement& one : placements) {
    members.push_back({one.replica, raft::Uuid{}, address_of(one.host)});
  }
  std::sort(members.begin(), members.end(),
            [](const raft::Member& a, const raft::Member& b) { return a.id < b.id; });
  return members;
}

Result<Group*> HostShell::open_group(const GroupOptions& options, replica::StateMachine& machine,
                                     replica::Observer& observer) {
  if (const auto valid = validate(options, options_); !valid.ok()) return valid.error();
  const std::lock_guard one(one_at_a_time_);
  if (!log_) return Error{ErrorCode::stopped, "the host is stopped"};
  for (const Placement& member : options.members) {
    if (!address_of(member.host).empty()) continue;
    return invalid_group(
        fmt::format("members: host {} is not among the hosts", member.host.value()));
  }
  auto made = make_seat(options, machine, observer);
  if (!made.ok()) return made.error();
  std::unique_ptr<Seat> seat = std::move(made).value();
  opened_[options.group] = options.replica;
  Group* const group = &seat->shell;
  {
    const std::lock_guard lock(mutex_);
    entering_.push_back(std::move(seat));
  }
  // Without waiting: a turn of a loop that runs many groups takes longer than all of the above.
  loop_.admit([this] { let_in(); });
  return group;
}

/// Nothing can fail here any more.
void HostShell::let_in() {
  std::vector<std::unique_ptr<Seat>> seats;
  {
    const std::lock_guard lock(mutex_);
    seats.swap(entering_);
  }
  for (std::unique_ptr<Seat>& seat : seats) {
    GroupShell& shell = seat->shell;
    loop_.add(shell);
    shell.begin();
    tell_met(*seat);
    const std::lock_guard lock(mutex_);
    seats_.emplace(shell.id(), std::move(seat));
  }
}

std::vector<raft::GroupId> HostShell::stored_groups() const {
  const std::lock_guard one(one_at_a_time_);
  return log_ ? log_->groups() : std::vector<raft::GroupId>();
}

Result<void> HostShell::close_group(raft::GroupId group) {
  std::unique_lock one(one_at_a_time_);
  close(one, group);
  return {};
}

void HostShell::close(std::unique_lock<std::mutex>& one, raft::GroupId group) {
  closed_.wait(one, [this, group] { return closing_.count(group) == 0; });
  std::unique_ptr<Seat> seat;
  on_loop([this, group, &seat] {
    const auto found = seats_.find(group);
    if (found == seats_.end()) return;
    found->second->shell.stop_turns(loop_.clock().now());
    loop_.remove(found->second->shell);
    const std::lock_guard lock(mutex_);
    seat = std::move(found->second);
    seats_.erase(found);
  });
  if (!seat) return;
  closing_.insert(group);
  one.unlock();
  seat->shell.stop_work();
  // What was posted for it meanwhile finds nobody; tasks that name it are over behind this one.
  on_loop([&seat] {
    seat->shell.forget();
    seat->shell.log_ends();
  });
  // A caller may hold it until the host ends. What it needed most memory for is gone.
  seat->log.reset();
  // The log says what it had begun to write or to read, which is not for the next replica.
  on_loop([] {});
  one.lock();
  ended_.push_back(std::move(seat));
  closing_.erase(group);
  closed_.notify_all();
}

Result<void> HostShell::remove_group(raft::GroupId group, raft::NodeId replica) {
  std::unique_lock one(one_at_a_time_);
  if (!log_) return Error{ErrorCode::stopped, "the host is stopped"};
  if (replica <= log_->retired(group)) return remove_leftovers(group);  // again
  std::optional<raft::NodeId> other =
      other_replica(log_->members(group), log_->identity().uuid, replica);
  if (const auto was = opened_.find(group); was != opened_.end() && was->second != replica) {
    other = was->second;
  }
  if (other) {
    return invalid_group(fmt::format("group {}: the replica here is {}, not replica {}",
                                     group.value(), other->value(), replica.value()));
  }
  close(one, group);
  // Another thread may have stopped the host, or removed the replica, meanwhile.
  if (!log_) return Error{ErrorCode::stopped, "the host is stopped"};
  if (replica <= log_->retired(group)) return {};
  opened_.erase(group);
  if (auto removed = log_->remove_group(group, replica); !removed.ok()) return removed;
  return remove_own_files(folder_of(group));
}

/// The process may have ended between the log and the folder. Under one_at_a_time_.
Result<void> HostShell::remove_leftovers(raft::GroupId group) const {
  const std::vector<raft::GroupId> stored = log_->groups();
  const bool next_is_here =
      opened_.count(group) > 0 || std::find(stored.begin(), stored.end(), group) != stored.end();
  return next_is_here ? Result<void>() : remove_own_files(folder_of(group));
}

std::string HostShell::folder_of(raft::GroupId group) const {
  return fmt::format("{}/groups/{}", options_.data_dir, group.value());
}

}  // namespace leasehold::node
