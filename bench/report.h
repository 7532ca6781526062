// How the small programs print what they measured.
#pragma once

#include <leasehold/bench/histogram.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace leasehold::bench {

/// Named histograms, in the order of the table.
using NamedHistograms = std::vector<std::pair<std::string, Histogram>>;

/// A table with one row a histogram; `per_unit` of the recorded values make one of `unit` ("us").
std::string table_of(const NamedHistograms& rows, double per_unit, std::string_view unit);

/// One JSON object {name: histogram}; `unit` is that of the recorded values.
std::string json_of(const NamedHistograms& rows, std::string_view unit);

/// A B B A: which of two things the `turn`-th block measures, so that a drift of the machine hits
/// both alike. Four turns are two pairs.
inline bool second_of_two(unsigned turn) {
  return turn % 4 == 1 || turn % 4 == 2;
}

}  // namespace leasehold::bench
