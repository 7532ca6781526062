// What leasehold recover hands from one machine to another: reports of directories, and plans.
#pragma once

#include <leasehold/base/result.h>
#include <leasehold/node/host_recovery.h>
#include <leasehold/node/recovery_plan.h>

#include <cstddef>
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

/// Reports of nodes with many groups, and what was asked of a plan. A report names no groups beyond
/// those of its node: `all` is 0 then.
struct HostReports {
  std::vector<node::HostSurvivor> hosts;
  std::size_t all = 0;              ///< how many groups there were: 1, 2, and so on
  std::vector<raft::GroupId> only;  ///< as RecoveryScope
  friend bool operator==(const HostReports&, const HostReports&) = default;
};
node::RecoveryScope scope_of(const HostReports& reports);

/// Whether a text of encode_report() or encode_plan() is of nodes with many groups.
bool is_of_hosts(std::string_view text);
std::string encode_report(const node::HostSurvivor& host);
std::string encode_plan(const HostReports& reports);
/// As decode_reports(), of the other kind.
Result<HostReports> decode_host_reports(std::string_view text);

/// 16 hex digits, as clusters and plans are shown.
std::string hex_text(std::uint64_t number);

}  // namespace leasehold::cli
