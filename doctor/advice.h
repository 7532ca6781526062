// The numbers of a lease for what was measured.
#pragma once

#include <leasehold/base/result.h>
#include <leasehold/doctor/facts.h>
#include <leasehold/lease/timing.h>

#include <string>
#include <vector>

namespace leasehold::doctor {

/// One number with its reason.
struct AdvisedNumber {
  std::string name;   ///< as of the flag: "election-timeout"
  std::string value;  ///< as the flag takes it
  std::string why;
};

struct Advice {
  lease::Timing timing;
  std::vector<AdvisedNumber> numbers;
};

/// Numbers that satisfy both inequalities with twice the measured round trips and pauses. Pure.
/// Errors: invalid_argument: what was measured allows none.
Result<Advice> advise(const Facts& facts);

}  // namespace leasehold::doctor
