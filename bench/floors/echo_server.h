// The floor of every networked read: asio, one thread, and nothing to do.
#pragma once

#include <leasehold/base/result.h>

#include <cstddef>
#include <string>

namespace leasehold::bench {

struct EchoOptions {
  std::string listen = "127.0.0.1:0";
  std::size_t request_bytes = 0;  ///< above 0
  std::string reply;              ///< what answers each request
};

/// Answers each `request_bytes` that arrive with `reply`, on any number of connections, on the
/// calling thread. Prints "listening HOST:PORT" first. Returns on SIGTERM or SIGINT. Errors:
/// invalid_argument, io.
Result<void> serve_echo(const EchoOptions& options);

}  // namespace leasehold::bench
