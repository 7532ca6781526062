// Sends messages to peers. Any message may be lost; nothing waits for one.
#pragma once

#include <leasehold/wire/peer_message.h>

namespace leasehold::net {

class Transport {
 public:
  virtual ~Transport() = default;
  /// Sends `message` to `to`, or drops it: when there is no connection, or when the bounded queue
  /// to the peer is full. Never blocks. Messages of one connection arrive in the order sent. Called
  /// on the node's thread only.
  virtual void send(raft::NodeId to, wire::PeerMessage message) = 0;
};

}  // namespace leasehold::net
