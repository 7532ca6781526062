// How sure one can be of the ratio of two things that were measured in turn: the same arithmetic as
// bench/stats.py.
#pragma once

#include <leasehold/bench/histogram.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

namespace leasehold::bench {

/// Values, ascending, and how often each was seen: a histogram without its empty slots.
using Slots = std::vector<std::pair<std::uint64_t, std::uint64_t>>;
Slots slots_of(const Histogram& histogram);
Slots merged(const std::vector<Slots>& blocks);
/// The smallest value that a share `q` of all do not exceed. Zero when there is none.
std::uint64_t quantile_of(const Slots& slots, double q);

struct Interval {
  double value = 0;
  double low = 0;
  double high = 0;
};

/// Of the pairs that were chosen; one may be chosen several times.
using Statistic = std::function<double(const std::vector<std::size_t>& chosen)>;

inline constexpr unsigned kResamples = 1000;

/// `statistic` of all pairs, with the interval in which it lies in 95 % of draws of whole pairs,
/// with replacement: what belongs to a pair met the same moods of the machine. The same for the
/// same input. `pairs` above 0.
Interval bootstrap(std::size_t pairs, const Statistic& statistic);

/// Quantile `q` of all of `ours` over that of all of `theirs`. Pairs: of one length, in the order
/// in which they were measured, at least one.
Interval ratio_of_quantiles(const std::vector<Slots>& ours, const std::vector<Slots>& theirs,
                            double q);

/// An amount and of how many, as operations and seconds, or processor time and operations.
struct Share {
  double amount = 0;
  double number = 0;
};
/// The sum of the amounts over the sum of the numbers. At least one.
Interval share_of(const std::vector<Share>& shares);
/// The ratio of two of these. Pairs.
Interval ratio_of_shares(const std::vector<Share>& ours, const std::vector<Share>& theirs);

}  // namespace leasehold::bench
