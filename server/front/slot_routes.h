// Which group has a slot, as far as the states of this node's replicas say.
#pragma once

#include <leasehold/kv/key_slot.h>
#include <leasehold/kv/store.h>
#include <leasehold/server/front/command_spec.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

namespace leasehold::server {

struct ServedGroup;

/// Of a command's keys, which are of one slot, or else of the name of a lease; none: it has none.
std::optional<std::uint32_t> slot_in(const std::vector<KeyUse>& uses);

/// Follows the slots that move. Any thread. It may be behind or ahead of the groups, so it only
/// says where to ask: a group does nothing with a key that it has no more.
class SlotRoutes {
 public:
  /// Of all groups, in their order; at least one. They outlive it.
  explicit SlotRoutes(std::vector<const kv::Store*> stores);
  ~SlotRoutes();
  SlotRoutes(const SlotRoutes&) = delete;
  SlotRoutes& operator=(const SlotRoutes&) = delete;

  /// 0 is the first group. `slot` is below kv::kSlots.
  std::size_t group_of(std::uint32_t slot) const {
    return groups_[slot].load(std::memory_order_relaxed);
  }
  /// Whether a group says that the slot is here. While a move goes from group to group none does.
  bool is_open(std::uint32_t slot) const { return open_[slot].load(std::memory_order_relaxed); }
  bool all_open() const { return closed_.load(std::memory_order_relaxed) == 0; }
  /// Calls `done` once, inside the call or on any thread: with true when the slot is open, and with
  /// false when end_waits() finds that the time is over. Those of one slot are called in their
  /// order.
  using Waited = std::function<void(bool open)>;
  void wait(std::uint32_t slot, std::chrono::nanoseconds until, Waited done);
  /// Call it from time to time. `now`: of the clock of wait().
  void end_waits(std::chrono::nanoseconds now);
  /// Rises with every change; above 0.
  std::uint64_t version() const { return version_.load(std::memory_order_acquire); }
  /// The same, with all that the stores said when it was called.
  std::uint64_t newest_version();
  /// The slots that have gone elsewhere since that version, or of which no group says that it has
  /// them. Who has read all groups since then has seen the keys of all others. It knows all
  /// that the stores said when it was called.
  kv::SlotSet changed_since(std::uint64_t version);

 private:
  /// What is known of a slot.
  struct Known {
    std::size_t group = 0;
    std::uint64_t epoch = 0;
    bool open = true;
    bool settled = true;  ///< the group itself says that it has the slot
    friend bool operator==(const Known&, const Known&) = default;
  };
  struct Waiter {
    std::chrono::nanoseconds until{0};
    Waited done;
  };
  void listen();
  void follow();
  std::vector<Waited> take_ready();
  void update();
  void catch_up();
  std::vector<Known> look();

  const std::vector<const kv::Store*> stores_;
  std::vector<std::pair<const kv::Slots*, kv::Slots::Listener>> listeners_;
  std::mutex mutex_;                              ///< held while routes are written
  std::multimap<std::uint32_t, Waiter> waiters_;  ///< under mutex_; of one slot in their order
  bool calling_ = false;                          ///< under mutex_: a thread calls some of them
  // Under mutex_.
  std::vector<std::uint64_t> seen_;        ///< Slots::changes() of each store
  std::vector<Known> known_;               ///< of each slot
  std::vector<std::uint64_t> changed_at_;  ///< of each slot, the version
  std::size_t unsettled_ = 0;              ///< slots
  std::array<std::atomic<std::uint16_t>, kv::kSlots> groups_;
  std::array<std::atomic<bool>, kv::kSlots> open_;
  std::atomic<std::size_t> closed_{0};  ///< slots
  std::atomic<std::uint64_t> version_{0};
};

/// Whether the slot of a key stays a group's while its keys are read, and the group stays at this
/// node from when the read was justified: begin it before the read.
class SlotStay {
 public:
  /// All outlive it. `justified_at`: ServedGroup::stay() before that.
  SlotStay(const ServedGroup& group, std::uint64_t justified_at, const CommandTable& commands,
           const CommandSpec& spec, const Arguments& args);
  /// After the read. False: what was read may be of no use.
  bool stayed() const;

 private:
  struct Seen {
    bool serves = true;
    std::uint64_t epoch = 0;
  };
  Seen look() const;

  const ServedGroup& group_;
  const std::uint64_t justified_at_;
  const CommandTable& commands_;
  const CommandSpec& spec_;
  const Arguments& args_;
  const Seen before_;
};

}  // namespace leasehold::server
