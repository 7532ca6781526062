// The settings of the group: who follows which numbers, and how they change. A settings entry is a
// membership entry with the same members (membership.h), so one change is under way at a time, and
// a snapshot, a new member and a restart bring the settings along with the members.
//
// lease/README.md argues why a lease is safe across a change (rules 31 to 34). In short:
//   D         travels with each round; the holder counts the one that it sent (rule 13)
//   rho       travels with each round too: a voter whose clock may drift more promises longer
//   rho, sigma grow:  the leader cuts what earlier rounds are worth when it appends the entry, so
//             that no lease of less careful numbers is left when the change is committed

#include <leasehold/base/assert.h>
#include <leasehold/raft/core_impl.h>

#include <algorithm>

namespace leasehold::raft {

const lease::Timing& Core::Impl::timing() const {
  const std::optional<GroupSettings>& agreed = log_.membership().settings;
  return agreed ? agreed->timing : options_.timing;
}

// The holder's numbers: its own clock may drift by more than the group asks for.
lease::Timing Core::Impl::holder_timing() const {
  lease::Timing numbers = timing();
  numbers.max_clock_drift_ppm =
      std::max(numbers.max_clock_drift_ppm, options_.timing.max_clock_drift_ppm);
  return numbers;
}

bool Core::Impl::shows_leases() const {
  const std::optional<GroupSettings>& agreed = log_.membership().settings;
  return !agreed || agreed->lease_reads;
}

// With its own clock this node could renew a lease in time: else it campaigns last, because the
// group would have a leader without a lease.
bool Core::Impl::can_hold() const {
  if (options_.timing.max_clock_drift_ppm <= timing().max_clock_drift_ppm) return true;
  return !shows_leases() || holder_timing().validate().ok();
}

// By the clock of this node, which leads.
Result<void> Core::Impl::holdable(const GroupSettings& wanted) const {
  lease::Timing numbers = wanted.timing;
  const std::int64_t own = options_.timing.max_clock_drift_ppm;
  if (!wanted.lease_reads || own <= numbers.max_clock_drift_ppm) return {};
  numbers.max_clock_drift_ppm = own;
  const Result<void> valid = numbers.validate();
  if (valid) return {};
  return Error{
      ErrorCode::invalid_argument,
      "the leader was started with a larger clock drift, and could not hold such a lease: " +
          valid.error().message};
}

std::variant<LogId, SettingsRefused> Core::Impl::change_settings(Now now,
                                                                 const GroupSettings& wanted) {
  begin_input(now);
  std::variant<LogId, SettingsRefused> answer =
      SettingsRefused{SettingsObstacle::not_leader, leader_};
  if (as_leader() != nullptr) answer = begin_settings(wanted);
  end_input();
  return answer;
}

std::variant<LogId, SettingsRefused> Core::Impl::begin_settings(const GroupSettings& wanted) {
  const Leader* leader = as_leader();
  LEASEHOLD_ASSERT(leader != nullptr);
  if (!takes_proposals()) return SettingsRefused{SettingsObstacle::transfer_under_way};
  if (log_.membership().joint() || log_.membership_index() > commit_) {
    return SettingsRefused{SettingsObstacle::change_under_way};
  }
  if (commit_ < leader->first_index) return SettingsRefused{SettingsObstacle::leader_is_new};
  if (log_.membership().settings == wanted) return SettingsRefused{SettingsObstacle::already_so};
  if (const auto valid = wanted.timing.validate(); !valid) {
    return SettingsRefused{SettingsObstacle::invalid, kNobody, valid.error().message};
  }
  if (const auto held = holdable(wanted); !held) {
    return SettingsRefused{SettingsObstacle::invalid, kNobody, held.error().message};
  }
  if (wanted.timing.lease > timing().lease * kLeaseStepMax) {
    return SettingsRefused{SettingsObstacle::step_too_long};
  }
  append_settings(wanted);
  return log_.last();
}

void Core::Impl::append_settings(const GroupSettings& wanted) {
  Leader* leader = as_leader();
  LEASEHOLD_ASSERT(leader != nullptr);
  const lease::Timing before = holder_timing();
  const bool shown_before = shows_leases();
  append_membership(with_settings(log_.membership(), wanted));
  const lease::Timing after = holder_timing();
  // When the change is done, an operator may rely on it, and let a clock drift more. So no lease of
  // the earlier numbers may be left then.
  // Test: Settings.AMoreCarefulNumberShortensTheLeaseAtOnce.
  if (after.max_clock_drift_ppm > before.max_clock_drift_ppm || after.margin > before.margin) {
    leader->limit_rounds(after);
  }
  // While there were no leases, no clock was relied upon. A lease must not rest on its past.
  // Test: Settings.ALeaseRestsOnNoRoundFromBeforeThereWereLeases.
  if (shows_leases() && !shown_before) leader->void_rounds();
  leader->beats_from = now_.holder;
  // The peers hear of the new D at once, and the next heartbeat is due by the new interval.
  begin_round();
  LEASEHOLD_ASSERT(leader->newest_round().duration == wanted.timing.lease);
}

void Core::Impl::note_settings() {
  const std::optional<GroupSettings>& newest = log_.membership().settings;
  if (newest == announced_settings_) return;
  announced_settings_ = newest;
  if (newest) emit(SettingsChanged{log_.membership_index(), *newest});
}

}  // namespace leasehold::raft
