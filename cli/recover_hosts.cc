#include <leasehold/cli/backup_file.h>
#include <leasehold/cli/recover_hosts.h>
#include <leasehold/cli/recovered_state.h>
#include <leasehold/cli/recovery_text.h>
#include <leasehold/node/node_recovery.h>
#include <leasehold/node/node_retired.h>
#include <leasehold/storage/private_folder.h>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <filesystem>
#include <iostream>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace leasehold::cli {
namespace {

namespace fs = std::filesystem;

/// Apart from what the caller sets: that of the store.
bool as_planned(const node::HostSurvivor& here, const node::HostSurvivor& then) {
  const auto same = [](const node::GroupSurvivor& a, const node::GroupSurvivor& b) {
    return a.group == b.group && a.survivor.id == b.survivor.id &&
           a.survivor.base == b.survivor.base && a.survivor.last == b.survivor.last;
  };
  return here.groups.size() == then.groups.size() &&
         std::equal(here.groups.begin(), here.groups.end(), then.groups.begin(), same);
}

/// The node of the plan whose directory it is; it is as it was when the plan was made.
Result<std::size_t> find_host(const std::vector<node::HostSurvivor>& hosts,
                              const node::HostSurvivor& here, const std::string& dir) {
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    const node::HostSurvivor& one = hosts[i];
    if (one.cluster_id != here.cluster_id || one.id != here.id || one.uuid != here.uuid) continue;
    if (as_planned(here, one)) return i;
    return changed_since_the_plan(dir);
  }
  return not_in_the_plan(dir, here.id, here.cluster_id);
}

std::vector<const node::GroupRecovery*> groups_from(const node::HostRecoveryPlan& plan,
                                                    std::size_t host) {
  std::vector<const node::GroupRecovery*> out;
  for (const node::GroupRecovery& one : plan.groups) {
    if (one.goes_on() && one.source() == host) out.push_back(&one);
  }
  return out;
}

std::string file_of(const std::string& folder, const node::GroupRecovery& group) {
  return fmt::format("{}/{}", folder, group.group.value());
}

/// Whether the file is what an earlier call has made. Errors: in_use (it is something else).
Result<bool> is_written(const std::string& path, const RecoveredSource& source) {
  std::error_code error;
  if (!fs::exists(fs::symlink_status(path, error))) return false;
  const auto backup = verified_backup(path);
  if (backup && backup.value().manifest.recovered_end &&
      backup.value().manifest.generation == source.number &&
      backup.value().manifest.cluster == source.name) {
    return true;
  }
  return Error{ErrorCode::in_use,
               path + " exists, and is not of this recovery: nothing is overwritten"};
}

Result<void> check_folder(const std::string& to, std::size_t files) {
  if (files > 0 && to.empty()) {
    return Error{ErrorCode::invalid_argument,
                 fmt::format("{} groups go on from this node: name the folder for their files by "
                             "--to",
                             files)};
  }
  if (files == 0 && !to.empty()) {
    return Error{ErrorCode::invalid_argument, "no group goes on from this node: leave out --to"};
  }
  std::error_code error;
  if (!to.empty() && fs::exists(to, error) && !fs::is_directory(to, error)) {
    return Error{ErrorCode::in_use, to + " is a file: name a folder"};
  }
  return {};
}

/// As much of the report as RETIRED holds.
std::string shortened(std::string report) {
  constexpr const char* kRest = "\n...: the plan has the rest\n";
  constexpr std::size_t kRoom = 64;
  if (report.size() <= node::kRetiredReportBytesMax) return report;
  report.resize(node::kRetiredReportBytesMax - kRoom);
  return report + kRest;
}

Result<void> write_groups(node::StoppedHost& host, const HostApplication& wanted,
                          const node::HostRecoveryPlan& plan,
                          const std::vector<const node::GroupRecovery*>& groups) {
  if (auto made = storage::make_private_folder(wanted.to); !made) return made.error();
  for (const node::GroupRecovery* const group : groups) {
    const std::string path = file_of(wanted.to, *group);
    const RecoveredSource source = source_of(wanted.dir, host.survivor(), *group, plan.number);
    const auto there = is_written(path, source);
    if (!there) return there.error();
    if (there.value()) {
      if (auto removed = remove_working_folder(path); !removed) return removed;
      std::cout << fmt::format("{} is there already\n", path);
      continue;
    }
    const auto written = write_recovered_state(host.log(group->group), source, path);
    if (!written) return written.error();
    std::cout << fmt::format("wrote {}: {}\n", path, written.value()) << std::flush;
  }
  std::cout << fmt::format(
      "\nBring the files of all survivors together in one folder, one for each group, 1 to {}.\n"
      "Make the nodes of the recovered cluster from it, each with a new directory, then start them:"
      "\n  leasehold restore --from FOLDER --groups {} --id N --data-dir NEW --peers 1=host:port,"
      "...\n"
      "  leasehold serve --groups {} --id N --data-dir NEW --peers 1=host:port,...\n",
      plan.groups.size(), plan.groups.size(), plan.groups.size());
  return {};
}

}  // namespace

Result<node::HostRecoveryPlan> plan_of_hosts(const HostReports& reports) {
  if (reports.all == 0) {
    return Error{ErrorCode::invalid_argument,
                 "these nodes have many groups: give --groups with the number that they were "
                 "started with, so that a group that none of them has is seen to be lost"};
  }
  return node::plan_host_recovery(reports.hosts, scope_of(reports));
}

Result<void> apply_to_host(const HostApplication& wanted, const HostReports& reports) {
  const auto plan = plan_of_hosts(reports);
  if (!plan) return plan.error();
  const auto host = node::StoppedHost::open(wanted.dir);
  if (!host) return host.error();
  const auto here = find_host(reports.hosts, host.value()->survivor(), wanted.dir);
  if (!here) return here.error();
  const auto groups = groups_from(plan.value(), here.value());
  if (auto fits = check_folder(wanted.to, groups.size()); !fits) return fits;
  const std::uint64_t number = plan.value().number;
  if (auto may = wanted.may_retire(number); !may) return may;
  const std::string report = host_loss_text(reports.hosts, plan.value());
  std::cout << report;
  const std::uint64_t cluster = host.value()->survivor().cluster_id;
  if (auto sure = wanted.confirm(cluster); !sure) return sure;
  std::cout << fmt::format("\nwaiting {:.1f} s: a lost leader may still rely on a promise\n",
                           std::chrono::duration<double>(plan.value().wait).count())
            << std::flush;
  std::this_thread::sleep_for(plan.value().wait);
  if (auto done = node::retire(wanted.dir, {cluster, number, shortened(report)}); !done) {
    return done;
  }
  std::cout << fmt::format("{} is retired: no node starts on it, and {}/RETIRED has this report\n",
                           wanted.dir, wanted.dir);
  if (groups.empty()) return {};
  return write_groups(*host.value(), wanted, plan.value(), groups);
}

}  // namespace leasehold::cli
