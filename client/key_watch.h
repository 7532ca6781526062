// What happens to keys of a group that is reached by its client ports (docs/watch.md).
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

/// Tells everything that happens to keys, in order, once, without a gap; goes on at another server
/// when a connection breaks, or a node is cut off from its group. When that is not possible, since
/// it was away for longer than the nodes remember, it says `resync`, and then what is there.
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
    std::uint64_t from = 0;             ///< the first revision to tell; 0: the next one
    bool existing = false;              ///< say first what is there; not with `from`
    bool values = false;                ///< of up to 16 KiB each
    /// Hears of each server that fails, with the reason: it goes on at the next one.
    std::function<void(const std::string&)> trouble = [](const std::string&) {};
  };

  struct Event {
    enum class Kind : std::uint8_t {
      set,
      deleted,  ///< by a command
      expired,  ///< the time of its lease was over
      revoked,  ///< its lease was ended before its time
      resync,   ///< forget everything: `is` for each key that is there comes behind it
      is,       ///< it is there
    };
    Kind kind = Kind::set;
    std::uint64_t revision = 0;
    std::string key;
    std::uint64_t create_revision = 0;  ///< of `set` and `is`
    std::uint64_t version = 0;          ///< of `set` and `is`
    grant::LeaseId lease{};             ///< on which it stands, or with which it went; 0: none
    std::optional<std::string> value;
  };

  explicit KeyWatch(Options options);

  /// What one revision did, or a resync with all that is there. Empty: nothing happened within the
  /// timeout; it takes longer where servers do not answer. Errors: unsupported (refused for good),
  /// invalid_argument (no server has an address).
  Result<std::vector<Event>> next(lease::Duration timeout);
  /// The first revision that was not told yet; 0: it has not begun.
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
  /// Servers in a row that failed, and those of them whose address is none.
  std::size_t failed_ = 0;
  std::size_t nowhere_ = 0;
  Clock::time_point heard_;
  std::deque<RespValue> waiting_;  ///< messages, in their order
  std::vector<Event> told_;        ///< what next() returns
  std::uint64_t next_ = 0;
  /// What is there has to be said first.
  bool reread_ = false;
  /// Keys that were read at a later revision than that before next_.
  std::map<std::string, std::uint64_t> ahead_;
};

/// "set", "deleted" ..., as the commands of watches call them.
const char* event_name(KeyWatch::Event::Kind kind);

}  // namespace leasehold::client
