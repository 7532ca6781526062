// The flags of the commands that hold a lease: lock, elect and register.
#pragma once

#include <leasehold/base/result.h>
#include <leasehold/cli/client_flags.h>
#include <leasehold/client/lease_holder.h>
#include <leasehold/lease/clock.h>
#include <leasehold/grant/lease_table.h>

#include <string>
#include <string_view>
#include <vector>

namespace leasehold::cli {

/// Their lines of a usage text, but for --wait, which not all have.
extern const char* const kHolderUsage;

struct HolderFlags {
  std::vector<std::string> servers;
  /// The name is for the command to set.
  client::LeaseHolder::Options options;
};

/// Their names: all have a value.
const std::vector<std::string_view>& holder_flag_names();
/// Errors: invalid_argument, with what to do.
Result<HolderFlags> holder_flags(const ClientFlags& flags, const lease::Clock& clock);

/// A term of a lease (grant::LeaseTerms): 0 if it was not given. Errors: invalid_argument: no whole
/// milliseconds, or above `most`.
Result<grant::LeaseTerms::Milliseconds> term_of(const ClientFlags& flags, std::string_view flag,
                                                lease::Duration most);

/// The exit status of a command that did not get its lease.
int status_of_refusal(const Error& error);

}  // namespace leasehold::cli
