// The floor of every replicated write: a durable record on a majority, and no consensus at all.
//
// The leader gives a batch to both followers, then writes and syncs its own log while they write
// and sync theirs, and answers its clients when its own sync and that of one follower are done.
// What arrives in that time is the next batch. There are no terms, no elections, no state machine
// and no check of anything.
//
// A record is a SET, of any size (record_requests.h); redis-benchmark can drive it too.
//
// Between the processes: a frame is the length of its records (4 bytes), its sequence number (8)
// and the records; an acknowledgement is a sequence number (8). Numbers are in the machine's own
// order.
#pragma once

#include <leasehold/base/result.h>
#include <leasehold/bench/raw_log.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace leasehold::bench {

struct NullReplicateOptions {
  std::string listen = "127.0.0.1:0";
  std::string log_path;
  RawLog::Growth growth = RawLog::Growth::preallocated;
  std::uint64_t log_bytes = 64U << 20U;  ///< preallocated: overwritten from its beginning when full
};

/// Most bytes that one batch may hold.
inline constexpr std::size_t kNullBatchBytesMax = std::size_t{1} << 20U;

/// Both print "listening HOST:PORT" and then serve until they are killed; a follower also ends when
/// its leader does. Errors: invalid_argument, io, stopped (the leader lost a follower).
Result<void> serve_null_follower(const NullReplicateOptions& options);
Result<void> serve_null_leader(const NullReplicateOptions& options,
                               const std::vector<std::string>& followers);

}  // namespace leasehold::bench
