#include "shared_group.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace leasehold::raft::test {

Processes::Processes(int size, const lease::Timing& timing) : timing_(timing) {
  std::vector<Peer> all;
  // A group starts its first cores once without shared promises.
  for (int i = 1; i <= size; ++i) {
    const auto number = static_cast<std::uint64_t>(i);
    all.push_back({NodeId(number), Uuid{number, number}, {Incarnation(2), 0}});
  }
  for (const Peer& self : all) {
    Host host(self, timing, Now{});
    std::vector<Peer> others = all;
    std::erase_if(others, [&self](const Peer& peer) { return peer.id == self.id; });
    host.share_with(others);
    hosts_.emplace(static_cast<int>(self.id.value()), std::move(host));
  }
}

Now Processes::now() const {
  return groups_.front()->now();
}

void Processes::crash(int id) {
  for (SharedGroup* group : groups_) group->crash(id);
}

void Processes::restart(int id) {
  crash(id);
  host(id).restart(now());
  for (SharedGroup* group : groups_) group->start_core(id);
}

void Processes::begin_beat(int id, Duration duration) {
  for (SharedGroup* group : groups_) group->take_releases(id);
  lease::Timing timing = timing_;
  if (duration.count() > 0) timing.lease = duration;
  host(id).promises().set_timing(timing);
  host(id).promises().tick(now());
  host(id).promises().set_timing(timing_);
  carry_out(id, host(id).take());
}

void Processes::hear(int to, const Beat& beat) {
  host(to).promises().beat(now(), beat.from, beat.message);
  carry_out(to, host(to).take());
}

void Processes::acknowledge(int id, const Reply& reply) {
  const auto by = static_cast<std::uint64_t>(reply.by);
  host(id).promises().reply(now(), {NodeId(by), Uuid{by, by}}, reply.message);
  carry_out(id, host(id).take());
}

void Processes::ended(int id, const Peer& peer) {
  host(id).promises().ended(now(), peer);
  for (SharedGroup* group : groups_) {
    group->core(id).ended(now(), peer);
    group->drain(id);
  }
}

void Processes::sync(int id) {
  ProcessReady ready;
  host(id).sync(ready);
  carry_out(id, ready);
}

PromiseInstant Processes::next_end() const {
  PromiseInstant next = PromiseInstant::never();
  for (const auto& [id, host] : hosts_) next = std::min(next, host.promises().next_end());
  return next;
}

void Processes::look_at_ends() {
  for (auto& [id, host] : hosts_) {
    host.promises().look(now());
    carry_out(id, host.take());
  }
}

std::optional<Processes::Reply> Processes::reply(int by, int to) {
  for (auto at = replies_.begin(); at != replies_.end(); ++at) {
    if (at->by != by || at->to != to) continue;
    const Reply found = *at;
    replies_.erase(at);
    return found;
  }
  return std::nullopt;
}

void Processes::carry_out(int id, const ProcessReady& ready) {
  for (const ProcessReady::Beat& beat : ready.beats) {
    newest_[{id, static_cast<int>(beat.to.value())}] = {host(id).self(), beat.message};
  }
  for (const ProcessReady::Reply& reply : ready.replies) {
    replies_.push_back({id, static_cast<int>(reply.to.value()), reply.message});
  }
  for (SharedGroup* group : groups_) {
    for (const ProcessReady::Released& released : ready.released) {
      if (released.group != group->id()) continue;
      group->core(id).released(now(), released.holder, released.term);
      group->drain(id);
    }
    if (!group->replica(id).up) continue;
    // As replica::ProcessDriver: nothing else wakes one at rest, or one that sleeps.
    const Core& core = group->core(id);
    const auto names = [](const auto& all, const auto& one) {
      return std::find(all.begin(), all.end(), one) != all.end();
    };
    const bool hears =
        ready.acknowledged && core.role() == Role::leader && (!core.at_rest() || ready.returned);
    const bool lapsed =
        names(ready.lapsed_classes, core.lease_class()) ||
        (core.bound_to() != nullptr && names(ready.lapsed_supports, *core.bound_to()));
    if (!hears && !lapsed) continue;
    group->core(id).promises_moved(now());
    group->drain(id);
  }
}

}  // namespace leasehold::raft::test
