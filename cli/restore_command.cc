#include <leasehold/cli/backup_file.h>
#include <leasehold/cli/commands.h>
#include <leasehold/cli/setting_flags.h>
#include <leasehold/kv/rocksdb/rocksdb_store.h>
#include <leasehold/net/handshake.h>
#include <leasehold/node/node_restored.h>
#include <leasehold/storage/private_folder.h>

#include <fmt/format.h>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
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
    const bool ours = name == kBegun || name == kState ||
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
  for (const std::string_view name : kMarks) {
    if (!error) fs::remove(fmt::format("{}/{}", dir, name), error);
  }
  if (error) return Error{ErrorCode::io, fmt::format("cannot clear {}: {}", dir, error.message())};
  return {};
}

Result<server::BackupManifest> restore(const server::ServeSettings& settings,
                                       const std::string& from) {
  const std::string& dir = settings.data_dir;
  const auto begun = check_usable(dir);
  if (!begun) return begun.error();
  const auto backup = verified_backup(from);
  if (!backup) return backup.error();
  const server::BackupManifest& manifest = backup.value().manifest;

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
  std::vector<net::PeerAddress> addresses;
  for (const node::Peer& peer : settings.node.peers) addresses.push_back({peer.id, peer.address});
  kv::RocksdbStore::Options options;
  options.dir = fmt::format("{}/{}", dir, kState);
  options.cluster_id =
      net::cluster_id(settings.node.cluster, std::move(addresses), manifest.generation);
  options.id = settings.node.id;
  const ShownArchive shown(*backup.value().archive, "restoring to " + dir);
  const auto index = kv::RocksdbStore::restore(std::move(options), shown);
  if (!index) return index.error();
  const node::Restored restored{manifest.generation, index.value()};
  if (auto done = node::finish_restoration(dir, restored); !done) return done.error();
  return manifest;
}

/// Makes settings.data_dir from the backup in the file `from`, and prints what it did. The
/// directory must not exist, or be empty, or be the remains of an interrupted restoration. The
/// whole backup is checked before anything is changed.
int run_restore(const server::ServeSettings& settings, const std::string& from) {
  ::umask(storage::kPrivateUmask);
  const auto restored = restore(settings, from);
  if (!restored) {
    std::cerr << "leasehold restore: " << restored.error().message << "\n";
    return 1;
  }
  std::cout << "restored " << summary(restored.value()) << " to " << settings.data_dir
            << "\nThis is a new group, generation "
            << server::generation_text(restored.value().generation)
            << ". Restore every member of --peers from the same file, each on its machine,\n"
               "then start them with leasehold serve and the same --id, --peers and --cluster.\n";
  return 0;
}

/// Checks a backup to its last byte and prints its contents in short.
int run_verify(const std::string& from) {
  const auto backup = verified_backup(from);
  if (!backup) {
    std::cerr << "leasehold restore: " << backup.error().message << "\n";
    return 1;
  }
  std::ifstream file(from, std::ios::binary);
  std::string line;
  while (std::getline(file, line) && !line.empty()) std::cout << line << "\n";
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
  Flag from{"--from", "FILE", "The backup"};
  from.required = true;
  flags.add(from, wanted->from);
  flags.add({"--check", "", "Only check the backup, and print its contents in short"},
            wanted->check);
  for (const server::SettingSpec& spec : server::setting_specs()) {
    const std::string_view name = spec.name;
    if (name == "id" || name == "data-dir" || name == "peers" || name == "cluster") {
      add_setting(flags, spec, wanted->texts);
    }
  }
  flags.set_footer(kExamples);
  return [wanted] { return run(*wanted); };
}

}  // namespace leasehold::cli
