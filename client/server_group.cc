#include <leasehold/client/server_group.h>

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <string_view>
#include <thread>
#include <utility>

namespace leasehold::client {
namespace {

using Timeout = RespClient::Timeout;
using Clock = std::chrono::steady_clock;
using Kind = RespValue::Kind;

/// After every server has refused once.
constexpr auto kRetryPause = std::chrono::milliseconds(20);

/// How often one call selects the group of its key again. Without a moving slot once tells nothing
/// new.
constexpr std::size_t kSelectionsMax = 2;

/// As LeaseService sorts them.
Error sorted(const RespValue& reply) {
  if (reply.is_error("NOLEASE")) return {ErrorCode::not_found, reply.text};
  if (reply.is_error("LEASETAKEN")) return {ErrorCode::in_use, reply.text};
  if (reply.is_error("UNKNOWNOUTCOME")) return {ErrorCode::timed_out, reply.text};
  return {ErrorCode::invalid_argument, reply.text};
}

/// The text after "KEY:" in the answer to INFO.
std::string_view field(std::string_view info, std::string_view key) {
  const std::string line = fmt::format("\n{}:", key);
  const std::size_t at = info.find(line);
  if (at == std::string_view::npos) return {};
  info.remove_prefix(at + line.size());
  return info.substr(0, info.find('\r'));
}

/// The term in which this server leads; 0: it does not, or does not answer in time.
std::uint64_t leads_in(const std::string& server, Timeout timeout, const Access& access) {
  const auto begin = Clock::now();
  auto client = RespClient::connect(server, timeout, access);
  if (!client) return 0;
  const auto left = timeout - std::chrono::floor<Timeout>(Clock::now() - begin);
  const auto info = client.value().call({"INFO", "replication"}, std::max(left, Timeout(1)));
  if (!info || info.value().kind != Kind::bulk) return 0;
  const std::string& text = info.value().text;
  if (field(text, "role") != "leader") return 0;
  const std::string_view term = field(text, "term");
  std::uint64_t number = 0;
  std::from_chars(term.data(), term.data() + term.size(), number);
  return number;
}

}  // namespace

Result<RespValue> ServerGroup::call(const std::vector<std::string>& words, lease::Duration timeout,
                                    Repeat repeat) {
  const auto deadline = Clock::now() + timeout;
  // No try begins later: a refusal that comes after the deadline would be an unknown outcome.
  const auto last_try = deadline - std::max<lease::Duration>(timeout / 8, kRetryPause);
  const auto left = [deadline] {
    return std::max(std::chrono::ceil<Timeout>(deadline - Clock::now()), Timeout(1));
  };
  Error last{ErrorCode::unavailable, "no server was tried"};
  bool may_be_done = false;
  // The number of servers in a row with an invalid address.
  std::size_t nowhere = 0;
  std::size_t selections = 0;
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
        if (reply.value().is_error("CROSSSLOT") && !access_.key_of_group().empty() &&
            selections++ < kSelectionsMax) {
          // It was not executed, and the next connection selects the group that has the key now.
          client_.reset();
          continue;
        }
        const Error error = sorted(reply.value());
        if (error.code != ErrorCode::timed_out || repeat == Repeat::never) return error;
      } else if (!reply && repeat == Repeat::never) {
        client_.reset();
        return Error{ErrorCode::timed_out, fmt::format("{}: {}; it may be executed", servers_[at_],
                                                       reply.error().message)};
      }
      may_be_done = may_be_done || !refused;
      last.message =
          fmt::format("{}: {}", servers_[at_], reply ? reply.value().text : reply.error().message);
    }
    drop();
    if (Clock::now() + kRetryPause >= last_try) {
      return Error{may_be_done ? ErrorCode::timed_out : ErrorCode::unavailable, last.message};
    }
    if (tried % servers_.size() == 0) std::this_thread::sleep_for(kRetryPause);
  }
}

Result<RespClient*> ServerGroup::connection(lease::Duration timeout) {
  const auto connected = connect(std::max(std::chrono::ceil<Timeout>(timeout), Timeout(1)));
  if (connected) return &*client_;
  drop();
  return connected.error();
}

void ServerGroup::drop() {
  client_.reset();
  at_ = (at_ + 1) % servers_.size();
}

Result<void> ServerGroup::connect(Timeout timeout) {
  if (client_) return {};
  const bool others = servers_.size() > 1;
  // It spares a hop, and is worth no more: from far away the first server has to do.
  if (others) seek_leader(std::max(timeout / 4, Timeout(1)));
  // One that does not answer must not use up the time of the others.
  auto client = RespClient::connect(servers_[at_],
                                    others ? std::max(timeout / 2, Timeout(1)) : timeout, access_);
  if (!client)
    return Error{client.error().code, fmt::format("{}: {}", servers_[at_], client.error().message)};
  client_.emplace(std::move(client).value());
  return {};
}

/// Asks all at once. Of several that lead, one leads no more: that of the lower term.
void ServerGroup::seek_leader(Timeout timeout) {
  std::vector<std::uint64_t> terms(servers_.size());
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < servers_.size(); ++i) {
    threads.emplace_back([this, &term = terms[i], &server = servers_[i], timeout] {
      term = leads_in(server, timeout, access_);
    });
  }
  for (std::thread& thread : threads) thread.join();
  const auto newest = std::max_element(terms.begin(), terms.end());
  if (*newest > 0) at_ = static_cast<std::size_t>(newest - terms.begin());
}

}  // namespace leasehold::client
