// The commands that took long: what SLOWLOG shows.
#pragma once

#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace leasehold::server {

/// Entries kept; the oldest go first.
inline constexpr std::size_t kSlowLogEntriesMax = 128;
/// Bytes of a key that an entry shows.
inline constexpr std::size_t kSlowLogKeyBytes = 64;

struct SlowCommand {
  std::uint64_t id = 0;
  std::int64_t unix_seconds = 0;
  std::int64_t microseconds = 0;
  std::string command;
  std::string key;  ///< the first one, cut; may be empty
  std::string address;
  std::string client_name;
};

/// Any thread. Only touched when a command was slow, or a client asks.
class SlowLog {
 public:
  /// Gives the entry its id and its time.
  void add(SlowCommand entry);
  /// The newest `count`, newest first.
  std::vector<SlowCommand> newest(std::size_t count) const;
  std::size_t size() const;
  void clear();

 private:
  mutable std::mutex mutex_;
  std::deque<SlowCommand> entries_;  ///< newest first
  std::uint64_t next_id_ = 0;
};

}  // namespace leasehold::server
