#include <leasehold/net/handshake.h>

#include <algorithm>
#include <utility>

namespace leasehold::net {

namespace {

/// FNV-1a, 64 bits.
class Fnv {
 public:
  void add(std::string_view bytes) {
    for (const char c : bytes) {
      hash_ = (hash_ ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
    }
  }
  std::uint64_t value() const { return hash_; }

 private:
  std::uint64_t hash_ = 0xcbf29ce484222325U;
};

}  // namespace

// The text that is hashed, pinned:
//   cluster := "leasehold-cluster-1\n" length ":" name "\n" { id "=" length ":" address "\n" }
// with the members ascending by id and every number in decimal. The lengths keep two different
// inputs from giving one text.
std::uint64_t cluster_id(std::string_view name, std::vector<PeerAddress> peers) {
  std::sort(peers.begin(), peers.end(), [](const PeerAddress& a, const PeerAddress& b) {
    return a.id != b.id ? a.id < b.id : a.address < b.address;
  });
  Fnv hash;
  const auto add_text = [&hash](std::string_view text) {
    hash.add(std::to_string(text.size()));
    hash.add(":");
    hash.add(text);
    hash.add("\n");
  };
  hash.add("leasehold-cluster-1\n");
  add_text(name);
  for (const PeerAddress& peer : peers) {
    hash.add(std::to_string(peer.id.value()));
    hash.add("=");
    add_text(peer.address);
  }
  return hash.value() == 0 ? 1 : hash.value();
}

Result<HostPort> parse_address(std::string_view address) {
  const auto refuse = [address](const char* why) {
    return Error{ErrorCode::invalid_argument, "address \"" + std::string(address.substr(0, 256)) +
                                                  "\": " + why +
                                                  "; write host:port, for example 127.0.0.1:7101"};
  };
  const std::size_t colon = address.rfind(':');
  if (colon == std::string_view::npos) return refuse("the port is missing");
  std::string_view host = address.substr(0, colon);
  const std::string_view digits = address.substr(colon + 1);
  if (host.size() >= 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  } else if (host.find(':') != std::string_view::npos) {
    return refuse("an IPv6 host stands in brackets, [::1]:7101");
  }
  if (host.empty() || host.size() > 253) return refuse("the host is missing or too long");
  if (digits.empty() || digits.size() > 5) return refuse("the port is not a number up to 65535");
  std::uint32_t port = 0;
  for (const char c : digits) {
    if (c < '0' || c > '9') return refuse("the port is not a number up to 65535");
    port = port * 10 + static_cast<std::uint32_t>(c - '0');
  }
  if (port > 65535) return refuse("the port is not a number up to 65535");
  return HostPort{std::string(host), static_cast<std::uint16_t>(port)};
}

}  // namespace leasehold::net
