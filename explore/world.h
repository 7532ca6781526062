// A few real cores, their disks, their clocks and what is on its way between them: one state of the
// exploration, and the steps that lead from it to others.
#pragma once

#include <leasehold/explore/bounds.h>
#include <leasehold/explore/step.h>
#include <leasehold/raft/core.h>
#include <leasehold/raft/fingerprint.h>
#include <leasehold/raft/process_promises.h>
#include <leasehold/story/record.h>
#include <leasehold/story/two_clocks.h>

#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace leasehold::explore {

using raft::Duration;
using raft::Index;
using raft::NodeId;
using raft::Term;

/// One state. Cheap to copy: nodes are shared until a step changes one.
class World {
 public:
  /// Of true time. With D = 49 ms and clocks that may be off by 25 % a lease ends, and a promise
  /// may end, within two units.
  static constexpr Duration kUnit = std::chrono::milliseconds(20);
  /// The other lengths of D: one unit, and four on the slowest clock.
  static constexpr Duration kShorterLease = std::chrono::milliseconds(19);
  static constexpr Duration kLongerLease = std::chrono::milliseconds(98);
  /// What a change does, in Step::what: below kNodesMax it removes that node, below 2 * kNodesMax
  /// it takes it in as a learner.
  static constexpr std::uint8_t kAllVote = 2 * kNodesMax;
  static constexpr std::uint8_t kSole = kAllVote + 1;
  /// What a change of the settings does, in Step::what: D, or the bound on the drift. Before a
  /// smaller bound is asked for, all clocks run true; when a larger one is committed, they may be
  /// wrong by it.
  static constexpr std::uint8_t kShorter = 0, kLonger = 1, kNoDrift = 2, kDrift = 3;

  /// Process `incarnation` of node `i`, in Step::what. There are fewer than 50.
  static std::uint8_t notice_of(std::size_t i, std::uint64_t incarnation) {
    return static_cast<std::uint8_t>((incarnation - 1) * kNodesMax + i);
  }

  /// The state at the end of `bounds.beginning`, or where that could not go on.
  explicit World(const Bounds& bounds);
  /// Why the beginning could not go on: "step 3, `tick 2`, is not possible then, but: pass, ...".
  /// Empty: it could.
  const std::string& wrong_beginning() const { return wrong_beginning_; }

  /// Steps that may come next, in a fixed order, without duplicates.
  std::vector<Step> steps() const;
  /// Takes one of steps(). `sink` receives what happens; may be empty.
  void take(const Step& step, const story::Sink& sink = {});
  /// "2 hears vote_request from 1".
  std::string describe(const Step& step) const;
  /// "hear 2<1 vote_request": as a beginning names it.
  std::string text(const Step& step) const;

  /// What no state may show, if this one does.
  const std::string& violation() const { return violation_; }
  /// Past the bounds: the search does not continue here.
  bool left() const;
  /// Equal for states that act alike from now on, at whatever time they were reached.
  raft::Fingerprint fingerprint() const;
  Duration now() const { return now_; }

  /// Of a node.
  static NodeId id_of(std::size_t i) { return NodeId(static_cast<std::uint64_t>(i) + 1); }
  static std::string address_of(NodeId id) { return fmt::format("node-{}:1", id.value()); }

 private:
  /// What an answer to a round is based on, known from outside the cores.
  struct Proof {
    bool promised = false;  ///< the voter's promise covers all of the round
    raft::Uuid uuid;        ///< the directory that promised
  };
  struct Held {
    raft::HeldMessage message;
    Proof proof;
  };
  /// What storage has, or has received.
  struct Stored {
    raft::LogBase base;
    std::vector<raft::Entry> entries;

    void write(const raft::PersistBatch& batch);
    const raft::Entry& at(Index index) const;
  };
  /// Of one group, at one node.
  struct Replica {
    std::optional<raft::Core> core;
    raft::CoreOptions options;
    raft::HardState disk_hard_state;
    Stored disk;
    /// Everything that storage has received, durable or not.
    Stored log;
    std::deque<raft::PersistBatch> unsynced;
    raft::ReadyId durable;
    std::vector<Held> held;
    raft::LeaseState view;
    // The state machine. Equal but for Bounds::slow_apply.
    Index given;
    Index shown;
    /// The node that a snapshot is on its way to.
    std::vector<raft::SnapshotIntent> snapshots;
    /// Arrived in this turn.
    std::vector<raft::ReceivedChunk> chunks;
    /// Issued by this node in its term; it has not said yet that the transfer has ended.
    std::optional<raft::TransferToken> token;
  };
  /// A machine with its process.
  struct Node {
    Node() = default;
    /// The cores of the copy rest on the copy's promises.
    Node(const Node& other);
    Node& operator=(const Node&) = delete;

