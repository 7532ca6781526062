// The keys beside the leases: what stands there, and when it changes.
#pragma once

#include <leasehold/base/result.h>
#include <leasehold/grant/lease_table.h>
#include <leasehold/lease/instant.h>

#include <cstdint>
#include <string>
#include <vector>

namespace leasehold::client {

/// The keys of one group, as far as a recipe needs them. Each call blocks, at most for about its
/// `timeout`. One thread calls at a time; it may be another than the one that calls the
/// LeaseService. Errors are sorted as those of LeaseService are.
class KeyService {
 public:
  struct Row {
    std::string key;
    std::string value;
    /// Of the command that made the key. Of two keys the one that was made first has the smaller
    /// one.
    std::uint64_t create_revision = 0;
    grant::LeaseId lease{};  ///< on which it stands; 0: none
  };
  struct Listing {
    std::uint64_t revision = 0;
    /// Ascending by key. Every key that stood there from before `revision` until after the call.
    std::vector<Row> rows;
  };
  /// What somebody waits for: one key, or all that begin so.
  struct Interest {
    std::string key;
    bool prefix = false;
  };

  virtual ~KeyService() = default;
  /// Linearizable: what was done before the call is in it.
  virtual Result<Listing> list(const std::string& prefix, lease::Duration timeout) = 0;
  /// Writes a key that goes with its lease. A second time does no harm, and leaves the key's create
  /// revision as it is. Errors: not_found: there is no such lease (any more).
  virtual Result<void> put(const std::string& key, const std::string& value, grant::LeaseId lease,
                           lease::Duration timeout) = 0;
  /// Returns when something of it has changed behind `revision`; also at the end of the timeout,
  /// and whenever that is not known. So whoever wants to know looks.
  virtual void wait_change(const Interest& interest, std::uint64_t revision,
                           lease::Duration timeout) = 0;
};

}  // namespace leasehold::client
