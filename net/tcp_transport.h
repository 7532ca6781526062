// Peer links over TCP. The one part of this room that knows sockets.
//
// Each node dials each peer. A node sends on the connections that it dialled and receives on those
// that it accepted, so two nodes that dial each other at the same instant need no tie-break: both
// connections stay. How the bytes look: docs/wire.md.
#pragma once

#include <leasehold/base/result.h>
#include <leasehold/net/handshake.h>
#include <leasehold/net/peer_guard.h>
#include <leasehold/net/peer_streams.h>
#include <leasehold/net/transport.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace asio {
class io_context;
}

namespace leasehold::net {

/// Every bound of a TcpTransport. The defaults suit a group in one data centre.
struct TcpLimits {
  /// Encoded bytes that wait for one peer. A message that does not fit is dropped, unless nothing
  /// waits.
  std::size_t queue_bytes_max = std::size_t{64} << 20U;
  /// The same for chunks of snapshots, which have a connection of their own. Above
  /// Limits::snapshot_window_bytes.
  std::size_t snapshot_queue_bytes_max = std::size_t{4} << 20U;
  /// One frame, header included, in either direction. A longer one that arrives closes the
  /// connection before any of it is stored; a longer one to send is dropped. Must be the same on
  /// every node, and above the largest append message plus the largest command.
  std::size_t frame_bytes_max = std::size_t{32} << 20U;
  /// Accepted connections that have completed the handshake. There is one per peer, and another one
  /// while it sends a snapshot.
  std::size_t connections_max = 64;
  /// Accepted connections that have not completed it. Above this limit the oldest of them is closed
  /// for a newer one, so that silent ones cannot keep a peer out.
  std::size_t handshakes_max = 64;
  /// From connect or accept to the end of the handshake.
  std::chrono::milliseconds handshake_timeout{2000};
  /// A dialled connection on which sent bytes stay unacknowledged for this time is dead and is
  /// dialled again. Short, so that TCP's own backoff does not outlast a healed partition.
  std::chrono::milliseconds unacknowledged_timeout{2000};
  /// Pause before the next dial: doubles from the first to the second with each failure, and is
  /// drawn from the upper half of that. A peer that dials this node is dialled back at once.
  std::chrono::milliseconds reconnect_min{20};
  std::chrono::milliseconds reconnect_max{1000};
  /// A connection for snapshots on which nothing is sent for this time is closed.
  std::chrono::milliseconds snapshot_idle{10'000};
};

struct TcpOptions {
  std::uint64_t cluster_id = 0;  ///< see cluster_id() in handshake.h
  /// The cluster that was given up for this one, and what its nodes hear; 0: none.
  std::uint64_t given_up_cluster = 0;
  std::string given_up_reason{};
  raft::NodeId id;                ///< not kNobody
  raft::Uuid uuid;                ///< not zero
  raft::Incarnation incarnation;  ///< starts at 1
  /// Drawn at each start of the process: distinguishes two processes on copies of one directory,
  /// and seeds the jitter of reconnects.
  std::uint64_t process = 0;
  std::uint64_t place = 0;  ///< see wire::Hello, as the next one
  std::string end_commitment{};
  PeerStreams* streams = nullptr;  ///< makes the streams; null: TCP does
  std::string listen;              ///< host:port to bind; port 0: any free one, see port()
  std::string cluster;             ///< the cluster's name; empty: introductions do not say it
  std::string address;             ///< where peers reach this node; see describe()
  bool witness = false;            ///< what this node says of itself in a hello
  /// The peers to dial and to accept. This node itself may be among them and is skipped.
  std::vector<PeerAddress> peers;
  /// How connections are protected, until set_guard().
  GuardPtr guard = PeerGuard::plain();
  TcpLimits limits;
};

/// Why bytes, a frame or a connection were refused. Counted by kind.
enum class RejectReason : std::uint8_t {
  malformed,          ///< a frame that breaks the format or an invariant, or random bytes
  oversized,          ///< a frame above frame_bytes_max
  version,            ///< no wire version that both sides speak, or a frame of an unknown one
  wrong_cluster,      ///< a peer of another cluster
  wrong_target,       ///< the peer meant to reach another node: an address is wrong
  same_id,            ///< the peer has this node's own id
  unknown_peer,       ///< the peer's id is not among `peers`
  older_incarnation,  ///< a newer start of that directory was seen: the old one is fenced
  duplicate_process,  ///< another process already runs with that uuid and incarnation
  refused_by_node,    ///< accept_peer said no
  handshake_timeout,  ///< the handshake did not end in time
  too_many,           ///< above connections_max or handshakes_max
  removed,            ///< the peer is no member any more
  unproved,           ///< the peer has not proved that it is the node that it says
  given_up,           ///< the peer's group was given up
};
inline constexpr std::size_t kRejectReasons = 15;
/// As logs and metrics show it: "wrong_cluster".
const char* reject_reason_name(RejectReason reason);

/// One refusal, for logs. `by_peer`: the other side refused this node; `error` has its words.
struct Rejection {
  RejectReason reason = RejectReason::malformed;
  bool by_peer = false;
  raft::NodeId peer;    ///< kNobody if it did not say
  std::string address;  ///< of the other end, as far as known
  Error error;
  raft::LogId membership{};  ///< removed, by_peer: the committed membership without this node
};

/// What the node wants to hear. All are called on the node's thread, never inside send() or
/// start(), and never after stop() or the destructor has returned. They may call send() and stop().
/// They must not throw.
struct TcpCallbacks {
  /// A message that passed every check of the codec, from a peer whose identity was accepted.
  std::function<void(const raft::Peer& from, wire::PeerMessage message)> on_message;
  /// The connection that this node dialled stands: send() reaches the peer from now on. Messages
  /// sent before were dropped.
  std::function<void(const raft::Peer& peer)> on_peer;
  /// A handshake is done, on a connection that either side dialled.
  std::function<void(const wire::Hello& hello)> on_met;
  /// May a peer of the right cluster and a known id talk to this node? Asked once per handshake, in
  /// both directions. The peer receives the error's message. The transport itself already refuses
  /// older incarnations of the same uuid. Empty: all may.
  std::function<Result<void>(raft::NodeId peer, raft::Uuid uuid, raft::Incarnation incarnation)>
      accept_peer;
  /// May a node of the right cluster that is not among the peers connect, and be dialled back at
  /// the address that it gives? Asked before accept_peer, for accepted connections. A node that is
  /// accepted is a peer from then on. Empty: none may.
  std::function<std::optional<wire::Refusal>(const wire::Hello& hello)> judge_stranger;
  /// May a node learn this node's identity and cluster? Its number may be that of a peer. Empty:
  /// all that give the right cluster name may.
  std::function<std::optional<wire::Refusal>(const wire::Hello& hello)> judge_introduction;
  /// A frame or a connection was refused. A node that is refused `by_peer` as older_incarnation has
  /// been replaced by a newer process and should stop. At most one call per connection.
  std::function<void(const Rejection& rejection)> on_reject;
};

/// Counters since the start. Read on the node's thread.
struct TcpCounters {
  std::array<std::uint64_t, kRejectReasons> rejected{};  ///< by this node, indexed by RejectReason
  std::uint64_t refused_by_peers = 0;
  std::uint64_t connects = 0;     ///< dialled connections that completed the handshake
  std::uint64_t accepts = 0;      ///< accepted connections that completed it
  std::uint64_t disconnects = 0;  ///< of both, since ended or replaced
  std::uint64_t frames_sent = 0;  ///< queued on a connection; handshake not counted
  std::uint64_t frames_received = 0;
  std::uint64_t bytes_sent = 0;
  std::uint64_t bytes_received = 0;
  std::uint64_t dropped_unconnected = 0;  ///< messages: no connection
  std::uint64_t dropped_full = 0;         ///< messages: queue_bytes_max
  std::uint64_t dropped_oversized = 0;    ///< messages: frame_bytes_max

