// Leases that rest on the same promises between processes end together: one end serves all of
// them, so that a leader at rest has nothing to do while its lease is renewed.
#pragma once

#include <leasehold/lease/beat.h>
#include <leasehold/lease/supporter.h>
#include <leasehold/lease/timing.h>
#include <leasehold/raft/types.h>

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <vector>

namespace leasehold::raft {

/// Of one process, and never used again in its life. Zero: none.
using LeaseClassId = StrongInt<struct LeaseClassTag, std::uint32_t>;
inline constexpr LeaseClassId kNoClass{0};
/// A view has so many bits for it (replica/lease_view.h).
inline constexpr LeaseClassId kLeaseClassMax{(1U << 24) - 1};

/// What the lease of a leader at rest rests on. Leaders of one process whose bases are equal have
/// equal leases, as long as they rest.
struct LeaseBasis {
  /// Another voter, which has bound its promise at this epoch and lacks nothing.
  struct Bound {
    Uuid directory;
    lease::Epoch epoch;
    friend bool operator==(const Bound&, const Bound&) = default;
    friend auto operator<=>(const Bound&, const Bound&) = default;
  };

  LeaseBasis() = default;
  /// Of the holder's numbers, what a beat is worth by them and how long a round takes.
  explicit LeaseBasis(const lease::Timing& timing)
      : max_clock_drift_ppm(timing.max_clock_drift_ppm),
        margin(timing.margin),
        heartbeat(timing.heartbeat) {}

  std::int64_t max_clock_drift_ppm = 0;
  Duration margin{0};
  Duration heartbeat{0};
  std::size_t voters = 0;    ///< of the group, this process among them or not
  bool own = false;          ///< this process is a voter
  std::vector<Bound> bound;  ///< ascending

  friend bool operator<(const LeaseBasis& a, const LeaseBasis& b);
};

/// As a leader that looked at each beat would have it.
struct LeaseClass {
  /// Invariant: neither ever moves back.
  HolderInstant end = HolderInstant::earliest();
  HolderInstant began = HolderInstant::earliest();  ///< see QuorumAcknowledged
};

/// Of one process, on the thread of its cores.
///
/// A basis never changes, and names epochs. A voter that has let go acknowledges beats at another
/// epoch, so it adds nothing to the ends of the old one: without the epochs a reader that still has
/// the old class could serve from it beside another leader (docs/decisions/0024).
class LeaseClasses {
 public:
  /// What the process of each other node has acknowledged.
  using Supporters = std::map<Uuid, lease::Supporter>;

  /// `heartbeat`: of this process, in which look() is called about once.
  /// `last`: of the numbers.
  explicit LeaseClasses(Duration heartbeat, LeaseClassId last = kLeaseClassMax)
      : heartbeat_(heartbeat), last_(last) {}
  void set_heartbeat(Duration heartbeat) { heartbeat_ = heartbeat; }

  /// Of all leaders with that basis. kNoClass: it is about to end, its end rests on earlier beats
  /// than the present acknowledgements, or no number is left.
  LeaseClassId join(const LeaseBasis& basis, const lease::Beats& beats,
                    const Supporters& supporters, HolderInstant now);
  /// Null: retain() has dropped it.
  const LeaseClass* find(LeaseClassId id) const;
  /// A beat has begun (`by` is null), or the process of that directory has acknowledged one. Adds
  /// to `moved` those that now end later.
  void derive(const lease::Beats& beats, const Supporters& supporters, const Uuid* by,
              std::set<LeaseClassId>& moved);
  /// Adds to `lapsed` those that are about to end: their leaders have to renew by themselves. Each
  /// is there once, until it is renewed.
  void look(HolderInstant now, std::vector<LeaseClassId>& lapsed);
  /// Whether look() may find one later.
  bool any_lives() const { return living_ > 0; }
  /// Drops all but these.
  void retain(const std::set<LeaseClassId>& used);
  std::size_t size() const { return by_basis_.size(); }

 private:
  friend class PromisesReader;  // fingerprint.cc
  struct Entry {
    LeaseBasis basis;
    LeaseClass state;
    bool lapsed = false;
  };

  static LeaseClass value_of(const LeaseBasis& basis, const lease::Beats& beats,
                             const Supporters& supporters);
  bool advance(Entry& entry, const LeaseClass& value);
  bool about_to_end(const Entry& entry, HolderInstant now) const;

  Duration heartbeat_;
  LeaseClassId last_;
  std::map<LeaseBasis, LeaseClassId> by_basis_;
  std::map<LeaseClassId, Entry> entries_;
  /// Those that rest on each voter.
  std::map<Uuid, std::set<LeaseClassId>> by_voter_;
  std::size_t living_ = 0;  ///< entries that have not lapsed
  LeaseClassId newest_ = kNoClass;
};

}  // namespace leasehold::raft
