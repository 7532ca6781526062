#include <leasehold/base/assert.h>
#include <leasehold/sim/world/fault_class.h>

namespace leasehold::sim {

const char* fault_class_name(FaultClass fault) {
  switch (fault) {
    case FaultClass::crash: return "crash";
    case FaultClass::pause: return "pause";
    case FaultClass::suspend: return "suspend";
    case FaultClass::partition: return "partition";
    case FaultClass::one_way_cut: return "one_way_cut";
    case FaultClass::loss: return "loss";
    case FaultClass::duplication: return "duplication";
    case FaultClass::reordering: return "reordering";
    case FaultClass::replay: return "replay";
    case FaultClass::disk_stall: return "disk_stall";
    case FaultClass::unsynced_loss: return "unsynced_loss";
    case FaultClass::disk_error: return "disk_error";
    case FaultClass::extreme_drift: return "extreme_drift";
    case FaultClass::drift_change: return "drift_change";
    case FaultClass::slow_apply: return "slow_apply";
    case FaultClass::late_handling: return "late_handling";
    case FaultClass::reader_pause: return "reader_pause";
    case FaultClass::straggler: return "straggler";
    case FaultClass::full_disk: return "full_disk";
    case FaultClass::transfer: return "transfer";
    case FaultClass::membership: return "membership";
    case FaultClass::cut_demand: return "cut_demand";
    case FaultClass::settings: return "settings";
  }
  LEASEHOLD_UNREACHABLE();
}

std::optional<FaultClass> fault_class_of(std::string_view name) {
  for (std::size_t i = 0; i < kFaultClasses; ++i) {
    const auto fault = static_cast<FaultClass>(i);
    if (name == fault_class_name(fault)) return fault;
  }
  return std::nullopt;
}

std::size_t FaultSet::count() const {
  std::size_t set = 0;
  for (std::uint32_t rest = bits_; rest != 0; rest &= rest - 1) ++set;
  return set;
}

}  // namespace leasehold::sim
