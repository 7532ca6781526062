// Who meets whom in the fuzzer of handshakes.
#pragma once

#include <leasehold/net/peer_guard.h>
#include <leasehold/tls/context.h>
#include <leasehold/tls/name.h>

#include <cstdint>
#include <optional>
#include <string>

namespace leasehold::fuzz {

inline constexpr const char* kCluster = "fuzz";
/// The node that dials in meetings 0 and 1: by its certificate, and by the key.
inline constexpr std::uint64_t kNode = 2;

/// Whom a handshake is between, and what has to become of it.
struct Meeting {
  tls::ContextPtr dials;
  tls::ContextPtr accepts;
  bool taken = false;  ///< by the accepting side
  std::string key;     ///< that it proves; empty: none
  std::optional<tls::CertificateName> name;
};

/// Any number names one.
const Meeting& meeting_of(unsigned number);
/// Of the node that accepts in meeting 0.
const net::PeerGuard& node_guard();

}  // namespace leasehold::fuzz
