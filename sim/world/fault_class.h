// The kinds of faults, and sets of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace leasehold::sim {

/// What may go wrong. Each seed draws its own mixture, so that rare combinations happen.
enum class FaultClass : std::uint8_t {
  crash,          ///< a process dies and a new incarnation starts on its disk
  pause,          ///< a process, or its ordering thread alone, does nothing; both clocks run
  suspend,        ///< a machine sleeps: the promise clock stands still, the holder's runs
  partition,      ///< groups that do not hear each other; also bridges and rings
  one_way_cut,    ///< links that carry nothing in one direction
  loss,           ///< single messages vanish
  duplication,    ///< single messages arrive twice
  reordering,     ///< messages overtake each other; some take seconds
  replay,         ///< old frames arrive again, long after, at later incarnations too
  disk_stall,     ///< a sync takes longer than an election timeout
  unsynced_loss,  ///< a crash loses what was not synced: any suffix of the waiting batches
  disk_error,     ///< a sync fails: the node has to stop; a snapshot cannot be taken
  extreme_drift,  ///< every clock runs at exactly the bound, fast or slow
  drift_change,   ///< clock rates change under way
  slow_apply,     ///< the state machine lags
  late_handling,  ///< the ordering thread sleeps between reading the clock and acting
  reader_pause,   ///< a reader's thread sleeps between any two of its steps
  straggler,      ///< a follower is away for long, while the others cut their logs
  full_disk,      ///< no space for the log but a reserve, which may be used up
  transfer,       ///< a leader is asked to transfer the leadership
  membership,     ///< a leader is asked to change the members
  cut_demand,     ///< a node is asked to cut its log now
  settings,       ///< a leader is asked to change the settings of the group
};
inline constexpr std::size_t kFaultClasses = 23;

/// "unsynced_loss".
const char* fault_class_name(FaultClass fault);
/// None: no fault class has that name.
std::optional<FaultClass> fault_class_of(std::string_view name);

/// A set of fault classes.
class FaultSet {
 public:
  bool has(FaultClass fault) const { return (bits_ & bit(fault)) != 0; }
  void add(FaultClass fault) { bits_ |= bit(fault); }
  void remove(FaultClass fault) { bits_ &= ~bit(fault); }
  std::size_t count() const;
  std::uint32_t bits() const { return bits_; }
  static FaultSet from_bits(std::uint32_t bits) {
    FaultSet set;
    set.bits_ = bits;
    return set;
  }
  friend bool operator==(const FaultSet&, const FaultSet&) = default;

 private:
  static std::uint32_t bit(FaultClass fault) {
    return std::uint32_t{1} << static_cast<unsigned>(fault);
  }
  std::uint32_t bits_ = 0;
};

}  // namespace leasehold::sim
