// The promises between this process and those of other nodes, which all its groups share
// (docs/decisions/0024).
#pragma once

#include <leasehold/lease/timing.h>
#include <leasehold/raft/process_beat.h>
#include <leasehold/raft/ready.h>
#include <leasehold/raft/shared_promises.h>

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

namespace leasehold::raft {

struct ProcessOptions {
  Peer self;
  /// Its own D, heartbeat and drift bound: what its beats ask for, and the least that it promises.
  lease::Timing timing;
  /// A beat that asks for a longer D is not answered, and renews the promise for this long only.
  Duration longest_promise{0};
};

/// The longest D that this node has promised to the node of a directory: all that is durable of the
/// promises between processes.
struct RememberedSupport {
  NodeId holder;
  Uuid directory;
  Duration duration{0};
  friend bool operator==(const RememberedSupport&, const RememberedSupport&) = default;
};

/// What follows from an input, in any order, except that a reply waits in here until what it rests
/// on is durable.
struct ProcessReady {
  struct Beat {
    NodeId to;
    ProcessBeat message;
  };
  struct Reply {
    NodeId to;
    ProcessBeatReply message;
  };
  struct Released {
    GroupId group;
    Peer holder;
    Term term;
  };

  /// Each replaces what was remembered of its directory. To be written, and once that is durable
  /// ProcessPromises::persisted(write).
  std::vector<RememberedSupport> remember;
  std::uint64_t write = 0;
  std::vector<Beat> beats;
  std::vector<Reply> replies;
  /// For Core::released() of that group, if it has a replica here.
  std::vector<Released> released;
  /// For Core::beats_acknowledged() of the groups that are led here: of those that do not rest, and
  /// also of those that do if a member's process has let go, or was never heard before.
  bool acknowledged = false;
  bool epoch_moved = false;
};

/// Of one process. Passive and deterministic, as Core: time is an input, effects are data.
class ProcessPromises final : public SharedPromises {
 public:
  /// `remembered`: what earlier processes of this directory have left.
  ProcessPromises(const ProcessOptions& options, const std::vector<RememberedSupport>& remembered,
                  Now now);

  /// The nodes that share a group with this one: they get its beats from now on, and nobody else's
  /// beats and answers count.
  void set_peers(const std::vector<Peer>& peers);
  /// Later beats stand for these numbers; the next one is due at once.
  void set_timing(const lease::Timing& timing);
  /// Nothing begins a beat while one of its disks, or the loop of a group, makes no progress: the
  /// leases that rest on beats run out then.
  void set_healthy(bool healthy) { healthy_ = healthy; }
  /// In this and all that takes one, `now` was sampled after the input was in memory: a promise
  /// that counts from an earlier instant is too short.
  void tick(Now now);
  /// The process ends: beats say at once all releases that a member may not know, as many as that
  /// takes.
  void last_beats(Now now);
  /// When a tick is due.
  PromiseInstant next_deadline() const;
  void beat(Now now, const Peer& from, const ProcessBeat& beat);
  void reply(const Peer& from, const ProcessBeatReply& reply);
  /// As Core::ended().
  void ended(Now now, const Peer& peer);
  /// A core of this process has let go of its members: Ready::release.
  void released(GroupId group, const Release& release);
  /// All that the Ready of this `write`, and those before it, asked to remember is durable.
  void persisted(std::uint64_t write);
  /// Moves out what has followed since the last call.
  void take_ready(ProcessReady& ready);

  const lease::Support* support_of(const Uuid& holder) const override;
  void rely(const Uuid& holder, PromiseInstant now) override;
  Duration remembered(NodeId holder) const override;
  const lease::Beats& beats() const override { return beats_; }
  const lease::Supporter* supporter(const Uuid& member) const override;

 private:
  struct PeerState {
    NodeId id;
    Uuid directory;
    /// False: it shares no group any more.
    bool member;
    /// What the peer has not acknowledged yet: the oldest first, one of each group. `since` is zero
    /// until a beat has said it.
    std::vector<ReleasedGroup> released;
  };
  struct Supported {
    NodeId id;
    lease::Support support;
    /// The last write that remembers something of it.
    std::uint64_t write = 0;
    /// To its newest beat, until that write is durable.
    std::optional<ProcessBeatReply> held{};
  };

  PeerState* peer(const Peer& of);
  /// One that shares no group any more has to learn of the last ones.
  static bool gets_beats(const PeerState& peer) { return peer.member || !peer.released.empty(); }
  void begin_beat(Now now);
  ProcessBeat beat_to(PeerState& to) const;
  void remember(const Uuid& holder, Supported& supported);
  void take_releases(const Peer& from, const ProcessBeat& beat, lease::Support& support);

  ProcessOptions options_;
  bool healthy_ = true;
  PromiseInstant beat_due_;
  lease::Beats beats_;
  /// All that ever shared a group with this process.
  std::vector<PeerState> peers_;
  std::map<Uuid, Supported> supports_;
  std::map<Uuid, lease::Supporter> supporters_;
  /// By earlier processes.
  std::map<NodeId, Duration> remembered_;
  std::uint64_t writes_ = 0;
  std::uint64_t persisted_ = 0;
  ProcessReady pending_;
};

}  // namespace leasehold::raft
