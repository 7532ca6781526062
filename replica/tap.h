// Tap: sees what goes into one replica and what comes out of it, for a recording of the protocol.
#pragma once

#include <leasehold/base/result.h>
#include <leasehold/raft/core.h>
#include <leasehold/raft/event.h>
#include <leasehold/wire/peer_message.h>

#include <optional>

namespace leasehold::replica {

/// Put into a driver between two of its turns (Driver::tap()). A driver without one pays a branch
/// for each message and each turn.
///
/// Called on the driver's thread, in the order in which things happen: must be quick, must not
/// block and must not call the driver. It changes nothing, and keeps no reference to what it is
/// shown. A message may hold the data of clients.
class Tap {
 public:
  virtual ~Tap() = default;

  /// A turn begins; what follows until the next one happens at `now`, on this node's clocks.
  /// `applied`: by the state machine. False: it has seen enough, and the driver lets it go.
  virtual bool begin(lease::Now now, const raft::Core& core, raft::Index applied) = 0;
  /// A message has arrived. The core takes it next.
  virtual void received(const raft::Peer& from, const wire::Payload& message) = 0;
  /// The core takes the news that the leader of the group has left its role.
  virtual void released() = 0;
  /// The core has had its input. What that causes follows: messages first, then events.
  virtual void turned(const raft::Core& core) = 0;
  virtual void sent(raft::NodeId to, const wire::Payload& message) = 0;
  virtual void event(const raft::Event& event) = 0;
  /// The replica has stopped. With `failure` it could not go on.
  virtual void stopped(const std::optional<Error>& failure) = 0;
};

}  // namespace leasehold::replica
