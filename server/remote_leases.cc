#include <leasehold/server/client_leader.h>
#include <leasehold/server/remote_leases.h>

#include <algorithm>
#include <initializer_list>
#include <thread>
#include <utility>

namespace leasehold::server {
namespace {

using Timeout = RespClient::Timeout;
using Clock = std::chrono::steady_clock;
using Kind = RespValue::Kind;

/// After every server has refused once.
constexpr auto kRetryPause = std::chrono::milliseconds(20);

Error unexpected(const RespValue& reply) {
  return {ErrorCode::malformed, "an answer of an unexpected kind: " + reply.text};
}

/// As LeaseService sorts them.
Error sorted(const RespValue& reply) {
  if (reply.is_error("NOLEASE")) return {ErrorCode::not_found, reply.text};
  if (reply.is_error("LEASETAKEN")) return {ErrorCode::in_use, reply.text};
  if (reply.is_error("UNKNOWNOUTCOME")) return {ErrorCode::timed_out, reply.text};
  return {ErrorCode::invalid_argument, reply.text};
}

/// An array that begins with values of these kinds.
bool begins_with(const RespValue& reply, std::initializer_list<Kind> kinds) {
  return reply.kind == Kind::array && reply.items.size() >= kinds.size() &&
         std::equal(kinds.begin(), kinds.end(), reply.items.begin(),
                    [](Kind kind, const RespValue& item) { return item.kind == kind; });
}

/// Of a lease that there is. None: these are no id and no token.
std::optional<holder::LeaseService::Granted> granted_of(const RespValue& reply,
                                                        lease::Duration ttl) {
  const std::int64_t id = reply.items[0].integer;
  const std::int64_t token = reply.items[1].integer;
  if (id <= 0 || token <= 0) return std::nullopt;
  return holder::LeaseService::Granted{lease::LeaseId(static_cast<std::uint64_t>(id)),
                                       lease::FencingToken(static_cast<std::uint64_t>(token)), ttl};
}

/// None: no time to live of a lease. More than ten years would not fit the type either.
std::optional<lease::Duration> ttl_of(const RespValue& value) {
  constexpr std::int64_t kMost = lease::kLeaseTtlMax / std::chrono::milliseconds(1);
  if (value.integer <= 0 || value.integer > kMost) return std::nullopt;
  return std::chrono::milliseconds(value.integer);
}

std::string milliseconds(lease::Duration ttl) {
  return std::to_string(ttl / std::chrono::milliseconds(1));
}

}  // namespace

Result<holder::LeaseService::Granted> RemoteLeases::grant(const std::string& name,
                                                          const std::string& holder,
                                                          lease::Duration ttl,
                                                          lease::Duration timeout) {
  std::vector<std::string> words = {"LEASE.GRANT", milliseconds(ttl), "HOLDER", holder};
  if (!name.empty()) words.insert(words.end(), {"NAME", name});
  const auto reply = call(words, timeout, Repeat::never);
  if (!reply) return reply.error();
  if (!begins_with(reply.value(), {Kind::integer, Kind::integer})) return unexpected(reply.value());
  const auto granted = granted_of(reply.value(), ttl);
  if (!granted) return unexpected(reply.value());
  return *granted;
}

Result<holder::LeaseService::Found> RemoteLeases::find(const std::string& name,
                                                       lease::Duration timeout) {
  const auto reply = call({"LEASE.INFO", "NAME", name}, timeout, Repeat::harmless);
  if (!reply) return reply.error();
  const RespValue& value = reply.value();
  if (value.kind == Kind::null) {
    return Error{ErrorCode::not_found, "nobody holds '" + name + "'"};
  }
  if (!begins_with(value, {Kind::integer, Kind::integer, Kind::integer, Kind::bulk, Kind::bulk})) {
    return unexpected(value);
  }
  const auto ttl = ttl_of(value.items[2]);
  const auto granted = granted_of(value, ttl.value_or(lease::Duration(0)));
  if (!ttl || !granted) return unexpected(value);
  return Found{*granted, value.items[4].text};
}

Result<lease::Duration> RemoteLeases::renew(lease::LeaseId id, lease::Duration timeout) {
  const auto reply = call({"LEASE.RENEW", std::to_string(id.value())}, timeout, Repeat::harmless);
  if (!reply) return reply.error();
  if (begins_with(reply.value(), {Kind::null})) {
    return Error{ErrorCode::not_found, "there is no lease " + std::to_string(id.value())};
  }
  if (!begins_with(reply.value(), {Kind::integer})) return unexpected(reply.value());
  const auto ttl = ttl_of(reply.value().items[0]);
  if (!ttl) return unexpected(reply.value());
  return *ttl;
}

Result<void> RemoteLeases::revoke(lease::LeaseId id, lease::Duration timeout) {
  // The store never gives an id twice, so nobody else's lease is ended by the second time.
  const auto reply = call({"LEASE.REVOKE", std::to_string(id.value())}, timeout, Repeat::harmless);
  if (!reply) return reply.error();
  return {};
}

Result<RespValue> RemoteLeases::call(const std::vector<std::string>& words, lease::Duration timeout,
                                     Repeat repeat) {
  const auto deadline = Clock::now() + timeout;
  const auto left = [deadline] {
    return std::max(std::chrono::ceil<Timeout>(deadline - Clock::now()), Timeout(1));
  };
  Error last{ErrorCode::unavailable, "no server was tried"};
  bool may_be_done = false;
  // So many servers in a row have an address that is none.
  std::size_t nowhere = 0;
  for (std::size_t tried = 1;; ++tried) {
    if (auto connected = connect(left()); !connected) {
      last = connected.error();
      // The name of a node that is down may be unknown for that long: it is an error when all are.
      nowhere = last.code == ErrorCode::invalid_argument ? nowhere + 1 : 0;
      if (nowhere == servers_.size()) return last;
    } else {
      nowhere = 0;
      auto reply = client_->call(words, left());
      const bool refused = reply && reply.value().not_executed();
      if (reply && !refused) {
        if (reply.value().kind != Kind::error) return reply;
        const Error error = sorted(reply.value());
        if (error.code != ErrorCode::timed_out || repeat == Repeat::never) return error;
      } else if (!reply && repeat == Repeat::never) {
        client_.reset();
        return Error{ErrorCode::timed_out,
                     servers_[at_] + ": " + reply.error().message + "; it may be executed"};
      }
      may_be_done = may_be_done || !refused;
      last.message = servers_[at_] + ": " + (reply ? reply.value().text : reply.error().message);
      client_.reset();
    }
    at_ = (at_ + 1) % servers_.size();
    if (Clock::now() + kRetryPause >= deadline) {
      return Error{may_be_done ? ErrorCode::timed_out : ErrorCode::unavailable, last.message};
    }
    if (tried % servers_.size() == 0) std::this_thread::sleep_for(kRetryPause);
  }
}

Result<void> RemoteLeases::connect(Timeout timeout) {
  if (client_) return {};
  const bool others = servers_.size() > 1;
  if (others) {
    std::string why;
    // It spares a hop, and is worth no more: from far away the first server has to do.
    if (const auto leader = find_leader(servers_, std::max(timeout / 4, Timeout(1)), why)) {
      const auto found = std::find(servers_.begin(), servers_.end(), leader->server);
      if (found != servers_.end()) at_ = static_cast<std::size_t>(found - servers_.begin());
    }
  }
  // One that does not answer must not use up the time of the others.
  auto client =
      RespClient::connect(servers_[at_], others ? std::max(timeout / 2, Timeout(1)) : timeout);
  if (!client) return Error{client.error().code, servers_[at_] + ": " + client.error().message};
  client_.emplace(std::move(client).value());
  return {};
}

}  // namespace leasehold::server
