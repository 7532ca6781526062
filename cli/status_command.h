// `leasehold status`: one row a node, once or again and again.
#pragma once

#include <leasehold/client/resp_client.h>
#include <leasehold/server/terminal.h>

#include <nlohmann/json_fwd.hpp>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace leasehold::cli {

struct StatusOptions {
  std::vector<std::string> servers;
  client::RespClient::Timeout timeout{5000};
  bool json = false;
  server::Color color = server::Color::automatic;
  /// Ask again after this time, until SIGINT or SIGTERM.
  std::optional<std::chrono::milliseconds> watch;
};

/// What the servers said at one time.
struct ClusterStatus {
  /// One object a server, in the order of the servers. One that did not answer has `error`.
  std::vector<nlohmann::ordered_json> nodes;
  bool healthy = false;  ///< all answered, and one leads with a lease, of each group
};

/// Asks all of them at once; takes at most `timeout`.
ClusterStatus fetch_all(const std::vector<std::string>& servers,
                        client::RespClient::Timeout timeout);

/// The table, a line for each row.
std::vector<std::string> status_table(const ClusterStatus& status, bool color);

/// Prints the table, or with `json` a list of objects (one line each time with `watch`). On a
/// terminal `watch` draws over what it drew before. Returns 0 if the last answers were healthy, 1
/// if not.
int run_status(const StatusOptions& options);

}  // namespace leasehold::cli
