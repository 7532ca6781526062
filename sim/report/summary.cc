#include <leasehold/sim/report/summary.h>

#include <chrono>
#include <cstddef>
#include <cstdio>
#include <sstream>

namespace leasehold::sim {
namespace {

template <class See, class... Counts>
void each_node_count(See see, Counts&... nodes) {
  see(nodes.faults...);
  see(nodes.restarts...);
  see(nodes.notices...);
  see(nodes.beats...);
  see(nodes.bound...);
  see(nodes.side_writes...);
  see(nodes.side_leaders...);
  see(nodes.ended_promises...);
  see(nodes.transfers_asked...);
  see(nodes.transfers...);
  see(nodes.earlier_starts...);
  see(nodes.earlier_leaders...);
}

/// Everything that is counted in a seed and makes sense as a sum: tells it of all the reports at
/// once.
template <class See, class... Reports>
void each_count(See see, Reports&... reports) {
  see(reports.steps...);
  see(reports.leader_changes...);
  see(reports.membership_entries...);
  see(reports.operations_unknown...);
  see(reports.triggered...);
  see(reports.operations.writes...);
  see(reports.operations.reads_off_thread...);
  see(reports.operations.reads_lease...);
  see(reports.operations.reads_quorum...);
  see(reports.operations.reads_leader...);
  see(reports.operations.reads_log...);
  see(reports.snapshots.cuts...);
  see(reports.snapshots.demands...);
  see(reports.snapshots.taken...);
  see(reports.snapshots.arrived...);
  see(reports.snapshots.resets...);
  see(reports.snapshots.installs...);
  see(reports.snapshots.installs_at_start...);
  see(reports.snapshots.resumed...);
  see(reports.snapshots.bytes...);
  see(reports.snapshots.copied...);
  see(reports.snapshots.refused...);
  see(reports.snapshots.full_disks...);
  see(reports.snapshots.crashes_taking...);
  see(reports.snapshots.crashes_sending...);
  see(reports.snapshots.crashes_receiving...);
  see(reports.snapshots.crashes_installing...);
  see(reports.sessions.opened...);
  see(reports.sessions.writes...);
  see(reports.sessions.repetitions...);
  see(reports.sessions.repeated...);
  see(reports.sessions.expired...);
  see(reports.sessions.given_up...);
  each_node_count(see, reports.nodes...);
  see(reports.settings.asked...);
  see(reports.settings.refused...);
  see(reports.settings.done...);
  see(reports.settings.committed...);
  see(reports.settings.longer...);
  see(reports.settings.shorter...);
  see(reports.settings.more_drift...);
  see(reports.settings.less_drift...);
  see(reports.settings.other...);
  see(reports.leases.granted...);
  see(reports.leases.expired...);
  see(reports.leases.fenced...);
  see(reports.leases.renewed...);
  see(reports.leases.without_log...);
  see(reports.leases.too_late...);
  see(reports.leases.revoked...);
  see(reports.leases.regained...);
  see(reports.leases.taken_over...);
  see(reports.leases.delayed...);
  see(reports.leases.watched...);
  see(reports.leases.resynced...);
  see(reports.leases.unanswered...);
  see(reports.key_locks.clients...);
  see(reports.key_locks.acquired...);
  see(reports.key_locks.refused...);
  see(reports.key_locks.extended...);
  see(reports.key_locks.added...);
  see(reports.key_locks.released...);
  see(reports.key_locks.lost...);
}

unsigned long long number(std::uint64_t n) {
  return n;
}

void print_nodes(const NodeCounts& n, std::uint64_t leader_changes, const SimOptions& options) {
  std::printf(
      "faults triggered %llu; restarts of nodes %llu; notices of deaths %llu, promises that ended "
      "with their holder %llu; transfers asked for %llu, done %llu\n",
      number(n.faults), number(n.restarts), number(n.notices), number(n.ended_promises),
      number(n.transfers_asked), number(n.transfers));
  std::printf(
      "beats between processes %llu, promises bound to them %llu; in the side groups of processes "
      "elections %llu, writes %llu\n",
      number(n.beats), number(n.bound), number(n.side_leaders), number(n.side_writes));
  if (options.earlier) {
    std::printf("starts of the earlier version %llu, elections that it won %llu of %llu\n",
                number(n.earlier_starts), number(n.earlier_leaders), number(leader_changes));
  }
}

void print_settings(const SettingsCounts& g) {
  std::printf(
      "changes of settings %llu: lease longer %llu, shorter %llu, drift bound larger %llu, smaller "
      "%llu, only others %llu; asked for %llu, refused %llu, reported %llu\n",
      number(g.committed), number(g.longer), number(g.shorter), number(g.more_drift),
      number(g.less_drift), number(g.other), number(g.asked), number(g.refused), number(g.done));
}

}  // namespace

std::string encode_numbers(const SeedReport& report) {
  std::ostringstream out;
  out << report.seed << ' ' << report.simulated.count() << ' ' << report.faults.bits() << ' '
      << report.trace_hash << ' ' << static_cast<int>(report.trial) << ' '
      << (report.violation ? 1 : 0);
  each_count([&out](std::uint64_t count) { out << ' ' << count; }, report);
  return out.str();
}

SeedReport decode_numbers(const std::string& numbers) {
  SeedReport report;
  std::istringstream in(numbers);
  std::int64_t simulated = 0;
  std::uint32_t faults = 0;
  int trial = 0;
  int violated = 0;
  in >> report.seed >> simulated >> faults >> report.trace_hash >> trial >> violated;
  each_count([&in](std::uint64_t& count) { in >> count; }, report);
  report.simulated = Duration(simulated);
  report.faults = FaultSet::from_bits(faults);
  report.trial = static_cast<TrialOutcome>(trial);
  if (violated != 0) report.violation = Violation{};
  return report;
}

void Summary::add(const SeedReport& report) {
  ++seeds_;
  // Rounded for each: the nanoseconds of a century would not fit.
  simulated_ms_ += static_cast<std::uint64_t>(report.simulated / std::chrono::milliseconds(1));
  if (report.trial == TrialOutcome::stable) ++stable_;
  if (report.trial == TrialOutcome::nobody_electable) ++without_successor_;
  each_count([](std::uint64_t& sum, std::uint64_t count) { sum += count; }, sum_, report);
  for (std::size_t i = 0; i < kFaultClasses; ++i) {
    if (report.faults.has(static_cast<FaultClass>(i))) ++fault_seeds_[i];
  }
}

void Summary::print(std::uint64_t findings, std::uint64_t died, const SimOptions& options) const {
  std::printf(
      "seeds %llu, simulated %llu s, steps %llu, leader changes %llu, committed memberships "
      "%llu, findings %llu\n",
      number(seeds_), number(simulated_ms_ / 1000), number(sum_.steps), number(sum_.leader_changes),
      number(sum_.membership_entries), number(findings));
  const OperationCounts& o = sum_.operations;
  std::printf(
      "operations %llu: writes %llu (%llu more unknown), reads off thread %llu, "
      "by lease %llu, quorum %llu, leader %llu, log %llu\n",
      number(o.total()), number(o.writes), number(sum_.operations_unknown),
      number(o.reads_off_thread), number(o.reads_lease), number(o.reads_quorum),
      number(o.reads_leader), number(o.reads_log));
  const SnapshotCounts& s = sum_.snapshots;
  std::printf(
      "logs cut %llu, demands for it answered %llu; snapshots: taken %llu, arrived %llu (%llu "
      "bytes, %llu copied, %llu blocks not copied; %llu continued after a restart), installed %llu "
      "and %llu more at a start; full disks %llu\n",
      number(s.cuts), number(s.demands), number(s.taken), number(s.arrived), number(s.bytes),
      number(s.copied), number(s.refused), number(s.resumed), number(s.installs),
      number(s.installs_at_start), number(s.full_disks));
  std::printf(
      "crashes during a snapshot %llu: taking %llu, sending %llu, receiving %llu, "
      "installing %llu\n",
      number(s.crashes()), number(s.crashes_taking), number(s.crashes_sending),
      number(s.crashes_receiving), number(s.crashes_installing));
  const SessionCounts& c = sum_.sessions;
  std::printf(
      "sessions opened %llu, expired %llu; writes in them %llu (%llu more given up with their "
      "session), repetitions sent %llu, answered by the table %llu\n",
      number(c.opened), number(c.expired), number(c.writes), number(c.given_up),
      number(c.repetitions), number(c.repeated));
  print_nodes(sum_.nodes, sum_.leader_changes, options);
  print_settings(sum_.settings);
  const LeaseCounts& l = sum_.leases;
  std::printf(
      "lease events %llu: leases granted %llu, expired %llu, revoked %llu; renewals %llu, %llu of "
      "them in a grace period; taken over behind a soft limit %llu, lock delays %llu; writes "
      "refused by their token %llu; renewals without the log %llu, too late for that %llu; "
      "revisions told to watchers %llu, resynced %llu; requests without an answer %llu\n",
      number(l.events()), number(l.granted), number(l.expired), number(l.revoked),
      number(l.renewed), number(l.regained), number(l.taken_over), number(l.delayed),
      number(l.fenced), number(l.without_log), number(l.too_late), number(l.watched),
      number(l.resynced), number(l.unanswered));
  const KeyLockCounts& k = sum_.key_locks;
  std::printf(
      "clients of key locks %llu: acquired %llu, refused %llu, extended %llu, added to %llu, "
      "released %llu, lost %llu\n",
      number(k.clients), number(k.acquired), number(k.refused), number(k.extended), number(k.added),
      number(k.released), number(k.lost));
  if (died > 0) {
    std::printf("%llu more seeds ended in an assertion, with a good history until then\n",
                number(died));
  }
  std::printf("seeds by fault:");
  for (std::size_t i = 0; i < kFaultClasses; ++i) {
    std::printf("%s %s %llu", i == 0 ? "" : ",", fault_class_name(static_cast<FaultClass>(i)),
                number(fault_seeds_[i]));
  }
  std::printf("\n");
  if (options.shape) {
    std::printf("partitions (%s): a stable leader %llu, nobody could be elected %llu\n",
                partition_shape_name(*options.shape), number(stable_), number(without_successor_));
  }
}

}  // namespace leasehold::sim
