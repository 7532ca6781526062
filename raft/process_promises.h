// The promises between this process and those of other nodes, which all its groups share
// (docs/decisions/0024).
#pragma once

#include <leasehold/lease/timing.h>
#include <leasehold/raft/election_line.h>
#include <leasehold/raft/process_beat.h>
#include <leasehold/raft/ready.h>
#include <leasehold/raft/shared_promises.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

namespace leasehold::raft {

struct ProcessOptions {
  Peer self;
  /// Its own D, heartbeat and drift bound: what its beats ask for, and the least that it promises.
  lease::Timing timing;
  /// A beat that asks for a longer D is not answered, and renews the promise for this long only.
  Duration longest_promise{0};
  /// How many groups elect at a time, and for how long one may hold up the others.
  std::size_t elections_max = 256;
  Duration election_patience = std::chrono::seconds(2);
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
  /// For Core::promises_moved() of the groups that are led here: of those that do not rest, and
  /// also of those that do if a member's process has let go, or was not heard for a while.
  bool acknowledged = false;
  bool returned = false;
  /// For Core::promises_moved() of all groups: healthy() has changed.
  bool health_changed = false;
  /// Leases of these classes end later now.
  std::set<LeaseClassId> renewed;
  /// For Core::promises_moved() of the leaders whose leases rest on these classes: they are about
  /// to end.
  std::vector<LeaseClassId> lapsed_classes;
  /// For Core::promises_moved() of the groups whose promise is bound to the node of one of these
  /// directories: what this process has promised to it has ended.
  std::vector<Uuid> lapsed_supports;
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
  /// leases that rest on beats run out then, and no group of this process leads.
  void set_healthy(bool healthy);
  /// In this and all that takes one, `now` was sampled after the input was in memory: a promise
  /// that counts from an earlier instant is too short.
  void tick(Now now);
  /// What tick() does besides beats: finds the classes that are about to end, and the promises of
  /// this process that have ended. Not later than next_end().
  void look(Now now);
  PromiseInstant next_end() const;
  /// The process ends: beats say at once all releases that a member may not know, as many as that
  /// takes.
  void last_beats(Now now);
  /// When a tick is due.
  PromiseInstant next_deadline() const;
  void beat(Now now, const Peer& from, const ProcessBeat& beat);
  void reply(Now now, const Peer& from, const ProcessBeatReply& reply);
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
  LeaseClassId join(const LeaseBasis& basis, HolderInstant now) override;
  const LeaseClass& lease_class(LeaseClassId id) const override;
  bool healthy() const override { return healthy_; }
  bool take_place(GroupId group, PromiseInstant now) override {
    return elections_.take_place(group, now);
  }

  /// Drops the classes that no core of this process rests on.
  void retain_classes(const std::set<LeaseClassId>& used) { classes_.retain(used); }
  std::size_t classes() const { return classes_.size(); }

  ElectionLine& elections() { return elections_; }
  const ElectionLine& elections() const { return elections_; }

 private:
  friend class PromisesReader;  // fingerprint.cc
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
    /// Whether it lasts, as far as ProcessReady::lapsed_supports has said.
    bool lasts = false;
    /// The last write that remembers something of it.
    std::uint64_t write = 0;
    /// To its newest beat, until that write is durable.
    std::optional<ProcessBeatReply> held{};
  };

  PeerState* peer(const Peer& of);
  /// One that shares no group any more has to learn of the last ones.
  static bool gets_beats(const PeerState& peer) { return peer.member || !peer.released.empty(); }
  void begin_beat(Now now);
  bool sends_beats() const;
  void lapse(const Uuid& holder, Supported& supported);
  ProcessBeat beat_to(PeerState& to) const;
  void remember(const Uuid& holder, Supported& supported);
  void take_releases(const Peer& from, const ProcessBeat& beat, lease::Support& support);

  ProcessOptions options_;
  bool healthy_ = true;
  PromiseInstant beat_due_;
  /// When the ends of classes are to be looked at.
  PromiseInstant classes_due_;
  lease::Beats beats_;
  /// All that ever shared a group with this process.
  std::vector<PeerState> peers_;
  std::map<Uuid, Supported> supports_;
  std::map<Uuid, lease::Supporter> supporters_;
  LeaseClasses classes_;
  /// By earlier processes.
  std::map<NodeId, Duration> remembered_;
  std::uint64_t writes_ = 0;
  std::uint64_t persisted_ = 0;
  ProcessReady pending_;
  ElectionLine elections_;
};

}  // namespace leasehold::raft
