#include <leasehold/kv/local/led_group.h>
#include <leasehold/node/node_restored.h>
#include <leasehold/server/front/people_time.h>
#include <leasehold/server/front/replica_number.h>
#include <leasehold/server/host_file.h>
#include <leasehold/server/replica_options.h>
#include <leasehold/server/replicas.h>
#include <leasehold/server/slots_away.h>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <mutex>
#include <utility>

namespace leasehold::server {
namespace {

/// Of a command that moves slots, and of the wait until a store is new enough.
constexpr lease::Duration kMoverTimeout = std::chrono::seconds(5);
/// A node that is removed from group 1 hears within this time of its other groups, too.
constexpr auto kRemovalsTake = std::chrono::seconds(3);

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

}  // namespace

Replicas::Replicas(raft::NodeId self, const ServeSettings& settings, Failure& failure)
    : self_(self),
      data_dir_(settings.data_dir),
      failure_(failure),
      removals_(settings.groups),
      events_(settings.groups > 1) {
  if (settings.read_cache > 0 && !settings.node.witness) {
    cache_ = std::make_shared<kv::RecordCache>(settings.read_cache);
  }
}

Result<std::unique_ptr<Replicas>> Replicas::open(const ServeSettings& settings,
                                                 const node::NodeOptions& options,
                                                 const lease::Clock& clock, Failure& failure) {
  if (const auto right = check_folder(settings); !right) return right.error();
  std::unique_ptr<Replicas> replicas(new Replicas(options.id, settings, failure));
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
      options, [&] { return one.service.open_store(options.cluster_id, cache_); }, clock,
      one.observer);
  if (!node) return node.error();
  node_ = std::move(node).value();
  one.group = node_.get();
  return {};
}

Result<void> Replicas::open_many(const ServeSettings& settings, const node::NodeOptions& options,
                                 const lease::Clock& clock) {
  settings_ = &settings;
  options_ = &options;
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
  if (auto found = find_places(settings, options); !found) return found;
  if (auto dropped = drop_restored_elsewhere(settings, options); !dropped) return dropped;
  // All are there before the first one calls back.
  for (std::size_t number = 1; number <= settings.groups; ++number) {
    all_.push_back(std::make_unique<One>(
        settings, number, own_->of(number),
        [this, number](Error error) { group_failed(number, std::move(error)); },
        fmt::format("group {}, ", number),
        [this, number](const raft::Membership& members) { note_members(number, members); },
        events_));
  }
  for (std::size_t i = 0; i < all_.size(); ++i) {
    One& one = *all_[i];
    auto store = one.service.open_store(host_->cluster_id(), cache_);
    if (!store) return store.error();
    auto group = host_->open_group(group_options(settings, options, i, one.replica.load()),
                                   *store.value(), one.observer);
    if (!group) return group.error();
    one.seat.put(*group.value());
    one.group = &one.seat;
  }
  return {};
}

Result<void> Replicas::find_places(const ServeSettings& settings,
                                   const node::NodeOptions& options) {
  const std::vector<std::size_t> waiting = own_->waiting();
  std::vector<GroupPlaces::Start> starts;
  for (std::size_t number = 2; number <= settings.groups; ++number) {
    GroupPlaces::Start start;
    start.nodes = first_nodes(settings, options, number - 1);
    const bool waits = std::find(waiting.begin(), waiting.end(), number) != waiting.end();
    start.here = contains(start.nodes, self_) && own_->of(number) == self_ && !waits;
    // Any of them has been there for longer.
    for (const node::Peer& host : settings.join_hosts) start.nodes.push_back(host.id);
    starts.push_back(std::move(start));
  }
  auto places = GroupPlaces::load(data_dir_, self_, std::move(starts));
  if (!places) return places.error();
  places_ = std::move(places).value();
  return {};
}

/// A backup is restored whole at each node. A replica that begins elsewhere may come here later: it
/// gets the group's state then, and this one would be of another log.
Result<void> Replicas::drop_restored_elsewhere(const ServeSettings& settings,
                                               const node::NodeOptions& options) {
  const std::vector<raft::GroupId> stored = host_->stored_groups();
  for (std::size_t number = 2; number <= settings.groups; ++number) {
    const bool here = contains(first_nodes(settings, options, number - 1), self_);
    if (here || std::find(stored.begin(), stored.end(), raft::GroupId(number)) != stored.end()) {
      continue;
    }
    const std::string folder = fmt::format("{}/groups/{}", data_dir_, number);
    const auto restored = node::load_restored(folder);
    if (!restored) return restored.error();
    if (!restored.value()) continue;
    if (auto removed = remove_replica_files(folder); !removed) return removed;
    spdlog::info("group {}: its replicas are at other nodes; deleted what was restored of it here",
                 number);
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
    if (auto emptied = remove_replica_files(folder); !emptied) return emptied;
    if (auto replaced = own_->replace(number); !replaced) return replaced;
    spdlog::info(
        "group {}: this node was removed from it, and deleted what it had of it; it may be added "
        "again (as replica {}): leasehold member add",
        number, own_->of(number).value());
  }
  return {};
}

