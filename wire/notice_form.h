// The datagram that says that a process has ended, and the answer to it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace leasehold::wire {

// The numbers are big-endian.
//
//   notice: {"LHND"}{version u8: 1}{7 zero bytes}{cluster id u64}{node id u64}{uuid 2 * u64}
//           {place u64}{incarnation u64}{secret 32 bytes}
//   answer: {"LHNA"}{version u8: 1}{7 zero bytes}{node id u64}{incarnation u64}
//           {answering node u64}
//
// The secret is random, made by the process that the notice is about. In each handshake that
// process shows its SHA-256. So a peer believes the notice if it comes from the process itself or
// from what that process gave the secret to; nobody can forge it, and a copy of it names a process
// that has ended.
inline constexpr std::size_t kSecretBytes = 32;
inline constexpr std::size_t kNoticeBytes = 12 + 6 * 8 + kSecretBytes;
inline constexpr std::size_t kAnswerBytes = 12 + 3 * 8;
inline constexpr std::size_t kAddressBytes = 28;
inline constexpr std::uint8_t kNoticeVersion = 1;

/// Where a deputy sends a notice to, and the answer that ends the sending. Between a node and its
/// deputy only.
struct NoticeTarget {
  char address[kAddressBytes];  ///< sockaddr_in or sockaddr_in6, with zeroes behind it
  char answer[kAnswerBytes];
};

}  // namespace leasehold::wire
