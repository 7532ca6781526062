#include <leasehold/base/assert.h>
#include <leasehold/sim/linearizability.h>

#include <algorithm>
#include <unordered_set>
#include <utility>

namespace leasehold::sim {
namespace {

constexpr std::int64_t kBeforeAll = std::numeric_limits<std::int64_t>::min();

CheckReport violation(std::uint64_t key, std::string explanation) {
  return {Verdict::violation, key, std::move(explanation)};
}

// --- Unique values: zones -------------------------------------------------------------------

/// All operations on one value: its write and the reads that returned it. The key holds the value
/// at some instant up to `first_return` and at some instant from `last_call` on. If the first is
/// before the last, it holds it throughout, and nothing else may live there (a forward zone). If
/// not, all the operations overlap, and one instant within suffices (a backward zone).
struct Zone {
  std::uint64_t value = 0;
  std::int64_t first_return = kBeforeAll;
  std::int64_t last_call = kBeforeAll;
  const Operation* write = nullptr;  ///< null: the initial value
  const Operation* returned_first = nullptr;
  const Operation* called_last = nullptr;
  bool forward() const { return first_return < last_call; }
};

std::string describe_zone(const Zone& zone) {
  std::string text = "value " + std::to_string(zone.value) + " is there throughout from ";
  text += zone.returned_first != nullptr ? describe(*zone.returned_first) : "the beginning";
  return text + " to " + describe(*zone.called_last);
}

/// Adds the operations [begin, end), which share one value, to `zones`. Returns what is wrong with
/// them on their own.
std::string add_zone(const std::vector<const Operation*>& operations, std::size_t begin,
                     std::size_t end, std::vector<Zone>& zones) {
  Zone zone;
  zone.value = operations[begin]->value;
  for (std::size_t i = begin; i < end; ++i) {
    if (operations[i]->kind == OperationKind::write) zone.write = operations[i];
  }
  const bool initial = zone.value == Operation::kInitialValue;
  if (!initial && zone.write == nullptr) {
    return "the value was never written: " + describe(*operations[begin]);
  }
  // A write whose outcome is unknown and that nobody saw need never have happened.
  if (!initial && end - begin == 1 && zone.write->returned_ns == Operation::kNeverReturned) {
    return "";
  }
  zone.first_return = initial ? kBeforeAll : Operation::kNeverReturned;
  for (std::size_t i = begin; i < end; ++i) {
    const Operation& operation = *operations[i];
    if (zone.write != nullptr && operation.returned_ns < zone.write->invoked_ns) {
      return "the value is read before it is written: " + describe(operation) + "; " +
             describe(*zone.write);
    }
    if (!initial && operation.returned_ns <= zone.first_return) {
      zone.first_return = operation.returned_ns;
      zone.returned_first = &operation;
    }
    if (zone.called_last == nullptr || operation.invoked_ns > zone.last_call) {
      zone.last_call = operation.invoked_ns;
      zone.called_last = &operation;
    }
  }
  zones.push_back(zone);
  return "";
}

/// What is wrong between the zones of one key; empty if nothing is.
std::string find_collision(const std::vector<Zone>& zones) {
  std::vector<const Zone*> forward;
  for (const Zone& zone : zones) {
    if (zone.forward()) forward.push_back(&zone);
  }
  std::sort(forward.begin(), forward.end(), [](const Zone* a, const Zone* b) {
    return std::pair(a->first_return, a->value) < std::pair(b->first_return, b->value);
  });
  for (std::size_t i = 1; i < forward.size(); ++i) {
    // Neighbours suffice: as long as none collides, the ends rise as the starts do.
    if (forward[i]->first_return < forward[i - 1]->last_call) {
      return describe_zone(*forward[i - 1]) + ", but " + describe_zone(*forward[i]);
    }
  }
  for (const Zone& zone : zones) {
    if (zone.forward()) continue;
    // The one forward zone that may contain this one: the last that starts before it does.
    auto after = std::partition_point(forward.begin(), forward.end(), [&zone](const Zone* f) {
      return f->first_return < zone.last_call;
    });
    if (after == forward.begin()) continue;
    const Zone& around = **(after - 1);
    if (zone.first_return < around.last_call) {
      return describe_zone(around) + ", but in between there is " + describe(*zone.called_last);
    }
  }
  return "";
}

/// `operations` are all those of one key; written values are unique.
CheckReport check_unique(std::uint64_t key, std::vector<const Operation*> operations) {
  std::sort(operations.begin(), operations.end(), [](const Operation* a, const Operation* b) {
    return std::pair(a->value, a->invoked_ns) < std::pair(b->value, b->invoked_ns);
  });
  std::vector<Zone> zones;
  for (std::size_t begin = 0; begin < operations.size();) {
    std::size_t end = begin + 1;
    while (end < operations.size() && operations[end]->value == operations[begin]->value) ++end;
    std::string wrong = add_zone(operations, begin, end, zones);
    if (!wrong.empty()) return violation(key, std::move(wrong));
    begin = end;
  }
  std::string wrong = find_collision(zones);
  if (!wrong.empty()) return violation(key, std::move(wrong));
  return {};
}

// --- Any values: search ---------------------------------------------------------------------

/// Searches for an order of the operations of one key. The candidates stand in a doubly linked list
/// of calls and returns, ordered by time; whatever stands before the first return may come next.
class OrderSearch {
 public:
  OrderSearch(const std::vector<const Operation*>& operations, std::size_t states_max)
      : operations_(operations), states_max_(states_max) {
    build_list();
  }

