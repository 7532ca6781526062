#include <leasehold/sim/report/seed_report.h>

#include <chrono>

namespace leasehold::sim {

std::string missing_coverage(const SeedReport& report, const SimOptions& options) {
  std::string missing;
  const auto need = [&missing](bool enough, const std::string& what) {
    if (!enough) missing += (missing.empty() ? "" : ", ") + what;
  };
  need(report.simulated >= std::chrono::seconds(60), "60 simulated seconds");
  if (options.lease_work) {
    // There may be no leader until the faults have ended.
    need(report.leases.events() + report.leases.unanswered >= 10, "10 requests about leases");
  } else {
    // Where faults are frequent, clients give up more operations than are answered.
    need(report.operations.total() + report.operations_unknown >= 100, "100 operations");
    // Few, where the group has become one slow member that most clients do not ask.
    need(report.operations.total() >= 25, "25 completed operations");
  }
  if (options.shape) {
    need(report.trial != TrialOutcome::none, "a verdict on its partition");
    return missing;
  }
  // Beats keep a leader through all that a quiet seed triggers.
  need(report.leader_changes >= 1 || report.nodes.beats > 0, "a leader change");
  need(report.faults.count() >= 3, "three fault classes");
  return missing;
}

}  // namespace leasehold::sim
