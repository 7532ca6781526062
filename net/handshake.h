// The handshake: what two nodes tell each other before the first message, and when one refuses.
//
// Pure: no sockets here. The bytes are wire/hello.h's.
#pragma once

#include <leasehold/base/result.h>
#include <leasehold/raft/types.h>
#include <leasehold/wire/hello.h>

#include <cstdint>
#include <optional>
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
/// initial members, in any order, and of the backup that the group was restored from (0: none).
/// Pinned: it stands in every data directory. Never 0.
std::uint64_t cluster_id(std::string_view name, std::vector<PeerAddress> peers,
                         std::uint64_t generation = 0);

/// host and port of an address. Errors: invalid_argument, which quotes the address.
struct HostPort {
  std::string host;
  std::uint16_t port = 0;
  friend bool operator==(const HostPort&, const HostPort&) = default;
};
Result<HostPort> parse_address(std::string_view address);

/// As it stands in messages for people: 32 hexadecimal digits.
std::string uuid_text(const raft::Uuid& uuid);

/// Compares what the other side said with what this side says (or would say). `mine.to` is the node
/// that was dialled; kNobody: the connection was accepted. None: they may talk, as far as the two
/// hellos show; the transport and the node check whether the peer is known and not replaced.
std::optional<wire::Refusal> judge_hello(const wire::Hello& mine, const wire::Hello& theirs);

/// The same of an introduction (wire::Purpose::introduction): zeros and empty names, which say "not
/// known", fit everything.
std::optional<wire::Refusal> judge_introduction(const wire::Hello& mine, const wire::Hello& theirs);

/// The peer that was accepted last under one node id.
class PeerHistory {
 public:
  /// Refuses an older incarnation of the directory that was accepted last, and a second process
  /// that claims the same one. Another uuid is refused while `connected`; the node decides whether
  /// it may replace the old one at all.
  std::optional<wire::Refusal> judge(const wire::Hello& hello, bool connected) const;
  void let_in(const wire::Hello& hello) { last_ = hello; }
  const std::optional<wire::Hello>& last() const { return last_; }

 private:
  std::optional<wire::Hello> last_;
};

}  // namespace leasehold::net