    std::array<Replica, kGroupsMax> replicas;
    /// With Bounds::shared alone, and all below as well.
    std::optional<raft::ProcessPromises> promises;
    std::vector<raft::Peer> peers;  ///< that they know
    std::vector<raft::RememberedSupport> remembered;
    std::vector<raft::RememberedSupport> unsynced;  ///< to be remembered
    std::uint64_t write = 0;                        ///< which asked for the last of them
  };
  struct Flight {
    NodeId from;
    NodeId to;
    std::size_t group = 0;
    /// Null: it is one of the others.
    std::shared_ptr<const raft::Message> message;
    std::optional<raft::ProcessBeat> beat{};
    std::optional<raft::ProcessBeatReply> beat_reply{};
    raft::Peer sender{};
    Proof proof{};
    raft::Fingerprint print{};
  };
  /// A read without an answer, and the least index that its answer must have.
  struct Read {
    std::uint64_t number = 0;
    std::size_t replica = 0;
    Index least;
  };
  /// What is known of a group from outside.
  struct Facts {
    /// The terms of all entries that were ever committed, by index.
    std::vector<Term> ledger;
    /// leaders[t] was elected in term t.
    std::vector<NodeId> leaders;
  };
  struct Hands;
  struct Before;

  // Replicas count as nodes do, those of the first group first: replica i of the first group is
  // that of node i. What is about a machine takes any of its replicas.
  std::size_t size() const { return left_.nodes; }
  std::size_t replicas() const { return size() * left_.groups; }
  std::size_t node_of(std::size_t replica) const { return replica % size(); }
  std::size_t group_of(std::size_t replica) const { return replica / size(); }
  std::size_t replica_of(std::size_t node, std::size_t group) const {
    return node + group * size();
  }
  std::size_t replica_to(const Flight& flight) const {
    return replica_of(static_cast<std::size_t>(flight.to.value()) - 1, flight.group);
  }
  NodeId id_at(std::size_t replica) const { return id_of(node_of(replica)); }
  /// Makes the node this world's own. Every step does before it changes one.
  Replica& own(std::size_t replica);
  Replica& own_part(std::size_t replica) {
    return nodes_[node_of(replica)]->replicas[group_of(replica)];
  }
  const Replica& at(std::size_t replica) const {
    return nodes_[node_of(replica)]->replicas[group_of(replica)];
  }
  const Facts& facts_of(std::size_t replica) const { return facts_[group_of(replica)]; }
  raft::Now clock(std::size_t replica) const { return clocks_[node_of(replica)].at(now_); }
  /// The end of the lease that readers see.
  raft::HolderInstant shown_end(std::size_t replica) const;

  // steps.cc
  void begin(const Bounds& bounds);
  std::vector<Step> steps_of_beginning() const;
  void add_flight_steps(std::vector<Step>& steps) const;
  void add_node_steps(std::size_t i, std::vector<Step>& steps) const;
  bool writes(std::size_t i) const;
  void add_leader_steps(std::size_t replica, std::vector<Step>& steps) const;
  std::string name(std::size_t replica) const;
  std::string name_of(const Flight& flight) const;
  static std::string what_of(const Flight& flight);
  static std::string text_of(const Flight& flight);
  void add_meetings(std::vector<Step>& steps) const;
  bool repeated(std::size_t flight) const;
  bool among(const Flight& flight, std::uint8_t group) const;
  bool awake(NodeId id) const;
  void add_notices(std::size_t i, std::vector<Step>& steps) const;
  void add_settings(std::size_t i, std::vector<Step>& steps) const;
  void add_rates(std::vector<Step>& steps) const;
  Index end_of_cut(std::size_t i) const;
  /// Answers, and promises nothing.
  bool silent(std::size_t i) const { return left_.unbound && i + 1 == size(); }
  std::string rates(const Step& step) const;

