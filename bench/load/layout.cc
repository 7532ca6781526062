#include <leasehold/bench/load/layout.h>

#include <leasehold/base/assert.h>
#include <leasehold/kv/key_slot.h>

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

namespace leasehold::bench {
namespace {

using client::RespValue;

constexpr std::size_t kPartsMax = 4096;

/// [host, port, ...]. An empty host is that of the server that was asked.
std::optional<std::string> address_from(const RespValue& node, const std::string& asked) {
  if (node.kind != RespValue::Kind::array || node.items.size() < 2) return std::nullopt;
  const RespValue& port = node.items[1];
  if (port.kind != RespValue::Kind::integer || port.integer < 1 || port.integer > 65535) {
    return std::nullopt;
  }
  const std::string& told = node.items[0].text;
  const std::string host = told.empty() ? asked.substr(0, asked.rfind(':')) : told;
  return fmt::format("{}:{}", host, port.integer);
}

/// [first slot, last slot, master, replica, ...].
std::optional<Part> part_from(const RespValue& range, const std::string& asked, Route route) {
  if (range.kind != RespValue::Kind::array || range.items.size() < 3) return std::nullopt;
  const RespValue& first = range.items[0];
  const RespValue& last = range.items[1];
  const bool slots = first.kind == RespValue::Kind::integer &&
                     last.kind == RespValue::Kind::integer && first.integer >= 0 &&
                     first.integer <= last.integer && last.integer < kv::kSlots;
  if (!slots) return std::nullopt;
  Part part{
      static_cast<std::uint32_t>(first.integer), static_cast<std::uint32_t>(last.integer), {}};
  for (std::size_t i = 2; i < range.items.size(); ++i) {
    const auto address = address_from(range.items[i], asked);
    if (!address) return std::nullopt;
    if ((i == 2) == (route == Route::leader)) part.servers.push_back(*address);
  }
  if (part.servers.empty()) return std::nullopt;
  return part;
}

}  // namespace

const Part& Layout::part_of(std::string_view key) const {
  LEASEHOLD_ASSERT(!parts.empty());
  if (parts.size() == 1) return parts.front();
  const std::uint32_t slot = kv::slot_of(key);
  const auto after = std::upper_bound(
      parts.begin(), parts.end(), slot,
      [](std::uint32_t wanted, const Part& part) { return wanted < part.first_slot; });
  return after == parts.begin() ? parts.front() : *std::prev(after);
}

std::vector<std::string> Layout::servers() const {
  std::vector<std::string> all;
  for (const Part& part : parts) {
    for (const std::string& server : part.servers) {
      if (std::find(all.begin(), all.end(), server) == all.end()) all.push_back(server);
    }
  }
  return all;
}

Layout layout_of_all(const std::vector<std::string>& servers) {
  return {{{0, kv::kSlots - 1, servers}}};
}

std::optional<Layout> layout_from(const RespValue& reply, const std::string& asked, Route route) {
  const bool usable = reply.kind == RespValue::Kind::array && !reply.items.empty() &&
                      reply.items.size() <= kPartsMax;
  if (!usable) return std::nullopt;
  Layout layout;
  bool others = false;
  for (const RespValue& range : reply.items) {
    auto part = part_from(range, asked, route);
    if (!part) return std::nullopt;
    others = others || range.items.size() > 3;
    layout.parts.push_back(std::move(*part));
  }
  if (!others && layout.servers().size() == 1) return std::nullopt;
  std::sort(layout.parts.begin(), layout.parts.end(),
            [](const Part& one, const Part& other) { return one.first_slot < other.first_slot; });
  return layout;
}

ServerRole role_from(const RespValue& reply) {
  if (reply.kind != RespValue::Kind::array || reply.items.empty()) return ServerRole::unknown;
  if (reply.items[0].text == "master") return ServerRole::leads;
  return reply.items[0].text == "slave" ? ServerRole::follows : ServerRole::unknown;
}

Layout layout_by_roles(const std::vector<ServerRole>& roles, Route route,
                       const std::vector<std::string>& servers) {
  LEASEHOLD_ASSERT(roles.size() == servers.size());
  const ServerRole wanted = route == Route::follower ? ServerRole::follows : ServerRole::leads;
  std::vector<std::string> chosen;
  bool one_group = false;
  for (std::size_t i = 0; i < servers.size(); ++i) {
    if (roles[i] == wanted) chosen.push_back(servers[i]);
    one_group = one_group || roles[i] == ServerRole::follows;
  }
  return layout_of_all(one_group && !chosen.empty() ? chosen : servers);
}

}  // namespace leasehold::bench
