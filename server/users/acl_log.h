// What users were refused: the content of ACL LOG, and its counters in INFO. It never has a
// password.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace leasehold::server {

/// Entries kept; the oldest go first.
inline constexpr std::size_t kAclLogEntriesMax = 128;
/// Bytes of a key, a command or a name that an entry shows.
inline constexpr std::size_t kAclLogBytes = 128;

enum class AclReason : std::uint8_t { auth, command, key, channel };
inline constexpr std::size_t kAclReasons = 4;
const char* acl_reason_name(AclReason reason);

struct AclRefusal {
  AclReason reason = AclReason::auth;
  std::string context = "toplevel";  ///< or "multi", "script"
  std::string object;                ///< the command, key or channel
  std::string user;
  std::string client;  ///< as CLIENT INFO
  // Given by the log.
  std::uint64_t id = 0;
  std::uint64_t count = 0;
  std::chrono::microseconds created{0};  ///< since 1970
  std::chrono::microseconds updated{0};
};

/// Any thread.
class AclLog {
 public:
  /// One that is like an entry of the last minute is counted with it.
  void add(AclRefusal refusal, std::chrono::microseconds now);
  std::vector<AclRefusal> newest(std::size_t count) const;
  void clear();
  /// Since the start.
  std::uint64_t refused(AclReason reason) const {
    return refused_[static_cast<std::size_t>(reason)].load(std::memory_order_relaxed);
  }

 private:
  std::array<std::atomic<std::uint64_t>, kAclReasons> refused_{};
  mutable std::mutex mutex_;
  std::deque<AclRefusal> entries_;  ///< newest first
  std::uint64_t next_id_ = 0;
};

}  // namespace leasehold::server