  Verdict run() {
    std::vector<std::uint64_t> done((operations_.size() + 63) / 64, 0);
    std::uint64_t value = Operation::kInitialValue;
    std::size_t at = links_[kHead].next;
    while (returns_left_ > 0) {
      // A read that fits can go first without loss: nothing that may come later gets harder.
      const std::size_t ready = fitting_read(value);
      if (ready != kNone) at = ready;
      if (at != kHead && links_[at].call) {
        const std::size_t which = links_[at].operation;
        const Operation& operation = *operations_[which];
        const bool fits = operation.kind == OperationKind::write || ready != kNone;
        if (fits && enter(done, which, operation.value)) {
          steps_.push_back({at, value, ready != kNone});
          value = operation.value;
          lift(at);
          at = links_[kHead].next;
          if (seen_.size() > states_max_) return Verdict::undecided;
          continue;
        }
        if (ready == kNone) {
          at = links_[at].next;
          continue;
        }
      }
      // A return, the end, or a state that was tried before: what follows has been tried in vain.
      if (at != kHead) deepest_ = std::max(deepest_, {steps_.size(), links_[at].operation});
      bool forced = true;
      while (forced) {
        if (steps_.empty()) return Verdict::violation;
        const Step step = steps_.back();
        steps_.pop_back();
        forced = step.forced;
        value = step.value_before;
        const std::size_t which = links_[step.link].operation;
        done[which / 64] &= ~(std::uint64_t{1} << (which % 64));
        restore(step.link);
        at = links_[step.link].next;
      }
    }
    return Verdict::linearizable;
  }

  /// The operation that no order could place, in the longest attempt.
  const Operation& stuck() const { return *operations_[deepest_.second]; }

 private:
  static constexpr std::size_t kHead = 0;
  static constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();

  struct Link {
    std::size_t prev = kHead;
    std::size_t next = kHead;
    std::size_t operation = 0;
    std::size_t mate = kNone;  ///< of a call: its return, if there is one
    bool call = false;
  };
  struct Step {
    std::size_t link;
    std::uint64_t value_before;
    bool forced;  ///< there was no choice: going back means going back further
  };
  struct State {
    std::vector<std::uint64_t> done;
    std::uint64_t value;
    bool operator==(const State& other) const { return value == other.value && done == other.done; }
  };
  struct StateHash {
    std::size_t operator()(const State& state) const {
      std::uint64_t hash = state.value * 0x9e3779b97f4a7c15U;
      for (std::uint64_t word : state.done) hash = (hash ^ word) * 0xff51afd7ed558ccdU + 1;
      return static_cast<std::size_t>(hash ^ (hash >> 32));
    }
  };

  void build_list() {
    struct Moment {
      std::int64_t time;
      bool is_return;
      std::size_t operation;
    };
    std::vector<Moment> moments;
    for (std::size_t i = 0; i < operations_.size(); ++i) {
      moments.push_back({operations_[i]->invoked_ns, false, i});
      if (operations_[i]->returned_ns == Operation::kNeverReturned) continue;
      moments.push_back({operations_[i]->returned_ns, true, i});
      ++returns_left_;
    }
    // At one instant calls come before returns: such operations overlap.
    std::sort(moments.begin(), moments.end(), [](const Moment& a, const Moment& b) {
      if (a.time != b.time) return a.time < b.time;
      if (a.is_return != b.is_return) return b.is_return;
      return a.operation < b.operation;
    });
    links_.resize(moments.size() + 1);
    std::vector<std::size_t> call_of(operations_.size(), kNone);
    for (std::size_t i = 0; i < moments.size(); ++i) {
      Link& link = links_[i + 1];
      link.prev = i;
      link.next = i + 1 == moments.size() ? kHead : i + 2;
      link.operation = moments[i].operation;
      link.call = !moments[i].is_return;
      if (link.call) call_of[link.operation] = i + 1;
      if (!link.call) links_[call_of[link.operation]].mate = i + 1;
    }
    links_[kHead].next = moments.empty() ? kHead : 1;
    links_[kHead].prev = moments.size();
  }

