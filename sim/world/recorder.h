// Turns what the simulator traces, and what it sees of the cores, into records for people.
#pragma once

#include <leasehold/check/history.h>
#include <leasehold/sim/world/trace.h>
#include <leasehold/story/core_watch.h>
#include <leasehold/story/record.h>
#include <leasehold/wire/peer_message.h>

#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <utility>
#include <vector>

namespace leasehold::sim {

using check::Operation;
using check::OperationKind;

class SimNode;

/// Only observes: it draws no random number and changes nothing, so a run is the same with and
/// without it. It records the messages of Raft and the beats between processes, and not those of
/// forwarding and formation.
class Recorder {
 public:
  /// Messages of one link that wait to be recognised when they arrive. The oldest are forgotten.
  static constexpr std::size_t kSentMax = 1024;

  Recorder(const EventQueue& queue, story::Sink sink) : queue_(queue), sink_(std::move(sink)) {}

  void watch(std::uint64_t seed, const std::vector<SimNode*>& nodes);
  void line(const TraceLine& line);
  void message(TraceKind kind, raft::NodeId node, raft::NodeId peer,
               const wire::PeerMessage& message);
  void event(const raft::Event& event);
  /// The node has handled a batch of events.
  void turn(const SimNode& node);
  void answered(const SimNode& node, const Operation& operation, bool done, bool refused,
                const char* basis);

 private:
  struct Watched {
    const SimNode* node = nullptr;
    std::map<raft::GroupId, story::CoreWatch> watches;
    /// Of these the core of the present process was observed.
    std::set<raft::GroupId> seen{};
    bool stopped = false;  ///< paused or suspended
  };
  using Link = std::pair<raft::NodeId, raft::NodeId>;
  struct Sent {
    wire::PeerMessage message;
    Duration at{0};
  };

  Duration now() const { return queue_.now().since_origin(); }
  story::Record record(story::Kind kind, raft::NodeId node) const;
  Watched* watched(raft::NodeId node);
  void observe(Watched& node, raft::GroupId group, const raft::Core* core);
  void rates(const TraceLine& line);
  void link(const TraceLine& line);

  const EventQueue& queue_;
  story::Sink sink_;
  std::vector<Watched> nodes_;
  std::map<Link, std::deque<Sent>> sent_;
  std::map<Link, int> cuts_;
};

}  // namespace leasehold::sim