  // world.cc
  void act(const Step& step, const story::Sink& sink);
  void ask(const Step& step, const story::Sink& sink);
  void turn(const Step& step, const story::Sink& sink);
  void meet(std::uint8_t group, const story::Sink& sink);
  void drop(std::size_t flight);
  std::uint8_t true_rates() const;
  void set_rates(std::uint8_t which, const story::Sink& sink);
  void notice(const Step& step, const story::Sink& sink);
  void read(std::size_t i, const story::Sink& sink);
  void show(std::size_t i);
  void change(std::size_t i, std::size_t what);
  raft::GroupSettings settings(std::size_t i) const;
  void change_settings(std::size_t i, std::uint8_t what, const story::Sink& sink);
  story::Record record(story::Kind kind, std::size_t i) const;

  // world_node.cc
  void start(std::size_t i, const story::Sink& sink);
  void start_replica(std::size_t i);
  void wipe(std::size_t i, const story::Sink& sink);
  void drain(std::size_t i, const story::Sink& sink);
  void carry_out(std::size_t i, raft::Ready& ready, const story::Sink& sink);
  void fill(std::size_t i, const raft::AppendIntent& intent, const story::Sink& sink);
  void store_chunks(std::size_t i);
  void persist(std::size_t i, const story::Sink& sink);
  Proof proof(std::size_t i, raft::Message& message);
  void send(std::size_t i, NodeId to, raft::Message message, const Proof& proof,
            const story::Sink& sink);
  void hear(const Flight& flight, const story::Sink& sink);
  void answered(std::size_t i, const raft::ReadAnswer& answer);
  Flight flight_from(std::size_t i, NodeId to) const;

  // world_promises.cc
  void start_promises(std::size_t i);
  void meet_members(std::size_t i);
  bool carry_out_promises(std::size_t i, const story::Sink& sink);
  void wake(std::size_t i, const raft::ProcessReady& ready);
  void send_beat(std::size_t i, const raft::ProcessReady::Beat& beat, const story::Sink& sink);
  void send_reply(std::size_t i, const raft::ProcessReady::Reply& reply, const story::Sink& sink);
  void put_on_its_way(Flight flight, const story::Sink& sink);
  story::Record record_of(story::Kind kind, NodeId node, NodeId peer, const Flight& flight) const;
  void hear_process(const Flight& flight, const story::Sink& sink);
  void persist_supports(std::size_t i);
  void add_promises(std::size_t i, raft::Fingerprint& print) const;

  // rules.cc
  void fail(const std::string& what);
  void committed(std::size_t i, Index index);
  void rely_on(const raft::GroupSettings& settings);
  void check();
  void check_views();
  void check_sent_commit(std::size_t i);
  void check_promises(std::size_t holder);
  Before before(std::size_t i, const Flight* flight) const;
  void check_rules(const Before& before, const Flight* flight, bool inside);
  void check_acknowledged(const Before& before, bool still, const Flight* flight);
  void check_quorum(std::size_t i);
  void check_appended(std::size_t i);
  void check_vote(const Before& before, NodeId candidate, const raft::VoteRequest& request,
                  bool granted);
  bool proves(const Flight& flight, const raft::Core& leader, raft::Round round) const;

  Bounds left_;         ///< what is left of the bounds
  bool alike_ = false;  ///< nodes 2 and 3 began alike
  std::string wrong_beginning_;
  Duration now_{0};
  std::array<std::shared_ptr<Node>, kNodesMax> nodes_;  ///< see own(); the first size() of them
  std::array<story::TwoClocks, kNodesMax> clocks_;
  std::uint8_t rates_ = 0;  ///< the digit of every node
  /// Clocks may be wrong once the group has agreed on that.
  bool drifts_ = false;
  bool trusted_ = false;  ///< a bound that the clocks may use up is agreed
  std::vector<Flight> flights_;
  std::vector<Flight> kept_;  ///< empty once the search has begun
  std::vector<Read> reads_;
  std::uint64_t next_read_ = 1;
  std::array<Facts, kGroupsMax> facts_;
  /// A vote or a pre-vote was granted in this step.
  bool granted_ = false;
  std::string violation_;
};

}  // namespace leasehold::explore
