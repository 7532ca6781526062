// `leasehold bench compare`: starts the systems, measures them in turn, and prints what it found.
#pragma once

#include <leasehold/base/result.h>
#include <leasehold/bench/compare/findings.h>
#include <leasehold/bench/compare/plan.h>

#include <functional>
#include <iosfwd>
#include <string>
#include <vector>

namespace leasehold::bench {

/// The table goes to `out`, progress to `news`. `ended`: whether the user wants an end; then the
/// result is of the sweeps that are complete. Removes all that it made but the files that were
/// asked for. Returns false if a comparison is to be thrown away, which the table says. Errors:
/// stopped (ended before two sweeps), unavailable (a system does not serve), io. To be called by
/// the first thread. `options` is settled.
Result<bool> run_comparison(const CompareOptions& options, const std::function<bool()>& ended,
                            std::ostream& out, std::ostream& news);

/// For people: one row for each ratio, then what was thrown away and why, then the circumstances.
std::string table_of_comparison(const CompareOptions& options, const Circumstances& circumstances,
                                const Plan& plan, const Findings& findings);

/// "85.2 us", "45,200/s", "3.1 us": a figure of a ratio.
std::string amount_text(const Ratio& ratio, double amount);
/// "0.21 (0.19 to 0.24)".
std::string interval_text(const Interval& interval);
/// Whether the whole interval is on one side: "Leasehold better", "Leasehold worse", "no sure
/// difference", "thrown away".
std::string verdict_of(const Ratio& ratio);
/// How it was measured, a sentence each: the terminal and the page say the same.
std::vector<std::string> method_of(const CompareOptions& options,
                                   const Circumstances& circumstances, const Plan& plan);
/// What was thrown away and why, a sentence each. None: nothing was.
std::vector<std::string> thrown_away_of(const Plan& plan, const Findings& findings);

}  // namespace leasehold::bench
