// The promises between the processes of the world, on which those of its groups rest.
#include <leasehold/explore/world.h>

#include <algorithm>
#include <utility>

namespace leasehold::explore {

void World::start_promises(std::size_t i) {
  Node& node = *nodes_[i];
  const raft::CoreOptions& of = at(i).options;
  raft::ProcessOptions options;
  options.self = {of.id, of.uuid, {of.incarnation, 0}};
  options.timing = of.timing;
  options.longest_promise = kLongerLease;
  node.unsynced.clear();
  node.write = 0;
  node.peers.clear();
  node.promises.emplace(options, node.remembered, clock(i));
  for (std::size_t r = i; r < replicas(); r += size()) {
    own_part(r).options.shared = &*node.promises;
  }
}

/// Members of a group of this node get its beats, and no others.
void World::meet_members(std::size_t i) {
  Node& node = *nodes_[i];
  std::vector<raft::Peer> peers;
  for (std::size_t r = i; r < replicas(); r += size()) {
    for (const raft::Member& member : at(r).core->membership().members) {
      const auto same = [&member](const raft::Peer& known) {
        return known.id == member.id && known.uuid == member.uuid;
      };
      if (member.id == id_of(i) || std::any_of(peers.begin(), peers.end(), same)) continue;
      peers.push_back({member.id, member.uuid, {}});
    }
  }
  if (peers == node.peers) return;
  node.promises->set_peers(peers);
  node.peers = std::move(peers);
}

/// As replica::ProcessDriver does. False: there was nothing to do.
bool World::carry_out_promises(std::size_t i, const story::Sink& sink) {
  Node& node = *nodes_[i];
  meet_members(i);
  raft::ProcessReady ready;
  node.promises->take_ready(ready);
  for (const raft::ProcessReady::Beat& beat : ready.beats) send_beat(i, beat, sink);
  for (const raft::ProcessReady::Reply& reply : ready.replies) send_reply(i, reply, sink);
  const bool remembers = !ready.remember.empty();
  if (remembers) {
    node.unsynced.insert(node.unsynced.end(), ready.remember.begin(), ready.remember.end());
    node.write = ready.write;
    if (!left_.slow_disk) persist_supports(i);
  }
  for (const raft::ProcessReady::Released& released : ready.released) {
    const auto group = static_cast<std::size_t>(released.group.value()) - 1;
    const std::size_t r = replica_of(i, group);
    own_part(r).core->released(clock(r), released.holder, released.term);
  }
  wake(i, ready);
  return remembers || !ready.released.empty() || ready.acknowledged ||
         !ready.lapsed_classes.empty() || !ready.lapsed_supports.empty();
}

/// The cores that have to look at what has changed.
void World::wake(std::size_t i, const raft::ProcessReady& ready) {
  const auto among = [](const auto& all, const auto& one) {
    return std::find(all.begin(), all.end(), one) != all.end();
  };
  for (std::size_t r = i; r < replicas(); r += size()) {
    raft::Core& core = *own_part(r).core;
    const bool leads = core.role() == raft::Role::leader;
    const bool hears = leads && ready.acknowledged && (ready.returned || !core.at_rest());
    const bool lapses = among(ready.lapsed_classes, core.lease_class());
    const raft::Uuid* const holder = core.bound_to();
    if (hears || lapses || (holder != nullptr && among(ready.lapsed_supports, *holder))) {
      core.promises_moved(clock(r));
    }
  }
}

void World::send_beat(std::size_t i, const raft::ProcessReady::Beat& beat,
                      const story::Sink& sink) {
  Flight flight = flight_from(i, beat.to);
  flight.beat = beat.message;
  flight.print.add(at(i).options.uuid.low);
  flight.print.add(beat.message.beat.value());
  flight.print.add(static_cast<std::uint64_t>(beat.message.lease.count()));
  flight.print.add(static_cast<std::uint64_t>(beat.message.drift_ppm));
  for (const raft::ReleasedGroup& released : beat.message.released) {
    flight.print.add(released.group.value());
    flight.print.add(released.term.value());
    flight.print.add(released.since.value());
  }
  put_on_its_way(std::move(flight), sink);
}

void World::send_reply(std::size_t i, const raft::ProcessReady::Reply& reply,
                       const story::Sink& sink) {
  Flight flight = flight_from(i, reply.to);
  flight.beat_reply = reply.message;
  flight.print.add(~at(i).options.uuid.low);  // no beat
  flight.print.add(reply.message.incarnation.value());
  flight.print.add(reply.message.beat.value());
  flight.print.add(reply.message.epoch.incarnation.value());
  flight.print.add(reply.message.epoch.counter);
  put_on_its_way(std::move(flight), sink);
}

void World::put_on_its_way(Flight flight, const story::Sink& sink) {
  if (sink) sink(record_of(story::Kind::sent, flight.from, flight.to, flight));
  if (static_cast<std::size_t>(flight.to.value()) <= size()) flights_.push_back(std::move(flight));
}

story::Record World::record_of(story::Kind kind, NodeId node, NodeId peer,
                               const Flight& flight) const {
  if (flight.beat) return story::record_of(now_, kind, node, peer, *flight.beat);
  return story::record_of(now_, kind, node, peer, *flight.beat_reply);
}

void World::hear_process(const Flight& flight, const story::Sink& sink) {
  const std::size_t i = replica_to(flight);
  if (sink) sink(record_of(story::Kind::delivered, flight.to, flight.from, flight));
  own(i);
  raft::ProcessPromises& promises = *nodes_[i]->promises;
  if (flight.beat) {
    promises.beat(clock(i), flight.sender, *flight.beat);
  } else {
    promises.reply(clock(i), flight.sender, *flight.beat_reply);
  }
  drain(i, sink);
}

void World::persist_supports(std::size_t i) {
  Node& node = *nodes_[i];
  if (node.unsynced.empty()) return;
  for (const raft::RememberedSupport& support : std::exchange(node.unsynced, {})) {
    const auto same = [&support](const raft::RememberedSupport& earlier) {
      return earlier.directory == support.directory;
    };
    std::erase_if(node.remembered, same);
    node.remembered.push_back(support);
  }
  node.promises->persisted(node.write);
}

void World::add_promises(std::size_t i, raft::Fingerprint& print) const {
  const Node& node = *nodes_[i];
  raft::add_promises(*node.promises, clock(i), print);
  for (const auto* supports : {&node.remembered, &node.unsynced}) {
    print.add(supports->size());
    for (const raft::RememberedSupport& support : *supports) {
      print.add(support.holder.value());
      print.add(support.directory.low);
      print.add(static_cast<std::uint64_t>(support.duration.count()));
    }
  }
}

}  // namespace leasehold::explore
