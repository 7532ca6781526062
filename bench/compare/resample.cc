#include <leasehold/base/assert.h>
#include <leasehold/base/random.h>
#include <leasehold/bench/compare/resample.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

namespace leasehold::bench {
namespace {

constexpr std::uint64_t kSeed = 1;
constexpr double kLowEnd = 0.025;
constexpr double kHighEnd = 0.975;
/// Slots below this hold one value each; above, each doubling has half as many (histogram.h).
constexpr std::uint64_t kSingleSlots = 2048;
constexpr std::uint64_t kSlotsOfDoubling = 1024;

double over(double value, double floor) {
  return floor > 0 ? value / floor : 0.0;
}

/// The largest value of a slot.
std::uint64_t value_of_slot(std::uint64_t slot) {
  if (slot < kSingleSlots) return slot;
  const std::uint64_t doubling = (slot - kSingleSlots) / kSlotsOfDoubling + 1;
  const std::uint64_t within = (slot - kSingleSlots) % kSlotsOfDoubling + kSlotsOfDoubling;
  return ((within + 1) << doubling) - 1;
}

std::uint64_t rank_of(double q, std::uint64_t count) {
  return std::max<std::uint64_t>(
      1, static_cast<std::uint64_t>(std::ceil(q * static_cast<double>(count))));
}

/// Blocks whose sums are drawn a thousand times: the counts of each block over the values of all.
class DenseBlocks {
 public:
  explicit DenseBlocks(const std::vector<Slots>& blocks) {
    std::map<std::uint64_t, std::size_t> places;
    for (const Slots& block : blocks) {
      for (const auto& [value, count] : block) places[value] = 0;
    }
    for (auto& [value, place] : places) {
      place = values_.size();
      values_.push_back(value);
    }
    for (const Slots& block : blocks) {
      counts_.emplace_back(values_.size(), 0);
      for (const auto& [value, count] : block) counts_.back()[places[value]] = count;
    }
    sum_.resize(values_.size());
  }

  double quantile(const std::vector<std::size_t>& chosen, double q) {
    std::fill(sum_.begin(), sum_.end(), 0);
    for (const std::size_t block : chosen) {
      for (std::size_t i = 0; i < sum_.size(); ++i) sum_[i] += counts_[block][i];
    }
    const auto count = std::accumulate(sum_.begin(), sum_.end(), std::uint64_t{0});
    const std::uint64_t rank = rank_of(q, count);
    std::uint64_t seen = 0;
    for (std::size_t i = 0; i < sum_.size(); ++i) {
      seen += sum_[i];
      if (seen >= rank) return static_cast<double>(values_[i]);
    }
    return 0;
  }

 private:
  std::vector<std::uint64_t> values_;
  std::vector<std::vector<std::uint64_t>> counts_;
  std::vector<std::uint64_t> sum_;
};

double share_of_chosen(const std::vector<Share>& shares, const std::vector<std::size_t>& chosen) {
  double amount = 0;
  double number = 0;
  for (const std::size_t i : chosen) {
    amount += shares[i].amount;
    number += shares[i].number;
  }
  return over(amount, number);
}

}  // namespace

Slots slots_of(const Histogram& histogram) {
  Slots slots;
  const std::vector<std::uint64_t>& counts = histogram.slot_counts();
  for (std::size_t slot = 0; slot < counts.size(); ++slot) {
    if (counts[slot] > 0) slots.emplace_back(value_of_slot(slot), counts[slot]);
  }
  return slots;
}

Slots merged(const std::vector<Slots>& blocks) {
  std::map<std::uint64_t, std::uint64_t> counts;
  for (const Slots& block : blocks) {
    for (const auto& [value, count] : block) counts[value] += count;
  }
  return {counts.begin(), counts.end()};
}

std::uint64_t quantile_of(const Slots& slots, double q) {
  std::uint64_t count = 0;
  for (const auto& [value, times] : slots) count += times;
  const std::uint64_t rank = rank_of(q, count);
  std::uint64_t seen = 0;
  for (const auto& [value, times] : slots) {
    seen += times;
    if (seen >= rank) return value;
  }
  return 0;
}

Interval bootstrap(std::size_t pairs, const Statistic& statistic) {
  LEASEHOLD_ASSERT(pairs > 0);
  std::vector<std::size_t> chosen(pairs);
  std::iota(chosen.begin(), chosen.end(), std::size_t{0});
  Interval interval;
  interval.value = statistic(chosen);
  Random random(kSeed);
  std::vector<double> drawn;
  for (unsigned i = 0; i < kResamples; ++i) {
    for (std::size_t& one : chosen) one = static_cast<std::size_t>(random.below(pairs));
    drawn.push_back(statistic(chosen));
  }
  std::sort(drawn.begin(), drawn.end());
  interval.low = drawn[static_cast<std::size_t>(kLowEnd * kResamples)];
  interval.high = drawn[static_cast<std::size_t>(kHighEnd * kResamples)];
  return interval;
}

Interval ratio_of_quantiles(const std::vector<Slots>& ours, const std::vector<Slots>& theirs,
                            double q) {
  LEASEHOLD_ASSERT(ours.size() == theirs.size());
  DenseBlocks our_blocks(ours);
  DenseBlocks their_blocks(theirs);
  return bootstrap(ours.size(), [&](const std::vector<std::size_t>& chosen) {
    return over(our_blocks.quantile(chosen, q), their_blocks.quantile(chosen, q));
  });
}

Interval share_of(const std::vector<Share>& shares) {
  return bootstrap(shares.size(), [&shares](const std::vector<std::size_t>& chosen) {
    return share_of_chosen(shares, chosen);
  });
}

Interval ratio_of_shares(const std::vector<Share>& ours, const std::vector<Share>& theirs) {
  LEASEHOLD_ASSERT(ours.size() == theirs.size());
  return bootstrap(ours.size(), [&](const std::vector<std::size_t>& chosen) {
    return over(share_of_chosen(ours, chosen), share_of_chosen(theirs, chosen));
  });
}

}  // namespace leasehold::bench
