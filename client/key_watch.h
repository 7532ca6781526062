// Events of the keys of a group, over its client ports (docs/watch.md).
#pragma once

#include <leasehold/base/result.h>
#include <leasehold/client/resp_client.h>
#include <leasehold/grant/lease_table.h>
#include <leasehold/lease/instant.h>

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace leasehold::client {

/// Returns every event of keys, in order, once, without a gap. It continues at another server when
/// a connection breaks, or a node is cut off from its group. If that is not possible, because it
/// was away for longer than the nodes remember, it returns `resync`, and then the existing keys.
///
///     KeyWatch watch({.servers = servers, .prefixes = {"services/web/"}, .existing = true});
///     for (;;) {
///       const auto events = watch.next(std::chrono::seconds(1));
///       if (!events) return events.error();
///       for (const KeyWatch::Event& event : events.value()) balancer.apply(event);
///     }
///
/// One thread at a time.
class KeyWatch {
 public:
  struct Options {
    std::vector<std::string> servers;  ///< client addresses, host:port; at least one
    std::vector<std::string> keys;
    std::vector<std::string> prefixes;  ///< no key and no prefix: every key
    std::uint64_t from = 0;             ///< the first revision to return; 0: the next one
    bool existing = false;              ///< return the existing keys first; not with `from`
    bool values = false;                ///< of up to 16 KiB each
    Access access = {};
    /// Called for each server that fails, with the reason; the watch continues at the next one.
    std::function<void(const std::string&)> trouble = [](const std::string&) {};
  };

  struct Event {
    enum class Kind : std::uint8_t {
      set,
      deleted,  ///< by a command
      expired,  ///< the time of its lease was over
      revoked,  ///< its lease was ended before its time
      resync,   ///< forget everything: `is` follows for each existing key
      is,       ///< the key exists
    };
    Kind kind = Kind::set;
    std::uint64_t revision = 0;
    std::string key;
    std::uint64_t create_revision = 0;  ///< of `set` and `is`
    std::uint64_t version = 0;          ///< of `set` and `is`
    grant::LeaseId lease{};             ///< the key is attached to it, or went with it; 0: none
    std::optional<std::string> value;
  };

  explicit KeyWatch(Options options);

  /// The events of one revision, or a resync with all existing keys. Empty: nothing happened within
  /// the timeout; the call takes longer where servers do not answer. Errors: unsupported (the
  /// server will always refuse), invalid_argument (no server has an address).
  Result<std::vector<Event>> next(lease::Duration timeout);
  /// The first revision that was not returned yet; 0: the watch has not begun.
  std::uint64_t next_revision() const { return next_; }

 private:
  using Clock = std::chrono::steady_clock;

  Result<void> connect();
  Result<void> begin();
  Result<void> listen(Clock::time_point deadline);
  Result<RespValue> ask(const std::vector<std::string>& words);
  Result<void> take(const RespValue& message);
  Result<void> read_again();
  void go_elsewhere(const Error& why);

  const Options options_;
  std::optional<RespClient> client_;
  std::size_t at_ = 0;
  /// Servers in a row that failed, and how many of them have an invalid address.
  std::size_t failed_ = 0;
  std::size_t nowhere_ = 0;
  Clock::time_point heard_;
  std::deque<RespValue> waiting_;  ///< messages, in their order
  std::vector<Event> told_;        ///< what next() returns
  std::uint64_t next_ = 0;
  /// The existing keys have to be returned first.
  bool reread_ = false;
  /// Keys that were read at a later revision than that before next_.
  std::map<std::string, std::uint64_t> ahead_;
};

/// "set", "deleted" ..., as the commands of watches call them.
const char* event_name(KeyWatch::Event::Kind kind);

}  // namespace leasehold::client
