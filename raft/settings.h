// The numbers on which all members of a group have to agree, so that a leader's lease ends before
// the promises that it rests on. They are part of the group's log.
#pragma once

#include <leasehold/lease/timing.h>
#include <leasehold/raft/types.h>

#include <cstdint>
#include <optional>
#include <string>

namespace leasehold::raft {

/// The settings of a group from one position of its log on: they stand in a membership entry
/// (membership.h), and like the members they are in effect when that entry is appended. What a node
/// is started with (CoreOptions::timing) is what it would propose; once its log has settings it
/// follows those.
struct GroupSettings {
  lease::Timing timing;  ///< invariant: has passed validate()
  /// Off: no leader shows a lease, and every read asks a quorum. For a group whose clocks cannot be
  /// relied upon. Promises and elections stay as they are.
  bool lease_reads = true;

  friend bool operator==(const GroupSettings&, const GroupSettings&) = default;
};

/// What is to be different; the rest stays as it is.
struct SettingsEdit {
  std::optional<Duration> lease{};
  std::optional<Duration> heartbeat{};
  std::optional<std::int64_t> max_clock_drift_ppm{};
  std::optional<Duration> max_round_trip{};
  std::optional<Duration> margin{};
  std::optional<Duration> election_timeout{};
  std::optional<bool> lease_reads{};

  GroupSettings applied_to(GroupSettings settings) const;
  friend bool operator==(const SettingsEdit&, const SettingsEdit&) = default;
};

/// A node promises at most this many times the D that it follows. So a whole group moves to a
/// longer D in such steps: what a member that has missed one of them acknowledges still counts.
inline constexpr int kLeaseStepMax = 10;
/// Of any group.
inline constexpr Duration kLeaseLongest = std::chrono::hours(1);

/// Why the settings were not changed. Nothing was appended.
enum class SettingsObstacle : std::uint8_t {
  not_leader,          ///< ask `node`, if it is known
  transfer_under_way,  ///< of the leadership, or this leader is about to stop leading
  change_under_way,    ///< the newest membership is joint, or not known to be committed
  leader_is_new,       ///< it has committed nothing of its own term yet
  already_so,          ///< the group has exactly these settings
  invalid,             ///< they break an inequality of lease::Timing; `why` quotes it
  step_too_long,       ///< D would grow to more than kLeaseStepMax times the present one
  // A node finds these before it asks its core.
  member_unready,  ///< the group has no settings yet, and `node` may run a build that knows none
  too_late,        ///< the caller's time was over before the change was begun
};

struct SettingsRefused {
  SettingsObstacle obstacle = SettingsObstacle::not_leader;
  NodeId node{};  ///< not_leader: kNobody if unknown
  std::string why{};
  friend bool operator==(const SettingsRefused&, const SettingsRefused&) = default;
};

/// A sentence for a person that says what to do.
std::string text_of(const SettingsRefused& refused);
/// Whether the same change may pass later, or at the leader, without a correction.
bool passes_by_itself(SettingsObstacle obstacle);

}  // namespace leasehold::raft
