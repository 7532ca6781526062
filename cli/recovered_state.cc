#include <leasehold/cli/backup_file.h>
#include <leasehold/cli/progress.h>
#include <leasehold/cli/recovered_state.h>
#include <leasehold/cli/recovery_file.h>
#include <leasehold/kv/rocksdb/rocksdb_store.h>
#include <leasehold/server/backup_writer.h>
#include <leasehold/server/front/people_time.h>

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

Result<std::unique_ptr<kv::RocksdbStore>> open_state(const std::string& dir,
                                                     const node::Survivor& survivor) {
  kv::RocksdbStore::Options options;
  options.dir = dir;
  options.cluster_id = survivor.cluster_id;
  options.id = survivor.id;
  return kv::RocksdbStore::open(std::move(options));
}

void look_at_state(const std::string& dir, node::Survivor& survivor) {
  std::error_code ignored;
  if (!fs::exists(dir + "/LIVE", ignored)) {
    survivor.no_state = "there is no store in " + dir;
    return;
  }
  const auto store = open_state(dir, survivor);
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
Result<raft::Index> copy_state(const std::string& from, const node::Survivor& survivor,
                               const std::string& work) {
  const auto store = open_state(from, survivor);
  if (!store) return store.error();
  const auto snapshot = store.value()->take_snapshot();
  if (!snapshot) return snapshot.error();
  kv::RocksdbStore::Options options;
  options.dir = work;
  options.cluster_id = survivor.cluster_id;
  options.id = survivor.id;
  const ShownArchive shown(*snapshot.value(), "copying the state");
  return kv::RocksdbStore::restore(std::move(options), shown);
}

/// The copy goes on to the end of the log, and over the gap.
Result<void> complete_state(kv::RocksdbStore& store, node::StoppedLog& log,
                            const node::RecoveryPlan& plan) {
  const raft::Index last = log.survivor().last.index;
  Progress progress("applying the log");
  const auto step = [&](raft::Index at) { progress.at(at.value(), last.value()); };
  if (auto applied = log.apply_rest(store, store.applied_index(), step); !applied) return applied;
  if (store.applied_index() != last || !store.distrusted().empty()) {
    return Error{ErrorCode::corrupted,
                 fmt::format("the log was applied up to entry {} of {}: {}",
                             store.applied_index().value(), last.value(), store.distrusted())};
  }
  return store.leave_gap({plan.base, node::kRecoveryGap, kIdGap});
}

server::BackupManifest manifest_of(const node::Survivor& survivor, const node::RecoveryPlan& plan,
                                   const kv::ArchiveInfo& info, std::uint64_t bytes) {
  server::BackupManifest manifest;
  // Its name is not known here.
  manifest.cluster = hex_text(survivor.cluster_id);
  manifest.cluster_id = survivor.cluster_id;
  manifest.generation = plan.number;
  manifest.node = survivor.id;
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
  look_at_state(dir + "/state", survivor);
  return survivor;
}

Result<std::string> write_recovered_state(node::StoppedLog& log, const std::string& dir,
                                          const node::RecoveryPlan& plan, const std::string& to) {
  const node::Survivor& survivor = log.survivor();
  const std::string work = to + ".work";
  std::error_code error;
  fs::remove_all(work, error);
  if (error)
    return Error{ErrorCode::io, fmt::format("cannot remove {}: {}", work, error.message())};
  if (auto copied = copy_state(dir + "/state", survivor, work); !copied) return copied.error();
  std::string contents;
  {
    const auto store = open_state(work, survivor);
    if (!store) return store.error();
    if (auto done = complete_state(*store.value(), log, plan); !done) return done.error();
    const auto snapshot = store.value()->take_snapshot();
    if (!snapshot) return snapshot.error();
    const auto info = kv::RocksdbStore::describe(*snapshot.value());
    if (!info) return info.error();
    const std::uint64_t bytes = snapshot.value()->size();
    const server::BackupManifest manifest = manifest_of(survivor, plan, info.value(), bytes);
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
  fs::remove_all(work, error);  // otherwise it only takes space
  return contents;
}

}  // namespace leasehold::cli
