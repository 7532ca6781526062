// What is done to one node of a Cluster, and asked of it.

#include <leasehold/base/assert.h>
#include <leasehold/story/cluster.h>

#include <utility>

namespace leasehold::story {

std::optional<raft::LogId> Cluster::propose(Replica id, std::vector<std::string> payloads) {
  StoryNode& node = this->node(id.node);
  std::vector<Bytes> bytes;
  bytes.reserve(payloads.size());
  for (std::string& payload : payloads) bytes.push_back(Bytes(std::move(payload)));
  const auto at = replica(id).core->propose(node.clock.at(now_), std::move(bytes));
  drain(node);
  return at;
}

std::uint64_t Cluster::read(Replica id, raft::ReadMode mode) {
  StoryNode& node = this->node(id.node);
  const std::uint64_t number = next_read_++;
  StoryRead read;
  read.node = id.node;
  read.mode = mode;
  reads_[number] = read;
  Record asked = record(Kind::asked, id);
  asked.number = number;
  asked.what = mode == raft::ReadMode::lease ? "lease" : "quorum";
  tell(asked);
  replica(id).core->read_index(node.clock.at(now_), number, mode);
  drain(node);
  return number;
}

std::optional<raft::TransferRefused> Cluster::transfer(Replica id, NodeId to) {
  StoryNode& node = this->node(id.node);
  const auto refused = replica(id).core->transfer(node.clock.at(now_), to);
  drain(node);
  return refused;
}

void Cluster::crash(NodeId id) {
  StoryNode& node = this->node(id);
  node.up = false;
  node.paused = false;
  node.unsynced_supports.clear();
  node.inbox.clear();
  for (StoryReplica& replica : node.replicas) {
    replica.unsynced.clear();
    replica.held.clear();
    replica.log = replica.disk_log;
    replica.view = raft::LeaseState{};
    replica.watch.crashed();
  }
  tell(record(Kind::crash, id));
}

void Cluster::restart(NodeId id) {
  if (node(id).up) crash(id);
  node(id).disk_stalled = false;
  start(node(id));
}

void Cluster::pause(NodeId id) {
  node(id).paused = true;
  Record paused = record(Kind::pause, id);
  paused.what = "process";
  tell(paused);
}

void Cluster::resume(NodeId id, bool read_first) {
  StoryNode& node = this->node(id);
  node.paused = false;
  tell(record(Kind::resume, id));
  if (read_first) read({id, kFirstGroup}, raft::ReadMode::lease);
  while (!node.inbox.empty()) {
    const Flight flight = std::move(node.inbox.front());
    node.inbox.pop_front();
    step(node, flight);
  }
}

void Cluster::stall(NodeId id) {
  node(id).disk_stalled = true;
  Record stalled = record(Kind::disk, id);
  stalled.what = "stalls";
  tell(stalled);
}

void Cluster::sync(NodeId id) {
  StoryNode& node = this->node(id);
  node.disk_stalled = false;
  Record synced = record(Kind::disk, id);
  synced.what = "continues";
  tell(synced);
  for (StoryReplica& replica : node.replicas) persist(node, replica);
  persist_supports(node);
  drain(node);
}

raft::Incarnation Cluster::ended(NodeId id) const {
  const StoryNode& node = this->node(id);
  return node.up ? node.options.incarnation.prev() : node.options.incarnation;
}

void Cluster::notice(NodeId id, NodeId peer, raft::Incarnation ended) {
  LEASEHOLD_ASSERT(ended <= this->ended(peer) && ended.value() > 0);
  StoryNode& node = this->node(id);
  Record told = record(Kind::notice, id);
  told.peer = peer;
  told.number = ended.value();
  tell(told);
  const raft::Peer process{peer, this->node(peer).options.uuid, {ended, 0}};
  if (node.promises) node.promises->ended(node.clock.at(now_), process);
  for (StoryReplica& replica : node.replicas) replica.core->ended(node.clock.at(now_), process);
  drain(node);
}

}  // namespace leasehold::story
