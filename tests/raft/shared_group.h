// A group of nodes that share promises between their processes, as they would among many groups:
// the beats are the test's own.
#pragma once

#include "group.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <vector>

namespace leasehold::raft::test {

/// The promises of one process.
class Host final : public SharedPromises {
 public:
  explicit Host(Incarnation self) : self_(self) {}

  const lease::Support* support_of(const Uuid& holder) const override {
    const auto found = supports.find(holder);
    return found != supports.end() ? &found->second : nullptr;
  }
  void rely(const Uuid& holder, PromiseInstant now) override { supports.at(holder).rely(now); }
  Duration remembered(NodeId holder) const override {
    const auto found = supports.find(Uuid{holder.value(), holder.value()});
    return found != supports.end() ? found->second.remembered() : Duration(0);
  }
  const lease::Beats& beats() const override { return sent; }
  const lease::Supporter* supporter(const Uuid& member) const override {
    const auto found = supporters.find(member);
    return found != supporters.end() ? &found->second : nullptr;
  }
  lease::Support& support_for(const Uuid& holder) {
    return supports.try_emplace(holder, lease::Support(self_)).first->second;
  }
  /// Its process has ended, and the next one has begun.
  void restart(PromiseInstant now) {
    self_ = self_.next();
    sent = lease::Beats();
    supporters.clear();
    releases.clear();
    for (auto& [holder, support] : supports) {
      const Duration remembered = support.remembered();
      support = lease::Support::restarted(self_, remembered, remembered, now);
    }
  }

  /// (term, the beat that a bind has to name from then on), by member.
  struct Released {
    Term term;
    lease::Beat beat;
  };
  lease::Beats sent;
  std::map<Uuid, lease::Supporter> supporters;
  std::map<Uuid, lease::Support> supports;
  std::map<NodeId, std::vector<Released>> releases;

 private:
  Incarnation self_;
};

inline lease::Timing exact() {
  lease::Timing timing;
  timing.max_clock_drift_ppm = 0;
  timing.margin = Duration(0);
  return timing;
}

/// A group of nodes that share promises.
class SharedGroup : public Group {
 public:
  explicit SharedGroup(int size = 3, lease::Timing timing = exact(), std::uint64_t seed = 1)
      : Group(size, timing, seed), size_(size), timing_(timing) {
    for (int i = 1; i <= size; ++i) {
      hosts_.emplace(i, Host(Incarnation(2)));
      replica(i).options.shared = &hosts_.at(i);
      restart(i);
    }
    jump(timing.lease);
  }
  Host& host(int id) { return hosts_.at(id); }
  lease::Support& support(int member, int holder) {
    return host(member).support_for(peer_of(holder).uuid);
  }
  int size() const { return size_; }

  struct BeatMessage {
    Peer from;
    lease::Beat beat;
    Duration duration{0};
    std::vector<Host::Released> releases;
  };
  struct BeatAnswer {
    Process to;
    lease::Beat beat;
    lease::Epoch epoch;
  };

  /// Node `id` begins a beat, with the D of the group unless another one is given.
  void begin_beat(int id, Duration duration = Duration(0)) {
    take_releases(id);
    lease::Timing timing = timing_;
    if (duration.count() > 0) timing.lease = duration;
    host(id).sent.begin(now().holder, timing);
  }
  /// What it sends to `to` with its newest beat.
  BeatMessage beat_to(int id, int to) {
    take_releases(id);
    const lease::Beat newest = host(id).sent.newest();
    return {peer_of(id), newest, host(id).sent.find(newest)->duration,
            host(id).releases[peer_of(to).id]};
  }
  /// `to` has heard it. None: it does not answer.
  std::optional<BeatAnswer> hear(int to, const BeatMessage& message) {
    lease::Support& support = host(to).support_for(message.from.uuid);
    const Duration promised = std::max(timing_.lease, message.duration);
    if (!support.renew(message.from.process, promised, now().promise)) return std::nullopt;
    for (const Host::Released& released : message.releases) {
      support.release(message.from.process, released.beat);
      core(to).released(now(), message.from, released.term);
      drain(to);
    }
    return BeatAnswer{message.from.process, message.beat, support.epoch()};
  }
  void acknowledge(int id, int by, const BeatAnswer& answer) {
    if (answer.to != peer_of(id).process) return;
    lease::Supporter& supporter = host(id).supporters[peer_of(by).uuid];
    const std::optional<lease::Epoch> before = supporter.epoch();
    supporter.acknowledge(host(id).sent, answer.beat, answer.epoch);
    auto& releases = host(id).releases[peer_of(by).id];
    if (before && *supporter.epoch() > *before) releases.clear();
    std::erase_if(releases, [&answer](const Host::Released& released) {
      return released.beat <= answer.beat;
    });
    core(id).beats_acknowledged(now());
    drain(id);
  }
  /// A beat of `id` that all others acknowledge at once, except `without`.
  void beat(int id, const std::vector<int>& without = {}, Duration duration = Duration(0)) {
    begin_beat(id, duration);
    for (int other = 1; other <= size_; ++other) {
      if (other == id || !replica(other).up) continue;
      if (std::find(without.begin(), without.end(), other) != without.end()) continue;
      if (const auto answer = hear(other, beat_to(id, other))) acknowledge(id, other, *answer);
    }
  }
  /// A leader to whose process all others are bound.
  int bound_leader() {
    const int leader = elect();
    beat(leader);
    run(timing_.heartbeat);
    return leader;
  }
  /// Nothing of the group arrives any more; beats do.
  void silence() {
    filter = [](const Envelope&) { return false; };
  }
  void beats(int id, Duration span, const std::vector<int>& without = {}) {
    for (Duration at{0}; at < span; at += timing_.heartbeat) {
      jump(timing_.heartbeat);
      beat(id, without);
    }
  }
  bool votes(int id, int candidate, std::uint64_t term) {
    in_flight().clear();
    step(candidate, id, VoteRequest{Term(term), core(candidate).log().last()});
    for (const Envelope& sent : in_flight()) {
      const auto* reply = std::get_if<VoteReply>(&sent.message);
      if (reply != nullptr && reply->request_term == Term(term)) return reply->granted;
    }
    ADD_FAILURE() << "no answer";
    return false;
  }
  void restart_process(int id) {
    host(id).restart(now().promise);
    restart(id);
  }
  std::vector<int> others(int id) const {
    std::vector<int> found;
    for (int other = 1; other <= size_; ++other) {
      if (other != id) found.push_back(other);
    }
    return found;
  }

 private:
  void take_releases(int id) {
    for (const Release& release : replica(id).releases) {
      for (const NodeId member : release.members) {
        host(id).releases[member].push_back({release.term, host(id).sent.newest().next()});
      }
    }
    replica(id).releases.clear();
  }

  int size_;
  lease::Timing timing_;
  std::map<int, Host> hosts_;
};

}  // namespace leasehold::raft::test
