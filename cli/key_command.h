// `leasehold get|put|del`, and what other commands share with them: one command sent to whichever
// node takes it.
#pragma once

#include <leasehold/base/result.h>
#include <leasehold/client/resp_client.h>

#include <nlohmann/json_fwd.hpp>

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace leasehold::cli {

/// The answer of one node to LEASEHOLD STATUS. Errors: those of client::RespClient, and malformed.
Result<nlohmann::ordered_json> fetch_status(const std::string& server,
                                            client::RespClient::Timeout timeout);

/// What to do with a command whose outcome is unknown.
enum class Repeat : std::uint8_t {
  never,     ///< report it to the user
  read,      ///< it is sent again: it changes nothing
  numbered,  ///< the same, also when one server does not answer for a second: it is executed once
};

/// Sends one command to the first server that takes it. A refusal that says "not executed" and a
/// server out of reach lead to the next server, round and round until `timeout`. Errors: timed_out
/// (no node took it; not executed), unavailable (outcome unknown: it may be or become executed).
Result<client::RespValue> run_anywhere(const std::vector<std::string>& servers,
                                       const std::vector<std::string>& words,
                                       client::RespClient::Timeout timeout, Repeat repeat);

/// Examples of status, get, put and del.
extern const char* const kClientExamples;

}  // namespace leasehold::cli
