// `leasehold serve`: one replica, until a signal ends it.
#pragma once

#include <leasehold/server/settings.h>

namespace leasehold::server {

/// The exit status of a node that its group has removed.
inline constexpr int kRemoved = 5;

/// Runs until SIGTERM or SIGINT. Returns the exit status: 0 after a signal, kRemoved, or 1 when the
/// node could not start or failed. Messages go to the log, which is stderr. Blocks those signals in
/// the whole process, and sets its umask to 077: call it from main, before any thread exists.
int run_serve(ServeSettings settings);

}  // namespace leasehold::server
