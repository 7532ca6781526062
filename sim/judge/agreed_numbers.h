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
/// A request of unknown outcome counts as asked for until a later term has committed an entry: then
/// what it has made is committed, too, or lost.
class AgreedNumbers {
 public:
  explicit AgreedNumbers(const Ledger& ledger) : ledger_(ledger) {}

  /// About to be sent to a node that leads. Returns the number of the request.
  std::uint64_t asked(const raft::SettingsEdit& edit);
  /// Nothing was appended, or what was is committed.
  void closed(std::uint64_t request) { requests_.erase(request); }
  /// Nobody knows.
  void lost(std::uint64_t request);

  /// How far the clocks of this node may be off: the larger of what it was started with and what
  /// the group allows.
  std::int64_t drift_ppm(const SimNode& node) const;
  /// How much a lease of this node has to leave.
  Duration margin(const SimNode& holder) const;

 private:
  struct Request {
    std::optional<std::int64_t> drift_ppm;
    std::optional<Duration> margin;
    /// Once its outcome is unknown: the entry was appended in this term or an earlier one.
    std::optional<raft::Term> term;
  };
  bool matters(const Request& request) const {
    return !request.term || ledger_.newest_term() <= *request.term;
  }

  const Ledger& ledger_;
  std::map<std::uint64_t, Request> requests_;
  std::uint64_t last_request_ = 0;
};

}  // namespace leasehold::sim
