// What /status.json says: docs/metrics.md has each name.
#pragma once

#include <leasehold/server/admin/event_counts.h>
#include <leasehold/server/admin/looks.h>
#include <leasehold/server/front/served_groups.h>
#include <leasehold/server/front/server_state.h>
#include <leasehold/storage/sync_times.h>

#include <cstddef>
#include <map>
#include <string>

namespace leasehold::server {

/// What a report is made of. All outlive it.
struct ReportSource {
  const Look& look;
  const ServedGroups& groups;
  const ServerState& state;
  const EventCounts& events;
  const storage::SyncTimes& syncs;
  /// Of the nodes whose admin ports are known: host:port.
  const std::map<raft::NodeId, std::string>& addresses;
};

/// One JSON object, about group `selected` in ServedGroups::all(), and sums of all. If the look was
/// not answered, what the groups would have said is missing.
std::string status_report(const ReportSource& source, std::size_t selected);

}  // namespace leasehold::server
