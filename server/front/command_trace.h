// What a session knows of the trace of the command that runs.
#pragma once

#include <leasehold/replica/span.h>

#include <cstdint>
#include <optional>

namespace leasehold::server {

struct CommandTrace {
  replica::SpanPointer span;  ///< null: it is not recorded
  /// Of the next command: LEASEHOLD TRACEPARENT has named its parent.
  std::optional<replica::TraceContext> next;

  /// For the calls of a command with this span.
  static const replica::TraceContext* of(const replica::SpanPointer& span) {
    return span ? &span->context() : &replica::kUntraced;
  }
};

/// What became of the spans that have ended.
struct SpanCounts {
  std::uint64_t written = 0;
  std::uint64_t crowded = 0;    ///< lost: too many came at a time
  std::uint64_t unwritten = 0;  ///< lost: the file could not be written
};

}  // namespace leasehold::server
