// A data directory that no node may start on any more: the file RETIRED.
#pragma once

#include <leasehold/base/result.h>

#include <cstdint>
#include <optional>
#include <string>

namespace leasehold::node {

/// The group of this directory was given up: another one is made of what a survivor had
/// (docs/decisions/0035-a-recovered-group-is-a-new-group.md).
struct Retired {
  std::uint64_t cluster_id = 0;  ///< of the group that was given up
  std::uint64_t plan = 0;        ///< names the recovery: RecoveryPlan::number
  /// For people: what was kept and what may be lost. At most kRetiredReportBytesMax.
  std::string report;
  friend bool operator==(const Retired&, const Retired&) = default;
};

inline constexpr std::size_t kRetiredReportBytesMax = 32 << 10U;

/// None: it is not, or there is no such directory. Errors: corrupted, unsupported_format, io.
Result<std::optional<Retired>> load_retired(const std::string& data_dir);
/// Durable on return; in the place of an earlier one. Errors: io.
Result<void> retire(const std::string& data_dir, const Retired& retired);
/// Whether a node may start here. Errors: wrong_cluster (it says what to do), and those of
/// load_retired().
Result<void> check_not_retired(const std::string& data_dir);

/// The text of RETIRED, and back. Errors: corrupted, unsupported_format (with both numbers).
std::string encode_retired(const Retired& retired);
Result<Retired> decode_retired(const std::string& text);

}  // namespace leasehold::node
