#include <leasehold/base/assert.h>
#include <leasehold/replica/process_driver.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>
#include <variant>

namespace leasehold::replica {

namespace {

/// Messages of processes are of no group.
constexpr raft::GroupId kNoGroup{0};

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

void ProcessDriver::add(Driver& driver) {
  groups_.push_back({&driver, newest_membership(driver), {}});
  groups_changed_ = true;
  meet_members();
}

void ProcessDriver::remove(Driver& driver) {
  Group* const group = group_of(driver);
  LEASEHOLD_ASSERT(group != nullptr);
  take_releases(*group);
  groups_.erase(groups_.begin() + (group - groups_.data()));
  groups_changed_ = true;
  LEASEHOLD_ASSERT(group_of(driver) == nullptr);
}

ProcessDriver::Group* ProcessDriver::group_of(const Driver& driver) {
  const auto found = std::find_if(groups_.begin(), groups_.end(), [&driver](const Group& group) {
    return group.driver == &driver;
  });
  return found != groups_.end() ? &*found : nullptr;
}

void ProcessDriver::move_events(Group* from, std::vector<Event>& to) {
  if (from == nullptr) return;
  std::move(from->events.begin(), from->events.end(), std::back_inserter(to));
  from->events.clear();
}

void ProcessDriver::handle(lease::Now now, const Driver& driver, std::vector<Event>& events) {
  Group* const group = group_of(driver);
  std::vector<Event> left;
  move_events(group, left);
  for (Event& event : events) {
    if (!take(now, event)) left.push_back(std::move(event));
    move_events(group, left);
  }
  events = std::move(left);
}

raft::PromiseInstant ProcessDriver::next_deadline() const {
  const bool waits = std::any_of(groups_.begin(), groups_.end(),
                                 [](const Group& group) { return !group.events.empty(); });
  return waits ? raft::PromiseInstant::earliest() : promises_.next_deadline();
}

/// Whether the event is for the process alone.
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
      promises_.reply(received->from, *reply);
    } else {
      return false;
    }
  } else {
    return false;
  }
  carry_out();
  return alone;
}

// The members first: one that has just become a member again has to learn of a release, too.
void ProcessDriver::finish(lease::Now now) {
  meet_members();
  for (Group& group : groups_) take_releases(group);
  promises_.tick(now);
  carry_out();
}

void ProcessDriver::take_releases(Group& group) {
  for (const raft::Release& release : group.driver->take_releases()) {
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
  for (Group& group : groups_) {
    for (const raft::ProcessReady::Released& released : ready_.released) {
      if (released.group != group.driver->group()) continue;
      group.events.emplace_back(GroupReleased{released.holder, released.term});
    }
    const bool leads = group.driver->core().role() == raft::Role::leader;
    const bool said =
        !group.events.empty() && std::holds_alternative<BeatsAcknowledged>(group.events.back());
    if (ready_.acknowledged && leads && !said) group.events.emplace_back(BeatsAcknowledged{});
  }
}

/// All that share a group with this node get its beats, under each directory that a group names.
void ProcessDriver::meet_members() {
  bool changed = std::exchange(groups_changed_, false);
  for (Group& group : groups_) {
    const raft::LogId newest = newest_membership(*group.driver);
    changed = changed || newest != group.membership;
    group.membership = newest;
  }
  if (!changed) return;
  std::map<std::pair<raft::NodeId, raft::Uuid>, raft::Peer> peers;
  for (const Group& group : groups_) {
    for (const raft::Member& member : group.driver->core().membership().members) {
      if (member.id == self_) continue;
      peers[{member.id, member.uuid}] = {member.id, member.uuid, {}};
    }
  }
  std::vector<raft::Peer> all;
  for (const auto& [name, peer] : peers) all.push_back(peer);
  promises_.set_peers(all);
}

}  // namespace leasehold::replica
