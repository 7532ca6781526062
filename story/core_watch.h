// Sees from outside what a core's events leave out: every renewal of a promise, every edge of a
// lease and the acknowledgement that moved it.
#pragma once

#include <leasehold/raft/core.h>
#include <leasehold/story/record.h>

#include <map>
#include <optional>
#include <utility>

namespace leasehold::story {

/// Maps the instants of one node's clocks to true time, at the present rates.
class TrueTime {
 public:
  virtual ~TrueTime() = default;
  virtual Duration of(raft::HolderInstant local) const = 0;
  virtual Duration of(raft::PromiseInstant local) const = 0;
};

/// Watches one node. Call it after every input; it sends to the sink what has changed since.
class CoreWatch {
 public:
  CoreWatch(NodeId node, Sink sink) : node_(node), sink_(std::move(sink)) {}

  /// A process has started on the node; `core` is fresh.
  void started(Duration at, const raft::Core& core, const TrueTime& time);
  void crashed() { *this = CoreWatch(node_, std::move(sink_)); }
  /// The next input of the core says that a leader has left its role.
  void release_arrives() { release_ = true; }
  /// Call it after an input, before the messages that the input caused.
  void observe(Duration at, const raft::Core& core, const TrueTime& time);
  /// The node's clocks run at other rates from now on: its windows end at other true instants.
  void rates_changed(Duration at, const raft::Core& core, const TrueTime& time);
  /// The node sends a message.
  void sent(Duration at, const raft::Message& message);

 private:
  Record record(Duration at, Kind kind, const raft::Core& core) const;
  void tell_promise(Duration at, const raft::Core& core, const TrueTime& time, const char* why);
  void tell_lease(Duration at, const raft::Core& core, const TrueTime& time, const char* why);
  /// The newest round and the newest beat that a peer has acknowledged.
  using Acknowledged = std::pair<Round, lease::Beat>;
  /// The acknowledgement that decides the end of the lease.
  struct Edge {
    NodeId peer;
    lease::RoundStart start;
    bool beat = false;
  };
  std::optional<Edge> edge_of(const raft::Core& core) const;
  static std::optional<lease::RoundStart> acked_beat(const raft::Core& core,
                                                     const raft::Progress& peer);

  NodeId node_;
  Sink sink_;
  raft::StoredPromise promise_;
  raft::PromiseInstant promised_until_ = raft::PromiseInstant::earliest();
  bool release_ = false;
  Term lease_term_;
  raft::HolderInstant lease_end_ = raft::HolderInstant::earliest();
  Index commit_;
  Term round_term_;
  Round round_;
  std::map<NodeId, Acknowledged> acked_;
};

}  // namespace leasehold::story
