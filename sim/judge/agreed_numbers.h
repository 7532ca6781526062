// What people may rely on about the clocks and the margin while the settings of the group change.
#pragma once

#include <leasehold/raft/settings.h>
#include <leasehold/sim/judge/ledger.h>

#include <cstdint>
#include <map>
#include <optional>

namespace leasehold::sim {

/// The operator's side of a change. To make the drift bound smaller, he first makes the clocks
/// better, and then asks for it. When the change to a larger one is committed, he lets the clocks
/// be as bad as that. The margin is the same the other way round: it may be used up as soon as it
/// is asked for, and is relied upon when it is committed.
///
/// Lease reads are switched off because the clocks are not to be relied upon: once that is
/// committed and has reached every node that runs, they are as wrong as they like. Before he asks
/// to switch lease reads on, the operator makes the clocks right.
///
/// A request of unknown outcome counts as asked for until a later term has committed an entry: then
/// what it has made is committed, too, or lost.
class AgreedNumbers {
 public:
  /// `drift_ppm_without_leases`: as in SettingsPlan.
  AgreedNumbers(const Ledger& ledger, std::int64_t drift_ppm_without_leases)
      : ledger_(ledger), drift_ppm_without_leases_(drift_ppm_without_leases) {}

  /// About to be sent to a node that leads. Returns the number of the request.
  std::uint64_t asked(const raft::SettingsEdit& edit);
  /// Nothing was appended, or what was is committed.
  void closed(std::uint64_t request) { requests_.erase(request); }
  /// Nobody knows.
  void lost(std::uint64_t request);

  /// Lease reads are off at every node that runs, and nobody has asked to switch them on: the
  /// clocks may be as wrong as SettingsPlan says.
  bool without_leases() const;
  /// How far the clocks of this node may be off: the larger of what it was started with and what
  /// the group allows.
  std::int64_t drift_ppm(const SimNode& node) const;
  /// How much a lease of this node has to leave.
  Duration margin(const SimNode& holder) const;

 private:
  struct Request {
    std::optional<std::int64_t> drift_ppm;
    std::optional<Duration> margin;
    bool lease_reads = false;  ///< they are to be switched on
    /// Once its outcome is unknown: the entry was appended in this term or an earlier one.
    std::optional<raft::Term> term;
  };
  bool matters(const Request& request) const {
    return !request.term || ledger_.newest_term() <= *request.term;
  }

  const Ledger& ledger_;
  const std::int64_t drift_ppm_without_leases_;
  std::map<std::uint64_t, Request> requests_;
  std::uint64_t last_request_ = 0;
};

}  // namespace leasehold::sim
