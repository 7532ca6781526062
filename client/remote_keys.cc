#include <leasehold/client/remote_keys.h>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <thread>

namespace leasehold::client {
namespace {

using Timeout = RespClient::Timeout;
using Clock = std::chrono::steady_clock;
using Kind = RespValue::Kind;
using Repeat = ServerGroup::Repeat;

/// The number of keys that a node lists in one part.
const char* const kPart = "1000";
/// Pause before a server that could not answer is asked again.
constexpr lease::Duration kPause = std::chrono::milliseconds(50);
/// For the end of a watch.
constexpr Timeout kCloseTimeout{1000};

/// [key, mod revision, create revision, version, lease, value]
std::optional<client::KeyService::Row> row_of(const RespValue& value) {
  if (value.kind != Kind::array || value.items.size() < 6) return std::nullopt;
  for (const std::size_t number : {1U, 2U, 4U}) {
    if (value.items[number].kind != Kind::integer) return std::nullopt;
  }
  return client::KeyService::Row{value.items[0].text, value.items[5].text, value.items[2].number(),
                                 grant::LeaseId(value.items[4].number()), value.items[1].number()};
}

/// Of a transaction with one command: what EXEC has answered, or the refusal before it.
Result<bool> outcome_of(const RespValue& answer) {
  if (answer.kind == Kind::null) return false;
  const bool executed = answer.kind == Kind::array && answer.items.size() == 1;
  const RespValue& result = executed ? answer.items[0] : answer;
  if (result.is_error("FENCED")) return Error{ErrorCode::in_use, result.text};
  if (result.is_error("UNKNOWNOUTCOME")) return Error{ErrorCode::timed_out, result.text};
  if (result.kind == Kind::error) return Error{ErrorCode::invalid_argument, result.text};
  if (!executed || result.kind != Kind::simple) return unexpected(result);
  return true;
}

}  // namespace

Result<client::KeyService::Listing> RemoteKeys::list(const std::string& prefix,
                                                     lease::Duration timeout) {
  end_watch();
  const auto deadline = Clock::now() + timeout;
  Listing listing;
  std::vector<std::string> words = {"LEASEHOLD", "RANGE", prefix, "COUNT", kPart, "VALUES"};
  const std::size_t words_of_first = words.size();
  for (;;) {
    const auto reply = group_.call(words, deadline - Clock::now(), Repeat::harmless);
    if (!reply) return reply.error();
    const RespValue& part = reply.value();
    if (part.kind != Kind::array || part.items.size() != 3 || part.items[0].kind != Kind::integer) {
      return unexpected(part);
    }
    if (words.size() == words_of_first) listing.revision = part.items[0].number();
    for (const RespValue& item : part.items[2].items) {
      auto row = row_of(item);
      if (!row) return unexpected(item);
      listing.rows.push_back(std::move(*row));
    }
    if (part.items[1].kind != Kind::bulk) return listing;
    words.resize(words_of_first);
    words.insert(words.end(), {"AFTER", part.items[1].text});
  }
}

Result<std::optional<RemoteKeys::Row>> RemoteKeys::find(const std::string& key,
                                                        lease::Duration timeout) {
  end_watch();
  const auto reply =
      group_.call({"LEASEHOLD", "RANGE", key, "EXACT", "VALUES"}, timeout, Repeat::harmless);
  if (!reply) return reply.error();
  const RespValue& part = reply.value();
  if (part.kind != Kind::array || part.items.size() != 3 || part.items[2].kind != Kind::array) {
    return unexpected(part);
  }
  if (part.items[2].items.empty()) return std::optional<Row>();
  auto row = row_of(part.items[2].items[0]);
  if (!row) return unexpected(part.items[2].items[0]);
  if (row->key != key) row.reset();
  return row;
}

Result<bool> RemoteKeys::replace(const GuardedWrite& write, lease::Duration timeout) {
  end_watch();
  const auto deadline = Clock::now() + timeout;
  const auto left = [deadline] {
    return std::max(std::chrono::ceil<Timeout>(deadline - Clock::now()), Timeout(1));
  };
  const auto connected = group_.connection(timeout);
  if (!connected) return connected.error();
  RespClient& client = *connected.value();
  const std::vector<std::vector<std::string>> commands = {
      {"LEASEHOLD", "EXPECT", write.key, fmt::format("{}", write.mod_revision)},
      {"MULTI"},
      {"SET", write.key, write.value, "TOKEN", fmt::format("{}", write.token.value())},
      {"EXEC"}};
  Result<void> sent = client.send(commands, left());
  // The first refusal says more than the EXECABORT that follows from it.
  RespValue answer;
  for (std::size_t i = 0; sent && i < commands.size(); ++i) {
    auto reply = client.reply(left());
    if (!reply) {
      sent = reply.error();
    } else if (answer.kind != Kind::error) {
      answer = std::move(reply).value();
    }
  }
  if (!sent) {
    group_.drop();
    return Error{ErrorCode::timed_out, sent.error().message + "; it may be executed"};
  }
  if (answer.not_executed()) {
    group_.drop();
    return Error{ErrorCode::unavailable, answer.text};
  }
  return outcome_of(answer);
}

Result<void> RemoteKeys::put(const std::string& key, const std::string& value, grant::LeaseId lease,
                             lease::Duration timeout) {
  end_watch();
  const auto reply = group_.call({"SET", key, value, "LEASE", std::to_string(lease.value())},
                                 timeout, Repeat::harmless);
  if (!reply) return reply.error();
  return {};
}

void RemoteKeys::wait_change(const Interest& interest, std::uint64_t revision,
                             lease::Duration timeout) {
  const bool same = watching_ && watching_->revision == revision &&
                    watching_->interest.key == interest.key &&
                    watching_->interest.prefix == interest.prefix;
  const bool told = (same || begin_watch(interest, revision, timeout)) && wait_for_message(timeout);
  if (!told) std::this_thread::sleep_for(std::min(kPause, timeout));
}

/// False: the server cannot begin the watch. A node that is behind refuses, since its newest
/// revision is older.
bool RemoteKeys::begin_watch(const Interest& interest, std::uint64_t revision,
                             lease::Duration timeout) {
  end_watch();
  const auto connected = group_.connection(timeout);
  if (!connected) return false;
  const auto begun =
      connected.value()->call({"LEASEHOLD", "WATCH", interest.prefix ? "PREFIX" : "KEY",
                               interest.key, "FROM", std::to_string(revision + 1)},
                              std::max(std::chrono::ceil<Timeout>(timeout), Timeout(1)));
  if (!begun || begun.value().kind != Kind::array || begun.value().items.empty()) {
    hang_up();
    return false;
  }
  watching_ = Watching{interest, revision};
  // It has forgotten what lies between: that is news too.
  if (begun.value().items[0].text != "watching") end_watch();
  return true;
}

/// False: the connection broke.
bool RemoteKeys::wait_for_message(lease::Duration timeout) {
  const auto deadline = Clock::now() + timeout;
  while (watching_) {
    const auto left = std::chrono::ceil<Timeout>(deadline - Clock::now());
    if (left <= Timeout(0)) break;
    const auto connected = group_.connection(left);
    if (!connected) {
      watching_.reset();
      return false;
    }
    const auto message = connected.value()->reply(left);
    if (!message && message.error().code == ErrorCode::timed_out) break;
    if (!message) {
      hang_up();
      return false;
    }
    const std::vector<RespValue>& items = message.value().items;
    if (items.empty() || items[0].text != "progress") end_watch();
  }
  return true;
}

/// Messages may be under way until the node has confirmed it.
void RemoteKeys::end_watch() {
  if (!watching_) return;
  watching_.reset();
  const auto connected = group_.connection(kCloseTimeout);
  if (!connected) return;
  RespClient& client = *connected.value();
  auto ended = client.call({"LEASEHOLD", "UNWATCH"}, kCloseTimeout);
  while (ended && ended.value().kind == Kind::array) ended = client.reply(kCloseTimeout);
  if (!ended || ended.value().kind != Kind::simple) hang_up();
}

void RemoteKeys::hang_up() {
  watching_.reset();
  group_.drop();
}

}  // namespace leasehold::client
