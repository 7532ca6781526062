#include <leasehold/base/assert.h>
#include <leasehold/raft/process_promises.h>

#include <algorithm>
#include <utility>

namespace leasehold::raft {

ProcessPromises::ProcessPromises(const ProcessOptions& options,
                                 const std::vector<RememberedSupport>& remembered, Now now)
    : options_(options),
      beat_due_(now.promise),
      classes_due_(now.promise),
      classes_(options.timing.heartbeat),
      elections_(options.elections_max, options.election_patience) {
  LEASEHOLD_ASSERT(options_.timing.validate().ok());
  LEASEHOLD_ASSERT(options_.longest_promise >= options_.timing.lease);
  for (const RememberedSupport& support : remembered) {
    Duration& longest = remembered_[support.holder];
    longest = std::max(longest, support.duration);
    // The promise was by the clock of an earlier process, which may have known a smaller bound.
    const Duration binding = options_.timing.stretched(support.duration, 0);
    supports_.emplace(support.directory,
                      Supported{support.holder,
                                lease::Support::restarted(options_.self.process.incarnation,
                                                          support.duration, binding, now.promise),
                                false});
  }
}

void ProcessPromises::set_peers(const std::vector<Peer>& peers) {
  for (PeerState& known : peers_) known.member = false;
  for (const Peer& one : peers) {
    LEASEHOLD_ASSERT(one.id != options_.self.id);
    for (PeerState& known : peers_) {
      if (known.id == one.id && known.directory != one.uuid) known.released.clear();  // it is gone
    }
    if (PeerState* const known = peer(one); known != nullptr) {
      known->member = true;
    } else {
      peers_.push_back({one.id, one.uuid, true, {}});
    }
  }
}

ProcessPromises::PeerState* ProcessPromises::peer(const Peer& of) {
  const auto found = std::find_if(peers_.begin(), peers_.end(), [&of](const PeerState& known) {
    return known.id == of.id && known.directory == of.uuid;
  });
  return found != peers_.end() ? &*found : nullptr;
}

void ProcessPromises::set_timing(const lease::Timing& timing) {
  LEASEHOLD_ASSERT(timing.validate().ok());
  if (timing.heartbeat != options_.timing.heartbeat) classes_due_ = PromiseInstant::earliest();
  classes_.set_heartbeat(timing.heartbeat);
  options_.timing = timing;
  options_.longest_promise = std::max(options_.longest_promise, timing.lease);
  beat_due_ = PromiseInstant::earliest();
}

void ProcessPromises::set_healthy(bool healthy) {
  if (std::exchange(healthy_, healthy) != healthy) pending_.health_changed = true;
}

bool ProcessPromises::sends_beats() const {
  return healthy_ && std::any_of(peers_.begin(), peers_.end(), gets_beats);
}

PromiseInstant ProcessPromises::next_deadline() const {
  return std::min(sends_beats() ? beat_due_ : PromiseInstant::never(), next_end());
}

PromiseInstant ProcessPromises::next_end() const {
  PromiseInstant due = PromiseInstant::never();
  if (classes_.any_lives()) due = std::min(due, classes_due_);
  for (const auto& [directory, supported] : supports_) {
    if (supported.lasts) due = std::min(due, supported.support.until());
  }
  return due;
}

void ProcessPromises::tick(Now now) {
  if (sends_beats() && now.promise >= beat_due_) begin_beat(now);
  look(now);
  LEASEHOLD_ASSERT(next_deadline() > now.promise);
}

void ProcessPromises::look(Now now) {
  for (auto& [directory, supported] : supports_) {
    if (supported.lasts && !supported.support.live(now.promise)) lapse(directory, supported);
  }
  if (!classes_.any_lives() || now.promise < classes_due_) return;
  classes_.look(now.holder, pending_.lapsed_classes);
  classes_due_ = now.promise + options_.timing.heartbeat;
}

void ProcessPromises::lapse(const Uuid& holder, Supported& supported) {
  // Else those that are bound to it are awake already.
  if (!std::exchange(supported.lasts, false)) return;
  pending_.lapsed_supports.push_back(holder);
}

LeaseClassId ProcessPromises::join(const LeaseBasis& basis, HolderInstant now) {
  const LeaseClassId joined = classes_.join(basis, beats_, supporters_, now);
  if (joined != kNoClass) pending_.renewed.insert(joined);
  return joined;
}

const LeaseClass& ProcessPromises::lease_class(LeaseClassId id) const {
  const LeaseClass* const found = classes_.find(id);
  LEASEHOLD_ASSERT(found != nullptr);
  return *found;
}

void ProcessPromises::last_beats(Now now) {
  const auto misses = [](const PeerState& peer) { return !peer.released.empty(); };
  while (healthy_ && std::any_of(peers_.begin(), peers_.end(), misses)) {
    begin_beat(now);
    for (PeerState& peer : peers_) {
      std::erase_if(peer.released,
                    [](const ReleasedGroup& released) { return released.since != lease::Beat(); });
    }
  }
}

void ProcessPromises::begin_beat(Now now) {
  LEASEHOLD_ASSERT(healthy_);
  beats_.begin(now.holder, options_.timing);
  beat_due_ = now.promise + options_.timing.heartbeat;
  for (PeerState& to : peers_) {
    if (gets_beats(to)) pending_.beats.push_back({to.id, beat_to(to)});
  }
  classes_.derive(beats_, supporters_, nullptr, pending_.renewed);
  LEASEHOLD_ASSERT(beat_due_ > now.promise);
}

ProcessBeat ProcessPromises::beat_to(PeerState& to) const {
  ProcessBeat message;
  message.beat = beats_.newest();
  message.lease = beats_.find(message.beat)->duration;
  message.drift_ppm = options_.timing.max_clock_drift_ppm;
  for (ReleasedGroup& released : to.released) {
    if (message.released.size() == kReleasedGroupsMax) break;
    if (released.since == lease::Beat()) released.since = message.beat;
    message.released.push_back(released);
  }
  std::sort(message.released.begin(), message.released.end(),
            [](const ReleasedGroup& a, const ReleasedGroup& b) { return a.group < b.group; });
  return message;
}

void ProcessPromises::released(GroupId group, const Release& release) {
  for (PeerState& peer : peers_) {
    if (!std::binary_search(release.members.begin(), release.members.end(), peer.id)) continue;
    // A later term of the same group says all that an earlier one did.
    std::erase_if(peer.released,
                  [group](const ReleasedGroup& earlier) { return earlier.group == group; });
    peer.released.push_back({group, release.term, lease::Beat()});
  }
}

void ProcessPromises::beat(Now now, const Peer& from, const ProcessBeat& beat) {
  const PeerState* const holder = peer(from);
  if (holder == nullptr || !holder->member) return;
  const lease::Support fresh(options_.self.process.incarnation);
  Supported& supported =
      supports_.try_emplace(from.uuid, Supported{from.id, fresh, false}).first->second;
  if (supported.id != from.id) return;  // another number claims the directory
  const Duration remembered = supported.support.remembered();
  const Duration asked = std::min(beat.lease, options_.longest_promise);
  const Duration duration =
      std::max(options_.timing.lease, options_.timing.stretched(asked, beat.drift_ppm));
  const lease::Epoch before = supported.support.epoch();
  if (!supported.support.renew(from.process, duration, now.promise)) return;
  LEASEHOLD_ASSERT(supported.support.live(now.promise));
  // Of another process than before: what was bound to that one is over.
  if (supported.support.epoch() != before) lapse(from.uuid, supported);
  supported.lasts = true;
  take_releases(from, beat, supported.support);
  if (supported.support.remembered() != remembered) remember(from.uuid, supported);
  // The holder would count on all of the D that it has asked for.
  if (beat.lease > options_.longest_promise) return;
  const ProcessBeatReply reply{from.process.incarnation, beat.beat, supported.support.epoch()};
  if (supported.write > persisted_) {
    supported.held = reply;
  } else {
    pending_.replies.push_back({from.id, reply});
  }
}

void ProcessPromises::remember(const Uuid& holder, Supported& supported) {
  std::erase_if(pending_.remember, [&holder](const RememberedSupport& earlier) {
    return earlier.directory == holder;
  });
  if (pending_.write == 0) pending_.write = ++writes_;
  supported.write = pending_.write;
  pending_.remember.push_back({supported.id, holder, supported.support.remembered()});
}

void ProcessPromises::take_releases(const Peer& from, const ProcessBeat& beat,
                                    lease::Support& support) {
  for (const ReleasedGroup& released : beat.released) {
    support.release(from.process, released.since);
    pending_.released.push_back({released.group, from, released.term});
  }
}

void ProcessPromises::persisted(std::uint64_t write) {
  LEASEHOLD_ASSERT(write > persisted_ && write <= writes_);
  persisted_ = write;
  for (auto& [directory, supported] : supports_) {
    if (!supported.held || supported.write > persisted_) continue;
    pending_.replies.push_back({supported.id, *supported.held});
    supported.held.reset();
  }
}

void ProcessPromises::reply(Now now, const Peer& from, const ProcessBeatReply& reply) {
  if (reply.incarnation != options_.self.process.incarnation) return;
  if (beats_.newest() < reply.beat) return;  // no beat of this process
  PeerState* const by = peer(from);
  if (by == nullptr) return;
  lease::Supporter& supporter = supporters_[from.uuid];
  const std::optional<lease::Epoch> before = supporter.epoch();
  const std::optional<lease::RoundStart> heard =
      before ? supporter.acknowledged(*before) : std::nullopt;
  if (!supporter.acknowledge(beats_, reply.beat, reply.epoch)) return;
  pending_.acknowledged = true;
  classes_.derive(beats_, supporters_, &from.uuid, pending_.renewed);
  // Leaders at rest may have given it up. Its answers may have been late, not lost.
  // Test: Rest.AMemberThatAnswersAgainEndsTheRest.
  const bool silent = !heard || now.holder - heard->began >= heard->duration;
  if (before != supporter.epoch() || silent) pending_.returned = true;
  // At another epoch nothing is bound that this process has ever asked for.
  const bool all = before && reply.epoch > *before;
  std::erase_if(by->released, [&reply, all](const ReleasedGroup& released) {
    return all || (released.since != lease::Beat() && released.since <= reply.beat);
  });
}

void ProcessPromises::ended(Now now, const Peer& peer) {
  const auto found = supports_.find(peer.uuid);
  if (found == supports_.end() || found->second.id != peer.id) return;
  const lease::Epoch before = found->second.support.epoch();
  found->second.support.end(peer.process, now.promise);
  if (found->second.support.epoch() != before) lapse(peer.uuid, found->second);
}

void ProcessPromises::take_ready(ProcessReady& ready) {
  ready = std::exchange(pending_, ProcessReady{});
}

const lease::Support* ProcessPromises::support_of(const Uuid& holder) const {
  const auto found = supports_.find(holder);
  return found != supports_.end() ? &found->second.support : nullptr;
}

void ProcessPromises::rely(const Uuid& holder, PromiseInstant now) {
  const auto found = supports_.find(holder);
  LEASEHOLD_ASSERT(found != supports_.end());
  found->second.support.rely(now);
  lapse(holder, found->second);
}

Duration ProcessPromises::remembered(NodeId holder) const {
  const auto found = remembered_.find(holder);
  return found != remembered_.end() ? found->second : Duration(0);
}

const lease::Supporter* ProcessPromises::supporter(const Uuid& member) const {
  const auto found = supporters_.find(member);
  return found != supporters_.end() ? &found->second : nullptr;
}

}  // namespace leasehold::raft
