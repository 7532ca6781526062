#include <leasehold/client/key_watch.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <string_view>
#include <thread>
#include <utility>

namespace leasehold::client {
namespace {

using Timeout = RespClient::Timeout;
using Event = KeyWatch::Event;
using Kind = RespValue::Kind;

/// Behind a round of servers of which none took it.
constexpr Timeout kPause{200};
constexpr Timeout kConnectTimeout{2000};
constexpr Timeout kReplyTimeout{5000};
/// After this time without a message the watch asks the node for a read, which shows that the node
/// still belongs to a group that has a leader.
constexpr std::chrono::seconds kSilence{2};

/// Names in the order of Event::Kind.
constexpr std::array<const char*, 6> kNames = {"set",     "deleted", "expired",
                                               "revoked", "resync",  "is"};

bool failed_for_good(const Error& error) {
  return error.code == ErrorCode::unsupported;
}

/// [key, what, create revision, version, lease, value?]
std::optional<Event> event_of(const RespValue& item, std::uint64_t revision) {
  if (item.items.size() < 5) return std::nullopt;
  // An event of a key has one of the first four.
  const auto end = kNames.begin() + 4;
  const auto name = std::find(kNames.begin(), end, item.items[1].text);
  if (name == end) return std::nullopt;
  Event event;
  event.kind = static_cast<Event::Kind>(name - kNames.begin());
  event.revision = revision;
  event.key = item.items[0].text;
  event.create_revision = item.items[2].number();
  event.version = item.items[3].number();
  event.lease = grant::LeaseId(item.items[4].number());
  if (item.items.size() > 5 && item.items[5].kind == Kind::bulk) event.value = item.items[5].text;
  return event;
}

/// [key, mod revision, create revision, version, lease, value?]
std::optional<Event> event_of(const RespValue& row) {
  if (row.items.size() < 5) return std::nullopt;
  Event event;
  event.kind = Event::Kind::is;
  event.revision = row.items[1].number();
  event.key = row.items[0].text;
  event.create_revision = row.items[2].number();
  event.version = row.items[3].number();
  event.lease = grant::LeaseId(row.items[4].number());
  if (row.items.size() > 5) event.value = row.items[5].text;
  return event;
}

KeyWatch::Options completed(KeyWatch::Options options) {
  if (options.keys.empty() && options.prefixes.empty()) options.prefixes.emplace_back();
  return options;
}

}  // namespace

const char* event_name(KeyWatch::Event::Kind kind) {
  return kNames[static_cast<std::size_t>(kind)];
}

KeyWatch::KeyWatch(Options options)
    : options_(completed(std::move(options))), next_(options_.from), reread_(options_.existing) {}

Result<std::vector<Event>> KeyWatch::next(lease::Duration timeout) {
  const auto deadline = Clock::now() + timeout;
  told_.clear();
  do {
    const auto done = client_ ? listen(deadline) : connect();
    // Also of a connection that broke behind it.
    if (!told_.empty()) return std::move(told_);
    if (done) continue;
    if (failed_for_good(done.error())) return done.error();
    const bool no_address = done.error().code == ErrorCode::invalid_argument;
    nowhere_ = no_address ? nowhere_ + 1 : 0;
    if (nowhere_ == options_.servers.size()) return done.error();
    go_elsewhere(done.error());
    if (++failed_ % options_.servers.size() == 0) {
      const auto left = std::chrono::ceil<Timeout>(deadline - Clock::now());
      std::this_thread::sleep_for(std::clamp(left, Timeout(0), kPause));
    }
  } while (Clock::now() < deadline);
  return std::vector<Event>();
}

void KeyWatch::go_elsewhere(const Error& why) {
  client_.reset();
  options_.trouble(fmt::format("{}: {}", options_.servers[at_], why.message));
  at_ = (at_ + 1) % options_.servers.size();
}

Result<void> KeyWatch::connect() {
  auto client = RespClient::connect(options_.servers[at_], kConnectTimeout, options_.access);
  if (!client) return client.error();
  client_.emplace(std::move(client).value());
  waiting_.clear();
  const auto greeted = ask({"HELLO", "3"});
  if (!greeted) return greeted.error();
  if (auto begun = begin(); !begun) return begun;
  heard_ = Clock::now();
  failed_ = 0;
  nowhere_ = 0;
  return {};
}

Result<void> KeyWatch::begin() {
  std::vector<std::string> words = {"LEASEHOLD", "WATCH"};
  for (const std::string& key : options_.keys) words.insert(words.end(), {"KEY", key});
  for (const std::string& prefix : options_.prefixes) {
    words.insert(words.end(), {"PREFIX", prefix});
  }
  if (options_.values) words.emplace_back("VALUES");
  const std::vector<std::string> from_now = words;
  if (next_ != 0 && !reread_) {
    words.insert(words.end(), {"FROM", std::to_string(next_)});
  }
  auto reply = ask(words);
  if (!reply) return reply.error();
  // This group has never been so far: it was made of a backup, perhaps.
  if (reply.value().is_error("ERR") && reply.value().text.rfind("ERR revision", 0) == 0) {
    options_.trouble(reply.value().text);
    reread_ = true;
    reply = ask(from_now);
    if (!reply) return reply.error();
  }
  const RespValue& value = reply.value();
  if (value.not_executed()) return Error{ErrorCode::unavailable, value.text};
  if (value.kind == Kind::error) return Error{ErrorCode::unsupported, value.text};
  if (value.kind != Kind::array || value.items.size() != 2) return unexpected(value);
  next_ = value.items[1].number();
  if (value.items[0].text == "resync") reread_ = true;
  return reread_ ? read_again() : Result<void>();
}

/// Reads until there is something to report, or until the deadline. Errors: the connection cannot
/// be used any more.
Result<void> KeyWatch::listen(Clock::time_point deadline) {
  while (told_.empty()) {
    if (!waiting_.empty()) {
      const RespValue message = std::move(waiting_.front());
      waiting_.pop_front();
      if (auto taken = take(message); !taken) return taken;
      continue;
    }
    const auto silent_at = heard_ + kSilence;
    const auto until = std::min(deadline, silent_at);
    auto message =
        client_->reply(std::max(std::chrono::ceil<Timeout>(until - Clock::now()), Timeout(1)));
    if (message) {
      heard_ = Clock::now();
      waiting_.push_back(std::move(message).value());
      continue;
    }
    if (message.error().code != ErrorCode::timed_out) return message.error();
    if (Clock::now() >= silent_at) {
      const auto size = ask({"DBSIZE"});
      if (!size) return size.error();
      if (size.value().kind != Kind::integer) {
        return Error{ErrorCode::unavailable, size.value().text};
      }
      heard_ = Clock::now();
    }
    if (Clock::now() >= deadline) break;
  }
  return {};
}

/// A reply; the messages before it wait.
Result<RespValue> KeyWatch::ask(const std::vector<std::string>& words) {
  if (auto sent = client_->send({words}, kReplyTimeout); !sent) return sent.error();
  for (;;) {
    auto reply = client_->reply(kReplyTimeout);
    if (!reply || reply.value().kind != Kind::push) return reply;
    waiting_.push_back(std::move(reply).value());
  }
}

Result<void> KeyWatch::take(const RespValue& message) {
  if (message.kind != Kind::push || message.items.size() < 2) return unexpected(message);
  const std::uint64_t revision = message.items[1].number();
  const std::string& word = message.items[0].text;
  if (word == "resync") {
    reread_ = true;
    next_ = revision;
    return read_again();
  }
  // What it has read already.
  if (revision >= next_ && word == "events" && message.items.size() == 3) {
    for (const RespValue& item : message.items[2].items) {
      auto event = event_of(item, revision);
      if (!event) return unexpected(message);
      const auto ahead = ahead_.find(event->key);
      if (ahead == ahead_.end() || ahead->second < revision) told_.push_back(std::move(*event));
    }
  }
  next_ = std::max(next_, revision + 1);
  return {};
}

/// Reads all existing keys, and the revision after which the watch goes on: that of the first part.
/// A key of a later part may be ahead of it, and its events are left out until they have caught up.
Result<void> KeyWatch::read_again() {
  std::vector<Event> rows;
  std::optional<std::uint64_t> first;
  std::map<std::string, std::uint64_t> ahead;
  const auto read = [&](const std::string& prefix, bool whole) -> Result<void> {
    std::optional<std::string> after;
    do {
      std::vector<std::string> words = {"LEASEHOLD", "RANGE", prefix};
      if (whole) {
        words.emplace_back("EXACT");
      } else {
        words.insert(words.end(), {"COUNT", "1000"});
      }
      if (options_.values) words.emplace_back("VALUES");
      if (after) words.insert(words.end(), {"AFTER", *after});
      const auto reply = ask(words);
      if (!reply) return reply.error();
      const RespValue& part = reply.value();
      if (part.kind == Kind::error) return Error{ErrorCode::unavailable, part.text};
      if (part.kind != Kind::array || part.items.size() != 3) return unexpected(part);
      if (!first) first = part.items[0].number();
      for (const RespValue& item : part.items[2].items) {
        auto row = event_of(item);
        if (!row) return unexpected(item);
        if (whole && row->key != prefix) continue;
        if (row->revision > *first) ahead[row->key] = row->revision;
        rows.push_back(std::move(*row));
      }
      after.reset();
      if (!whole && part.items[1].kind == Kind::bulk) after = part.items[1].text;
    } while (after);
    return {};
  };
  for (const std::string& key : options_.keys) {
    if (auto done = read(key, true); !done) return done;
  }
  for (const std::string& prefix : options_.prefixes) {
    if (auto done = read(prefix, false); !done) return done;
  }
  // It existed already when the watch began: the watch goes on after it.
  Event resync;
  resync.kind = Event::Kind::resync;
  resync.revision = *first;
  told_.push_back(std::move(resync));
  std::move(rows.begin(), rows.end(), std::back_inserter(told_));
  ahead_ = std::move(ahead);
  next_ = std::max(next_, *first + 1);
  reread_ = false;
  return {};
}

}  // namespace leasehold::client
