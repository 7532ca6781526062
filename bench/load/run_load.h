// One run of `leasehold bench`: opens the connections, writes the keys, warms up, measures, and
// prints.
#pragma once

#include <leasehold/base/result.h>
#include <leasehold/bench/load/options.h>

#include <functional>
#include <iosfwd>

namespace leasehold::bench {

/// The result goes to `out`, progress to `news`, once a second. `ended`: whether the user wants an
/// end; then the result is of what was measured so far. Returns false if the run is to be thrown
/// away (outcome.h), which it says. Errors: invalid_argument, unavailable (no server, or the keys
/// could not be written), io (the files, too).
Result<bool> run_load(const LoadOptions& options, const std::function<bool()>& ended,
                      std::ostream& out, std::ostream& news);

}  // namespace leasehold::bench
