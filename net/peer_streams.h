// How the streams between nodes are made, where a program does not want TCP for it.
#pragma once

#include <leasehold/base/result.h>

#include <functional>
#include <string>

namespace leasehold::net {

/// A connected stream with another process.
struct PeerStream {
  /// A connected socket of type SOCK_STREAM and of any family: TCP by way of a proxy, a Unix-domain
  /// or a VM socket, one end of a socketpair(2) whose other end a thread of the program serves. Who
  /// gets it closes it.
  int socket = -1;
  /// What is at the other end, for people.
  std::string other;
};

/// Makes the streams between nodes, in place of TCP. Everything above stays as it is: each node
/// dials each peer, and again after a pause when a stream has ended; both sides prove themselves by
/// PeerSecurity, say the hello, and send frames.
///
/// Not by such streams: notices that a process has ended (NodeOptions::deputy), which are
/// datagrams.
///
/// Threads: the node calls one function at a time, on its own thread (or on that of open()). None
/// may wait for the network. The completions may be called on any thread, also inside the call;
/// behind stop() they close what they get.
class PeerStreams {
 public:
  using Accepted = std::function<void(PeerStream stream)>;
  using Connected = std::function<void(Result<PeerStream> stream)>;

  virtual ~PeerStreams() = default;

  /// Takes streams of other nodes at `address` from now on: that of NodeOptions::listen, or this
  /// node's own. Once. Errors: in_use, io, invalid_argument; the node then does not start.
  virtual Result<void> listen(const std::string& address, Accepted accepted) = 0;
  /// Makes a stream to the node at `address`, which has the form `name:number` and no other meaning
  /// than this object gives it. Calls `connected` once; a call that comes too late is as a failed
  /// one. Errors: any; the message is for people.
  virtual void connect(const std::string& address, Connected connected) = 0;
  /// The node has ended: no more streams are taken. Not called if listen() was not.
  virtual void stop() = 0;
  /// Whether both ends of every stream are known to belong to nodes of this group. False: as with
  /// TCP beyond loopback, the node does not start unless PeerSecurity protects the streams.
  virtual bool proves_peers() const { return false; }
};

}  // namespace leasehold::net
