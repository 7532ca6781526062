#include <leasehold/base/assert.h>
#include <leasehold/replica/process_driver.h>

#include <algorithm>
#include <utility>
#include <variant>

namespace leasehold::replica {

namespace {

/// Messages of processes are of no group.
constexpr raft::GroupId kNoGroup{0};

/// So many may be kept that no group rests on.
constexpr std::size_t kClassesUnused = 64;

/// Moves the group from the set of one key to that of another.
template <class Key>
void regroup(std::map<Key, std::set<raft::GroupId>>& sets, raft::GroupId id,
             const std::optional<Key>& from, const std::optional<Key>& to) {
  if (from == to) return;
  if (from) {
    const auto left = sets.find(*from);
    LEASEHOLD_ASSERT(left != sets.end());
    left->second.erase(id);
    if (left->second.empty()) sets.erase(left);
  }
  if (to) sets[*to].insert(id);
}

std::optional<raft::LeaseClassId> some(raft::LeaseClassId id) {
  return id != raft::kNoClass ? std::optional(id) : std::nullopt;
}

void put(std::set<raft::GroupId>& groups, raft::GroupId id, bool in) {
  if (in) {
    groups.insert(id);
  } else {
    groups.erase(id);
  }
}

raft::LogId newest_membership(const Driver& driver) {
  const raft::Log& log = driver.core().log();
  const raft::Index index = log.membership_index();
  return {log.term_at(index).value_or(raft::Term()), index};
}

}  // namespace

ProcessDriver::ProcessDriver(const raft::ProcessOptions& options,
                             const std::vector<raft::RememberedSupport>& remembered,
                             net::Transport& transport, SupportStore& store, lease::Now now)
    : self_(options.self.id),
      transport_(transport),
      store_(store),
      promises_(options, remembered, now) {}

void ProcessDriver::add(Driver& driver, const Places* places) {
  const auto [added, fresh] = groups_.try_emplace(driver.group(), Group{&driver, places, {}, {}});
  LEASEHOLD_ASSERT(fresh);
  driver.rest_on(ends_);
  count_members(added->second);
  meet_members();
}

void ProcessDriver::remove(Driver& driver) {
  Group& group = group_of(driver);
  take_releases(group);
  discount(group);
  leading_.erase(driver.group());
  busy_.erase(driver.group());
  note_rest(group, raft::kNoClass, std::nullopt);
  promises_.elections().remove(driver.group());
  std::erase_if(follows_, [&driver](const Follows& one) { return one.driver == &driver; });
  groups_.erase(driver.group());
}

ProcessDriver::Group& ProcessDriver::group_of(const Driver& driver) {
  const auto found = groups_.find(driver.group());
  LEASEHOLD_ASSERT(found != groups_.end() && found->second.driver == &driver);
  return found->second;
}

raft::PromiseInstant ProcessDriver::next_deadline() const {
  const bool hear = acknowledged_ && !(returned_ ? leading_ : busy_).empty();
  if (hear || !follows_.empty()) return raft::PromiseInstant::earliest();
  return std::min(promises_.next_deadline(), promises_.elections().next_deadline());
}

std::vector<ProcessDriver::Follows> ProcessDriver::take_follows() {
  // A leader at rest has not to look each time.
  const std::set<raft::GroupId>& hear = std::exchange(returned_, false) ? leading_ : busy_;
  if (std::exchange(acknowledged_, false)) {
    for (const raft::GroupId id : hear) follow(groups_.at(id), PromisesMoved{});
  }
  return std::exchange(follows_, {});
}

bool ProcessDriver::take(lease::Now now, const Event& event) {
  bool alone = true;
  if (const auto* ended = std::get_if<PeerEnded>(&event)) {
    promises_.ended(now, ended->peer);
    alone = false;
  } else if (const auto* remembered = std::get_if<SupportsRemembered>(&event)) {
    promises_.persisted(remembered->write);
  } else if (const auto* received = std::get_if<PeerMessageReceived>(&event)) {
    const wire::Payload& payload = received->message.payload;
    if (const auto* beat = std::get_if<raft::ProcessBeat>(&payload)) {
      promises_.beat(now, received->from, *beat);
    } else if (const auto* reply = std::get_if<raft::ProcessBeatReply>(&payload)) {
      promises_.reply(now, received->from, *reply);
    } else {
      return false;
    }
  } else {
    return false;
  }
  carry_out();
  return alone;
}

void ProcessDriver::handled(const Driver& driver) {
  Group& group = group_of(driver);
  if (newest_membership(driver) != group.membership) {
    discount(group);
    count_members(group);
  }
  // The members first: one that has just become a member again has to learn of a release, too.
  meet_members();
  take_releases(group);
  const raft::Core& core = driver.core();
  // The core of one that has failed stands still.
  const bool serves = !driver.failure().has_value();
  const bool leads = serves && core.role() == raft::Role::leader;
  put(leading_, driver.group(), leads);
  put(busy_, driver.group(), leads && !core.at_rest());
  const raft::Uuid* const holder = serves ? core.bound_to() : nullptr;
  note_rest(group, serves ? core.lease_class() : raft::kNoClass,
            holder != nullptr ? std::optional<raft::Uuid>(*holder) : std::nullopt);
  note_election(driver);
}

void ProcessDriver::note_rest(Group& group, raft::LeaseClassId lease_class,
                              const std::optional<raft::Uuid>& bound_to) {
  const raft::GroupId id = group.driver->group();
  regroup(resting_, id, some(std::exchange(group.lease_class, lease_class)), some(lease_class));
  regroup(bound_, id, std::exchange(group.bound_to, bound_to), bound_to);
}

void ProcessDriver::note_election(const Driver& driver) {
  using State = raft::ElectionLine::State;
  const raft::Core& core = driver.core();
  State state = State::quiet;
  if (driver.failure()) {
    // Its core stands still, and would wait for ever.
  } else if (core.awaits_place()) {
    state = State::waits;
  } else if (core.role() == raft::Role::leader) {
    // With that entry it gets its lease, if the group has leases.
    const bool commits = core.log().term_at(core.commit_index()) == core.term();
    state = commits ? State::quiet : State::elects;
  } else if (core.role() != raft::Role::follower) {
    state = State::elects;
  }
  promises_.elections().note(driver.group(), state);
}

void ProcessDriver::finish(lease::Now now) {
  meet_members();
  promises_.tick(now);
  carry_out();
  forget_classes();
  for (const raft::GroupId id : promises_.elections().admit(now.promise)) {
    follow(groups_.at(id), MayCampaign{});
  }
}

// Of groups that have other members now, or whose members have let go.
void ProcessDriver::forget_classes() {
  if (promises_.classes() < 2 * resting_.size() + kClassesUnused) return;
  std::set<raft::LeaseClassId> used;
  for (const auto& [id, groups] : resting_) used.insert(id);
  promises_.retain_classes(used);
}

void ProcessDriver::wake(const std::set<raft::GroupId>& groups) {
  for (const raft::GroupId id : groups) follow(groups_.at(id), PromisesMoved{});
}

void ProcessDriver::stop(lease::Now now) {
  promises_.last_beats(now);
  carry_out();
}

void ProcessDriver::take_releases(const Group& group) {
  for (raft::Release& release : group.driver->take_releases()) {
    if (group.places != nullptr) {
      for (raft::NodeId& member : release.members) member = group.places->host_of(member);
      std::sort(release.members.begin(), release.members.end());
    }
    promises_.released(group.driver->group(), release);
  }
}

void ProcessDriver::carry_out() {
  promises_.take_ready(ready_);
  for (raft::ProcessReady::Beat& beat : ready_.beats) {
    transport_.send(beat.to, wire::PeerMessage{kNoGroup, std::move(beat.message)});
  }
  for (const raft::ProcessReady::Reply& reply : ready_.replies) {
    transport_.send(reply.to, wire::PeerMessage{kNoGroup, reply.message});
  }
  if (!ready_.remember.empty()) store_.remember(std::move(ready_.remember), ready_.write);
  for (const raft::ProcessReady::Released& released : ready_.released) {
    const auto group = groups_.find(released.group);
    if (group == groups_.end()) continue;
    raft::Peer holder = released.holder;
    if (group->second.places == nullptr) {
      follow(group->second, GroupReleased{holder, released.term});
      continue;
    }
    // A replica that was there before leads no more either.
    for (const raft::NodeId replica : group->second.places->replicas_of(holder.uuid)) {
      holder.id = replica;
      follow(group->second, GroupReleased{holder, released.term});
    }
  }
  for (const raft::LeaseClassId id : ready_.renewed) {
    ends_.publish(id, promises_.lease_class(id).end);
  }
  for (const raft::LeaseClassId id : ready_.lapsed_classes) {
    if (const auto groups = resting_.find(id); groups != resting_.end()) wake(groups->second);
  }
  for (const raft::Uuid& holder : ready_.lapsed_supports) {
    if (const auto groups = bound_.find(holder); groups != bound_.end()) wake(groups->second);
  }
  if (ready_.health_changed) {
    for (const auto& [id, group] : groups_) follow(group, PromisesMoved{});
  }
  acknowledged_ = acknowledged_ || ready_.acknowledged;
  returned_ = returned_ || ready_.returned;
}

// ---- The members of all groups get its beats ----

void ProcessDriver::count_members(Group& group) {
  group.membership = newest_membership(*group.driver);
  for (const raft::Member& member : group.driver->core().membership().members) {
    const raft::NodeId host =
        group.places != nullptr ? group.places->host_of(member.id) : member.id;
    if (host == self_ || host == raft::kNobody) continue;
    group.members.emplace_back(host, member.uuid);
  }
  for (const Host& host : group.members) {
    if (++members_[host] == 1) members_changed_ = true;
  }
}

void ProcessDriver::discount(Group& group) {
  for (const Host& host : group.members) {
    const auto counted = members_.find(host);
    LEASEHOLD_ASSERT(counted != members_.end());
    if (--counted->second > 0) continue;
    members_.erase(counted);
    members_changed_ = true;
  }
  group.members.clear();
}

void ProcessDriver::hosts_changed() {
  for (auto& [id, group] : groups_) {
    discount(group);
    count_members(group);
  }
  meet_members();
}

/// Under each directory that a group names.
void ProcessDriver::meet_members() {
  if (!std::exchange(members_changed_, false)) return;
  std::vector<raft::Peer> all;
  for (const auto& [host, groups] : members_) all.push_back({host.first, host.second, {}});
  promises_.set_peers(all);
}

}  // namespace leasehold::replica
