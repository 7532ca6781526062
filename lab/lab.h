// One simulated cluster under the hands of a visitor: the production core, driver and state machine
// on simulated clocks, disks and links.
#pragma once

#include <leasehold/base/result.h>
#include <leasehold/lab/clients.h>
#include <leasehold/lab/visit.h>
#include <leasehold/raft/membership.h>
#include <leasehold/replica/calls.h>
#include <leasehold/sim/judge/oracles.h>
#include <leasehold/sim/world/sim_network.h>
#include <leasehold/sim/world/sim_node.h>
#include <leasehold/sim/world/world.h>
#include <leasehold/story/record.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace leasehold::lab {

/// Nothing global, no thread, no clock. The same visit gives the same trace hash under every
/// compiler, in every browser, and in whatever portions its time is run.
///
/// All oracles of the simulator look on. Within the bounds that the settings promise they find
/// nothing. Each oracle reports its first finding about the lease, and the run goes on: a visitor
/// sees what comes of it. Any other finding ends the run: only the time goes on.
///
/// With two groups in the visit, both promise through one set of beats between the processes. The
/// second one has no steady load: it rests until a visitor asks something of it.
class Lab {
 public:
  /// Nothing has happened yet; the steps of `visit` will.
  explicit Lab(const Visit& visit);
  ~Lab();
  Lab(const Lab&) = delete;
  Lab& operator=(const Lab&) = delete;

  /// Simulates up to `end`, which may not be in the past, and carries out the steps that are due.
  void run(Duration end);
  /// Adds a step behind all others, not in the past. It is carried out when time gets there: at the
  /// present instant, at once; then a message that is not under way is refused, too.
  Result<void> add(const Step& step);

  Duration now() const { return world_.queue.now().since_origin(); }
  const Visit& visit() const { return visit_; }
  /// Over everything that happened so far.
  std::uint64_t hash() const { return world_.trace.hash(); }
  /// The first finding of any oracle, behind the oracle's name; empty if there is none.
  const std::string& violation() const { return violation_; }
  /// The first step so far that named a message which was not under way, and why; empty if there is
  /// none. Such a visit was made for another run.
  const std::string& refusal() const { return refusal_; }
  /// The messages that a step of the present instant can name.
  std::vector<sim::SimNetwork::Flight> flights() const { return network_.flights(); }
  /// What happened since the last call, in order: docs/formats/trace.md, and these kinds of `mark`
  /// by their `what`: durable (the log of `node` is durable up to `index`), violation (`why` is the
  /// oracle, `text` its finding), unused (a step found nothing to do), refused and unknown (the
  /// command for the members of `node` was not begun by `peer`, or not seen to end; `text` says
  /// which and why; refused, too: a message of `node` is not under way), dropped, delayed and twice
  /// (message `number` of `node` to `peer`; it, or its copy, is to arrive at `until`), and group
  /// (by the log of the newest leader, `node`, the members are those of entry `index`; `text`:
  /// "voters 1,2,3 outgoing 1,2 learners 4", without what is empty).
  std::vector<story::Record> take_records();

 private:
  void run_queue(Duration end);
  void after_step();
  void tell_finding();
  void carry_out(const Step& step);
  /// False: there was nothing to do.
  bool act(const Step& step);
  bool act_on_process(const Step& step, sim::SimNode& node);
  void leap(sim::SimNode& node, std::int64_t length_ms);
  void lose_power(sim::SimNode& node);
  Result<sim::SimNetwork::Flight> flight_of(const Step& step) const;
  void act_on_message(const Step& step);
  bool transfer(const Step& step);
  Clients& clients_of(raft::GroupId group) { return *clients_[group.value() - 1]; }
  void change_members(const Step& step);
  void on_changed(const Step& step, raft::NodeId asked, const replica::ChangeResult& result);
  void tell_group();
  void tell_end(const sim::SimNode& ended);
  bool set_link(raft::NodeId from, raft::NodeId to, bool whole);
  bool set_links(raft::NodeId node, bool whole);
  sim::SimNode& at(raft::NodeId id) { return *nodes_[id.value() - 1]; }
  void mark(const char* what, raft::NodeId node, raft::Index index, std::string text);

  Visit visit_;
  std::size_t next_step_ = 0;
  std::vector<story::Record> records_;
  sim::World world_;
  sim::Oracles oracles_;
  sim::SimNetwork network_;
  std::vector<std::unique_ptr<sim::SimNode>> nodes_;
  std::vector<sim::SimNode*> all_;
  std::vector<Place> first_;                       ///< of the first group
  std::vector<std::unique_ptr<Clients>> clients_;  ///< of each group
  std::vector<raft::Index> durable_;
  /// By node: of its clocks, without a leap.
  std::vector<std::int64_t> rates_;
  /// The newest leadership of which the members were looked at, and the entry that named them.
  std::pair<raft::Term, raft::Index> group_at_;
  raft::Membership group_;
  std::string violation_;
  std::string refusal_;
  /// Oracles that have reported a finding.
  std::set<std::string> told_;
};

}  // namespace leasehold::lab