  /// The call of a read that may come next and fits `value`; kNone if there is none.
  std::size_t fitting_read(std::uint64_t value) const {
    for (std::size_t i = links_[kHead].next; i != kHead && links_[i].call; i = links_[i].next) {
      const Operation& operation = *operations_[links_[i].operation];
      if (operation.kind == OperationKind::read && operation.value == value) return i;
    }
    return kNone;
  }

  /// Marks `which` as done. False, and nothing is marked, if this state was visited before.
  bool enter(std::vector<std::uint64_t>& done, std::size_t which, std::uint64_t value) {
    done[which / 64] |= std::uint64_t{1} << (which % 64);
    if (seen_.insert(State{done, value}).second) return true;
    done[which / 64] &= ~(std::uint64_t{1} << (which % 64));
    return false;
  }

  void unlink(std::size_t i) {
    links_[links_[i].prev].next = links_[i].next;
    links_[links_[i].next].prev = links_[i].prev;
  }
  void relink(std::size_t i) {
    links_[links_[i].prev].next = i;
    links_[links_[i].next].prev = i;
  }
  void lift(std::size_t call) {
    unlink(call);
    if (links_[call].mate == kNone) return;
    unlink(links_[call].mate);
    --returns_left_;
  }
  void restore(std::size_t call) {
    if (links_[call].mate != kNone) {
      relink(links_[call].mate);
      ++returns_left_;
    }
    relink(call);
  }

  const std::vector<const Operation*>& operations_;
  const std::size_t states_max_;
  std::vector<Link> links_;  ///< links_[kHead] is the list's head
  std::size_t returns_left_ = 0;
  std::vector<Step> steps_;
  std::unordered_set<State, StateHash> seen_;
  /// (length of the attempt, operation whose return stopped it).
  std::pair<std::size_t, std::size_t> deepest_{0, 0};
};

CheckReport check_by_search(std::uint64_t key, const std::vector<const Operation*>& operations,
                            std::size_t states_max) {
  OrderSearch search(operations, states_max);
  switch (search.run()) {
    case Verdict::linearizable: return {};
    case Verdict::violation:
      return violation(key, "no order of the operations explains " + describe(search.stuck()));
    case Verdict::undecided:
      return {Verdict::undecided, key,
              "gave up after " + std::to_string(states_max) + " states; raise states_max"};
  }
  LEASEHOLD_UNREACHABLE();
}

bool written_values_unique(const std::vector<const Operation*>& operations) {
  std::vector<std::uint64_t> written{Operation::kInitialValue};
  for (const Operation* operation : operations) {
    if (operation->kind == OperationKind::write) written.push_back(operation->value);
  }
  std::sort(written.begin(), written.end());
  return std::adjacent_find(written.begin(), written.end()) == written.end();
}

}  // namespace

CheckReport check_linearizable(const std::vector<Operation>& history, const CheckOptions& options) {
  std::vector<const Operation*> by_key;
  by_key.reserve(history.size());
  for (const Operation& operation : history) by_key.push_back(&operation);
  std::stable_sort(by_key.begin(), by_key.end(),
                   [](const Operation* a, const Operation* b) { return a->key < b->key; });
  for (std::size_t begin = 0; begin < by_key.size();) {
    const std::uint64_t key = by_key[begin]->key;
    std::vector<const Operation*> operations;
    for (; begin < by_key.size() && by_key[begin]->key == key; ++begin) {
      operations.push_back(by_key[begin]);
    }
    CheckReport report = options.fast_path && written_values_unique(operations)
                             ? check_unique(key, std::move(operations))
                             : check_by_search(key, operations, options.states_max);
    if (report.verdict != Verdict::linearizable) return report;
  }
  return {};
}

std::string describe(const Operation& operation) {
  const bool write = operation.kind == OperationKind::write;
  std::string text = "client " + std::to_string(operation.client);
  text += write ? " writes key " : " reads key ";
  text += std::to_string(operation.key) + (write ? " := " : " = ");
  text += std::to_string(operation.value) + " [" + std::to_string(operation.invoked_ns) + " ns .. ";
  if (operation.returned_ns == Operation::kNeverReturned) return text + "never]";
  return text + std::to_string(operation.returned_ns) + " ns]";
}

}  // namespace leasehold::sim
