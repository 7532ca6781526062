// Time for people: ages, log lines, the slow log, TIME, and instants that a client names (EXAT),
// which become durations. What serves a request judges it on the node's clock, never on these.
#pragma once

#include <chrono>

namespace leasehold::server {

/// Never goes back. Coarse (a few milliseconds), but next to free.
std::chrono::nanoseconds coarse_now();
/// The wall clock, since 1970.
std::chrono::microseconds wall_now();

}  // namespace leasehold::server
