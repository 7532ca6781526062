// What a visitor of the lab asks for: a cluster, its settings, and steps at instants of true time;
// and its one form as text, which stands in the address of the page.
#pragma once

#include <leasehold/base/result.h>
#include <leasehold/lease/timing.h>
#include <leasehold/raft/types.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace leasehold::lab {

using lease::Duration;

enum class Verb : std::uint8_t {
  kill,      ///< the process dies
  power,     ///< the machine loses power: what was not synced is lost, its clocks start again
  restart,   ///< a process starts where none runs
  pause,     ///< the process stands still for `amount` ms; clocks run on
  resume,    ///< every pause of the process ends
  suspend,   ///< the machine sleeps for `amount` ms: the clock of promises stands still
  cut,       ///< the link to `peer` carries nothing, in both directions
  one_way,   ///< nothing from `node` reaches `peer`
  join,      ///< the link to `peer` carries again, in both directions
  alone,     ///< every link of the node is cut
  reunite,   ///< every link of the node carries again
  slow,      ///< the next sync of its disk takes `amount` ms
  drift,     ///< its clocks run `amount` parts per million too fast, or too slow
  jump,      ///< its clocks leap forward by `amount` ms, within one millisecond
  write,     ///< a client writes at the node
  read,      ///< a client reads at the node, in `mode`
  transfer,  ///< the node, if it leads, transfers the leadership to `peer`
  // The command goes to `peer`, or to the newest leader if that is nobody.
  add,      ///< the node is to join the group as a learner
  promote,  ///< the node, a learner, is to vote
  remove,   ///< the node is to leave the group
  // One message of Raft that is under way: the one that `node` sent as its `message`-th.
  drop,   ///< it is lost at once
  delay,  ///< it arrives `amount` ms later, and others overtake it
  twice,  ///< a copy arrives `amount` ms behind it
};

/// "one_way". Pinned: links hold these names.
const char* verb_name(Verb verb);

/// Something that the visitor does. Whole milliseconds of true time.
struct Step {
  Duration at{0};
  Verb verb = Verb::kill;
  raft::NodeId node;
  raft::NodeId peer;
  std::int64_t amount = 0;
  raft::ReadMode mode = raft::ReadMode::lease;
  std::uint64_t message = 0;
  /// Of a read, a write or a transfer: the first one, or the second ("2000.write.1b").
  raft::GroupId group{1};
  friend bool operator==(const Step&, const Step&) = default;
};

/// One run. The same visit is the same run, everywhere.
struct Visit {
  static constexpr std::size_t kStepsMax = 500;
  static constexpr Duration kLongest = std::chrono::minutes(10);
  /// Of rounds, reads and writes: no link keeps a browser busy for long.
  static constexpr Duration kPeriodMin = std::chrono::milliseconds(5);

  std::uint64_t seed = 1;
  std::uint64_t nodes = 3;  ///< 3, 5 or 7 form the group
  std::uint64_t spare = 0;  ///< 0 to 2, behind them: they run, know of no group, and may join it
  /// 1 or 2. With 2, each node has a replica of both, and their promises rest on the beats between
  /// the processes (lease/README.md, rules 41 to 50); there is no spare node then.
  std::uint64_t groups = 1;
  lease::Timing timing;
  Duration delay = std::chrono::milliseconds(15);  ///< of a message: between 3/5 and 7/5 of it
  /// Between two reads at each leader, and between two writes. 0: none.
  Duration reads = std::chrono::milliseconds(50);
  Duration writes = std::chrono::milliseconds(400);
  /// 1: where a process dies and its machine lives, the other nodes that it reaches learn of its
  /// end, as from a deputy (lease/README.md, rules 37 to 40), after a message's way.
  std::int64_t known_deaths = 0;
  /// 1: the numbers may break the inequalities. Only the variant of the lab that is compiled
  /// without the check (unchecked.cc) takes such a visit, and it takes no other.
  std::uint64_t unchecked = 0;
  std::vector<Step> steps;  ///< by time; at one instant in the order in which they were added
  std::uint64_t all() const { return nodes + spare; }
  friend bool operator==(const Visit&, const Visit&) = default;
};

/// "1500.kill.1", "2000.read.2.quorum", "900.drift.3.-50000", "3000.add.4", "1510.delay.3.45.200".
std::string step_text(const Step& step);
/// Whether it is about one message.
bool is_about_message(Verb verb);
/// The only decoder of a step, for a cluster of `nodes`, spare ones included, that form `groups`.
/// Errors say what is wrong with which word. Whether a message is under way, the run says:
/// Lab::add(), Lab::refusal().
Result<Step> parse_step(std::string_view text, std::uint64_t nodes, std::uint64_t groups = 1);

/// "seed=1&nodes=3&lease=1000&…&steps=1500.kill.1~2000.read.2.quorum". Every name is written;
/// `spare` only where there is one, `unchecked` only where it is 1, `groups` only where there are
/// two.
std::string visit_text(const Visit& visit);
/// The only decoder. What is left out keeps its default; names may be in any order. Refuses unknown
/// names, numbers out of their ranges, and timing that breaks an inequality of lease::Timing: but
/// for a visit that is unchecked, in the variant for such visits.
Result<Visit> parse_visit(std::string_view text);

}  // namespace leasehold::lab
