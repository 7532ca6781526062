// Which of the jobs that slots are waiting for begin now: a plan without threads or a clock.
#pragma once

#include <leasehold/base/result.h>
#include <leasehold/kv/local/slot_jobs.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

namespace leasehold::kv {

/// A job of one of the groups of this process.
struct SlotTask {
  std::size_t group = 0;  ///< from 0 on
  SlotJob job;
};

/// Tasks of three kinds go on side by side, and none waits for one of another kind: the frozen
/// slots, which are nobody's; one that is copied while it is served; one whose keys are dropped. A
/// slot is in one task at a time. One thread at a time.
class SlotAgenda {
 public:
  using Instant = std::chrono::steady_clock::time_point;
  struct Options {
    /// How soon a task comes again that has failed, at first and at most; one of frozen slots comes
    /// as soon as at first each time.
    lease::Duration retry_min{0};
    lease::Duration retry_max{0};
    /// How soon a task comes again that had to leave keys where they are.
    lease::Duration interval{0};
  };
  /// Frozen tasks that go on at a time. There is more than one only behind nodes that died.
  static constexpr std::size_t kFrozenMax = 8;

  explicit SlotAgenda(Options options) : options_(options) {}

  /// Those of `found`, the jobs of all groups at this moment, that begin now. Each is in hand until
  /// end() is called with it.
  std::vector<SlotTask> begin(std::vector<SlotTask> found, Instant now);
  /// What came of a task in hand. True: it is a failure that was not known of this task.
  bool end(const SlotTask& task, const Result<std::uint64_t>& done, Instant now);
  /// When a task may come again whose time is not over yet; none: there is none.
  std::optional<Instant> next(Instant now) const;

 private:
  enum class Kind : std::uint8_t { frozen, copying, dropping };
  /// A task, whatever the number of its attempts: of a group, by its first slot.
  using Which = std::tuple<Kind, std::size_t, std::uint32_t>;
  struct Rest {
    Instant until;
    lease::Duration pause{0};
    std::string said;
  };

  static Kind kind_of(const SlotJob& job);
  static Which which(const SlotTask& task);
  bool has_room(Kind kind) const;
  bool is_in_hand(const SlotTask& task) const;

  const Options options_;
  std::vector<SlotTask> in_hand_;
  std::map<Which, Rest> rests_;
  std::map<Kind, std::size_t> last_group_;  ///< whose task began last
};

}  // namespace leasehold::kv
