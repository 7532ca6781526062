// Which of some servers leads: for commands that only the leader takes.
#pragma once

#include <leasehold/client/resp_client.h>

#include <nlohmann/json.hpp>

#include <optional>
#include <string>
#include <vector>

namespace leasehold::cli {

/// "A,B" as A and B; empty ones are left out.
std::vector<std::string> split_servers(const std::string& list);

struct Leader {
  std::string server;
  nlohmann::ordered_json status;  ///< what its LEASEHOLD STATUS says
};

/// Asks all servers at once; takes at most `timeout`. If several nodes say that they lead, the
/// result is the one with the highest term. None: no node leads, or the leader is not among the
/// servers; `why` says which. `follower`, if given, is then the server of the highest term that
/// follows a leader which is not among them; none in all other cases, and where a server did not
/// answer, which may be that leader.
std::optional<Leader> find_leader(const std::vector<std::string>& servers,
                                  client::RespClient::Timeout timeout, std::string& why,
                                  std::optional<Leader>* follower = nullptr);

}  // namespace leasehold::cli
