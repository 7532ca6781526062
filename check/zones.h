// The fast check of one key whose written values are unique (Gibbons and Korach, "Testing shared
// memories", 1997): each value lives in one zone of time, and zones must not collide.
#pragma once

#include <leasehold/check/history.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace leasehold::check {

/// The operations of one key. They belong to the caller's history.
using KeyOperations = std::vector<const Operation*>;

/// Whether zones decide about `operations`: reads and writes, no value written twice and none of
/// them Operation::kNothing.
bool values_unique(const KeyOperations& operations);

/// Why zones collide.
struct ZoneFault {
  std::string text;
  /// Only operations on these values are at fault.
  std::vector<std::uint64_t> values;
};

/// What is wrong with `operations`, for which values_unique() holds; none if nothing is. `history`
/// names values; may be null.
std::optional<ZoneFault> find_zone_fault(const KeyOperations& operations, const History* history);

}  // namespace leasehold::check
