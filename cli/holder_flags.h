// The flags of the commands that hold a lease: lock, elect and register.
#pragma once

#include <leasehold/base/result.h>
#include <leasehold/cli/parser.h>
#include <leasehold/client/lease_holder.h>
#include <leasehold/grant/lease_table.h>
#include <leasehold/lease/clock.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace leasehold::cli {

class HolderFlags {
 public:
  /// All but --wait, which not every command has.
  void add(Flags& flags);
  void add_wait(Flags& flags);

  /// The name is for the command to set. Errors: invalid_argument, with what to do.
  Result<client::LeaseHolder::Options> options(const lease::Clock& clock) const;

  std::vector<std::string> servers;

 private:
  Result<grant::HolderTiming> timing() const;

  std::string holder_;  ///< empty: the host
  std::optional<lease::Duration> renewal_;
  grant::HolderTiming timing_;
  /// "For ever", as a duration that can still be added to an instant.
  lease::Duration wait_ = std::chrono::hours(24 * 365);
};

/// A flag for a term of a lease (grant::LeaseTerms): whole milliseconds, at most `most`.
void add_term(Flags& flags, const Flag& flag, lease::Duration most,
              grant::LeaseTerms::Milliseconds& term);

/// The exit status of a command that did not get its lease.
int status_of_refusal(const Error& error);

}  // namespace leasehold::cli
