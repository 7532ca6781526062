// What all connections of one server share: settings, counters, and who is connected.
#pragma once

#include <leasehold/lease/instant.h>
#include <leasehold/server/counters.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace leasehold::server {

struct ServerOptions {
  /// After this long a write ends as unknown or not executed, and a read as refused.
  lease::Duration command_timeout = std::chrono::seconds(5);
  /// Off: reads in mode lease are confirmed by a quorum, wherever the lease stands. For machines
  /// whose clocks cannot be trusted.
  bool lease_reads = true;
  /// Client connections at a time.
  std::size_t clients_max = 10000;
  std::size_t io_threads = 1;
  std::string advertise;  ///< this node's client address, as status shows it
  /// What CONFIG GET shows, name and value.
  std::vector<std::pair<std::string, std::string>> config;
};

/// Made before the first connection. The counters of thread `i` are written by that thread alone.
struct ServerState {
  explicit ServerState(ServerOptions server_options)
      : options(std::move(server_options)), counters(options.io_threads) {}

  ServerOptions options;
  std::vector<Counters> counters;
  std::chrono::steady_clock::time_point started = std::chrono::steady_clock::now();
  std::atomic<std::uint64_t> next_client_id{1};
  std::atomic<std::size_t> clients{0};
  std::atomic<std::size_t> input_bytes{0};  ///< of all connections' input buffers
  std::uint16_t port = 0;  ///< of the client listener; set before the first connection

  /// One counter, summed over all threads.
  std::uint64_t sum(Count Counters::*counter) const {
    std::uint64_t total = 0;
    for (const Counters& of_thread : counters) total += (of_thread.*counter).value();
    return total;
  }
};

}  // namespace leasehold::server
