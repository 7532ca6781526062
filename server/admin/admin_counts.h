// What the admin port counts.
#pragma once

#include <cstdint>

namespace leasehold::server {

/// Of the admin port since the start. One thread.
struct AdminCounts {
  std::uint64_t requests = 0;  ///< that were answered, with whatever status
  std::uint64_t crowded = 0;   ///< connections closed, because there were too many
  std::uint64_t slow = 0;      ///< closed: the request or the reading of the answer took too long
  std::uint64_t large = 0;     ///< refused: the head was too long
  std::uint64_t unproven = 0;  ///< refused: no TLS, or no certificate of a user
  std::uint64_t foreign = 0;   ///< refused: the request was for another host's name
};

}  // namespace leasehold::server
