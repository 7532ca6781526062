// The leases that clients hold, as a replicated state machine stores them.
#pragma once

#include <leasehold/base/result.h>
#include <leasehold/base/strong.h>
#include <leasehold/lease/instant.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace leasehold::grant {

/// A lease that a client holds. 0: none.
using LeaseId = StrongInt<struct LeaseIdTag>;
/// A holder shows its token to the resource that the lease protects. A later grant has a larger
/// one. 0: none.
using FencingToken = StrongInt<struct FencingTokenTag>;

// The limits are constants, not settings, because all replicas have to decide the same.

inline constexpr std::size_t kLeasesMax = std::size_t{1} << 18U;
/// Leases with one owner: no user takes the last quarter from the others.
inline constexpr std::size_t kLeasesOfOwnerMax = kLeasesMax / 4 * 3;
/// Keys that are attached to one lease: they are removed in one step.
inline constexpr std::size_t kLeaseKeysMax = std::size_t{1} << 14U;
inline constexpr std::size_t kLeaseNameBytesMax = 255;
inline constexpr std::size_t kLeaseHolderBytesMax = 255;
inline constexpr std::size_t kLeaseOwnerBytesMax = 128;
inline constexpr lease::Duration kLeaseTtlMin = std::chrono::milliseconds(1);
inline constexpr lease::Duration kLeaseTtlMax = std::chrono::hours(24 * 365 * 10);
inline constexpr lease::Duration kLeaseGraceMax = std::chrono::hours(24 * 30);
inline constexpr lease::Duration kLeaseDelayMax = std::chrono::hours(24);
/// The largest id that a client may choose. The table chooses ids above it.
inline constexpr LeaseId kChosenLeaseIdMax{(std::uint64_t{1} << 32U) - 1};

/// The leases of keys that end by themselves have ids from here on. Each belongs to one key, has no
/// name and no holder, and only the key's commands change it. Its id contains the stamp of its
/// grant, so no id is given twice.
inline constexpr LeaseId kKeyLeaseIdMin{std::uint64_t{1} << 63U};
constexpr bool is_of_key(LeaseId id) {
  return id >= kKeyLeaseIdMin;
}

/// Whether `token` may write where `highest` is the largest token that has written. The one rule of
/// fencing: a holder that stopped for longer than its lease finds a larger token there.
constexpr bool fence_passes(FencingToken highest, FencingToken token) {
  return token >= highest;
}

/// Additional times of a lease. Whole milliseconds, in few bytes: there are many leases.
struct LeaseTerms {
  using Milliseconds = std::chrono::duration<std::uint32_t, std::milli>;
  /// After its time to live the lease remains for this time, with its keys, and a renewal restores
  /// it: the grace period of Chubby. At most kLeaseGraceMax.
  Milliseconds grace{0};
  /// After the lease has expired, nobody gets its name for this time: the lock delay of Consul. A
  /// lease that is revoked has none. At most kLeaseDelayMax; only with a name.
  Milliseconds delay{0};
  /// In the grace period a client that asks for the name ends the lease: the time to live is the
  /// soft limit of HDFS, and the end of the grace period the hard one. Only with a grace period, a
  /// name, and no delay.
  bool soft = false;
  friend bool operator==(const LeaseTerms&, const LeaseTerms&) = default;

  /// Why a lease with or without a name cannot have them; null: it can.
  const char* problem(bool named) const;
};

/// A part of a state machine's replicated state. It stores leases, holders and attached keys, and
/// no time: a lease lives until a command ends it, and expiry_tracker.h decides when its time is
/// over. Every method is a function of the table and its arguments, so replicas that call the same
/// ones in the same order agree.
///
/// Changes are made in steps. One command is one step: keep() makes the changes permanent,
/// roll_back() undoes all of them. Not thread-safe.
class LeaseTable {
 public:
  struct Lease {
    LeaseId id;
    std::string name;  ///< no two leases have the same one; empty: without a name
    std::string holder;
    lease::Duration ttl{0};
    FencingToken token;
    /// A number that no other grant and no other renewal in the log has: an expiry that names it is
    /// void if either has happened since.
    std::uint64_t stamp = 0;
    /// As the request said; of the lease of a key, when that ends. In milliseconds since 1970, 0:
    /// unknown. Only shown.
    std::int64_t asked_at_ms = 0;
    LeaseTerms terms;
    /// It has expired. It has no keys and no holder, and only reserves its name until terms.delay
    /// is over.
    bool delayed = false;
    /// The user that took it, at most kLeaseOwnerBytesMax bytes; empty: everybody's.
    std::string owner = {};
    friend bool operator==(const Lease&, const Lease&) = default;
  };
  struct Request {
    LeaseId id;  ///< 0: the table chooses one that was never given before
    std::string_view name;
    std::string_view holder;
    lease::Duration ttl{0};
    LeaseTerms terms{};
    std::int64_t asked_at_ms = 0;
    std::string_view owner = {};
    std::uint64_t above = 0;  ///< an id that the table chooses is
  };
  enum class Verdict : std::uint8_t {
    granted,
    id_taken,
    name_taken,
    /// The lease of this id or name ended in this very step: the new one would have a token that
    /// is no larger than what is written under the old one's.
    ended_in_this_step,
    too_many,
    too_many_of_owner,  ///< above kLeasesOfOwnerMax
    out_of_range,       ///< the id, the name, the holder, the time to live or the terms
  };
  struct Granted {
    Verdict verdict = Verdict::granted;
    LeaseId id;  ///< the new lease, or the one that is in the way
  };
  enum class Attached : std::uint8_t { attached, no_lease, too_many_keys };
  using Keys = std::set<std::string, std::less<>>;

