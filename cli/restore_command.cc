#include <leasehold/cli/backup_file.h>
#include <leasehold/cli/commands.h>
#include <leasehold/cli/setting_flags.h>
#include <leasehold/kv/rocksdb/rocksdb_store.h>
#include <leasehold/net/handshake.h>
#include <leasehold/node/node_restored.h>
#include <leasehold/server/host_cluster.h>
#include <leasehold/storage/private_folder.h>

#include <fmt/format.h>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace leasehold::cli {
namespace {

constexpr const char* kExamples = R"(Examples:
  leasehold restore --from monday --check
  leasehold restore --from monday --id 1 --data-dir /var/lib/leasehold \
      --peers 1=10.0.0.1:7101,2=10.0.0.2:7101,3=10.0.0.3:7101

Do this for every member, with the same file and the same --peers and --cluster, then start them.
They form a new group: its nodes and those of the group that was backed up refuse each other, even
with the same names and addresses. The whole backup is checked before anything is written; after an
interruption give the same command again.)";

namespace fs = std::filesystem;

/// What an interrupted restoration may have left in the directory, in addition to RESTORING.
constexpr std::string_view kState = "state";
constexpr std::string_view kGroups = "groups";
constexpr std::string_view kMarks[] = {"RESTORED", "RESTORED.new"};
constexpr std::string_view kBegun = "RESTORING";

/// Holds the lock of a restoration while it lives: two at once would remove each other's files.
class Lock {
 public:
  explicit Lock(const std::string& data_dir)
      : file_(::open(fmt::format("{}/{}", data_dir, kBegun).c_str(), O_RDWR | O_CLOEXEC)) {}
  ~Lock() {
    if (file_ >= 0) ::close(file_);
  }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

  /// False: another process has it, or has just finished.
  bool held() const {
    struct stat status {};
    return file_ >= 0 && ::flock(file_, LOCK_EX | LOCK_NB) == 0 && ::fstat(file_, &status) == 0 &&
           status.st_nlink > 0;
  }

 private:
  int file_;
};

/// True: the directory is what an interrupted restoration has left; false: it is empty, or is not
/// there. Errors: invalid_argument (it holds something else), io.
Result<bool> check_usable(const std::string& dir) {
  const auto begun = node::restoration_begun(dir);
  if (!begun) return begun.error();
  std::error_code error;
  if (!fs::exists(dir, error) && !error) return begun;
  for (auto at = fs::directory_iterator(dir, error); !error && at != fs::directory_iterator();
       at.increment(error)) {
    const std::string name = at->path().filename().string();
    const bool ours = name == kBegun || name == kState || name == kGroups ||
                      std::find(std::begin(kMarks), std::end(kMarks), name) != std::end(kMarks);
    if (begun.value() && ours) continue;
    return Error{
        ErrorCode::invalid_argument,
        fmt::format("{} is not empty: it has {}. Nothing is ever overwritten: give --data-dir a "
                    "folder that does not exist yet",
                    dir, name)};
  }
  if (error)
    return Error{ErrorCode::io, fmt::format("cannot look into {}: {}", dir, error.message())};
  return begun;
}

Result<void> remove_leftovers(const std::string& dir) {
  std::error_code error;
  fs::remove_all(fmt::format("{}/{}", dir, kState), error);
  if (!error) fs::remove_all(fmt::format("{}/{}", dir, kGroups), error);
  for (const std::string_view name : kMarks) {
    if (!error) fs::remove(fmt::format("{}/{}", dir, name), error);
  }
  if (error) return Error{ErrorCode::io, fmt::format("cannot clear {}: {}", dir, error.message())};
  return {};
}

/// A backup of one group is a file, that of many a folder with the files 1, 2, ... of its groups.
Result<std::vector<std::string>> files_of(const std::string& from) {
  std::error_code error;
  if (!fs::is_directory(from, error)) return std::vector<std::string>{from};
  std::size_t found = 0;
  for (auto at = fs::directory_iterator(from, error); !error && at != fs::directory_iterator();
       at.increment(error)) {
    ++found;
  }
  if (error) {
    return Error{ErrorCode::io, fmt::format("cannot look into {}: {}", from, error.message())};
  }
  std::vector<std::string> files;
  for (std::size_t group = 1; group <= found; ++group) {
    files.push_back(fmt::format("{}/{}", from, group));
    if (fs::exists(files.back(), error)) continue;
    return Error{ErrorCode::invalid_argument,
                 fmt::format("{} has {} files, but not the file {}: a backup of many groups has a "
                             "file for each, 1, 2 and so on, and no other",
                             from, found, group)};
  }
  if (files.size() < 2) {
    return Error{ErrorCode::invalid_argument,
                 fmt::format("{} is a folder, and no backup of many groups is in it", from)};
  }
  return files;
}

