#include <leasehold/cli/commands.h>
#include <leasehold/cli/progress.h>
#include <leasehold/cli/setting_flags.h>
#include <leasehold/kv/rocksdb/rocksdb_store.h>
#include <leasehold/net/handshake.h>
#include <leasehold/node/node_restored.h>
#include <leasehold/server/front/backup_manifest.h>
#include <leasehold/storage/private_folder.h>

#include <fmt/format.h>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
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

struct Backup {
  server::BackupManifest manifest;
  std::shared_ptr<const replica::Snapshot> archive;
};

/// An archive that shows how far it was read.
class ShownArchive final : public replica::Snapshot {
 public:
  ShownArchive(const replica::Snapshot& archive, const std::string& what)
      : archive_(archive), progress_(what) {}
  raft::Index last() const override { return archive_.last(); }
  std::uint64_t size() const override { return archive_.size(); }
  Result<void> read(std::uint64_t offset, char* to, std::size_t bytes) const override {
    progress_.at(offset, archive_.size());
    return archive_.read(offset, to, bytes);
  }

 private:
  const replica::Snapshot& archive_;
  mutable Progress progress_;
};

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

Error in_file(const std::string& path, const Error& error) {
  return {error.code, fmt::format("{}: {}", path, error.message)};
}

Result<Backup> open_backup(const std::string& from) {
  std::ifstream file(from, std::ios::binary);
  std::string bytes(server::kManifestBytes, '\0');
  std::error_code error;
  if (!file || fs::is_directory(from, error)) {
    return Error{ErrorCode::io, fmt::format("cannot read {}: {}", from,
                                            error  ? error.message()
                                            : file ? std::string("it is a folder")
                                                   : std::generic_category().message(errno))};
  }
  file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  bytes.resize(static_cast<std::size_t>(file.gcount()));
  auto manifest = server::decode_manifest(bytes);
  if (!manifest) return in_file(from, manifest.error());
  const std::uint64_t size = fs::file_size(from, error);
  const std::uint64_t expected = server::kManifestBytes + manifest.value().archive_bytes;
  if (error || size != expected) {
    return Error{
        ErrorCode::corrupted,
        fmt::format("{} has {} bytes instead of {}: copy the backup again from where it was "
                    "written, or take another one",
                    from, size, expected)};
  }
  auto archive = kv::RocksdbStore::open_archive(from, server::kManifestBytes);
  if (!archive) return archive.error();
  return Backup{std::move(manifest).value(), std::move(archive).value()};
}

/// Everything that the backup says of itself.
Result<Backup> verified_backup(const std::string& from) {
  auto backup = open_backup(from);
  if (!backup) return backup;
  const ShownArchive shown(*backup.value().archive, "checking " + from);
  const auto info = kv::RocksdbStore::verify(shown);
  if (!info) {
    const bool damaged = info.error().code == ErrorCode::corrupted;
    return Error{
        info.error().code,
        fmt::format(
            "{} is damaged: {}{}", from, info.error().message,
            damaged ? ". Copy it again from where it was written, or use another backup" : "")};
  }
  const server::BackupManifest& manifest = backup.value().manifest;
  if (info.value() !=
      kv::ArchiveInfo{manifest.cluster_id, manifest.index, manifest.revision, manifest.keys}) {
    return Error{ErrorCode::corrupted,
                 from + " is damaged: its manifest and its archive are of two backups"};
  }
  return backup;
}

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

std::string summary(const server::BackupManifest& manifest) {
  return fmt::format("{} keys at index {}, revision {}", manifest.keys, manifest.index.value(),
                     manifest.revision);
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

constexpr const char* kRebuildExamples = R"(Examples:
  leasehold backup --servers 10.0.0.2:7201 healthy
  leasehold rebuild --data-dir /var/lib/leasehold --from healthy

For a node whose status says that its state is not served. Stop it, write a backup on another node,
copy the file here, give this command, and start the node again with the flags that it always has.
Only the state is replaced, when the log has come as far as the backup: what the node has voted and
promised, and its log, stay.)";

/// Leaves the state of `from` in a stopped node's directory, for its next start.
int run_rebuild(const std::string& data_dir, const std::string& from) {
  ::umask(storage::kPrivateUmask);
  const auto backup = verified_backup(from);
  Result<raft::Index> staged(raft::Index(0));
  if (!backup) {
    staged = backup.error();
  } else {
    const ShownArchive shown(*backup.value().archive, "copying " + from);
    staged = kv::RocksdbStore::stage_successor(fmt::format("{}/{}", data_dir, kState), shown);
  }
  if (!staged) {
    std::cerr << "leasehold rebuild: " << staged.error().message << "\n";
    return 1;
  }
  std::cout << "The state of " << summary(backup.value().manifest) << " waits in " << data_dir
            << ".\nStart the node: it takes it over when its log has reached that index.\n";
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

Run add_rebuild(Flags& flags) {
  const auto from = std::make_shared<std::string>();
  const auto data_dir = std::make_shared<std::string>();
  Flag file{"--from", "FILE", "A backup of another member of the group"};
  file.required = true;
  flags.add(file, *from);
  Flag folder{"--data-dir", "DIR", "The folder of the node's data"};
  folder.required = true;
  flags.add(folder, *data_dir);
  flags.set_footer(kRebuildExamples);
  return [from, data_dir] { return run_rebuild(*data_dir, *from); };
}

}  // namespace leasehold::cli
