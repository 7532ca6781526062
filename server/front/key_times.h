// The time of keys and leases, between clients and the store: what they say of it becomes a
// duration, and what the store says becomes what is left.
#pragma once

#include <leasehold/kv/command.h>
#include <leasehold/kv/lease_keeper.h>
#include <leasehold/kv/store.h>
#include <leasehold/raft/feature_level.h>
#include <leasehold/server/front/command_spec.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace leasehold::server {

/// How a client's number is meant.
struct TimeUnit {
  bool seconds = true;   ///< else milliseconds
  bool instant = false;  ///< since 1970 on the wall clock of this node; else from now on
};

/// What a client's number means.
struct GivenTime {
  kv::KeyTime ttl{0};
  /// When that is over, in milliseconds since 1970: as the client said, or by the wall clock of
  /// this node. 0: it is over.
  std::int64_t end_ms = 0;
};

/// The text of an error, or empty. `command`: as the error names it. `positive`: a number that is
/// not above 0 is an error, else the key's time is over.
///
/// An instant becomes a duration here: the log and the replicas have no wall clock, and only show
/// the instant.
std::string parse_key_time(std::string_view word, TimeUnit unit, std::string_view command,
                           bool positive, GivenTime& time);

/// EX, PX, EXAT or PXAT with its number: options of SET and GETEX, of which there is one at most.
class TimeOption {
 public:
  /// Whether the option is at `at`; then `at` moves to its number.
  bool take(const Arguments& args, std::size_t& at);
  bool given() const { return !number_.empty(); }
  /// As parse_key_time().
  std::string parse(std::string_view command, GivenTime& time) const;

 private:
  std::string_view name_;
  std::string_view number_;
  TimeUnit unit_;
};

/// If an operation depends on a key's time, this adds what the node knows of that time. It may be
/// old: the operation says of what it is. Errors: the store's.
Result<void> see_time(kv::Operation& operation, const kv::Store& store, kv::LeaseKeeper* keeper);

/// Takes away what a group of this level does not know.
void forget_end(kv::Operation& operation, raft::FeatureLevel level);

/// When a key ends, in milliseconds since 1970, as it was said with its time; none: that is not
/// known, or it has no end. `found`: the reply to kv::KeyLease.
std::optional<std::int64_t> said_end(const kv::Reply& found);

/// Milliseconds until the time of a key is over, 0 at least; none: there is no such key (Nil), and
/// -1: it lives forever. `found`: the reply to kv::KeyLease.
std::optional<std::int64_t> milliseconds_left(const kv::Reply& found, kv::LeaseKeeper* keeper);

/// What the leader knows of a lease's time.
struct LeaseLeft {
  /// Left of its time to live, below 0 in its grace period; or of its lock delay.
  std::int64_t left_ms = 0;
  std::optional<std::int64_t> since_renewal_ms;  ///< none during its lock delay
};
/// `info`: the reply to kv::LeaseInfo. None: another node leads.
std::optional<LeaseLeft> lease_left(const kv::ArrayReply& info, kv::LeaseKeeper* keeper);

}  // namespace leasehold::server
