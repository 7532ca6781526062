#include <leasehold/client/remote_leases.h>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <initializer_list>
#include <optional>
#include <vector>

namespace leasehold::client {
namespace {

using Kind = RespValue::Kind;
using Repeat = ServerGroup::Repeat;

/// An array that begins with values of these kinds.
bool begins_with(const RespValue& reply, std::initializer_list<Kind> kinds) {
  return reply.kind == Kind::array && reply.items.size() >= kinds.size() &&
         std::equal(kinds.begin(), kinds.end(), reply.items.begin(),
                    [](Kind kind, const RespValue& item) { return item.kind == kind; });
}

/// The id and token of an existing lease. None: the reply has no id and token.
std::optional<client::LeaseService::Granted> granted_of(const RespValue& reply,
                                                        lease::Duration ttl) {
  const std::int64_t id = reply.items[0].integer;
  const std::int64_t token = reply.items[1].integer;
  if (id <= 0 || token <= 0) return std::nullopt;
  return client::LeaseService::Granted{grant::LeaseId(static_cast<std::uint64_t>(id)),
                                       grant::FencingToken(static_cast<std::uint64_t>(token)), ttl};
}

/// None: no time to live of a lease. More than ten years would not fit the type either.
std::optional<lease::Duration> ttl_of(const RespValue& value) {
  constexpr std::int64_t kMost = grant::kLeaseTtlMax / std::chrono::milliseconds(1);
  if (value.integer <= 0 || value.integer > kMost) return std::nullopt;
  return std::chrono::milliseconds(value.integer);
}

std::string milliseconds(lease::Duration ttl) {
  return std::to_string(ttl / std::chrono::milliseconds(1));
}

}  // namespace

Result<client::LeaseService::Granted> RemoteLeases::grant(const Request& request,
                                                          lease::Duration timeout) {
  std::vector<std::string> words = {"LEASE.GRANT", milliseconds(request.ttl), "HOLDER",
                                    request.holder};
  if (!request.name.empty()) words.insert(words.end(), {"NAME", request.name});
  // Only what is asked for: a server that does not know a word refuses all of it.
  const grant::LeaseTerms& terms = request.terms;
  if (terms.grace.count() > 0) words.insert(words.end(), {"GRACE", milliseconds(terms.grace)});
  if (terms.soft) words.emplace_back("SOFT");
  if (terms.delay.count() > 0) words.insert(words.end(), {"DELAY", milliseconds(terms.delay)});
  const auto reply = group_.call(words, timeout, Repeat::never);
  if (!reply) return reply.error();
  if (!begins_with(reply.value(), {Kind::integer, Kind::integer})) return unexpected(reply.value());
  const auto granted = granted_of(reply.value(), request.ttl);
  if (!granted) return unexpected(reply.value());
  return *granted;
}

Result<client::LeaseService::Found> RemoteLeases::find(const std::string& name,
                                                       lease::Duration timeout) {
  const auto reply = group_.call({"LEASE.INFO", "NAME", name}, timeout, Repeat::harmless);
  if (!reply) return reply.error();
  const RespValue& value = reply.value();
  if (value.kind == Kind::null) {
    return Error{ErrorCode::not_found, fmt::format("nobody holds '{}'", name)};
  }
  if (!begins_with(value, {Kind::integer, Kind::integer, Kind::integer, Kind::bulk, Kind::bulk})) {
    return unexpected(value);
  }
  const auto ttl = ttl_of(value.items[2]);
  const auto granted = granted_of(value, ttl.value_or(lease::Duration(0)));
  if (!ttl || !granted) return unexpected(value);
  return Found{*granted, value.items[4].text};
}

Result<lease::Duration> RemoteLeases::renew(grant::LeaseId id, lease::Duration timeout) {
  const auto reply =
      group_.call({"LEASE.RENEW", std::to_string(id.value())}, timeout, Repeat::harmless);
  if (!reply) return reply.error();
  if (begins_with(reply.value(), {Kind::null})) {
    return Error{ErrorCode::not_found, fmt::format("there is no lease {}", id.value())};
  }
  if (!begins_with(reply.value(), {Kind::integer})) return unexpected(reply.value());
  const auto ttl = ttl_of(reply.value().items[0]);
  if (!ttl) return unexpected(reply.value());
  return *ttl;
}

Result<void> RemoteLeases::revoke(grant::LeaseId id, lease::Duration timeout) {
  // The store never gives an id twice, so a second call cannot end another client's lease.
  const auto reply =
      group_.call({"LEASE.REVOKE", std::to_string(id.value())}, timeout, Repeat::harmless);
  if (!reply) return reply.error();
  return {};
}

}  // namespace leasehold::client
