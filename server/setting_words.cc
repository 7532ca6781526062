#include <leasehold/server/front/words.h>
#include <leasehold/server/setting_words.h>
#include <leasehold/server/settings.h>

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>
#include <string>
#include <system_error>

namespace leasehold::server {
namespace {

bool all_digits(std::string_view text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

}  // namespace

Result<std::uint64_t> parse_number(std::string_view text, std::uint64_t low, std::uint64_t high) {
  std::uint64_t value = 0;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), value);
  if (!all_digits(text) || result.ec != std::errc() || value < low || value > high) {
    return invalid(fmt::format("{} is not a number from {} to {}", quoted(text), low, high));
  }
  return value;
}

Result<void> check_address(std::string_view text, std::uint64_t lowest_port) {
  const std::size_t colon = text.rfind(':');
  const bool shaped = colon != std::string_view::npos && colon != 0;
  if (!shaped || !all_digits(text.substr(colon + 1))) {
    return invalid(quoted(text) + " is not an address: write host:port, as in 127.0.0.1:7201");
  }
  const auto port = parse_number(text.substr(colon + 1), lowest_port, 65535);
  if (!port) return invalid(quoted(text) + " is not an address: the port " + port.error().message);
  return {};
}

Result<std::vector<node::Peer>> parse_peers(std::string_view text) {
  std::vector<node::Peer> peers;
  std::set<std::uint64_t> ids;
  std::set<std::string> addresses;
  while (true) {
    const std::size_t comma = text.find(',');
    const std::string_view part = text.substr(0, comma);
    const std::size_t equals = part.find('=');
    if (equals == std::string_view::npos) {
      return invalid(quoted(part) + " is not a peer: write id=host:port, as in 1=127.0.0.1:7101");
    }
    const auto id = parse_number(part.substr(0, equals), 1, kNodeMax);
    if (!id) return id.error();
    const std::string address(part.substr(equals + 1));
    if (auto checked = check_address(address, 1); !checked) return checked.error();
    if (!ids.insert(id.value()).second) {
      return invalid(fmt::format("the peer {} is named twice", id.value()));
    }
    if (!addresses.insert(address).second) {
      return invalid("two peers have the address " + address);
    }
    peers.push_back({raft::NodeId(id.value()), address});
    if (comma == std::string_view::npos) return peers;
    text.remove_prefix(comma + 1);
  }
}

Result<std::uint64_t> parse_bytes(std::string_view text) {
  std::string_view digits = text;
  unsigned shift = 0;
  if (!digits.empty()) {
    switch (digits.back()) {
      case 'K': shift = 10; break;
      case 'M': shift = 20; break;
      case 'G': shift = 30; break;
      default: break;
    }
    if (shift != 0) digits.remove_suffix(1);
  }
  const auto number = parse_number(digits, 0, (std::uint64_t{1} << 60U) >> shift);
  if (!number)
    return invalid(quoted(text) + " is not a number of bytes: write 4096, 64K, 64M or 2G");
  return number.value() << shift;
}

}  // namespace leasehold::server
