// Who is on the other end: what two nodes tell each other before the first message, and how one
// judges the other.
//
// Pure: no sockets here. The bytes are in wire/handshake_codec.h.
#pragma once

#include <leasehold/base/result.h>
#include <leasehold/raft/types.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace leasehold::net {

/// A member's number and where its peer listener is reached.
struct PeerAddress {
  raft::NodeId id;
  std::string address;  ///< host:port, or [v6]:port
  friend bool operator==(const PeerAddress&, const PeerAddress&) = default;
};

/// The number by which nodes of one cluster know each other: a hash of the cluster's name and its
/// initial members, in any order. Pinned: it stands in every data directory. Never 0.
std::uint64_t cluster_id(std::string_view name, std::vector<PeerAddress> peers);

/// host and port of an address. Errors: invalid_argument, which quotes the address.
struct HostPort {
  std::string host;
  std::uint16_t port = 0;
  friend bool operator==(const HostPort&, const HostPort&) = default;
};
Result<HostPort> parse_address(std::string_view address);

}  // namespace leasehold::net
