// The notice that a process has ended: one datagram, and its answer.
#pragma once

#include <leasehold/raft/types.h>
#include <leasehold/wire/notice_form.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace leasehold::wire {

/// "The process of `ended` has ended." Believed if the SHA-256 of `secret` is what that process has
/// shown in its hello.
struct EndNotice {
  std::uint64_t cluster_id = 0;
  raft::Peer ended;    ///< its incarnation and its place are not 0
  std::string secret;  ///< kSecretBytes bytes
  friend bool operator==(const EndNotice&, const EndNotice&) = default;
};

std::string encode_notice(const EndNotice& notice);
/// None: it is not one, or of another version.
std::optional<EndNotice> decode_notice(std::string_view datagram);
/// "Node `by` knows of that."
std::string encode_notice_answer(const raft::Peer& ended, raft::NodeId by);

}  // namespace leasehold::wire
