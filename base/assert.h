// Assertions that stay on in release builds.
//
// A failed assertion is a bug in Leasehold: the state can no longer be trusted, so the process
// stops at once, before it can publish a lease or acknowledge a write. Outcomes that a caller can
// meet in a correct program are never assertions; they are a Result (see result.h).
#pragma once

namespace leasehold {

/// Prints the failed condition and its place in the source, then aborts. Never returns.
[[noreturn]] void assertion_failed(const char* condition, const char* file, int line) noexcept;

}  // namespace leasehold

/// Stops the process unless `condition` holds. One fact each, so that the message names it.
#define LEASEHOLD_ASSERT(condition)                    \
  (static_cast<bool>(condition) ? static_cast<void>(0) \
                                : ::leasehold::assertion_failed(#condition, __FILE__, __LINE__))

/// Marks a branch that no correct program reaches.
#define LEASEHOLD_UNREACHABLE() ::leasehold::assertion_failed("unreachable", __FILE__, __LINE__)
