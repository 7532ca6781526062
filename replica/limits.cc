#include <leasehold/replica/limits.h>

#include <fmt/format.h>

namespace leasehold::replica {
namespace {

/// What fits into a frame between the nodes, with room for the rest of its message.
constexpr std::size_t kPayloadBytesMax = 24U << 20U;
/// What is appended in one turn has to fit into half of the log's queue, with its bookkeeping.
constexpr std::size_t kUncommittedBytesMax = 96U << 20U;

struct Limit {
  const char* name;
  std::size_t value;
  std::size_t most;
};

}  // namespace

Result<void> Limits::validate() const {
  constexpr std::size_t kAny = static_cast<std::size_t>(-1);
  for (const Limit& limit : {
           Limit{"append_bytes_max", append_bytes_max, kPayloadBytesMax},
           Limit{"apply_bytes_max", apply_bytes_max, kAny},
           Limit{"applies_max", applies_max, kAny},
           Limit{"proposals_max", proposals_max, kAny},
           Limit{"proposal_bytes_max", proposal_bytes_max, kAny},
           Limit{"command_bytes_max", command_bytes_max, kPayloadBytesMax},
           Limit{"reads_max", reads_max, kAny},
           Limit{"uncommitted_bytes_max", uncommitted_bytes_max, kUncommittedBytesMax},
           Limit{"snapshot_chunk_bytes", snapshot_chunk_bytes, kPayloadBytesMax},
           Limit{"snapshot_window_bytes", snapshot_window_bytes, kAny},
           Limit{"chunks_storing_max", chunks_storing_max, kAny},
           Limit{"log_reads_max", log_reads_max, kAny},
       }) {
    if (limit.value > 0 && limit.value <= limit.most) continue;
    return Error{ErrorCode::invalid_argument,
                 limit.most == kAny ? fmt::format("limits.{}: 0; give at least 1", limit.name)
                                    : fmt::format("limits.{}: {}; give 1 to {}", limit.name,
                                                  limit.value, limit.most)};
  }
  if (apply_patience <= lease::Duration(0)) {
    return Error{ErrorCode::invalid_argument, "limits.apply_patience: give a time above 0"};
  }
  if (snapshot_window_bytes >= snapshot_chunk_bytes) return {};
  return Error{ErrorCode::invalid_argument,
               fmt::format("limits.snapshot_window_bytes: {}; it has to hold a chunk of {} bytes",
                           snapshot_window_bytes, snapshot_chunk_bytes)};
}

}  // namespace leasehold::replica
