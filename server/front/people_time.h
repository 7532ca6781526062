// Time for people: ages, log lines, the slow log, TIME, and instants that a client names (EXAT),
// which become durations; and how long a thread looks for work. Requests are judged by the node's
// clock, never by these.
#pragma once

#include <chrono>

namespace leasehold::server {

/// Never goes back. Coarse (a few milliseconds), but almost free.
std::chrono::nanoseconds coarse_now();
/// The same, exact.
std::chrono::nanoseconds fine_now();
/// The wall clock, since 1970.
std::chrono::microseconds wall_now();

}  // namespace leasehold::server