/// The same while the node runs, one at a time. The first group, which has the users, waits for the
/// next start.
void Replicas::replace_one() {
  {
    const std::lock_guard lock(members_mutex_);
    if (end_) return;
  }
  for (const std::size_t number : own_->replaceable()) {
    // The end of a replica waits for the command that it applies, and that one for space.
    const bool full = all_[number - 1]->service.is_full();
    if (number == 1 || full || stuck_.count(number) > 0) continue;
    if (const auto replaced = replace(number); !replaced) {
      stuck_.insert(number);
      spdlog::error(
          "group {}: what the removed replica has here could not be deleted: {}; start this node "
          "again, then it waits to be added",
          number, replaced.error().message);
    }
    return;
  }
}

/// Nobody is sent to the replica any more, and who reads it all the same finds that it went.
Result<void> Replicas::replace(std::size_t number) {
  One& one = *all_[number - 1];
  const raft::GroupId group(number);
  if (auto removed = host_->remove_group(group, own_->of(number)); !removed) return removed;
  if (auto emptied = one.service.empty_store(); !emptied) return emptied;
  if (auto replaced = own_->replace(number); !replaced) return replaced;
  const raft::NodeId fresh = own_->of(number);
  one.replica.store(fresh);
  auto opened = host_->open_group(group_options(*settings_, *options_, number - 1, fresh),
                                  one.service.machine(), one.observer);
  if (!opened) return opened.error();
  one.seat.put(*opened.value());
  one.service.serve_as(fresh);
  spdlog::info(
      "group {}: deleted what the removed replica had here; this node may be added again (as "
      "replica {})",
      number, fresh.value());
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
  options.away = [this](std::size_t from, std::size_t to, bool frozen) {
    return cannot_move_here(*all_[from]->group, places_->of(to + 1), {from + 1, to + 1, frozen});
  };
  mover_.emplace(std::move(groups), std::move(options));
}

ServedGroups Replicas::served() {
  std::vector<ServedGroup> groups;
  for (std::size_t i = 0; i < all_.size(); ++i) {
    groups.push_back(all_[i]->service.served());
    if (places_) groups.back().place = places_->of(i + 1);
  }
  return ServedGroups(std::move(groups));
}

void Replicas::look_at_leases() {
  for (const auto& one : all_) one->service.look_at_leases();
}

void Replicas::look() {
  for (const auto& one : all_) one->service.look();
  meet_members();
  note_own();
  end_in_time();
  if (!own_) return;
  replace_one();
  aim_places();
  for (const std::size_t number : own_->waiting()) {
    all_[number - 1]->group->status([this, number](const node::NodeStatus& status) {
      const std::lock_guard lock(members_mutex_);
      if (status.formed) added_.emplace_back(number, status.id);
    });
  }
}

/// Clients are sent to nodes that are there. Every node is a member of the first group.
void Replicas::aim_places() {
  home().status([this](const node::NodeStatus& status) {
    std::set<raft::NodeId> connected;
    for (const node::MemberStatus& member : status.members) {
      if (member.connected) connected.insert(node_of(member.id));
    }
    const std::lock_guard lock(members_mutex_);
    if (state_ != nullptr) places_->aim(connected, state_->options.client_addresses);
  });
}

Result<void> Replicas::hear_place(std::size_t group, const std::vector<raft::NodeId>& nodes) {
  return places_->hear(group, nodes);
}

/// Which of its replicas were removed or added is in a file, for the next start; and before that
/// where their groups are.
void Replicas::note_own() {
  if (!own_) return;
  std::vector<std::pair<std::size_t, raft::NodeId>> said;
  std::vector<std::size_t> removed;
  std::optional<raft::NodeId> home_member;
  {
    const std::lock_guard lock(members_mutex_);
    said.swap(added_);
    removed.swap(removed_);
    home_member.swap(home_member_);
  }
  std::vector<std::size_t> added = own_->just_added(said);
  if (home_member && own_->returned(1, *home_member)) added.push_back(1);
  const auto note = [](const Result<void>& noted) {
    // The others say it again at the next start.
    if (!noted) spdlog::error("which replicas this node has: {}", noted.error().message);
  };
  note(places_->save());
  for (const std::size_t number : added) removals_.added(number);
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
void Replicas::note_members(std::size_t number, const raft::Membership& membership) {
  std::vector<raft::NodeId> nodes;
  for (const raft::NodeId voter : membership.voters) nodes.push_back(node_of(voter));
  for (const raft::Member& member : membership.members) {
    if (!contains(nodes, node_of(member.id))) nodes.push_back(node_of(member.id));
  }
  const raft::NodeId replica = all_[number - 1]->replica.load();
  const bool among = membership.find(replica) != nullptr;
  places_->learn(number, std::move(nodes), among);
  const std::lock_guard lock(members_mutex_);
  // When it is removed it stays, unlike those of other groups.
  if (among && number == 1) home_member_ = replica;
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
  if (places_) places_->leave(number);
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

void Replicas::drain(lease::Duration timeout, const std::function<void(const Drained&)>& done) {
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
