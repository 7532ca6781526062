#include <leasehold/server/admin/metrics.h>
#include <leasehold/server/commands/report.h>

#include <algorithm>
#include <charconv>
#include <numeric>
#include <system_error>

namespace leasehold::server {
namespace {

using enum MetricType;

constexpr MetricSpec kBuildInfo{"leasehold_build_info", gauge,
                                "1, with the version of the program."};
constexpr MetricSpec kAnswers{"leasehold_groups_answer", gauge,
                              "Whether the threads of the groups answered this request; if not, "
                              "what they would have said is missing."};
constexpr MetricSpec kDraining{"leasehold_draining", gauge, "Whether this node is about to end."};
constexpr MetricSpec kCpu{"process_cpu_seconds_total", counter,
                          "Time of processors that this process has used."};
constexpr MetricSpec kResident{"process_resident_memory_bytes", gauge, "Memory in use."};
constexpr MetricSpec kVirtual{"process_virtual_memory_bytes", gauge, "Memory that is mapped."};
constexpr MetricSpec kThreads{"process_threads", gauge, "Threads of this process."};
constexpr MetricSpec kFiles{"process_open_fds", gauge, "Open descriptors."};
constexpr MetricSpec kFilesMax{"process_max_fds", gauge, "Limit of open descriptors."};
constexpr MetricSpec kStart{"process_start_time_seconds", gauge,
                            "When this process started, in seconds since 1970."};
constexpr MetricSpec kDiskFree{"leasehold_disk_free_bytes", gauge,
                               "Space left on the disk of --data-dir."};
constexpr MetricSpec kAdminRequests{"leasehold_admin_requests_total", counter,
                                    "Requests at this port that were answered."};
constexpr MetricSpec kAdminRefused{"leasehold_admin_refused_total", counter,
                                   "Requests and connections at this port that were refused or "
                                   "ended, by the reason."};
constexpr MetricSpec kDiskSize{"leasehold_disk_size_bytes", gauge, "Size of that disk."};

}  // namespace

std::vector<std::size_t> shown_groups(std::string_view asked, std::size_t groups) {
  std::vector<std::size_t> shown;
  if (asked == "all" || (asked.empty() && groups <= kGroupsShownMax)) {
    shown.resize(groups);
    std::iota(shown.begin(), shown.end(), std::size_t{0});
    return shown;
  }
  while (!asked.empty()) {
    const std::string_view word = asked.substr(0, asked.find(','));
    asked.remove_prefix(std::min(asked.size(), word.size() + 1));
    std::size_t number = 0;
    const auto read = std::from_chars(word.data(), word.data() + word.size(), number);
    const bool whole = read.ec == std::errc() && read.ptr == word.data() + word.size();
    if (!whole || number < 1 || number > groups) continue;
    // A group twice would be a sample twice, which no monitor takes.
    if (std::find(shown.begin(), shown.end(), number - 1) == shown.end()) {
      shown.push_back(number - 1);
    }
  }
  return shown;
}

void process_metrics(const MetricsSource& source, MetricsText& page) {
  const ProcessFigures& process = source.process;
  page.family(kBuildInfo).add(std::uint64_t{1}, {{"version", kVersion}});
  page.one(kAnswers, std::uint64_t{source.look.answered});
  page.one(kDraining, std::uint64_t{source.state.draining.load(std::memory_order_relaxed)});
  page.one(kCpu, process.cpu_seconds);
  page.one(kResident, process.resident_bytes);
  page.one(kVirtual, process.virtual_bytes);
  page.one(kThreads, process.threads);
  page.one(kFiles, process.open_files);
  page.one(kFilesMax, process.open_files_max);
  page.one(kStart, process.start_seconds);
  page.one(kDiskFree, process.disk_free_bytes);
  page.one(kDiskSize, process.disk_bytes);
  page.one(kAdminRequests, source.admin.requests);
  page.family(kAdminRefused)
      .add(source.admin.crowded, {{"reason", "crowded"}})
      .add(source.admin.slow, {{"reason", "slow"}})
      .add(source.admin.large, {{"reason", "large"}})
      .add(source.admin.unproven, {{"reason", "unproven"}})
      .add(source.admin.foreign, {{"reason", "foreign"}});
}

std::string metrics_page(const MetricsSource& source) {
  MetricsText page;
  process_metrics(source, page);
  group_metrics(source, page);
  replication_metrics(source, page);
  event_metrics(source, page);
  client_metrics(source, page);
  return page.take();
}

}  // namespace leasehold::server
