// What a connection has subscribed to: the keyspace notifications of Redis.
#pragma once

#include <leasehold/server/front/event_hub.h>
#include <leasehold/server/front/resp.h>
#include <leasehold/server/front/session_limits.h>

#include <cstddef>
#include <functional>
#include <set>
#include <string>
#include <string_view>

namespace leasehold::server {

/// Channels and patterns of one connection, and watched keys and prefixes; and their bytes.
inline constexpr std::size_t kInterestsMax = 1024;
inline constexpr std::size_t kInterestBytesMax = 1U << 20U;
/// Steps that the patterns of one connection may take for one revision. Beyond the limit the
/// connection ends.
inline constexpr std::size_t kNotifyStepsMax = std::size_t{4} << 20U;
/// Bytes of the messages about one event. Each pattern that matches repeats the key, twice for
/// those that match both channels. Beyond the limit the connection ends.
inline constexpr std::size_t kNotifyBytesMax = kOutputBytesMax;

/// What messages may still cost.
struct NotifyBudget {
  std::size_t steps = kNotifyStepsMax;  ///< of the patterns
  std::size_t bytes = kNotifyBytesMax;
  bool spent() const { return steps == 0 || bytes == 0; }
};

/// Every event is a message on two channels: its name on that of its key, its key on that of its
/// name.
inline constexpr std::string_view kKeyChannel = "__keyspace@0__:";
inline constexpr std::string_view kNameChannel = "__keyevent@0__:";

class Subscriptions {
 public:
  enum class Kind : std::uint8_t { channel, pattern };

  /// Why there can be no message on it, as the text of an error; empty: there can be.
  static std::string problem_of(Kind kind, std::string_view text);
  /// False: there are too many, or their texts are too long together.
  bool add(Kind kind, std::string_view text);
  void remove(Kind kind, std::string_view text);
  bool empty() const { return count() == 0; }
  std::size_t count() const { return channels_.size() + patterns_.size(); }
  std::size_t bytes() const { return bytes_; }
  const std::set<std::string, std::less<>>& of(Kind kind) const {
    return kind == Kind::channel ? channels_ : patterns_;
  }

  /// In a group: the channel of a key is of the group that has the key.
  EventInterest interest(const std::function<bool(std::string_view key)>& has) const;
  /// Appends the messages about one event, and returns their number. Takes their cost off `budget`;
  /// if that is spent afterwards, a message may be missing.
  std::size_t append(std::string& out, const kv::Event& event, Protocol protocol,
                     NotifyBudget& budget) const;

 private:
  std::size_t append(std::string& out, const std::string& channel, std::string_view message,
                     Protocol protocol, NotifyBudget& budget) const;

  std::set<std::string, std::less<>> channels_;
  std::set<std::string, std::less<>> patterns_;
  std::size_t bytes_ = 0;
};

/// The reply to one word of SUBSCRIBE and its family. `text` null: there was nothing to leave.
void append_subscribed(std::string& out, std::string_view verb, const std::string* text,
                       std::size_t count, Protocol protocol);

}  // namespace leasehold::server
