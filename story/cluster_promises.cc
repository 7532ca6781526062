// The promises between the processes of a Cluster, on which those of its groups rest.

#include <leasehold/story/cluster.h>

#include <algorithm>
#include <utility>

namespace leasehold::story {
namespace {

/// A beat may ask for so many times the D of the node that hears it.
constexpr int kLongestPromise = 10;

}  // namespace

raft::HolderInstant StoryNode::shown_end(const StoryReplica& replica) const {
  const raft::LeaseState& view = replica.view;
  if (view.lease_class == raft::kNoClass) return view.end;
  return std::max(view.end, promises->lease_class(view.lease_class).end);
}

/// Before the cores of the same process.
void Cluster::start_promises(StoryNode& node) {
  raft::ProcessOptions options;
  options.self = {node.id, node.options.uuid, {node.options.incarnation, 0}};
  options.timing = node.options.timing;
  options.longest_promise = node.options.timing.lease * kLongestPromise;
  for (StoryReplica& replica : node.replicas) replica.core.reset();
  const raft::Now now = node.clock.at(now_);
  node.promises.emplace(options, node.disk_supports, now);
  node.options.shared = &*node.promises;
  node.beat_due = now.promise;
  std::vector<raft::Peer> peers;
  for (const raft::Member& member : membership_.members) {
    if (member.id != node.id) peers.push_back({member.id, member.uuid, {}});
  }
  node.promises->set_peers(peers);
}

/// As replica::ProcessDriver does. False: there was nothing to do.
bool Cluster::carry_out_promises(StoryNode& node) {
  raft::ProcessReady ready;
  node.promises->take_ready(ready);
  // Nothing else shows that a beat has moved the end of a lease or of a promise.
  for (StoryReplica& replica : node.replicas) {
    replica.watch.observe(now_, *replica.core, node.clock);
  }
  for (const raft::ProcessReady::Beat& beat : ready.beats) {
    send(node, beat.to, beat.message, GroupId());
  }
  for (const raft::ProcessReady::Reply& reply : ready.replies) {
    send(node, reply.to, reply.message, GroupId());
  }
  const bool remembers = !ready.remember.empty();
  if (remembers) {
    node.unsynced_supports.insert(node.unsynced_supports.end(), ready.remember.begin(),
                                  ready.remember.end());
    node.supports_write = ready.write;
    if (!node.disk_stalled) persist_supports(node);
  }
  for (const raft::ProcessReady::Released& released : ready.released) {
    StoryReplica& replica = node.of(released.group);
    replica.watch.release_arrives();
    replica.core->released(node.clock.at(now_), released.holder, released.term);
  }
  for (StoryReplica& replica : node.replicas) wake(node, replica, ready);
  return remembers || !ready.released.empty() || ready.acknowledged ||
         !ready.lapsed_classes.empty() || !ready.lapsed_supports.empty();
}

/// The core has to look, if what has changed concerns it.
void Cluster::wake(const StoryNode& node, StoryReplica& replica, const raft::ProcessReady& ready) {
  raft::Core& core = *replica.core;
  const auto among = [](const auto& all, const auto& one) {
    return std::find(all.begin(), all.end(), one) != all.end();
  };
  const bool leads = core.role() == raft::Role::leader;
  const bool hears = leads && ready.acknowledged && (ready.returned || !core.at_rest());
  const bool lapses = among(ready.lapsed_classes, core.lease_class());
  const raft::Uuid* const holder = core.bound_to();
  const bool unsupported = holder != nullptr && among(ready.lapsed_supports, *holder);
  if (hears || lapses || unsupported) core.promises_moved(node.clock.at(now_));
}

void Cluster::persist_supports(StoryNode& node) {
  if (node.unsynced_supports.empty()) return;
  for (const raft::RememberedSupport& support : std::exchange(node.unsynced_supports, {})) {
    const auto same = [&support](const raft::RememberedSupport& earlier) {
      return earlier.directory == support.directory;
    };
    std::erase_if(node.disk_supports, same);
    node.disk_supports.push_back(support);
  }
  node.promises->persisted(node.supports_write);
}

void Cluster::step_promises(StoryNode& node, const raft::Peer& from, const Flight& flight) {
  const raft::Now now = node.clock.at(now_);
  if (const auto* const beat = std::get_if<raft::ProcessBeat>(&flight.message)) {
    node.promises->beat(now, from, *beat);
  } else {
    node.promises->reply(now, from, std::get<raft::ProcessBeatReply>(flight.message));
  }
  drain(node);
}

// ---- Timers ----

bool Cluster::beat(NodeId id) {
  StoryNode& node = this->node(id);
  if (!node.promises || size() == 1 || node.clock.at(now_).promise < node.beat_due) return false;
  node.promises->tick(node.clock.at(now_));
  node.beat_due = node.clock.at(now_).promise + node.options.timing.heartbeat;
  drain(node);
  return true;
}

std::optional<Duration> Cluster::beat_due(NodeId id) const {
  const StoryNode& node = this->node(id);
  if (!node.promises) return std::nullopt;
  return node.clock.of(node.beat_due);
}

/// When a timer of the node falls, of its process or of a group.
raft::PromiseInstant Cluster::due(const StoryNode& node) {
  raft::PromiseInstant due =
      node.promises ? node.promises->next_deadline() : raft::PromiseInstant::never();
  for (const StoryReplica& replica : node.replicas) {
    if (replica.core->awaits_place()) return raft::PromiseInstant::earliest();
    due = std::min(due, replica.core->next_deadline());
  }
  return due;
}

void Cluster::let_timers_fall(StoryNode& node) {
  const raft::Now now = node.clock.at(now_);
  const bool begins = node.promises && size() > 1 && now.promise >= node.beat_due;
  if (begins) {
    beat(node.id);
  } else if (node.promises) {
    node.promises->look(now);
    drain(node);
  }
  for (const StoryReplica& replica : node.replicas) {
    const raft::Core& core = *replica.core;
    if (core.awaits_place() || now.promise >= core.next_deadline()) tick(replica.id);
  }
}

/// A follower has no timer while the promise rests on a support that lasts. Moves to the end of
/// one. False: the node has a timer, or supports nobody.
bool Cluster::wait_for_support(StoryNode& node, const StoryReplica& replica) {
  if (!node.promises || replica.core->awaits_place()) return false;
  if (replica.core->next_deadline() != raft::PromiseInstant::never()) return false;
  const raft::PromiseInstant end = node.promises->next_end();
  if (end == raft::PromiseInstant::never()) return false;
  now_ = std::max(now_, node.clock.of(end));
  check();
  node.promises->look(node.clock.at(now_));
  drain(node);
  return true;
}

}  // namespace leasehold::story
