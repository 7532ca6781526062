// The page of metrics of a node: docs/metrics.md has each name.
#pragma once

#include <leasehold/server/admin/admin_counts.h>
#include <leasehold/server/admin/event_counts.h>
#include <leasehold/server/admin/looks.h>
#include <leasehold/server/admin/metrics_text.h>
#include <leasehold/server/admin/process_figures.h>
#include <leasehold/server/front/served_groups.h>
#include <leasehold/server/front/server_state.h>
#include <leasehold/storage/sync_times.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace leasehold::server {

/// Of more groups than this, a page shows sums and the worst, and only those groups that it was
/// asked for: 1,000 groups would be 20,000 lines of each node, every few seconds.
inline constexpr std::size_t kGroupsShownMax = 16;

/// What a page is made of. All outlive it.
struct MetricsSource {
  const Look& look;
  const ServedGroups& groups;
  const ServerState& state;
  const ProcessFigures& process;
  const AdminCounts& admin;
  const EventCounts& events;
  const storage::SyncTimes& syncs;
  /// Groups with lines of their own, in ServedGroups::all(); none if the look was not answered.
  std::vector<std::size_t> shown;
};

/// The groups that `?group=` asks for: numbers from 1 on with commas, "all", or empty: all, if they
/// are few. Numbers that are no groups are left out.
std::vector<std::size_t> shown_groups(std::string_view asked, std::size_t groups);

std::string metrics_page(const MetricsSource& source);

// Its parts.
void group_metrics(const MetricsSource& source, MetricsText& page);
void replication_metrics(const MetricsSource& source, MetricsText& page);
void event_metrics(const MetricsSource& source, MetricsText& page);
void client_metrics(const MetricsSource& source, MetricsText& page);
void process_metrics(const MetricsSource& source, MetricsText& page);

}  // namespace leasehold::server
