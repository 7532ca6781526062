// Three real cores, their disks, their clocks and what is on its way between them: one state of the
// exploration, and the steps that lead from it to others.
#pragma once

#include <leasehold/raft/core.h>
#include <leasehold/raft/fingerprint.h>
#include <leasehold/story/cluster.h>
#include <leasehold/story/record.h>

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

/// Where a search begins.
enum class Beginning : std::uint8_t {
  led,             ///< node 1 leads term 1, and all have acknowledged its newest round
  first_election,  ///< nothing has happened yet
  one_away,        ///< as `led`, but node 3 has heard nothing
  late_answer,     ///< as `led`, and a copy of node 3's newest answer is on its way
  /// As `led`, but in term 3. Node 2 led term 2, and node 3's answer to a round of term 1, of which
  /// the next round has the number, is on its way. Takes three voters, one D and three terms.
  led_before,
};

/// What a run may have, at most. Each costs states.
struct Bounds {
  std::uint8_t time = 4;  ///< units of true time, see World::kUnit
  std::uint8_t restarts = 0;
  std::uint8_t duplicates = 0;  ///< messages that arrive a second time
  std::uint8_t proposals = 0;
  std::uint8_t reads = 0;  ///< confirmed by a quorum
  std::uint8_t transfers = 0;
  std::uint8_t changes = 0;  ///< of the members
  std::uint8_t flights = 8;  ///< messages on their way at one instant; states with more are left
  std::uint8_t terms = 3;    ///< states with a later term are left
  std::uint8_t voters = 3;   ///< nodes 1 to `voters` vote at the beginning, the others are learners
  /// The clocks run at this many percent less or more than true time, or at its rate; the nodes
  /// trust in 25.
  std::uint8_t drift_percent = 25;
  bool slow_disk = false;  ///< a write is durable when a step of its own says so
  bool drift = true;       ///< the clocks may run at different rates
  Beginning beginning = Beginning::led;
  bool uneven = false;        ///< nodes 2 and 3 are set to a shorter D than node 1
  bool sole = false;          ///< a change may also leave nobody but the leader
  bool readers_only = false;  ///< only what a reader could notice is a violation
};

enum class StepKind : std::uint8_t {
  rates,      ///< the first step: argument 0..26, three rates
  advance,    ///< one unit of true time passes
  tick,       ///< of node `argument`: its timer falls, at once or late
  deliver,    ///< of flight `argument`
  duplicate,  ///< the same, and it stays on its way
  sync,       ///< at node `argument`: what it has written is durable
  restart,    ///< of node `argument`; what is not durable is lost
  propose,    ///< at node `argument`
  read,       ///< at node `argument`
  transfer,   ///< argument: leader * 4 + target
  change,     ///< argument: leader * 8 + who is removed; or kAllVote or kSole
};

struct Step {
  StepKind kind = StepKind::advance;
  std::uint8_t argument = 0;
};

/// One state. Cheap to copy: nodes are shared until a step changes one.
class World {
 public:
  static constexpr std::size_t kNodes = 3;
  static constexpr std::size_t kRates = 27;
  /// Of true time. With D = 49 ms and clocks that may be off by 25 % a lease ends, and a promise
  /// may end, within two units.
  static constexpr Duration kUnit = std::chrono::milliseconds(20);
  /// In the argument of a change: all members shall vote; the leader alone stays.
  static constexpr std::size_t kAllVote = 3, kSole = 4;

  /// The state in which `bounds.beginning` says that a search begins.
  explicit World(const Bounds& bounds);

  /// Steps that may come next, in a fixed order, none that is the same as another.
  std::vector<Step> steps() const;
  /// Takes one of steps(). `sink` is told what happens; may be empty.
  void take(const Step& step, const story::Sink& sink = {});
  /// "2 hears vote_request from 1".
  std::string describe(const Step& step) const;

  /// What no state may show, if this one does.
  const std::string& violation() const { return violation_; }
  /// Past the bounds: not to be continued.
  bool left() const;
  /// Equal for states that act alike from now on, whenever they came to be.
  raft::Fingerprint fingerprint() const;
  Duration now() const { return now_; }

 private:
  struct Node {
    std::optional<raft::Core> core;
    raft::CoreOptions options;
    raft::HardState disk_hard_state;
    std::vector<raft::Entry> disk_log;
    /// Everything that was handed to storage, durable or not.
    std::vector<raft::Entry> log;
    std::deque<raft::PersistBatch> unsynced;
    std::vector<raft::HeldMessage> held;
    raft::LeaseState view;
  };
  struct Flight {
    NodeId from;
    NodeId to;
    std::shared_ptr<const raft::Message> message;
    raft::Fingerprint print;
  };
  /// A read that is not answered, and the least index that its answer has to have.
  struct Read {
    std::uint64_t number = 0;
    NodeId node;
    Index least;
  };

  /// Makes the node this world's own. Every step does before it changes one.
  Node& own(std::size_t i);
  /// Nodes 2 and 3 began alike.
  bool alike() const;
  Flight settle(std::size_t leader);
  void lead_again();
  const Node& at(std::size_t i) const { return *nodes_[i]; }
  raft::Now clock(std::size_t i) const { return clocks_[i].at(now_); }
  void start(std::size_t i, const story::Sink& sink);
  void drain(std::size_t i, const story::Sink& sink);
  void act(std::size_t i, raft::Ready& ready, const story::Sink& sink);
  void fill(std::size_t i, const raft::AppendIntent& intent, const story::Sink& sink);
  void persist(std::size_t i, const story::Sink& sink);
  void send(std::size_t i, NodeId to, raft::Message message, const story::Sink& sink);
  void hear(const Flight& flight, const story::Sink& sink);
  void change(std::size_t i, std::size_t what);
  void set_rates(std::uint8_t which, const story::Sink& sink);
  void committed(std::size_t i, Index index);
  void check();
  void check_promises(std::size_t holder);
  void fail(const std::string& what);

  Bounds left_;  ///< what is left of the bounds
  Duration now_{0};
  std::array<std::shared_ptr<Node>, kNodes> nodes_;  ///< see own()
  std::array<story::TwoClocks, kNodes> clocks_;
  std::uint8_t rates_ = 13;  ///< all true
  std::vector<Flight> flights_;
  std::vector<Read> reads_;
  std::uint64_t next_read_ = 1;
  /// Terms of all entries that were ever committed.
  std::vector<Term> ledger_;
  /// Who was elected: leaders_[t] in term t.
  std::vector<NodeId> leaders_;
  std::string violation_;
};

}  // namespace leasehold::explore
