// Host: the replicas of many groups in one process, with one listener, one log, and one set of
// beats for all their leases.
#pragma once

#include <leasehold/base/result.h>
#include <leasehold/lease/clock.h>
#include <leasehold/lease/timing.h>
#include <leasehold/net/peer_security.h>
#include <leasehold/node/group.h>
#include <leasehold/node/node.h>
#include <leasehold/replica/limits.h>
#include <leasehold/replica/observer.h>
#include <leasehold/replica/state_machine.h>
#include <leasehold/storage/disk.h>
#include <leasehold/storage/sync_times.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace leasehold::node {

struct HostOptions {
  raft::NodeId id;  ///< the host's number
  /// Made if it does not exist: `log`, and `groups/N`. Each `groups/N` may have been restored from
  /// a backup, and the directory then as a whole too (node_restored.h).
  std::string data_dir;
  std::string cluster = "default";  ///< hosts of another name are refused
  /// The hosts that this one talks to, itself included, as far as they are known: set_hosts() adds
  /// others. A host that is not among them is refused.
  std::vector<Peer> hosts;
  /// host:port to bind the peer listener to; empty: this host's own address.
  std::string listen;
  /// How the connections with other hosts are protected. A host that would listen beyond loopback
  /// without any protection does not start.
  net::PeerSecurity peer_security;
  /// As NodeOptions::peer_streams.
  net::PeerStreams* peer_streams = nullptr;
  /// D, heartbeat and drift bound of the beats. A group whose own D is longer uses less of a lease.
  lease::Timing timing;
  /// As NodeOptions::deputy.
  std::string deputy;
  /// As NodeOptions::log_disk.
  std::function<Result<std::unique_ptr<storage::Disk>>()> log_disk;
  /// Notes how long the syncs of the log take; outlives the host. Null: nobody does.
  storage::SyncTimes* sync_times = nullptr;
  /// Threads that call state machines: for one group one at a time.
  std::size_t appliers = 2;
  /// As NodeOptions::io_context, in place of "lh-host".
  asio::io_context* io_context = nullptr;
};

/// A replica of a group, and the host that runs it.
struct Placement {
  raft::NodeId replica;
  raft::NodeId host;
};

/// What a host starts a replica with.
struct GroupOptions {
  raft::GroupId group;  ///< from 1 on
  /// The replica's number in the group. Each that is added to the group gets a higher one, also at
  /// a host that had one before: it does not know what that one has promised. The host refuses a
  /// number that is not above those that were removed from it.
  raft::NodeId replica;
  /// All initial members. The same at each of their hosts, and only used until the group has
  /// formed. Empty: the replica joins a group whose leader adds it.
  std::vector<Placement> members;
  /// What the group begins with; later it has its own (Group::change_settings()).
  lease::Timing timing;
  /// As in NodeOptions, in numbers of replicas.
  std::vector<raft::NodeId> preferred_leaders;
  lease::Duration preference_settle = std::chrono::seconds(10);
  bool witness = false;
  /// As NodeOptions::tracer; outlives the host.
  Tracer* tracer = nullptr;
  replica::Limits limits;
};

struct HostStatus {
  raft::NodeId id;
  raft::Uuid uuid;
  raft::Incarnation incarnation;
  std::vector<raft::GroupId> groups;    ///< open, ascending
  std::vector<raft::NodeId> connected;  ///< hosts, ascending
  std::uint64_t led = 0;                ///< of the groups, here
  std::uint64_t at_rest = 0;            ///< of those
  std::uint64_t messages_sent = 0;      ///< to other hosts, beats included
  std::uint64_t syncs = 0;              ///< of the log
};

/// One process of many groups. Any thread; close_group() and remove_group() block until they are
/// done, and open_group() until all is read that can fail: so not from a completion or a callback.
///
/// Threads, however many groups there are: "lh-host" runs all cores, the drivers and the
/// connections; HostOptions::appliers threads "lh-apply"; one "lh-snap"; and those of the log.
class Host {
 public:
  /// `clock` and `observer` outlive the host. Errors: as Node::open().
  static Result<std::unique_ptr<Host>> open(HostOptions options, const lease::Clock& clock,
                                            replica::Observer& observer);
  virtual ~Host() = default;

  /// Starts a replica; it is valid until the host ends, and stopped after close_group() or
  /// remove_group(): a call ends at once then, and one of its kind may be as well one of its
  /// successor, which is opened behind it.
  /// It takes part from the next turn of the host's thread on, and calls come behind that.
  /// `machine` and `observer` outlive the replica. Errors: invalid_argument (options; or the group
  /// is open; or it was closed, and can only be opened again in another process), wrong_cluster
  /// (the log has another replica of the group), corrupted, io.
  virtual Result<Group*> open_group(const GroupOptions& options, replica::StateMachine& machine,
                                    replica::Observer& observer) = 0;
  /// The groups whose logs are here and that have not been opened.
  virtual std::vector<raft::GroupId> stored_groups() const = 0;
  /// Its callers are answered. If it leads, its members may elect another leader at once. A
  /// success when it is not open.
  virtual Result<void> close_group(raft::GroupId group) = 0;
  /// The same, and the replica and its log are gone for good, also one that was not opened. For one
  /// that has been removed from its group, or whose group is gone. No replica of the group with
  /// this number or a lower one opens here again. The state machine's files are its owner's.
  /// Errors: invalid_argument (another replica is open), io.
  virtual Result<void> remove_group(raft::GroupId group, raft::NodeId replica) = 0;

  /// Adds hosts, or gives them other addresses. One that is missing in `hosts` stays. A member that
  /// is added at the address of two hosts is of the one that was named last. It does not wait, so a
  /// completion may call it.
  virtual Result<void> set_hosts(const std::vector<Peer>& hosts) = 0;
  /// As Node::set_peer_security().
  virtual Result<void> set_peer_security(const net::PeerSecurity& security) = 0;
  virtual void status(std::function<void(HostStatus)> done) = 0;
  /// That of all hosts with HostOptions::cluster. What a state machine writes may carry it.
  virtual std::uint64_t cluster_id() const = 0;
  /// Closes all groups, and ends the threads. Idempotent. Not from a completion or a callback.
  virtual void stop() = 0;
};

}  // namespace leasehold::node
