// `leasehold backup` and `leasehold snapshot`: the program as a client that asks nodes to store
// what they have.
#pragma once

#include <leasehold/client/resp_client.h>

#include <string>
#include <vector>

namespace leasehold::cli {

struct BackupOptions {
  std::vector<std::string> servers;
  /// How long to look for a node that takes the backup; the backup itself may take any time.
  client::RespClient::Timeout timeout{};
  std::string name;    ///< empty: one that tells the time
  bool stale = false;  ///< what the node has, whether or not it is all that was acknowledged
  bool json = false;
};

/// Asks one node after another to write a backup, until one takes it, and waits until it is
/// written. Exit status as in kExitStatuses: 0, 2 (a wrong address), 3 (the connection broke: the
/// node goes on with what it has begun), 4.
int run_backup(const BackupOptions& options);

struct SnapshotOptions {
  std::vector<std::string> servers;
  client::RespClient::Timeout timeout{};  ///< to connect
  bool json = false;
};

/// Asks every node at once to make its store durable and cut its log, and tells what they did. Exit
/// status: 0, or 4 if a node did not.
int run_snapshot(const SnapshotOptions& options);

}  // namespace leasehold::cli
