// The comparison as one page of HTML: no script, no file and no address that it would have to load.
#pragma once

#include <leasehold/bench/compare/findings.h>
#include <leasehold/bench/compare/plan.h>

#include <string>

namespace leasehold::bench {

/// Well-formed as XML too.
std::string page_of_comparison(const CompareOptions& options, const Circumstances& circumstances,
                               const Plan& plan, const Findings& findings);

}  // namespace leasehold::bench
