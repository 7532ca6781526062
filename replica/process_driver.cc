#include <leasehold/replica/process_driver.h>

#include <algorithm>
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
  meet_members();
}

void ProcessDriver::handle(lease::Now now, const Driver& driver, std::vector<Event>& events) {
  std::vector<Event> left;
  for (Event& event : events) {
    if (!take(now, event)) left.push_back(std::move(event));
    for (Group& group : groups_) {
      if (group.driver != &driver) continue;
      for (Event& follows : group.events) left.push_back(std::move(follows));
      group.events.clear();
    }
  }
  events = std::move(left);
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

void ProcessDriver::finish(lease::Now now) {
  for (Group& group : groups_) {
    const raft::GroupId id = group.driver->group();
    for (const raft::Release& release : group.driver->take_releases()) {
      promises_.released(id, release);
    }
  }
  meet_members();
  promises_.tick(now);
  carry_out();
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
    if (ready_.acknowledged && leads) group.events.emplace_back(BeatsAcknowledged{});
  }
}

/// All that share a group with this node get its beats.
void ProcessDriver::meet_members() {
  bool changed = promises_.beats().newest() == lease::Beat();
  for (Group& group : groups_) {
    const raft::LogId newest = newest_membership(*group.driver);
    changed = changed || newest != group.membership;
    group.membership = newest;
  }
  if (!changed) return;
  std::map<raft::NodeId, raft::Peer> peers;
  for (const Group& group : groups_) {
    for (const raft::Member& member : group.driver->core().membership().members) {
      if (member.id != self_) peers[member.id] = {member.id, member.uuid, {}};
    }
  }
  std::vector<raft::Peer> all;
  for (const auto& [id, peer] : peers) all.push_back(peer);
  promises_.set_peers(all);
}

}  // namespace leasehold::replica
