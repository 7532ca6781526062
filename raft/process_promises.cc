#include <leasehold/base/assert.h>
#include <leasehold/raft/process_promises.h>

#include <algorithm>
#include <utility>

namespace leasehold::raft {

ProcessPromises::ProcessPromises(const ProcessOptions& options,
                                 const std::vector<RememberedSupport>& remembered, Now now)
    : options_(options), beat_due_(now.promise) {
  LEASEHOLD_ASSERT(options_.timing.validate().ok());
  LEASEHOLD_ASSERT(options_.longest_promise >= options_.timing.lease);
  for (const RememberedSupport& support : remembered) {
    Duration& longest = remembered_[support.holder];
    longest = std::max(longest, support.duration);
    // The promise was by the clock of an earlier process, which may have known a smaller bound.
    supports_.emplace(
        support.directory,
        lease::Support::restarted(options_.self.process.incarnation, support.duration,
                                  options_.timing.stretched(support.duration, 0), now.promise));
  }
}

void ProcessPromises::set_peers(const std::vector<Peer>& peers) {
  std::vector<PeerState> kept;
  for (const Peer& peer : peers) {
    LEASEHOLD_ASSERT(peer.id != options_.self.id);
    const auto found = std::find_if(peers_.begin(), peers_.end(), [&peer](const PeerState& known) {
      return known.id == peer.id && known.directory == peer.uuid;
    });
    kept.push_back(found != peers_.end() ? std::move(*found) : PeerState{peer.id, peer.uuid, {}});
  }
  peers_ = std::move(kept);
}

void ProcessPromises::set_timing(const lease::Timing& timing) {
  LEASEHOLD_ASSERT(timing.validate().ok());
  options_.timing = timing;
  options_.longest_promise = std::max(options_.longest_promise, timing.lease);
  beat_due_ = PromiseInstant::earliest();
}

PromiseInstant ProcessPromises::next_deadline() const {
  return peers_.empty() || !healthy_ ? PromiseInstant::never() : beat_due_;
}

void ProcessPromises::tick(Now now) {
  if (now.promise < next_deadline()) return;
  begin_beat(now);
}

void ProcessPromises::begin_beat(Now now) {
  LEASEHOLD_ASSERT(healthy_);
  beats_.begin(now.holder, options_.timing);
  beat_due_ = now.promise + options_.timing.heartbeat;
  for (PeerState& peer : peers_) pending_.beats.push_back({peer.id, beat_to(peer)});
  LEASEHOLD_ASSERT(next_deadline() > now.promise);
}

ProcessBeat ProcessPromises::beat_to(PeerState& peer) const {
  ProcessBeat message;
  message.beat = beats_.newest();
  message.lease = beats_.find(message.beat)->duration;
  message.drift_ppm = options_.timing.max_clock_drift_ppm;
  for (ReleasedGroup& released : peer.released) {
    if (message.released.size() == kReleasedGroupsMax) break;
    if (released.since == lease::Beat()) released.since = message.beat;
    message.released.push_back(released);
  }
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

lease::Support& ProcessPromises::support_for(const Uuid& holder) {
  return supports_.try_emplace(holder, options_.self.process.incarnation).first->second;
}

void ProcessPromises::beat(Now now, const Peer& from, const ProcessBeat& beat) {
  lease::Support& support = support_for(from.uuid);
  const Duration remembered = support.remembered();
  const Duration asked = std::min(beat.lease, options_.longest_promise);
  const Duration duration =
      std::max(options_.timing.lease, options_.timing.stretched(asked, beat.drift_ppm));
  if (!support.renew(from.process, duration, now.promise)) return;
  take_releases(from, beat, support);
  if (support.remembered() != remembered) {
    std::erase_if(pending_.remember, [&from](const RememberedSupport& earlier) {
      return earlier.directory == from.uuid;
    });
    if (pending_.remember.empty()) pending_.write = ++writes_;
    pending_.remember.push_back({from.id, from.uuid, support.remembered()});
  }
  ProcessReady::Reply reply{from.id, {from.process.incarnation, beat.beat, support.epoch()}};
  // What an earlier beat has made it remember may not be durable yet.
  if (writes_ > persisted_) {
    held_.push_back({reply, writes_});
  } else {
    pending_.replies.push_back(reply);
  }
  LEASEHOLD_ASSERT(support.live(now.promise));
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
  while (!held_.empty() && held_.front().after <= persisted_) {
    pending_.replies.push_back(held_.front().reply);
    held_.pop_front();
  }
}

void ProcessPromises::reply(const Peer& from, const ProcessBeatReply& reply) {
  if (reply.incarnation != options_.self.process.incarnation) return;
  if (beats_.newest() < reply.beat) return;  // no beat of this process
  lease::Supporter& supporter = supporters_[from.uuid];
  const std::optional<lease::Epoch> before = supporter.epoch();
  if (before && reply.epoch < *before) return;
  supporter.acknowledge(beats_, reply.beat, reply.epoch);
  pending_.acknowledged = true;
  for (PeerState& peer : peers_) {
    if (peer.id != from.id || peer.directory != from.uuid) continue;
    // At another epoch nothing is bound that this process has ever asked for.
    const bool all = before && reply.epoch > *before;
    std::erase_if(peer.released, [&reply, all](const ReleasedGroup& released) {
      return all || (released.since != lease::Beat() && released.since <= reply.beat);
    });
  }
}

void ProcessPromises::ended(Now now, const Peer& peer) {
  const auto found = supports_.find(peer.uuid);
  if (found != supports_.end()) found->second.end(peer.process, now.promise);
}

void ProcessPromises::take_ready(ProcessReady& ready) {
  ready = std::exchange(pending_, ProcessReady{});
}

const lease::Support* ProcessPromises::support_of(const Uuid& holder) const {
  const auto found = supports_.find(holder);
  return found != supports_.end() ? &found->second : nullptr;
}

void ProcessPromises::rely(const Uuid& holder, PromiseInstant now) {
  const auto found = supports_.find(holder);
  LEASEHOLD_ASSERT(found != supports_.end());
  found->second.rely(now);
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
