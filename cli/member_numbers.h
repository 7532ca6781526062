// Which member of a group a node is, where there are many groups.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace leasehold::cli {

/// `word` with the number that the node has in the group: "4" or "4=10.0.0.4:7101" names node 4,
/// whose replica there may be 10004. It is that of the member, by the leader's status; else that of
/// the replica at the address, by what the servers say, if it may be added. Otherwise the word
/// stays as it is, and so in a node with one group.
std::string in_group(const std::string& word, const nlohmann::ordered_json& leader,
                     const std::vector<nlohmann::ordered_json>& servers);

/// Whether the replica at the address of "4=10.0.0.4:7101" knows that it was removed: it is used no
/// more, and the next one waits when the node has been started again.
bool has_left(const std::string& word, const std::vector<nlohmann::ordered_json>& servers);

/// in_group() of all words of a command. Why it cannot be executed; empty: it can be.
std::string put_in_group(std::vector<std::string>& words, const nlohmann::ordered_json& leader,
                         const std::vector<nlohmann::ordered_json>& servers);

/// 4 of 10004, if `leader` has many groups.
std::uint64_t node_number(std::uint64_t member, const nlohmann::ordered_json& leader);

/// Of a server, by its status; 0: it did not answer.
std::uint64_t node_number_of(const nlohmann::ordered_json& server);

}  // namespace leasehold::cli
