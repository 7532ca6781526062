// Backups that nodes write, and how they come to this machine.
#pragma once

#include <leasehold/base/result.h>
#include <leasehold/client/resp_client.h>

#include <nlohmann/json.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace leasehold::cli {

struct BackupRequest {
  std::vector<std::string> servers;
  /// How long to look for a node that takes the backup; the backup itself may take any time.
  client::RespClient::Timeout timeout{5000};
  std::string name;       ///< empty: made from the time
  bool stale = false;     ///< what the node has, whether or not it is all that was acknowledged
  bool settled = false;   ///< waits, within `timeout`, while a slot moves
  std::size_t group = 0;  ///< from 1 on; 0: the first one, which has no other beside it
};

/// A backup that is complete, in the folder of the node that wrote it.
struct RemoteBackup {
  std::string server;
  std::string name;
  std::size_t group = 0;         ///< as in the request
  nlohmann::ordered_json reply;  ///< of LEASEHOLD BACKUP; an object
};

/// A number of a reply; 0 if it lacks it.
std::uint64_t number_in(const nlohmann::ordered_json& object, const char* key);

/// How many groups the nodes have, from the first that answers. Errors: as write_backup().
Result<std::size_t> count_groups(const BackupRequest& request);
/// A name for a backup that was given none: "backup-20260131-235959", in UTC.
std::string timely_name();

/// Asks one node after another to write a backup, until one takes it, and waits until it is
/// written. Errors: invalid_argument (an address), unavailable (outcome unknown), others: none was
/// written.
Result<RemoteBackup> write_backup(const BackupRequest& request);
/// Why backups of all groups, in their order, are not one of the whole; none: they are. Errors:
/// malformed.
Result<std::optional<std::string>> why_apart(const std::vector<RemoteBackup>& backups);
/// How a command ends that could not do without it (exit_status.h).
int status_of(const Error& write_backup_failed);

/// Copies it to the file `to` of this machine, which must not exist, and has its name when it is
/// whole and durable; only its owner may read it. Errors: in_use (it exists), io, unavailable,
/// timed_out, malformed (the node sent something else).
Result<void> copy_backup(const RemoteBackup& backup, const std::string& to);

/// Whether copy_backup() could make the file `to`, as far as can be seen before. Errors: as there.
Result<void> check_target(const std::string& to);

}  // namespace leasehold::cli
