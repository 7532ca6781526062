#include <leasehold/kv/local/lease_renewal.h>
#include <leasehold/kv/local/local_leases.h>

#include <fmt/format.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace leasehold::kv {
namespace {

Error no_lease(grant::LeaseId id) {
  return {ErrorCode::not_found, fmt::format("there is no lease {}", id.value())};
}

/// The integers of an array; null is none. None at all: it is another reply.
std::optional<std::vector<std::optional<std::int64_t>>> integers_of(const kv::Reply& reply) {
  const auto* array = std::get_if<kv::ArrayReply>(&reply);
  if (array == nullptr) return std::nullopt;
  std::vector<std::optional<std::int64_t>> out;
  for (const Bytes& item : array->items) {
    const auto decoded = kv::decode_reply(item);
    if (!decoded) return std::nullopt;
    const auto* integer = std::get_if<kv::Integer>(&decoded.value());
    out.push_back(integer == nullptr ? std::nullopt : std::optional(integer->value));
  }
  return out;
}

Error unexpected() {
  return {ErrorCode::malformed, "the store gave a reply of an unexpected kind"};
}

/// Milliseconds since 1970: for people to see, and no deadline is made of it.
std::int64_t unix_ms() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
}

}  // namespace

Result<LocalLeases::Granted> LocalLeases::grant(const Request& request, lease::Duration timeout) {
  const kv::GrantLease grant{grant::LeaseId(0), request.ttl,   request.name,
                             request.holder,    request.terms, unix_ms()};
  const auto reply = group_.execute(grant, timeout);
  if (!reply) return reply.error();
  const auto numbers = integers_of(reply.value());
  if (!numbers || numbers->size() != 2 || !numbers->at(0) || !numbers->at(1)) return unexpected();
  return Granted{grant::LeaseId(static_cast<std::uint64_t>(*numbers->at(0))),
                 grant::FencingToken(static_cast<std::uint64_t>(*numbers->at(1))), request.ttl};
}

Result<LocalLeases::Found> LocalLeases::find(const std::string& name, lease::Duration timeout) {
  if (auto readable = group_.wait_readable(timeout); !readable) return readable.error();
  const auto found = group_.store.lease_terms(grant::LeaseId(0), name);
  if (!found) return found.error();
  if (name.empty() || !found.value() || found.value()->delayed) {
    return Error{ErrorCode::not_found, fmt::format("nobody holds '{}'", name)};
  }
  const grant::LeaseTable::Lease& lease = *found.value();
  return Found{{lease.id, lease.token, lease.ttl}, lease.holder};
}

Result<lease::Duration> LocalLeases::renew(grant::LeaseId id, lease::Duration timeout) {
  if (const auto renewed = renew_under_lease(group_.node, group_.keeper, {id})) {
    const std::optional<lease::Duration>& ttl = renewed->ttl.front();
    return ttl ? Result<lease::Duration>(*ttl) : no_lease(id);
  }
  const auto reply = group_.execute(kv::RenewLeases{{id}}, timeout);
  if (!reply) return reply.error();
  const auto numbers = integers_of(reply.value());
  if (!numbers || numbers->size() != 1) return unexpected();
  if (!numbers->front()) return no_lease(id);
  return lease::Duration(std::chrono::milliseconds(*numbers->front()));
}

Result<void> LocalLeases::revoke(grant::LeaseId id, lease::Duration timeout) {
  const auto reply = group_.execute(kv::RevokeLease{id}, timeout);
  if (!reply) return reply.error();
  return {};
}

}  // namespace leasehold::kv
