// What leasehold recover hands from one machine to another: reports of directories, and plans.
#pragma once

#include <leasehold/base/result.h>
#include <leasehold/node/recovery_plan.h>

#include <string>
#include <string_view>
#include <vector>

namespace leasehold::cli {

/// One JSON object, with a line feed behind it.
std::string encode_report(const node::Survivor& survivor);
std::string encode_plan(const std::vector<node::Survivor>& survivors);

/// The reports in a text: of a report one, of a plan all. A plan holds nothing else, since all of
/// it follows from them. Errors: invalid_argument.
Result<std::vector<node::Survivor>> decode_reports(std::string_view text);

/// What is kept and what may be lost, for people: many lines.
std::string loss_text(const std::vector<node::Survivor>& survivors, const node::RecoveryPlan& plan);

/// 16 hex digits, as clusters and plans are shown.
std::string hex_text(std::uint64_t number);

}  // namespace leasehold::cli
