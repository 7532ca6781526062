#include <leasehold/server/client_leader.h>
#include <leasehold/server/remote_leases.h>

#include <algorithm>
#include <thread>
#include <utility>

namespace leasehold::server {
namespace {

using Timeout = RespClient::Timeout;
using Clock = std::chrono::steady_clock;

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

bool is_array(const RespValue& reply, std::size_t least) {
  return reply.kind == RespValue::Kind::array && reply.items.size() >= least;
}

lease::LeaseId id_of(const RespValue& value) {
  return lease::LeaseId(static_cast<std::uint64_t>(value.integer));
}

lease::FencingToken token_of(const RespValue& value) {
  return lease::FencingToken(static_cast<std::uint64_t>(value.integer));
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
  if (!is_array(reply.value(), 2)) return unexpected(reply.value());
  return Granted{id_of(reply.value().items[0]), token_of(reply.value().items[1]), ttl};
}

Result<holder::LeaseService::Found> RemoteLeases::find(const std::string& name,
                                                       lease::Duration timeout) {
  const auto reply = call({"LEASE.INFO", "NAME", name}, timeout, Repeat::harmless);
  if (!reply) return reply.error();
  if (reply.value().kind == RespValue::Kind::null) {
    return Error{ErrorCode::not_found, "nobody holds '" + name + "'"};
  }
  if (!is_array(reply.value(), 5)) return unexpected(reply.value());
  const std::vector<RespValue>& items = reply.value().items;
  return Found{{id_of(items[0]), token_of(items[1]), std::chrono::milliseconds(items[2].integer)},
               items[4].text};
}

Result<lease::Duration> RemoteLeases::renew(lease::LeaseId id, lease::Duration timeout) {
  const auto reply = call({"LEASE.RENEW", std::to_string(id.value())}, timeout, Repeat::harmless);
  if (!reply) return reply.error();
  if (!is_array(reply.value(), 1)) return unexpected(reply.value());
  const RespValue& ttl = reply.value().items[0];
  if (ttl.kind == RespValue::Kind::null) {
    return Error{ErrorCode::not_found, "there is no lease " + std::to_string(id.value())};
  }
  return lease::Duration(std::chrono::milliseconds(ttl.integer));
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
  std::string last = "no server was tried";
  for (std::size_t tried = 1;; ++tried) {
    if (auto connected = connect(left()); !connected) {
      if (connected.error().code == ErrorCode::invalid_argument) return connected.error();
      last = connected.error().message;
    } else {
      auto reply = client_->call(words, left());
      if (reply && !reply.value().is_error("NOLEADER") && !reply.value().is_error("TRYAGAIN")) {
        if (reply.value().kind != RespValue::Kind::error) return reply;
        const Error error = sorted(reply.value());
        if (error.code != ErrorCode::timed_out || repeat == Repeat::never) return error;
      } else if (!reply && repeat == Repeat::never) {
        client_.reset();
        return Error{ErrorCode::timed_out,
                     servers_[at_] + ": " + reply.error().message + "; it may be executed"};
      }
      last = servers_[at_] + ": " + (reply ? reply.value().text : reply.error().message);
      client_.reset();
    }
    at_ = (at_ + 1) % servers_.size();
    if (Clock::now() + kRetryPause >= deadline) return Error{ErrorCode::unavailable, last};
    if (tried % servers_.size() == 0) std::this_thread::sleep_for(kRetryPause);
  }
}

Result<void> RemoteLeases::connect(Timeout timeout) {
  if (client_) return {};
  // One that does not answer must not use up the time of the others.
  const Timeout share = std::max(timeout / 4, Timeout(1));
  if (servers_.size() > 1) {
    std::string why;
    if (const auto leader = find_leader(servers_, share, why)) {
      const auto found = std::find(servers_.begin(), servers_.end(), leader->server);
      if (found != servers_.end()) at_ = static_cast<std::size_t>(found - servers_.begin());
    }
  }
  auto client = RespClient::connect(servers_[at_], servers_.size() > 1 ? share : timeout);
  if (!client) return Error{client.error().code, servers_[at_] + ": " + client.error().message};
  client_.emplace(std::move(client).value());
  return {};
}

}  // namespace leasehold::server
