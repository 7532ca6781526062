// Node: one running replica, with its threads. A database links this.
#pragma once

#include <leasehold/base/result.h>
#include <leasehold/lease/clock.h>
#include <leasehold/lease/timing.h>
#include <leasehold/net/peer_security.h>
#include <leasehold/net/peer_streams.h>
#include <leasehold/node/group.h>
#include <leasehold/node/tracer.h>
#include <leasehold/replica/limits.h>
#include <leasehold/replica/observer.h>
#include <leasehold/replica/state_machine.h>
#include <leasehold/storage/disk.h>
#include <leasehold/storage/sync_times.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace asio {
class io_context;
}

namespace leasehold::node {

/// An initial member: its number and the address of its peer listener.
struct Peer {
  raft::NodeId id;
  std::string address;  ///< host:port
};

struct NodeOptions {
  raft::NodeId id;
  std::string data_dir;             ///< made if it does not exist; the log is in its folder `log`,
                                    ///< snapshots that arrive in `snapshot`
  std::string cluster = "default";  ///< name; with the peers it makes the cluster id
  /// Every initial member, this node included. Only for the first start of a new group, and to
  /// check the directory at later ones; from then on the log has the members. Empty: the directory
  /// is part of a group already, or joins one.
  std::vector<Peer> peers;
  /// For a new directory: peer addresses of members of the group to join; the node asks them for
  /// the cluster's id. The node waits until it is added (Node::change_members() at the leader).
  /// Later starts ignore it.
  std::vector<std::string> join;
  /// Instead of asking: the id of the cluster to join. 0: not known.
  std::uint64_t cluster_id = 0;
  /// host:port to bind the peer listener to; empty: this node's own peer address. A node that joins
  /// needs it at its first start.
  std::string listen;
  /// How the connections to and from other nodes are protected. A node that would listen beyond
  /// loopback without any protection does not start.
  net::PeerSecurity peer_security;
  /// Makes the streams between nodes in place of TCP; outlives the node, and serves no other one.
  /// Null: TCP.
  net::PeerStreams* peer_streams = nullptr;
  lease::Timing timing;
  /// The preferred leaders, best first; nodes not listed come last. The same on every node. A
  /// leader transfers to a voter that is before it in the list once that voter has been well
  /// (connected, caught up, answering) for preference_settle without a break. Empty: no preference.
  std::vector<raft::NodeId> preferred_leaders;
  /// This node keeps the log and no state: it votes once it is promoted, refuses reads and commands
  /// (the answer names a member to ask), and does not call the state machine of open(): pass a
  /// WitnessMachine. It joins a group (no `peers`), as a member that is added as a witness; a
  /// directory never changes its kind.
  bool witness = false;
  lease::Duration preference_settle = std::chrono::seconds(10);
  /// The program leasehold-deputy, which tells the other nodes when this process has ended, so that
  /// they elect a leader at once. Empty: none; then they wait for the end of its lease.
  std::string deputy;
  /// Opens the folder of the log, which this node alone uses then: for files that are encrypted, or
  /// lie on a device of the program, or in memory (storage/memory_folder.h). What its sync() has
  /// promised has to be there at the next start, or nothing at all. The tools that read a stopped
  /// node's directory do not know it. Null: the folder `log` of data_dir.
  std::function<Result<std::unique_ptr<storage::Disk>>()> log_disk;
  /// Notes how long the syncs of the log take; outlives the node. Null: nobody does.
  storage::SyncTimes* sync_times = nullptr;
  /// Gets a span of some of the proposals and reads; outlives the node. Null: nobody does.
  Tracer* tracer = nullptr;
  replica::Limits limits;
  /// The node's thread is the one that runs this io_context, which outlives the node: the node
  /// starts no "lh-node". One thread at a time runs it; open(), stop() and the destructor are
  /// called on that thread, or while none runs it. What the node does there never waits for a disk,
  /// but what else runs there delays its heartbeats: a leader whose thread stands still loses its
  /// lease and then its role. Null: the node has a thread of its own.
  asio::io_context* io_context = nullptr;
};

/// A replica that is alone in its process. open() starts its threads, the destructor (or stop())
/// ends them.
///
/// Threads: "lh-node" (or that of NodeOptions::io_context) runs the core, the driver and the peer
/// connections; "lh-apply" calls the
/// state machine, and "lh-snap" takes and stores snapshots; the log has its own. Once stop() has
/// returned these threads are gone.
class Node : public Group {
 public:
  /// Opens or makes the data directory, checks that it belongs to this node and cluster, and
  /// starts. `machine`, `clock` and `observer` outlive the node. With NodeOptions::join and a new
  /// directory it asks the members first, for two seconds each at most. Errors: invalid_argument
  /// (options), in_use, wrong_cluster, unsupported_format, corrupted, io, unavailable (no member
  /// could name the cluster's id: try again later); each says what to do.
  static Result<std::unique_ptr<Node>> open(NodeOptions options, replica::StateMachine& machine,
                                            const lease::Clock& clock, replica::Observer& observer);
  /// Opens the state machine, which outlives the node, or says why it cannot.
  using OpenMachine = std::function<Result<replica::StateMachine*>()>;
  /// The same with a state machine that is opened only once the log is: what is in the directory
  /// has to belong to this node, and to be readable by this build, before a machine that writes as
  /// it opens touches its files. Errors: those of `open_machine`, too.
  static Result<std::unique_ptr<Node>> open(NodeOptions options, const OpenMachine& open_machine,
                                            const lease::Clock& clock, replica::Observer& observer);

  /// Protects the connections with other nodes by `security` from now on, and reads its files:
  /// certificates, keys, what is revoked. Connections that it would not let open end; the others
  /// are replaced by new ones, and no message is lost with them. Reads files on the caller's
  /// thread. Errors: those of a file, or of plain connections beyond loopback, and then nothing has
  /// changed.
  virtual Result<void> set_peer_security(const net::PeerSecurity& security) = 0;

  /// Completes every waiter, stops the threads. Idempotent. Not from a completion or a callback;
  /// on whose thread: see NodeOptions::io_context.
  virtual void stop() = 0;
};

}  // namespace leasehold::node
