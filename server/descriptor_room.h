// How many clients a process can take with the descriptors that it may have.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace leasehold::server {

/// What a node needs beside its clients: its log, its store, its peers, its ports.
inline constexpr std::uint64_t kOwnDescriptors = 512;

/// At most `wanted`, and at least one. With few descriptors one half is for the clients: a log that
/// gets none for its next file ends the node.
constexpr std::size_t clients_that_fit(std::uint64_t descriptors, std::size_t wanted) {
  const std::uint64_t own = std::min(kOwnDescriptors, descriptors / 2);
  return static_cast<std::size_t>(
      std::max<std::uint64_t>(1, std::min<std::uint64_t>(wanted, descriptors - own)));
}

}  // namespace leasehold::server
