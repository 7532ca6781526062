// How the connections between nodes are protected: what an operator or a host chooses.
#pragma once

#include <cstdint>
#include <string>

namespace leasehold::net {

/// How one node proves itself to another, and their connection with it.
enum class Protection : std::uint8_t {
  /// Nothing is proved or hidden. On loopback both ends have to belong to the same user of the
  /// machine.
  plain,
  /// TLS 1.3 by a key that all members share: who has it may be any member.
  key,
  /// TLS 1.3 by a certificate that names the cluster, the node id and, if it was made so, the
  /// directory's uuid.
  certificate,
};

/// As settings and reports name it.
constexpr const char* name_of(Protection protection) {
  switch (protection) {
    case Protection::plain: return "plain";
    case Protection::key: return "key";
    case Protection::certificate: return "tls";
  }
  return "";
}

/// The same on every node, except while a group moves from one protection to another: then each
/// node accepts both, first; then each dials by the new one; then the old one is not accepted any
/// more.
struct PeerSecurity {
  /// By which this node dials its peers. It is accepted, too.
  Protection dial = Protection::plain;
  // Accepted as well.
  bool accept_plain = false;
  bool accept_key = false;
  bool accept_certificate = false;
  /// A file of 64 hexadecimal digits a line, that only its owner may read. The first key is used to
  /// dial; all are accepted.
  std::string key_file;
  // PEM files.
  std::string certificate_file;
  std::string certificate_key_file;
  std::string authority_file;
  std::string revoked_file;  ///< a list of revoked certificates; empty: none
  /// Plain connections go beyond loopback, to and from anybody who reaches the port. For networks
  /// in which all are trusted.
  bool plain_beyond_loopback = false;

  bool accepts(Protection protection) const {
    return dial == protection || (protection == Protection::plain && accept_plain) ||
           (protection == Protection::key && accept_key) ||
           (protection == Protection::certificate && accept_certificate);
  }
};

/// What a peer has proved on the two connections that carry messages: "plain" (nothing),
/// "key NAME" (the group's key of that name), "tls SERIAL" (a certificate); empty: no connection.
struct PeerProofs {
  std::string to;    ///< on the one that this node dialled, to send
  std::string from;  ///< on the one that the peer dialled
};

}  // namespace leasehold::net
