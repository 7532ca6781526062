// The keys of a group: their values, and their changes.
#pragma once

#include <leasehold/base/result.h>
#include <leasehold/grant/lease_table.h>
#include <leasehold/lease/instant.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace leasehold::client {

/// The keys of one group, as far as a recipe needs them. Each call blocks, at most for about its
/// `timeout`. One thread calls at a time; it may be another than the one that calls the
/// LeaseService. Errors have the meaning that LeaseService gives them.
class KeyService {
 public:
  struct Row {
    std::string key;
    std::string value;
    /// Of the command that made the key. Of two keys, the earlier one has the smaller revision.
    std::uint64_t create_revision = 0;
    grant::LeaseId lease{};  ///< the key is attached to it; 0: none
    /// Of the key's last write: a larger one than before.
    std::uint64_t mod_revision = 0;
  };
  struct Listing {
    std::uint64_t revision = 0;
    /// Ascending by key. Contains every key that existed from before `revision` until after the
    /// call.
    std::vector<Row> rows;
  };
  /// What a caller waits for: one key, or all keys with that prefix.
  struct Interest {
    std::string key;
    bool prefix = false;
  };

  /// A write on two conditions, which the group checks when it applies the write.
  struct GuardedWrite {
    std::string key;
    std::string value;
    /// Of the key's last write, as the caller has read it; 0: the key does not exist.
    std::uint64_t mod_revision = 0;
    /// No larger token has written the key. No smaller one can write it afterwards.
    grant::FencingToken token;
  };

  virtual ~KeyService() = default;
  /// Linearizable: it contains everything that was done before the call.
  virtual Result<Listing> list(const std::string& prefix, lease::Duration timeout) = 0;
  /// This key alone. Linearizable, as list(). None: it does not exist.
  virtual Result<std::optional<Row>> find(const std::string& key, lease::Duration timeout) = 0;
  /// Tries once. False: the key was written since it was read, and nothing was done. The key is
  /// attached to no lease afterwards. Errors: in_use: a larger token has written the key. A try of
  /// unknown outcome (timed_out) may still take effect, but not after another write of the key.
  virtual Result<bool> replace(const GuardedWrite& write, lease::Duration timeout) = 0;
  /// Writes a key that is deleted with its lease. A second call does no harm, and leaves the key's
  /// create revision as it is. Errors: not_found: there is no such lease (any more).
  virtual Result<void> put(const std::string& key, const std::string& value, grant::LeaseId lease,
                           lease::Duration timeout) = 0;
  /// Returns when a key of `interest` has changed after `revision`; also at the end of the timeout,
  /// and when the service cannot know. So read the keys after it.
  virtual void wait_change(const Interest& interest, std::uint64_t revision,
                           lease::Duration timeout) = 0;
};

}  // namespace leasehold::client