  /// `token`: above that of every earlier step.
  Granted grant(const Request& request, FencingToken token);
  /// A lease for one key, to which attach() is called next. None: there are too many leases. `ttl`
  /// is in range. `end_ms`: see Lease::asked_at_ms.
  std::optional<LeaseId> grant_to_key(lease::Duration ttl, FencingToken token,
                                      std::int64_t end_ms = 0);
  /// A lease of a key lives for `ttl` from now on.
  void retime(LeaseId id, lease::Duration ttl, std::int64_t end_ms = 0);
  /// A renewal in the log. False: there is no such lease, or it is delayed.
  bool renew(LeaseId id);
  /// The keys that were attached, until the end of the step; null: there is no such lease.
  const Keys* end(LeaseId id);
  /// end(), if neither a renewal in the log nor another grant has come since `stamp`. A lease with
  /// a lock delay becomes a delayed one; that one ends.
  const Keys* expire(LeaseId id, std::uint64_t stamp);
  /// `key` is attached to no lease.
  Attached attach(LeaseId id, std::string_view key);
  /// A lease of a key ends with its key.
  void detach(LeaseId id, std::string_view key);
  /// `from` is attached to the lease, and `to` takes its place.
  void move(LeaseId id, std::string_view from, std::string_view to);

  /// What one step has changed, in order.
  struct Change {
    enum class What : std::uint8_t { granted, renewed, delayed, ended, attached, detached };
    What what = What::granted;
    LeaseId id;
    std::string name;  ///< of the lease that was granted or ended
    Keys keys;         ///< that left it, were attached or detached
    Lease lease;       ///< that ended, or as it was before it was renewed or delayed
  };
  const std::deque<Change>& step() const { return step_; }
  void keep();
  void roll_back();
  /// The leases with a soft limit whose name was refused to a client since the last call, also in a
  /// step that was rolled back. Not part of the state.
  std::set<LeaseId> take_wanted() { return std::exchange(wanted_, {}); }

  const Lease* find(LeaseId id) const { return leases_.find(id); }
  const Lease* find(std::string_view name) const { return leases_.find(name); }
  /// Null: there is no such lease.
  const Keys* keys(LeaseId id) const;
  /// In the order of their ids, those after `after`.
  std::vector<Lease> list(LeaseId after, std::size_t count) const;
  std::size_t size() const { return leases_.by_id().size(); }
  /// Of `owner`, which is not empty.
  std::size_t size_of(std::string_view owner) const { return leases_.count_of(owner); }

  // For the bytes of the state.

  /// The highest id that the table chose, and the highest stamp.
  LeaseId newest() const { return newest_; }
  std::uint64_t newest_stamp() const { return newest_stamp_; }
  /// Into an empty table: first these numbers, then each lease. Errors: malformed, and the table is
  /// as it was.
  void restore_newest(LeaseId id, std::uint64_t stamp);
  Result<void> restore(const Lease& lease, Keys keys);
  /// After restore(). Errors: malformed.
  Result<void> restore_key(LeaseId id, std::string_view key);
  /// After all of them. Errors: malformed: a lease of a key without its key.
  Result<void> restored() const;

  friend bool operator==(const LeaseTable& a, const LeaseTable& b) {
    return a.newest_ == b.newest_ && a.newest_stamp_ == b.newest_stamp_ && a.leases_ == b.leases_ &&
           a.keys_ == b.keys_;
  }

 private:
  /// By id and by name. There are many leases, so a name is stored once: in its lease.
  class Leases {
   public:
    using ById = std::map<LeaseId, Lease>;
    Leases() = default;
    Leases(const Leases& other);
    /// The elements of a map stay where they are when the map moves.
    Leases(Leases&& other) noexcept = default;
    Leases& operator=(Leases other) noexcept;
    ~Leases() = default;

    const ById& by_id() const { return by_id_; }
    /// Null: there is none. Its id, its name and its owner are not to be changed.
    Lease* find(LeaseId id);
    const Lease* find(LeaseId id) const;
    const Lease* find(std::string_view name) const;
    /// With this owner, who is not empty.
    std::size_t count_of(std::string_view owner) const;
    /// None has its id or its name.
    void insert(Lease lease);
    /// There is one.
    Lease take(LeaseId id);
    friend bool operator==(const Leases& a, const Leases& b) { return a.by_id_ == b.by_id_; }

   private:
    ById by_id_;
    /// Invariant: each lease of by_id_ that has a name, under that very string.
    std::map<std::string_view, const Lease*> by_name_;
    /// Invariant: how many of by_id_ each owner has; no owner without one.
    std::map<std::string, std::size_t, std::less<>> of_owner_;
  };

  const Keys* end(const Lease& lease);
  const Keys* delay(Lease& lease);
  /// All of them leave the lease.
  Keys take_keys(LeaseId id);
  void put_keys(LeaseId id, Keys keys);
  /// The lease has this key.
  void remove_key(LeaseId id, const std::string& key);

  LeaseId newest_ = kChosenLeaseIdMax;
  std::uint64_t newest_stamp_ = 0;
  Leases leases_;
  /// Most leases have none, and there are many leases. Invariants: none is empty, each is of one of
  /// leases_; between two steps a lease of a key has exactly that key.
  std::map<LeaseId, Keys> keys_;

  // Of the current step.
  std::deque<Change> step_;
  LeaseId step_newest_ = newest_;  ///< newest_ at its beginning
  std::uint64_t step_stamp_ = 0;
  std::set<LeaseId> ended_ids_;
  std::set<std::string, std::less<>> ended_names_;

  std::set<LeaseId> wanted_;
};

}  // namespace leasehold::grant