  std::uint64_t rejected_total() const {
    std::uint64_t total = 0;
    for (const std::uint64_t count : rejected) total += count;
    return total;
  }
};

/// The peer links of one node.
///
/// Threads: none of its own. The one thread that runs `io` is the node's thread; every method but
/// the constructor is called on it (or while nobody runs `io`). The transport may be destroyed
/// before `io`; handlers that are still queued then do nothing.
///
/// Chunks of snapshots travel on a separate connection, which is dialled when the first chunk is
/// sent (that chunk is lost) and closed when no more are: heartbeats never wait behind them.
///
/// send() queues, and everything queued in one turn leaves with one gathered write. A connection
/// that misbehaves is closed and counted, and nothing else is disturbed.
class TcpTransport final : public Transport {
 public:
  TcpTransport(asio::io_context& io, TcpOptions options, TcpCallbacks callbacks);
  ~TcpTransport() override;  // NOLINT(bugprone-exception-escape): see its definition
  TcpTransport(const TcpTransport&) = delete;
  TcpTransport& operator=(const TcpTransport&) = delete;

  /// Binds, listens and starts to dial. Once. Errors: invalid_argument (an option or an address; or
  /// the address is beyond loopback, and nothing protects the connections), in_use (the address),
  /// io.
  Result<void> start();
  /// Closes everything; no callback follows. Idempotent.
  void stop();

