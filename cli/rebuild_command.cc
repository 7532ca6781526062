#include <leasehold/cli/access.h>
#include <leasehold/cli/backup_file.h>
#include <leasehold/cli/commands.h>
#include <leasehold/cli/exit_status.h>
#include <leasehold/cli/remote_backup.h>
#include <leasehold/kv/rocksdb/rocksdb_store.h>
#include <leasehold/server/host_cluster.h>
#include <leasehold/storage/private_folder.h>

#include <fmt/format.h>

#include <sys/stat.h>

#include <filesystem>
#include <iostream>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

namespace leasehold::cli {
namespace {

constexpr const char* kRebuildExamples = R"(Examples:
  leasehold rebuild --data-dir /var/lib/leasehold --servers 10.0.0.2:7201,10.0.0.3:7201
  leasehold rebuild --data-dir /var/lib/leasehold --from healthy
  leasehold rebuild --data-dir /var/lib/leasehold --group 3 --servers 10.0.0.2:7201,10.0.0.3:7201

For a node whose status says that its state is not served. Stop it, give this command on its
machine, and start the node again with the flags that it always has. With --servers another node
writes a backup, which is copied from there; with --from it is a file that leasehold backup wrote on
another node after this one was stopped. Only the state is replaced, when the log has come as far as
the backup: what the node has voted and promised, and its log, stay.)";

struct RebuildOptions {
  BackupRequest request;
  std::string data_dir;
  std::string from;  ///< a file; empty: a backup that one of the servers writes

  /// Of the group, if the node has many.
  std::string folder() const {
    return request.group == 0 ? data_dir : fmt::format("{}/groups/{}", data_dir, request.group);
  }
  std::string state() const { return folder() + "/state"; }
};

/// Whether --group is given if, and only if, the node has many groups.
Result<void> check_group(const RebuildOptions& options) {
  std::error_code ignored;
  const std::filesystem::path given(options.data_dir);
  const bool many = std::filesystem::exists(given / "groups", ignored);
  if (many && options.request.group == 0) {
    return Error{ErrorCode::invalid_argument,
                 options.data_dir +
                     " is of a node with many groups: name the one whose state is not served by "
                     "--group"};
  }
  if (!many && options.request.group > 0) {
    return Error{ErrorCode::invalid_argument,
                 options.data_dir + " is of a node with one group: leave out --group"};
  }
  // The folder of a group.
  if (std::filesystem::exists(given / "../../groups", ignored) &&
      std::filesystem::exists(given / "../../log", ignored)) {
    return Error{
        ErrorCode::invalid_argument,
        options.data_dir + " is the folder of one group: give the node's --data-dir, and --group"};
  }
  return {};
}

/// Leaves the state of the backup in the file `from` for the node's next start.
int stage(const RebuildOptions& options, const std::string& from) {
  const auto backup = verified_backup(from);
  Result<raft::Index> staged(raft::Index(0));
  if (!backup) {
    staged = backup.error();
  } else if (const std::string& name = backup.value().manifest.cluster;
             options.request.group > 0 && !server::is_of_group(name, options.request.group)) {
    staged = Error{ErrorCode::invalid_argument, fmt::format("{} is a backup of {}, not of group {}",
                                                            from, name, options.request.group)};
  } else {
    const ShownArchive shown(*backup.value().archive, "copying " + from);
    staged = kv::RocksdbStore::stage_successor(options.state(), shown);
  }
  if (!staged) return fail("rebuild", staged.error().message, kNo);
  std::cout << "The state of " << summary(backup.value().manifest) << " waits in "
            << options.data_dir
            << ".\nStart the node: it takes it over when its log has reached that index.\n";
  return 0;
}

/// By a backup that one of the servers writes now, so that it is not older than the node's state.
/// It may be of any instant of a move of slots: the commands of the move stand in the group's log,
/// and what follows the backup comes from there.
int rebuild_from_servers(const RebuildOptions& options) {
  const std::string folder = options.folder() + "/backups";
  if (const auto made = storage::make_private_folder(folder); !made) {
    return fail("rebuild", made.error().message, kNotExecuted);
  }
  const auto written = write_backup(options.request);
  if (!written) return fail("rebuild", written.error().message, status_of(written.error()));
  const std::string copy = fmt::format("{}/{}", folder, written.value().name);
  if (const auto copied = copy_backup(written.value(), copy); !copied) {
    return fail("rebuild", copied.error().message, kNo);
  }
  const int status = stage(options, copy);
  std::error_code ignored;
  std::filesystem::remove(copy, ignored);
  return status;
}

int run(const RebuildOptions& options) {
  ::umask(storage::kPrivateUmask);
  if (options.from.empty() == options.request.servers.empty()) {
    return misused("rebuild", "name either --from or --servers");
  }
  if (const auto right = check_group(options); !right) {
    return misused("rebuild", right.error().message);
  }
  // Before anything is copied.
  if (const auto able = kv::RocksdbStore::check_rebuildable(options.state()); !able) {
    return fail("rebuild", able.error().message, kNo);
  }
  if (options.from.empty()) return rebuild_from_servers(options);
  return stage(options, options.from);
}

}  // namespace

Run add_rebuild(Flags& flags) {
  const auto options = std::make_shared<RebuildOptions>();
  Flag folder{"--data-dir", "DIR", "The folder of the node's data"};
  folder.required = true;
  flags.add(folder, options->data_dir);
  flags.add({"--from", "FILE", "A backup of another member of the group"}, options->from);
  flags.add_servers(options->request.servers, false);
  flags.add({"--timeout", "DURATION", "How long to look for a node that writes a backup", "5s"},
            options->request.timeout);
  flags.set_footer(kRebuildExamples);
  return [options] {
    options->request.group = access().group();
    return run(*options);
  };
}

}  // namespace leasehold::cli
