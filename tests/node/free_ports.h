// Ports of the loopback interface that were free a moment ago.
#pragma once

#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace leasehold::node {

/// Different ones.
inline std::vector<std::uint16_t> free_ports(std::size_t count) {
  asio::io_context io;
  std::vector<asio::ip::tcp::acceptor> acceptors;
  std::vector<std::uint16_t> ports;
  for (std::size_t i = 0; i < count; ++i) {
    acceptors.emplace_back(io, asio::ip::tcp::endpoint(asio::ip::make_address_v4("127.0.0.1"), 0));
    ports.push_back(acceptors.back().local_endpoint().port());
  }
  return ports;
}

inline std::string address_of(std::uint16_t port) {
  return "127.0.0.1:" + std::to_string(port);
}

}  // namespace leasehold::node
