#include <leasehold/server/front/gate.h>
#include <leasehold/server/front/source.h>

#include <algorithm>

namespace leasehold::server {

std::string source_of(std::string_view address) {
  std::string_view host = address.substr(0, address.rfind(':'));
  if (host.size() >= 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  }
  asio::error_code error;
  const auto parsed = asio::ip::make_address(std::string(host), error);
  if (error || is_loopback(parsed)) return std::string(address);
  if (!parsed.is_v6() || parsed.to_v6().is_v4_mapped()) return std::string(host);
  auto network = parsed.to_v6().to_bytes();
  std::fill(network.begin() + 8, network.end(), 0);
  return asio::ip::address_v6(network).to_string();
}

}  // namespace leasehold::server
