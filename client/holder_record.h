// Who holds a lease, and how often it has passed to another holder: a record in a key.
#pragma once

#include <leasehold/base/result.h>
#include <leasehold/client/key_service.h>
#include <leasehold/client/lease_holder.h>
#include <leasehold/grant/lease_table.h>
#include <leasehold/lease/clock.h>
#include <leasehold/lease/instant.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace leasehold::client {

/// A JSON object with the fields of a Kubernetes LeaseSpec, spelled as there, and the fencing
/// token. It has no `renewTime`: a renewal writes nothing. The record stays when the lease has
/// ended, and then names the last holder.
struct HolderRecord {
  std::string holder;             ///< holderIdentity; UTF-8
  lease::Duration duration{0};    ///< leaseDurationSeconds, of the requested time to live
  std::string acquired;           ///< acquireTime: RFC 3339, by the holder's wall clock, for people
  std::uint64_t transitions = 0;  ///< leaseTransitions: how often the holder was another one
  grant::FencingToken token{};    ///< fencingToken

  std::string json() const;
  /// Other fields that are texts or numbers are ignored. Errors: malformed.
  static Result<HolderRecord> parse(std::string_view json);
};

/// Writes the record of a new holder under `key`: call it after LeaseHolder::acquire() and before
/// any work, with the same `clock` and `options`. Returns the record.
///
/// The first record has 0 transitions; a later one has one more than the record before, if that has
/// another holder. The count is exact, whatever is lost, late or tried again: a record is written
/// only over the one that was read, and over none with a larger token. It counts the holders that
/// have written their record. If the key is deleted, the count begins again. Use one key for each
/// name.
///
/// Tries until the deadline that the lease has when it is called. Errors: in_use: another holder
/// has the lease now; timed_out: the lease is over, or the deadline has passed; stopped: give_up();
/// invalid_argument: the key has a value that is no record, and keeps it, or the holder's name is
/// not UTF-8. After an error the record may be written all the same.
Result<HolderRecord> record_holder(KeyService& keys, const lease::Clock& clock,
                                   const LeaseHolder::Options& options, const LeaseHolder& holder,
                                   const std::string& key);

/// The record under `key`; none: there is no such key. Errors: those of KeyService::find(), and
/// invalid_argument: the value is no record.
Result<std::optional<HolderRecord>> read_holder_record(KeyService& keys, const std::string& key,
                                                       lease::Duration timeout);

}  // namespace leasehold::client
