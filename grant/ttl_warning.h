// Warns of times to live that work and are probably a mistake.
#pragma once

#include <leasehold/lease/instant.h>

#include <chrono>

namespace leasehold::grant {

/// A holder's ordinary pauses, of its program or its network, are shorter than this.
inline constexpr lease::Duration kTtlWarnedBelow = std::chrono::seconds(3);
/// Others should wait for a dead holder no longer than this.
inline constexpr lease::Duration kTtlWarnedAbove = std::chrono::hours(1);

/// A warning for a person who asks for a lease with this time to live; null: none.
const char* ttl_warning(lease::Duration ttl);

}  // namespace leasehold::grant
