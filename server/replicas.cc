#include <leasehold/kv/local/led_group.h>
#include <leasehold/server/front/people_time.h>
#include <leasehold/server/front/replica_number.h>
#include <leasehold/server/host_cluster.h>
#include <leasehold/server/host_file.h>
#include <leasehold/server/replicas.h>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <mutex>
#include <utility>

namespace leasehold::server {
namespace {

/// Many groups share what one has of memory and of the log. With less than this a group is slow.
constexpr std::size_t kCacheBytesMin = std::size_t{1} << 20U;
constexpr std::uint64_t kLogBytesMin = std::uint64_t{4} << 20U;

/// Of a command that moves slots, and of the wait until a store is new enough.
constexpr lease::Duration kMoverTimeout = std::chrono::seconds(5);
/// A node that is removed from group 1 hears within this time of its other groups, too.
constexpr auto kRemovalsTake = std::chrono::seconds(3);

/// Threads that call state machines.
constexpr std::size_t kAppliersMax = 8;

/// What one of them gets of `all`.
template <class Bytes>
Bytes share_of(Bytes all, std::size_t groups, Bytes least) {
  return std::min(all, std::max<Bytes>(all / groups, least));
}

Result<void> check_folder(const ServeSettings& settings) {
  const bool of_many = std::filesystem::exists(settings.data_dir + "/groups");
  const bool of_one = std::filesystem::exists(settings.data_dir + "/state");
  if (settings.groups == 1 && of_many) {
    return Error{ErrorCode::invalid_argument,
                 fmt::format("{}: this is the directory of a node with many groups: give --groups "
                             "as before",
                             settings.data_dir)};
  }
  if (settings.groups > 1 && of_one) {
    return Error{ErrorCode::invalid_argument,
                 fmt::format("{}: this is the directory of a node with one group, which cannot be "
                             "split: leave out --groups, or start a new group and copy the keys",
                             settings.data_dir)};
  }
  return {};
}

/// Of the settings: this node, and the others that it knows at its start.
std::vector<node::Peer> first_hosts(const ServeSettings& settings,
                                    const node::NodeOptions& options) {
  if (!options.peers.empty()) return options.peers;
  std::vector<node::Peer> hosts = settings.join_hosts;
  const bool named = std::any_of(hosts.begin(), hosts.end(),
                                 [&](const node::Peer& host) { return host.id == options.id; });
  if (!named) hosts.push_back({options.id, options.listen});
  return hosts;
}

node::HostOptions host_options(const ServeSettings& settings, const node::NodeOptions& options) {
  node::HostOptions host;
  host.id = options.id;
  host.data_dir = settings.data_dir;
  host.cluster = host_cluster(settings.node.cluster, settings.groups);
  host.hosts = first_hosts(settings, options);
  host.listen = options.listen;
  host.peer_security = options.peer_security;
  host.timing = options.timing;
  host.deputy = options.deputy;
  host.sync_times = options.sync_times;
  // A call may take long, and must not hold up all groups.
  host.appliers = std::clamp(settings.groups / 2, host.appliers, kAppliersMax);
  return host;
}

std::string text_of(const node::Peer& host) {
  return fmt::format("{}={}", host.id.value(), host.address);
}

/// The next start reads it from a file.
Result<void> check_host(const node::Peer& host) {
  if (host.id.value() >= kNodeNumbersEnd) {
    return Error{ErrorCode::invalid_argument,
                 fmt::format("{}: with --groups a node has a number below {}", text_of(host),
                             kNodeNumbersEnd)};
  }
  const auto parsed = parse_peers(text_of(host));
  if (!parsed) return parsed.error();
  if (parsed.value().size() == 1 && text_of(parsed.value().front()) == text_of(host)) return {};
  return Error{ErrorCode::invalid_argument,
               fmt::format("{}: write the node as id=host:port", text_of(host))};
}

/// At first each host leads as many groups as any other, and again when it has been away.
std::vector<raft::NodeId> preferred_leaders(const node::NodeOptions& options, std::size_t group) {
  // One that joins leaves that to the others.
  if (!options.preferred_leaders.empty() || options.peers.empty()) return options.preferred_leaders;
  std::vector<raft::NodeId> order;
  for (const node::Peer& peer : options.peers) order.push_back(peer.id);
  std::sort(order.begin(), order.end());
  std::rotate(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(group % order.size()),
              order.end());
  return order;
}

/// `number` counts from 0.
node::GroupOptions group_options(const ServeSettings& settings, const node::NodeOptions& options,
                                 std::size_t number, raft::NodeId replica) {
  node::GroupOptions group;
  group.group = raft::GroupId(number + 1);
  group.replica = replica;
  // The first replicas have the numbers of their nodes. A later one joins what these have formed.
  if (replica == options.id) {
    for (const node::Peer& peer : options.peers) group.members.push_back({peer.id, peer.id});
    group.preferred_leaders = preferred_leaders(options, number);
  }
  group.timing = options.timing;
  group.preference_settle = options.preference_settle;
  group.limits = options.limits;
  replica::Limits& limits = group.limits;
  limits.cache_bytes_max = share_of(limits.cache_bytes_max, settings.groups, kCacheBytesMin);
  limits.log_tail_bytes = share_of(limits.log_tail_bytes, settings.groups, kLogBytesMin);
  limits.log_cut_bytes = share_of(limits.log_cut_bytes, settings.groups, kLogBytesMin);
  return group;
}

}  // namespace

Result<std::unique_ptr<Replicas>> Replicas::open(const ServeSettings& settings,
                                                 const node::NodeOptions& options,
                                                 const lease::Clock& clock, Failure& failure) {
  if (const auto right = check_folder(settings); !right) return right.error();
  std::unique_ptr<Replicas> replicas(
      new Replicas(options.id, settings.data_dir, settings.groups, failure));
  const auto opened = settings.groups == 1 ? replicas->open_alone(settings, options, clock)
                                           : replicas->open_many(settings, options, clock);
  if (!opened) return opened.error();
  return replicas;
}

Result<void> Replicas::open_alone(const ServeSettings& settings, const node::NodeOptions& options,
                                  const lease::Clock& clock) {
  all_.push_back(std::make_unique<One>(
      settings, 0, self_, [this](Error error) { failure_.set(std::move(error)); }, "", nullptr,
      events_));
  One& one = *all_.front();
  auto node = node::Node::open(
      options, [&] { return one.service.open_store(options.cluster_id); }, clock, one.observer);
  if (!node) return node.error();
  node_ = std::move(node).value();
  one.group = node_.get();
  return {};
}

Result<void> Replicas::open_many(const ServeSettings& settings, const node::NodeOptions& options,
                                 const lease::Clock& clock) {
  auto host = node::Host::open(host_options(settings, options), clock, of_host_);
  if (!host) {
    Error error = host.error();
    if (error.code == ErrorCode::wrong_cluster) {
      error.message += "; and with the number of --groups that it was made with";
    }
    return error;
  }
  host_ = std::move(host).value();
  auto added = load_hosts(settings.data_dir);
  if (!added) return added.error();
  added_hosts_ = std::move(added).value();
  if (auto known = host_->set_hosts(added_hosts_); !known) return known;
  note_hosts(first_hosts(settings, options));
  auto own = OwnReplicas::load(settings.data_dir, self_, settings.groups);
  if (!own) return own.error();
  own_.emplace(std::move(own).value());
  if (auto replaced = replace_removed(); !replaced) return replaced;
  for (std::size_t i = 0; i < settings.groups; ++i) {
    const raft::NodeId replica = own_->of(i + 1);
    all_.push_back(std::make_unique<One>(
        settings, i + 1, replica, [this, i](Error error) { group_failed(i + 1, std::move(error)); },
        fmt::format("group {}, ", i + 1),
        [this](const raft::Membership& membership) { note_members(membership); }, events_));
    One& one = *all_.back();
    auto store = one.service.open_store(host_->cluster_id());
    if (!store) return store.error();
    auto group = host_->open_group(group_options(settings, options, i, replica), *store.value(),
                                   one.observer);
    if (!group) return group.error();
    one.group = group.value();
  }
  return {};
}

/// A removed replica goes with all that it had, before the next one of its group begins. May be
/// repeated at each of its steps.
Result<void> Replicas::replace_removed() {
  for (const std::size_t number : own_->replaceable()) {
    const raft::GroupId group(number);
    const raft::NodeId gone = own_->of(number);
    if (auto removed = host_->remove_group(group, gone); !removed) return removed;
    // It may have ended between the log and the folder the last time.
    const std::string folder = fmt::format("{}/groups/{}", data_dir_, number);
    std::error_code failed;
    std::filesystem::remove_all(folder, failed);
    if (failed) {
      return Error{ErrorCode::io, fmt::format("cannot remove {}: {}", folder, failed.message())};
    }
    if (auto replaced = own_->replace(number); !replaced) return replaced;
    spdlog::info(
        "group {}: this node was removed from it, and deleted what it had of it; it may be added "
        "again (as replica {}): leasehold member add",
        number, own_->of(number).value());
  }
  return {};
}

Replicas::~Replicas() {
  stop();
}

void Replicas::begin(ServerState& state) {
  {
    const std::lock_guard lock(members_mutex_);
    state_ = &state;
    if (end_) state.draining = true;
  }
  for (const auto& one : all_) one->service.begin(*one->group, state);
  // A witness has no keys.
  if (all_.size() == 1 || state.options.witness) return;
  std::vector<std::unique_ptr<kv::LedGroup>> groups;
  for (const auto& one : all_) {
    groups.push_back(
        kv::led_group(*one->group, one->service.store(), one->service.keeper(), kMoverTimeout));
  }
  kv::SlotMover::Options options;
  options.notice = [](const std::string& text) { spdlog::info("{}", text); };
  mover_.emplace(std::move(groups), std::move(options));
}

ServedGroups Replicas::served() {
  std::vector<ServedGroup> groups;
  for (const auto& one : all_) groups.push_back(one->service.served());
  return ServedGroups(std::move(groups));
}

void Replicas::look() {
  for (const auto& one : all_) one->service.look();
  meet_members();
  note_own();
  end_in_time();
  if (!own_) return;
  for (const std::size_t number : own_->waiting()) {
    all_[number - 1]->group->status([this, number](const node::NodeStatus& status) {
      const std::lock_guard lock(members_mutex_);
      if (status.formed) added_.push_back(number);
    });
  }
}

/// Which of its replicas were removed or added is in a file, for the next start.
void Replicas::note_own() {
  if (!own_) return;
  std::vector<std::size_t> added;
  std::vector<std::size_t> removed;
  {
    const std::lock_guard lock(members_mutex_);
    added.swap(added_);
    removed.swap(removed_);
  }
  const auto note = [](const Result<void>& noted) {
    // The others say it again at the next start.
    if (!noted) spdlog::error("which replicas this node has: {}", noted.error().message);
  };
  if (!added.empty()) note(own_->note_added(added));
  if (!removed.empty()) note(own_->note_removed(removed));
}

/// Which nodes it knows at its start. One that was added at another address than the settings name
/// has moved since, or was moved there.
void Replicas::note_hosts(const std::vector<node::Peer>& named) {
  const std::lock_guard lock(members_mutex_);
  for (const node::Peer& host : named) known_.insert(host.id);
  for (const node::Peer& added : added_hosts_) {
    known_.insert(added.id);
    for (const node::Peer& host : named) {
      if (host.id != added.id || host.address == added.address) continue;
      spdlog::warn(
          "node {} is at {}, by {}/HOSTS, and not at {}: if that is wrong, remove its "
          "line there, and start this node again",
          added.id.value(), added.address, data_dir_, host.address);
    }
  }
}

/// The loop's thread.
void Replicas::note_members(const raft::Membership& membership) {
  const std::lock_guard lock(members_mutex_);
  for (const raft::Member& member : membership.members) {
    const raft::NodeId node = node_of(member.id);
    if (known_.insert(node).second) unknown_.push_back({node, member.address});
  }
}

/// A node that was down while another one was added learns of it from the groups.
void Replicas::meet_members() {
  std::vector<node::Peer> unknown;
  {
    const std::lock_guard lock(members_mutex_);
    unknown.swap(unknown_);
  }
  for (const node::Peer& host : unknown) {
    if (const auto added = add_host(host); !added) {
      spdlog::error("node {}, which is a member now, is not known here: {}", host.id.value(),
                    added.error().message);
    }
  }
}

Result<void> Replicas::set_peer_security(const net::PeerSecurity& security) {
  return node_ ? node_->set_peer_security(security) : host_->set_peer_security(security);
}

Result<void> Replicas::add_host(const node::Peer& host) {
  if (!host_) {
    return Error{ErrorCode::invalid_argument,
                 "this node has one group: its members are all the nodes that it knows"};
  }
  if (auto right = check_host(host); !right) return right;
  if (host.id == self_) return {};
  const std::lock_guard lock(hosts_mutex_);
  std::vector<node::Peer> added = added_hosts_;
  std::erase_if(added, [&host](const node::Peer& earlier) {
    return earlier.id == host.id || earlier.address == host.address;
  });
  added.push_back(host);
  if (auto known = host_->set_hosts({host}); !known) return known;
  if (auto saved = save_hosts(data_dir_, added); !saved) return saved;
  added_hosts_ = std::move(added);
  const std::lock_guard members(members_mutex_);
  known_.insert(host.id);
  return {};
}

/// Any thread.
void Replicas::group_failed(std::size_t number, Error error) {
  if (error.code != ErrorCode::removed) return failure_.set(std::move(error));
  {
    const std::lock_guard lock(members_mutex_);
    removed_.push_back(number);
  }
  auto end = removals_.note(number, std::move(error));
  if (end && !removals_.of_all()) {
    // One that was away learns of all its removals now, and has to know them at its next start.
    const std::lock_guard lock(members_mutex_);
    if (state_ != nullptr) state_->draining = true;
    end_ = std::move(*end);
    end_at_ = coarse_now() + kRemovalsTake;
    spdlog::info("group 1: this node was removed from it; it serves nothing any more, and ends");
    return;
  }
  if (end) return failure_.set(std::move(*end));
  spdlog::info("group {}: this node was removed from it", number);
}

/// It serves nothing any more.
void Replicas::end_in_time() {
  std::optional<Error> end;
  {
    const std::lock_guard lock(members_mutex_);
    if (!end_ || coarse_now() < end_at_) return;
    end.swap(end_);
  }
  failure_.set(std::move(*end));
}

void Replicas::drain(lease::Duration timeout, std::function<void(const Drained&)> done) {
  struct Sum {
    std::mutex mutex;
    Drained drained;
    std::size_t missing;
  };
  const auto sum = std::make_shared<Sum>();
  sum->missing = all_.size();
  sum->drained.groups = all_.size();
  for (std::size_t i = 0; i < all_.size(); ++i) {
    const raft::NodeId self = own_ ? own_->of(i + 1) : self_;
    const auto told = [sum, done, i, self](const node::DrainResult& result) {
      {
        const std::lock_guard lock(sum->mutex);
        Drained& drained = sum->drained;
        if (i == 0) drained.home = result;
        drained.incomplete += result.complete ? 0 : 1;
        drained.waiting += result.waiting;
        drained.transferred += result.transferred ? 1 : 0;
        drained.led_here += result.leader == self ? 1 : 0;
        if (--sum->missing > 0) return;
      }
      done(sum->drained);
    };
    all_[i]->group->drain(timeout, told);
  }
}

void Replicas::stop() {
  if (mover_) mover_->interrupt();
  for (const auto& one : all_) one->service.interrupt();
  if (node_) node_->stop();
  if (host_) host_->stop();
  // The calls that it waits for have ended.
  mover_.reset();
  for (const auto& one : all_) one->service.stop();
  note_own();
}

}  // namespace leasehold::server