Result<void> check_number(const std::string& from, std::size_t files, std::size_t groups) {
  if (files == groups) return {};
  return Error{ErrorCode::invalid_argument,
               files == 1 ? fmt::format("{} is the backup of one group: leave out --groups", from)
                          : fmt::format("{} is the backup of {} groups: give --groups {}", from,
                                        files, files)};
}

/// Of a backup of many groups: for equal files it is equal. Never 0.
std::uint64_t generation_of(const std::vector<server::BackupManifest>& all) {
  if (all.size() == 1) return all.front().generation;
  std::uint64_t generation = 0;
  for (const server::BackupManifest& one : all) {
    generation = net::cluster_id(server::generation_text(one.generation), {}, generation);
  }
  return generation;
}

/// The id of the cluster that the restored members form.
std::uint64_t cluster_of(const server::ServeSettings& settings, std::uint64_t generation) {
  if (settings.groups > 1) {
    return net::cluster_id(server::host_cluster(settings.node.cluster, settings.groups), {},
                           generation);
  }
  std::vector<net::PeerAddress> addresses;
  for (const node::Peer& peer : settings.node.peers) addresses.push_back({peer.id, peer.address});
  return net::cluster_id(settings.node.cluster, std::move(addresses), generation);
}

/// What the directory says of where it comes from: a backup, or what a lost majority had left.
node::Restored restored_from(const server::BackupManifest& manifest, raft::Index base) {
  node::Restored restored{manifest.generation, base};
  if (manifest.recovered_end) {
    restored.recovered =
        node::Recovered{manifest.cluster_id, *manifest.recovered_end, manifest.taken_s};
  }
  return restored;
}

/// The same of the directory of a node with many groups, whose logs begin where their states end.
/// Some may be of a backup, in the place of what a recovery could not save.
node::Restored restored_from(const std::vector<server::BackupManifest>& all,
                             std::uint64_t generation) {
  node::Restored restored{generation, raft::Index(0)};
  for (const server::BackupManifest& one : all) {
    if (one.recovered_end) restored.recovered = node::Recovered{one.cluster_id, {}, one.taken_s};
  }
  return restored;
}

/// Makes the state of one group in `dir`, where a restoration has begun, and ends that.
Result<void> restore_group(const std::string& from, const server::BackupManifest& expected,
                           const std::string& dir, std::uint64_t cluster_id, raft::NodeId id) {
  const auto backup = verified_backup(from);
  if (!backup) return backup.error();
  if (backup.value().manifest != expected) {
    return Error{ErrorCode::in_use, from + " has been replaced meanwhile: begin again"};
  }
  kv::RocksdbStore::Options options;
  options.dir = fmt::format("{}/{}", dir, kState);
  options.cluster_id = cluster_id;
  options.id = id;
  const ShownArchive shown(*backup.value().archive, "restoring to " + dir);
  const auto index = kv::RocksdbStore::restore(std::move(options), shown);
  if (!index) return index.error();
  return node::finish_restoration(dir, restored_from(expected, index.value()));
}

