#include <leasehold/base/assert.h>
#include <leasehold/raft/settings.h>
#include <leasehold/raft/settings_form.h>

#include <chrono>

namespace leasehold::raft {
namespace {

constexpr std::uint8_t kFormat = 1;
constexpr std::uint8_t kLeaseReads = 1;

Error malformed(const std::string& what) {
  return Error{ErrorCode::malformed, "settings of the group: " + what};
}

void put(Duration duration, LittleWriter& to) {
  to.u64(static_cast<std::uint64_t>(duration.count()));
}

Duration duration_of(LittleReader& from) {
  return Duration(static_cast<std::int64_t>(from.u64()));
}

}  // namespace

GroupSettings SettingsEdit::applied_to(GroupSettings settings) const {
  lease::Timing& timing = settings.timing;
  timing.lease = lease.value_or(timing.lease);
  timing.heartbeat = heartbeat.value_or(timing.heartbeat);
  timing.max_clock_drift_ppm = max_clock_drift_ppm.value_or(timing.max_clock_drift_ppm);
  timing.max_round_trip = max_round_trip.value_or(timing.max_round_trip);
  timing.margin = margin.value_or(timing.margin);
  timing.election_timeout = election_timeout.value_or(timing.election_timeout);
  settings.lease_reads = lease_reads.value_or(settings.lease_reads);
  return settings;
}

void encode_settings(const GroupSettings& settings, LittleWriter& to) {
  LEASEHOLD_ASSERT(settings.timing.validate().ok());
  to.u8(kFormat);
  put(settings.timing.lease, to);
  put(settings.timing.heartbeat, to);
  to.u64(static_cast<std::uint64_t>(settings.timing.max_clock_drift_ppm));
  put(settings.timing.max_round_trip, to);
  put(settings.timing.margin, to);
  put(settings.timing.election_timeout, to);
  to.u8(settings.lease_reads ? kLeaseReads : 0);
}

Result<GroupSettings> decode_settings(LittleReader& from) {
  const std::uint8_t format = from.u8();
  if (from.ok() && format != kFormat) {
    return Error{ErrorCode::unsupported_format,
                 "settings of the group have format " + std::to_string(format) +
                     ", this build knows format 1; use the build that wrote them or a newer one"};
  }
  GroupSettings settings;
  settings.timing.lease = duration_of(from);
  settings.timing.heartbeat = duration_of(from);
  settings.timing.max_clock_drift_ppm = static_cast<std::int64_t>(from.u64());
  settings.timing.max_round_trip = duration_of(from);
  settings.timing.margin = duration_of(from);
  settings.timing.election_timeout = duration_of(from);
  const std::uint8_t flags = from.u8();
  if (!from.ok()) return malformed("bytes are missing");
  if ((flags & ~kLeaseReads) != 0) return malformed("unknown flags");
  settings.lease_reads = (flags & kLeaseReads) != 0;
  if (const auto valid = settings.timing.validate(); !valid) {
    return malformed(valid.error().message);
  }
  return settings;
}

std::string text_of(const SettingsRefused& refused) {
  const std::string node = "node " + std::to_string(refused.node.value());
  switch (refused.obstacle) {
    case SettingsObstacle::not_leader:
      return "this node does not lead; ask " +
             (refused.node == kNobody ? std::string("again when a leader is known") : node);
    case SettingsObstacle::transfer_under_way:
      return "the leadership is being transferred; ask the next leader";
    case SettingsObstacle::change_under_way:
      return "an earlier change of the members or the settings is not complete; wait for it and "
             "ask again";
    case SettingsObstacle::leader_is_new:
      return "the leader has just been elected and has committed nothing yet; ask again";
    case SettingsObstacle::already_so: return "the group has exactly these settings already";
    case SettingsObstacle::invalid: return refused.why;
    case SettingsObstacle::step_too_long:
      return "a lease grows to at most " + std::to_string(kLeaseStepMax) +
             " times its length in one change, because members that have not heard of the change "
             "refuse a longer one; make it in steps";
    case SettingsObstacle::member_unready:
      return node +
             " is not connected, or runs a build that knows no settings; all members have to know "
             "them before the group gets its first ones: start it, or upgrade it";
    case SettingsObstacle::too_late: return "the time for the change was over before it was begun";
  }
  LEASEHOLD_UNREACHABLE();
}

bool passes_by_itself(SettingsObstacle obstacle) {
  switch (obstacle) {
    case SettingsObstacle::not_leader:
    case SettingsObstacle::transfer_under_way:
    case SettingsObstacle::change_under_way:
    case SettingsObstacle::leader_is_new:
    case SettingsObstacle::member_unready:
    case SettingsObstacle::too_late: return true;
    case SettingsObstacle::already_so:
    case SettingsObstacle::invalid:
    case SettingsObstacle::step_too_long: return false;
  }
  LEASEHOLD_UNREACHABLE();
}

}  // namespace leasehold::raft
