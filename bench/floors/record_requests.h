// The requests that clients of Redis send to the floor of a write: SETs of any size, and what
// redis-benchmark asks before it begins.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace leasehold::bench {

/// The request at the front of what a client sent.
struct RecordRequest {
  enum class Kind : std::uint8_t {
    incomplete,  ///< more has to arrive
    record,      ///< a SET: `length` bytes to make durable, answered +OK
    other,       ///< answered at once with `reply`, in its turn
    malformed,   ///< no request of the protocol: the connection is of no use
  };
  Kind kind = Kind::incomplete;
  std::size_t length = 0;
  std::string reply;  ///< of `other`
};

/// Reads lengths and the first word alone, not the values: as cheap for a large value as for a
/// small one.
RecordRequest first_request(std::string_view bytes);

}  // namespace leasehold::bench
