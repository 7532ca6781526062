// `leasehold get|put|del`: the program as a client of running nodes.
#pragma once

#include <leasehold/base/result.h>
#include <leasehold/client/resp_client.h>

#include <nlohmann/json_fwd.hpp>

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace leasehold::cli {

/// What LEASEHOLD STATUS of one node says. Errors: those of client::RespClient, and malformed.
Result<nlohmann::ordered_json> fetch_status(const std::string& server,
                                            client::RespClient::Timeout timeout);

/// What becomes of a command whose outcome is unknown.
enum class Repeat : std::uint8_t {
  never,     ///< the user is told
  read,      ///< it is sent again: it changes nothing
  numbered,  ///< the same, also when one server does not answer for a second: it is executed once
};

/// Sends one command to the first server that takes it. A refusal that says "not executed" and a
/// server out of reach lead to the next server, round and round until `timeout`. Errors: timed_out
/// (nobody took it; not executed), unavailable (outcome unknown: it may be or become executed).
Result<client::RespValue> run_anywhere(const std::vector<std::string>& servers,
                                       const std::vector<std::string>& words,
                                       client::RespClient::Timeout timeout, Repeat repeat);

struct KeyCommand {
  std::vector<std::string> servers;
  std::vector<std::string> words;
  client::RespClient::Timeout timeout{5000};
  /// A write is sent under a session of its own until its outcome is known.
  bool exactly_once = false;
};

/// Exit status of get, put and del: 0 done; 1 no such key (for put --if-absent: it exists); 2 a
/// wrong address; 3 outcome unknown; 4 not executed: refused, or nobody took it. kExitStatuses
/// tells users.
int run_key_command(const KeyCommand& command);

}  // namespace leasehold::cli
