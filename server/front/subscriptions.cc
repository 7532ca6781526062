#include <leasehold/server/front/glob.h>
#include <leasehold/server/front/subscriptions.h>
#include <leasehold/server/front/words.h>

#include <fmt/format.h>

#include <algorithm>

namespace leasehold::server {
namespace {

bool begins_with(std::string_view text, std::string_view prefix) {
  return text.substr(0, prefix.size()) == prefix;
}

/// The beginning of a pattern, up to its first special character.
std::string_view literal_part(std::string_view pattern) {
  return pattern.substr(0, pattern.find_first_of("*?[\\"));
}

/// Whether something that begins with `literal` can begin with `channel`.
bool may_be_on(std::string_view literal, std::string_view channel) {
  return begins_with(literal, channel) || begins_with(channel, literal);
}

/// What a message takes beside its texts, at most.
constexpr std::size_t kMessageBytes = 80;

/// Takes a message off the budget. False: it is too long.
bool afford(NotifyBudget& budget, std::size_t texts) {
  budget.bytes -= std::min(budget.bytes, texts + kMessageBytes);
  return budget.bytes > 0;
}

}  // namespace

std::string Subscriptions::problem_of(Kind kind, std::string_view text) {
  if (kind == Kind::pattern && text.size() > kPatternBytesMax) {
    return fmt::format("ERR a pattern has at most {} bytes", kPatternBytesMax);
  }
  const std::string_view literal = kind == Kind::pattern ? literal_part(text) : text;
  const bool whole = kind == Kind::channel;
  for (const std::string_view channel : {kKeyChannel, kNameChannel}) {
    if (whole ? begins_with(literal, channel) : may_be_on(literal, channel)) return {};
  }
  return "ERR there is no publish/subscribe here, only notifications of changed keys: subscribe to "
         "__keyspace@0__:KEY or __keyevent@0__:EVENT, not to " +
         quoted(text);
}

bool Subscriptions::add(Kind kind, std::string_view text) {
  auto& texts = kind == Kind::channel ? channels_ : patterns_;
  if (texts.find(text) != texts.end()) return true;
  if (count() == kInterestsMax || bytes_ + text.size() > kInterestBytesMax) return false;
  bytes_ += text.size();
  texts.emplace(text);
  return true;
}

void Subscriptions::remove(Kind kind, std::string_view text) {
  auto& texts = kind == Kind::channel ? channels_ : patterns_;
  const auto found = texts.find(text);
  if (found == texts.end()) return;
  bytes_ -= text.size();
  texts.erase(found);
}

EventInterest Subscriptions::interest(const std::function<bool(std::string_view key)>& has) const {
  EventInterest interest;
  for (const std::string& channel : channels_) {
    if (begins_with(channel, kKeyChannel)) {
      const std::string_view key = std::string_view(channel).substr(kKeyChannel.size());
      if (has(key)) interest.filter.add_key(key);
    } else {
      interest.names.insert(channel.substr(kNameChannel.size()));
    }
  }
  for (const std::string& pattern : patterns_) {
    const std::string_view literal = literal_part(pattern);
    const bool whole = literal.size() == pattern.size();
    if (begins_with(literal, kKeyChannel)) {
      interest.filter.add_prefix(literal.substr(kKeyChannel.size()));
    } else if (begins_with(literal, kNameChannel) && whole) {
      interest.names.emplace(literal.substr(kNameChannel.size()));
    } else {
      interest.filter.add_prefix("");
    }
  }
  return interest;
}

std::size_t Subscriptions::append(std::string& out, const kv::Event& event, Protocol protocol,
                                  NotifyBudget& budget) const {
  const std::string_view name = event_name(event);
  const std::string_view key = event.key;
  std::size_t messages = append(out, std::string(kKeyChannel).append(key), name, protocol, budget);
  messages += append(out, std::string(kNameChannel).append(name), key, protocol, budget);
  return messages;
}

std::size_t Subscriptions::append(std::string& out, const std::string& channel,
                                  std::string_view message, Protocol protocol,
                                  NotifyBudget& budget) const {
  std::size_t messages = 0;
  if (channels_.find(channel) != channels_.end() &&
      afford(budget, channel.size() + message.size())) {
    append_push(out, 3, protocol);
    append_bulk(out, "message");
    append_bulk(out, channel);
    append_bulk(out, message);
    ++messages;
  }
  for (const std::string& pattern : patterns_) {
    if (!glob_matches(pattern, channel, budget.steps)) continue;
    if (!afford(budget, pattern.size() + channel.size() + message.size())) break;
    append_push(out, 4, protocol);
    append_bulk(out, "pmessage");
    append_bulk(out, pattern);
    append_bulk(out, channel);
    append_bulk(out, message);
    ++messages;
  }
  return messages;
}

void append_subscribed(std::string& out, std::string_view verb, const std::string* text,
                       std::size_t count, Protocol protocol) {
  append_push(out, 3, protocol);
  append_bulk(out, verb);
  if (text != nullptr) {
    append_bulk(out, *text);
  } else {
    append_null(out, protocol);
  }
  append_integer(out, static_cast<std::int64_t>(count));
}

}  // namespace leasehold::server
