#include <leasehold/check/zones.h>

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace leasehold::check {
namespace {

constexpr std::int64_t kBeforeAll = std::numeric_limits<std::int64_t>::min();

/// All operations on one value: its write and the reads that returned it. The key holds the value
/// at some instant up to `first_return` and at some instant from `last_call` on. If the first is
/// before the last, it holds it throughout, and nothing else may live there (a forward zone). If
/// not, all the operations overlap, and one instant within suffices (a backward zone).
struct Zone {
  std::uint64_t value = 0;
  std::int64_t first_return = kBeforeAll;
  std::int64_t last_call = kBeforeAll;
  const Operation* returned_first = nullptr;  ///< null: the value of the beginning
  const Operation* called_last = nullptr;
  bool forward() const { return first_return < last_call; }
};

/// An operation, and the value by which it is sorted.
using Valued = std::pair<std::uint64_t, const Operation*>;

std::string describe_zone(const Zone& zone, const History* history) {
  std::string text = "the value is there throughout from (";
  text +=
      zone.returned_first != nullptr ? describe(*zone.returned_first, history) : "the beginning";
  return fmt::format("{}) to ({})", text, describe(*zone.called_last, history));
}

/// Adds the operations [begin, end), which share one value, to `zones`. Returns what is wrong with
/// them on their own.
std::string add_zone(const std::vector<Valued>& operations, std::size_t begin, std::size_t end,
                     std::vector<Zone>& zones, const History* history) {
  Zone zone;
  zone.value = operations[begin].first;
  const Operation* write = nullptr;
  for (std::size_t i = begin; i < end; ++i) {
    if (operations[i].second->kind == OperationKind::write) write = operations[i].second;
  }
  const bool initial = zone.value == Operation::kNothing;
  if (!initial && write == nullptr) {
    return "the value was never written: " + describe(*operations[begin].second, history);
  }
  // A write with an unknown outcome that no read saw may never have happened.
  if (!initial && end - begin == 1 && !write->returned()) return "";
  zone.first_return = initial ? kBeforeAll : Operation::kNeverReturned;
  for (std::size_t i = begin; i < end; ++i) {
    const Operation& operation = *operations[i].second;
    if (write != nullptr && operation.returned_ns < write->invoked_ns) {
      return fmt::format("the value is read before it is written: ({}) and ({})",
                         describe(operation, history), describe(*write, history));
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

/// What is wrong between the zones of one key.
std::optional<ZoneFault> find_collision(const std::vector<Zone>& zones, const History* history) {
  std::vector<const Zone*> forward;
  for (const Zone& zone : zones) {
    if (zone.forward()) forward.push_back(&zone);
  }
  std::sort(forward.begin(), forward.end(), [](const Zone* a, const Zone* b) {
    return std::pair(a->first_return, a->value) < std::pair(b->first_return, b->value);
  });
  for (std::size_t i = 1; i < forward.size(); ++i) {
    // Comparing neighbours is enough: while none collide, the ends rise as the starts do.
    if (forward[i]->first_return < forward[i - 1]->last_call) {
      return ZoneFault{fmt::format("{}, but meanwhile {}", describe_zone(*forward[i - 1], history),
                                   describe_zone(*forward[i], history)),
                       {forward[i - 1]->value, forward[i]->value}};
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
      return ZoneFault{
          fmt::format("{}, but in between there is ({})", describe_zone(around, history),
                      describe(*zone.called_last, history)),
          {around.value, zone.value}};
    }
  }
  return std::nullopt;
}

}  // namespace

bool values_unique(const KeyOperations& operations) {
  std::vector<std::uint64_t> written{Operation::kNothing};
  for (const Operation* operation : operations) {
    if (operation->kind == OperationKind::read) continue;
    if (operation->kind != OperationKind::write) return false;
    written.push_back(operation->value);
  }
  // Clients that count hand their values out in order.
  if (!std::is_sorted(written.begin(), written.end())) std::sort(written.begin(), written.end());
  return std::adjacent_find(written.begin(), written.end()) == written.end();
}

std::optional<ZoneFault> find_zone_fault(const KeyOperations& operations, const History* history) {
  std::vector<Valued> sorted;
  sorted.reserve(operations.size());
  for (const Operation* operation : operations) sorted.emplace_back(operation->value, operation);
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const Valued& a, const Valued& b) { return a.first < b.first; });
  std::vector<Zone> zones;
  for (std::size_t begin = 0; begin < sorted.size();) {
    std::size_t end = begin + 1;
    while (end < sorted.size() && sorted[end].first == sorted[begin].first) ++end;
    std::string wrong = add_zone(sorted, begin, end, zones, history);
    if (!wrong.empty()) return ZoneFault{std::move(wrong), {sorted[begin].first}};
    begin = end;
  }
  return find_collision(zones, history);
}

}  // namespace leasehold::check
