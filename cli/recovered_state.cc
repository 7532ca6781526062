#include <leasehold/cli/backup_file.h>
#include <leasehold/cli/progress.h>
#include <leasehold/cli/recovered_state.h>
#include <leasehold/cli/recovery_file.h>
#include <leasehold/kv/rocksdb/rocksdb_store.h>
#include <leasehold/kv/slots.h>
#include <leasehold/server/backup_writer.h>
#include <leasehold/server/front/people_time.h>
#include <leasehold/server/host_cluster.h>

#include <fmt/format.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>

namespace leasehold::cli {
namespace {

namespace fs = std::filesystem;

/// Of leases and sessions: one is taken by each that is opened, and few are.
constexpr std::uint64_t kIdGap = std::uint64_t{1} << 32U;

kv::RocksdbStore::Options state_options(const std::string& dir, std::uint64_t cluster_id,
                                        const RecoveredSource& source) {
  kv::RocksdbStore::Options options;
  options.dir = dir;
  options.cluster_id = cluster_id;
  options.id = source.node;
  options.ids_above = source.ids_above;
  return options;
}

std::string working_folder(const std::string& to) {
  return to + ".work";
}

/// Of a group of a node with many, as the server numbers them.
std::string state_of_group(const std::string& dir, raft::GroupId group) {
  return fmt::format("{}/groups/{}/state", dir, group.value());
}
std::uint64_t ids_above_of(raft::GroupId group) {
  return (group.value() - 1) * kv::kIdsOfGroup;
}

/// `survivor` is of the node `source.node`, whose store is `source.state`.
void look_at_state(const RecoveredSource& source, node::Survivor& survivor) {
  const std::string& dir = source.state;
  std::error_code ignored;
  if (!fs::exists(dir + "/LIVE", ignored)) {
    survivor.no_state = "there is no store in " + dir;
    return;
  }
  const auto store = kv::RocksdbStore::open(state_options(dir, survivor.cluster_id, source));
  if (!store) {
    survivor.no_state = store.error().message;
  } else if (const std::string why = store.value()->distrusted(); !why.empty()) {
    survivor.no_state = "its state is not served: " + why;
  } else if (store.value()->rebuilding()) {
    survivor.no_state = "its state waits for that of another member";
  } else {
    survivor.applied = store.value()->applied_index();
  }
}

/// A copy of the member's state, in the folder `work`.
Result<raft::Index> copy_state(const RecoveredSource& source, std::uint64_t cluster_id,
                               const std::string& work) {
  const auto store = kv::RocksdbStore::open(state_options(source.state, cluster_id, source));
  if (!store) return store.error();
  const auto snapshot = store.value()->take_snapshot();
  if (!snapshot) return snapshot.error();
  const ShownArchive shown(*snapshot.value(), "copying the state");
  return kv::RocksdbStore::restore(state_options(work, cluster_id, source), shown);
}

/// The copy goes on to the end of the log, and over the gap.
Result<void> complete_state(kv::RocksdbStore& store, node::StoppedLog& log, raft::Index base) {
  const raft::Index last = log.survivor().last.index;
  Progress progress("applying the log");
  const auto step = [&](raft::Index at) { progress.at(at.value(), last.value()); };
  if (auto applied = log.apply_rest(store, store.applied_index(), step); !applied) return applied;
  if (store.applied_index() != last || !store.distrusted().empty()) {
    return Error{ErrorCode::corrupted,
                 fmt::format("the log was applied up to entry {} of {}: {}",
                             store.applied_index().value(), last.value(), store.distrusted())};
  }
  return store.leave_gap({base, node::kRecoveryGap, kIdGap});
}

server::BackupManifest manifest_of(const node::Survivor& survivor, const RecoveredSource& source,
                                   const kv::ArchiveInfo& info, std::uint64_t bytes) {
  server::BackupManifest manifest;
  manifest.cluster = source.name;
  manifest.cluster_id = survivor.cluster_id;
  manifest.generation = source.number;
  manifest.node = source.node;
  manifest.term = survivor.last.term;
  manifest.index = info.last;
  manifest.revision = info.revision;
  manifest.keys = info.keys;
  manifest.taken_s = static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::seconds>(server::wall_now()).count());
  manifest.archive_bytes = bytes;
  manifest.recovered_end = survivor.last;
  return manifest;
}

}  // namespace

Result<node::Survivor> look_at_survivor(const std::string& dir) {
  const auto log = node::StoppedLog::open(dir);
  if (!log) return log.error();
  node::Survivor survivor = log.value()->survivor();
  look_at_state(source_of(dir, survivor, {}), survivor);
  return survivor;
}

Result<node::HostSurvivor> look_at_host(const std::string& dir) {
  const auto host = node::StoppedHost::open(dir);
  if (!host) return host.error();
  node::HostSurvivor survivor = host.value()->survivor();
  for (node::GroupSurvivor& one : survivor.groups) {
    node::GroupRecovery group;
    group.group = one.group;
    look_at_state(source_of(dir, survivor, group, 0), one.survivor);
  }
  return survivor;
}

// The name that the cluster was started with is not known here.
RecoveredSource source_of(const std::string& dir, const node::Survivor& survivor,
                          const node::RecoveryPlan& plan) {
  return {dir + "/state", survivor.id, 0, hex_text(survivor.cluster_id), plan.number, plan.base};
}

RecoveredSource source_of(const std::string& dir, const node::HostSurvivor& host,
                          const node::GroupRecovery& group, std::uint64_t number) {
  return {state_of_group(dir, group.group),
          host.id,
          ids_above_of(group.group),
          server::name_of_group(hex_text(host.cluster_id), group.group.value()),
          number,
          group.plan.base};
}

Result<void> remove_working_folder(const std::string& to) {
  const std::string work = working_folder(to);
  std::error_code error;
  fs::remove_all(work, error);
  if (!error) return {};
  return Error{ErrorCode::io, fmt::format("cannot remove {}: {}", work, error.message())};
}

Result<std::string> write_recovered_state(node::StoppedLog& log, const RecoveredSource& source,
                                          const std::string& to) {
  const node::Survivor& survivor = log.survivor();
  if (auto removed = remove_working_folder(to); !removed) return removed.error();
  const std::string work = working_folder(to);
  if (auto copied = copy_state(source, survivor.cluster_id, work); !copied) return copied.error();
  std::string contents;
  {
    const auto store = kv::RocksdbStore::open(state_options(work, survivor.cluster_id, source));
    if (!store) return store.error();
    if (auto done = complete_state(*store.value(), log, source.base); !done) return done.error();
    const auto snapshot = store.value()->take_snapshot();
    if (!snapshot) return snapshot.error();
    const auto info = kv::RocksdbStore::describe(*snapshot.value());
    if (!info) return info.error();
    const std::uint64_t bytes = snapshot.value()->size();
    const server::BackupManifest manifest = manifest_of(survivor, source, info.value(), bytes);
    Progress progress("writing " + to);
    const auto step = [&](std::uint64_t at) {
      progress.at(at, bytes);
      return true;
    };
    const auto written = server::write_backup_file(server::encode_manifest(manifest),
                                                   *snapshot.value(), to + ".part", to, step);
    if (!written) return written.error();
    contents = summary(manifest);
  }
  static_cast<void>(remove_working_folder(to));  // otherwise it only takes space
  return contents;
}

}  // namespace leasehold::cli
