// The log of the process that serves: lines on stderr, for people or for programs.
#pragma once

#include <leasehold/server/settings.h>

#include <string>

namespace leasehold::server {

/// Once, before the first line. No thread waits for a slow terminal: the oldest lines are lost.
///
/// `text`: local time, level, "node 1: " and the message, in one line. `json`: an object in each
/// line, with `time` (UTC), `level`, `node` and `message`.
void start_log(const ServeSettings& settings);

/// From the next line on: "trace", "debug", "info", "warn", "error" or "off". Any thread.
void set_log_level(const std::string& level);

}  // namespace leasehold::server