Result<std::vector<server::BackupManifest>> restore(const server::ServeSettings& settings,
                                                    const std::string& from) {
  const std::string& dir = settings.data_dir;
  const auto begun = check_usable(dir);
  if (!begun) return begun.error();
  const auto files = files_of(from);
  if (!files) return files.error();
  if (auto fits = check_number(from, files.value().size(), settings.groups); !fits) {
    return fits.error();
  }
  auto manifests = verified_backups(files.value());
  if (!manifests) return manifests.error();

  // It may have changed meanwhile.
  if (const auto still = check_usable(dir); !still) return still.error();
  if (!begun.value()) {
    if (auto done = node::begin_restoration(dir); !done) return done.error();
  }
  const Lock lock(dir);
  if (!lock.held()) {
    return Error{ErrorCode::in_use,
                 fmt::format("another leasehold restore works on {}, or did", dir)};
  }
  if (auto removed = remove_leftovers(dir); !removed) return removed.error();
  const std::uint64_t generation = generation_of(manifests.value());
  const std::uint64_t cluster_id = cluster_of(settings, generation);
  if (files.value().size() == 1) {
    auto done = restore_group(from, manifests.value().front(), dir, cluster_id, settings.node.id);
    if (!done) return done.error();
    return manifests;
  }
  for (std::size_t i = 0; i < files.value().size(); ++i) {
    const std::string group = fmt::format("{}/{}/{}", dir, kGroups, i + 1);
    if (auto done = node::begin_restoration(group); !done) return done.error();
    auto done =
        restore_group(files.value()[i], manifests.value()[i], group, cluster_id, settings.node.id);
    if (!done) return done.error();
  }
  const node::Restored restored = restored_from(manifests.value(), generation);
  if (auto done = node::finish_restoration(dir, restored); !done) return done.error();
  return manifests;
}

std::string summary_of(const std::vector<server::BackupManifest>& all) {
  if (all.size() == 1) return summary(all.front());
  std::uint64_t keys = 0;
  for (const server::BackupManifest& one : all) keys += one.keys;
  return fmt::format("{} groups with {} keys", all.size(), keys);
}

/// Makes settings.data_dir from the backup `from`, and prints what it did. The directory must not
/// exist, or be empty, or be the remains of an interrupted restoration. The whole backup is checked
/// before anything is changed.
int run_restore(const server::ServeSettings& settings, const std::string& from) {
  ::umask(storage::kPrivateUmask);
  const auto restored = restore(settings, from);
  if (!restored) {
    std::cerr << "leasehold restore: " << restored.error().message << "\n";
    return 1;
  }
  const bool many = restored.value().size() > 1;
  std::cout << "restored " << summary_of(restored.value()) << " to " << settings.data_dir
            << "\nThis is a new group, generation "
            << server::generation_text(generation_of(restored.value()))
            << ". Restore every member of --peers from the same " << (many ? "files" : "file")
            << ", each on its machine,\n"
            << "then start them with leasehold serve and the same --id, --peers"
            << (many ? ", --groups" : "") << " and --cluster.\n";
  return 0;
}

/// Checks a backup to its last byte and prints its contents in short.
int run_verify(const std::string& from) {
  const auto files = files_of(from);
  const auto checked = files ? verified_backups(files.value())
                             : Result<std::vector<server::BackupManifest>>(files.error());
  if (!checked) {
    std::cerr << "leasehold restore: " << checked.error().message << "\n";
    return 1;
  }
  for (const std::string& name : files.value()) {
    std::ifstream file(name, std::ios::binary);
    std::string line;
    while (std::getline(file, line) && !line.empty()) std::cout << line << "\n";
    if (files.value().size() > 1) std::cout << "\n";
  }
  std::cout << "The backup is whole: every checksum is right.\n";
  return 0;
}

struct WantedRestore {
  server::SettingTexts texts;
  std::string from;
  bool check = false;
};

int run(const WantedRestore& wanted) {
  if (wanted.check) return run_verify(wanted.from);
  const auto settings = server::make_settings(wanted.texts);
  if (!settings) return misused("restore", settings.error().message);
  if (settings.value().node.peers.empty()) {
    return misused("restore",
                   "--peers is missing: every first member, as in 1=host:port,2=host:port");
  }
  return run_restore(settings.value(), wanted.from);
}

}  // namespace

Run add_restore(Flags& flags) {
  const auto wanted = std::make_shared<WantedRestore>();
  Flag from{"--from", "FILE", "The backup; of many groups the folder that has theirs"};
  from.required = true;
  flags.add(from, wanted->from);
  flags.add({"--check", "", "Only check the backup, and print its contents in short"},
            wanted->check);
  for (const server::SettingSpec& spec : server::setting_specs()) {
    const std::string_view name = spec.name;
    if (name == "id" || name == "data-dir" || name == "peers" || name == "cluster" ||
        name == "groups") {
      add_setting(flags, spec, wanted->texts);
    }
  }
  flags.set_footer(kExamples);
  return [wanted] { return run(*wanted); };
}

}  // namespace leasehold::cli
