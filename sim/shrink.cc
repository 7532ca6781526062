#include <leasehold/sim/shrink.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace leasehold::sim {
namespace {

/// For a run in which every fault has a number and a time of its own, which is another run.
constexpr std::uint64_t kVariantsForNumbers = 60;
/// For a run without something.
constexpr std::uint64_t kVariants = 4;

using Numbers = std::vector<std::uint64_t>;

FaultNumbers ranges_of(const Numbers& numbers) {
  FaultNumbers ranges;
  for (const std::uint64_t number : numbers) {
    if (!ranges.empty() && ranges.back().second + 1 == number) {
      ranges.back().second = number;
    } else {
      ranges.emplace_back(number, number);
    }
  }
  return ranges;
}

Numbers numbers_of(const FaultNumbers& ranges, std::uint64_t most) {
  Numbers numbers;
  for (const auto& [first, last] : ranges) {
    for (std::uint64_t n = first; n <= std::min(last, most); ++n) numbers.push_back(n);
  }
  return numbers;
}

class Shrinker {
 public:
  Shrinker(Shrunk begin, std::uint64_t attempts_max, const Attempt& attempt,
           const std::function<void(const Shrunk&)>& on_progress)
      : best_(std::move(begin)),
        attempts_max_(attempts_max),
        attempt_(attempt),
        on_progress_(on_progress) {}

  Shrunk run() {
    for (bool smaller = true; smaller && !spent();) {
      smaller = leave_out_classes();
      smaller = leave_out_clients() || smaller;
      if (!best_.reduction.only) number_the_faults();
      smaller = leave_out_faults() || smaller;
    }
    return best_;
  }

 private:
  bool spent() const { return best_.attempts >= attempts_max_; }

  /// Whether the finding is still there. Then this is the best so far.
  bool works(const Reduction& candidate) {
    if (spent()) return false;
    ++best_.attempts;
    const std::optional<Finding> found = attempt_(candidate);
    const bool same = found && found->oracle == best_.finding.oracle;
    if (same) {
      best_.reduction = candidate;
      best_.finding = *found;
    }
    on_progress_(best_);
    return same;
  }

  bool works_in_some_variant(Reduction candidate, std::uint64_t variants) {
    const std::uint64_t first = candidate.variant;
    for (std::uint64_t i = 0; i < variants && !spent(); ++i) {
      candidate.variant = first + i;
      if (works(candidate)) return true;
    }
    return false;
  }

  bool leave_out_classes() {
    bool smaller = false;
    for (std::size_t i = 0; i < kFaultClasses; ++i) {
      const auto fault = static_cast<FaultClass>(i);
      if (best_.reduction.without.has(fault)) continue;
      Reduction candidate = best_.reduction;
      candidate.without.add(fault);
      smaller = works_in_some_variant(candidate, kVariants) || smaller;
    }
    return smaller;
  }

  bool leave_out_clients() {
    bool smaller = false;
    for (bool Reduction::*kind : {&Reduction::no_sessions, &Reduction::no_leases,
                                  &Reduction::no_key_locks, &Reduction::no_watchers}) {
      if (best_.reduction.*kind) continue;
      Reduction candidate = best_.reduction;
      candidate.*kind = true;
      smaller = works_in_some_variant(candidate, kVariants) || smaller;
    }
    constexpr std::uint64_t kMany = 16;
    for (Reduction candidate = best_.reduction;; candidate = best_.reduction) {
      const std::uint64_t clients = candidate.clients_max == 0 ? kMany : candidate.clients_max;
      candidate.clients_max = std::max<std::uint64_t>(1, clients / 2);
      if (candidate.clients_max == clients) return smaller;
      if (!works_in_some_variant(candidate, kVariants)) return smaller;
      smaller = true;
    }
  }

  /// Then one of them can be left out, and the others keep their times.
  void number_the_faults() {
    Reduction candidate = best_.reduction;
    candidate.only = FaultNumbers{{1, kFaultNumberMax}};
    works_in_some_variant(candidate, kVariantsForNumbers);
  }

  /// Delta debugging: halves, quarters, and so on down to single ones, from the back.
  bool leave_out_faults() {
    if (!best_.reduction.only) return false;
    bool smaller = false;
    const Numbers all = numbers_of(*best_.reduction.only, best_.finding.triggered);
    for (std::size_t piece = all.size(); piece > 0; piece /= 2) {
      Numbers left = numbers_of(*best_.reduction.only, best_.finding.triggered);
      for (std::size_t end = left.size(); end > 0 && !spent();) {
        const std::size_t begin = end - std::min(piece, end);
        Numbers fewer = left;
        fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(begin),
                    fewer.begin() + static_cast<std::ptrdiff_t>(end));
        Reduction candidate = best_.reduction;
        candidate.only = ranges_of(fewer);
        if (works(candidate)) {
          left = std::move(fewer);
          smaller = true;
        }
        end = begin;
      }
    }
    return smaller;
  }

  Shrunk best_;
  std::uint64_t attempts_max_;
  const Attempt& attempt_;
  const std::function<void(const Shrunk&)>& on_progress_;
};

}  // namespace

std::uint64_t faults_left(const Shrunk& shrunk) {
  if (!shrunk.reduction.only) return shrunk.finding.triggered;
  return numbers_of(*shrunk.reduction.only, shrunk.finding.triggered).size();
}

Shrunk shrink(const Reduction& from, const Finding& found, std::uint64_t attempts_max,
              const Attempt& attempt, const std::function<void(const Shrunk&)>& on_progress) {
  return Shrinker({from, found, 0}, attempts_max, attempt, on_progress).run();
}

}  // namespace leasehold::sim
