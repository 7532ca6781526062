#include <leasehold/raft/settings.h>

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
  switch (refused.obstacle) {
    case SettingsObstacle::not_leader:
      return "this node does not lead; ask " +
             (refused.leader == kNobody ? std::string("again when a leader is known")
                                        : "node " + std::to_string(refused.leader.value()));
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
  }
  LEASEHOLD_UNREACHABLE();
}

}  // namespace leasehold::raft
