// Which server has which keys, as the servers themselves tell it (CLUSTER SLOTS): how a client of
// many nodes finds the leader.
#pragma once

#include <leasehold/bench/load/options.h>
#include <leasehold/client/resp_client.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace leasehold::bench {

/// A part of the keys, and the servers that operations on them go to.
struct Part {
  std::uint32_t first_slot = 0;
  std::uint32_t last_slot = 0;
  std::vector<std::string> servers;

  friend bool operator==(const Part&, const Part&) = default;
};

/// At least one part; every part has at least one server.
struct Layout {
  std::vector<Part> parts;

  /// The part of the key.
  const Part& part_of(std::string_view key) const;
  /// Every server of any part, each once, in their order.
  std::vector<std::string> servers() const;

  friend bool operator==(const Layout&, const Layout&) = default;
};

/// All keys at all of these servers: what holds where no server tells a layout.
Layout layout_of_all(const std::vector<std::string>& servers);

/// Of the reply to CLUSTER SLOTS of the server at `asked`. None: it is of no use. A server without
/// clusters answers an error, and one that does not know the addresses of the others names only
/// itself.
std::optional<Layout> layout_from(const client::RespValue& reply, const std::string& asked,
                                  Route route);

/// What a server answers to ROLE.
enum class ServerRole : std::uint8_t { leads, follows, unknown };
ServerRole role_from(const client::RespValue& reply);

/// Of one group, by the roles of the servers, in their order. Where none of them follows another
/// one, or none has the role that is wanted, it is layout_of_all(servers).
Layout layout_by_roles(const std::vector<ServerRole>& roles, Route route,
                       const std::vector<std::string>& servers);

}  // namespace leasehold::bench