  void send(raft::NodeId to, wire::PeerMessage message) override;

  /// Adds a peer, or gives it another address (it is then dialled again).
  Result<void> set_peer(PeerAddress peer);
  /// Closes its connections and forgets it.
  void remove_peer(raft::NodeId peer);
  /// The same, and tells it why, as far as one frame can.
  void dismiss_peer(raft::NodeId peer, const wire::Refusal& refusal);
  /// The peers that this transport dials and accepts, ascending.
  std::vector<PeerAddress> peers() const;
  /// Which membership the newest hello of `peer` knew; none if it never said one.
  std::optional<raft::LogId> known_membership(raft::NodeId peer) const;
  /// What hellos say from now on: this node's address, and the log id of its newest membership.
  void describe(std::string address, raft::LogId membership);
  /// Protects new connections by `guard`, and closes those that it would not have let open: a
  /// certificate was revoked, a key has gone. Every other one that this node dialled is replaced by
  /// a new one; it carries messages until that one stands, and what is on its way still arrives.
  /// While the peer refuses the new one, the old one stays.
  void set_guard(GuardPtr guard);
  /// Whether the address that start() has bound may be protected like this. Any thread, after
  /// start(). Errors: invalid_argument (it is beyond loopback, and nothing protects it).
  Result<void> may_protect_by(const PeerSecurity& security) const;
  /// What `peer` has proved on the connections with it.
  PeerProofs proofs(raft::NodeId peer) const;
  /// The wire version in which this node speaks to `peer`; none: they are not connected.
  std::optional<std::uint32_t> wire_version(raft::NodeId peer) const;
  /// Asks which node answers at `peer.address`, on a separate connection; the node has to be
  /// `peer.id` and of this cluster. Calls `done` once, unless the transport is stopped before.
  /// Errors: invalid_argument (the address), unavailable (no node answers), and those of a refusal.
  void introduce(const PeerAddress& peer, std::function<void(Result<wire::Hello>)> done);

  /// Whether send() would reach `peer`.
  bool connected(raft::NodeId peer) const;
  /// Bytes that wait for `peer`.
  std::size_t queued_bytes(raft::NodeId peer) const;
  /// The port that start() has bound.
  std::uint16_t port() const;
  /// The address and port that it has bound, as numbers; of PeerStreams: none.
  const HostPort& bound() const;
  /// Where the connection ends that this node has dialled to `peer`, as numbers; none: it does not
  /// stand.
  std::optional<HostPort> reached(raft::NodeId peer) const;
  const TcpCounters& counters() const;

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace leasehold::net
