#include <leasehold/cli/leader.h>
#include <leasehold/cli/member_numbers.h>
#include <leasehold/cli/status_command.h>

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <utility>

namespace leasehold::cli {

std::vector<std::string> split_servers(const std::string& list) {
  std::vector<std::string> out;
  for (std::size_t begin = 0; begin <= list.size();) {
    const std::size_t end = std::min(list.find(',', begin), list.size());
    if (end > begin) out.push_back(list.substr(begin, end - begin));
    begin = end + 1;
  }
  return out;
}

std::optional<Leader> find_leader(const std::vector<std::string>& servers,
                                  client::RespClient::Timeout timeout, std::string& why,
                                  std::optional<Leader>* follower) {
  const ClusterStatus all = fetch_all(servers, timeout);
  std::optional<Leader> leader;
  std::optional<Leader> follows;
  std::uint64_t elsewhere = 0;
  bool answered = false;
  bool all_answered = true;
  why = "no server answers";
  for (const nlohmann::ordered_json& node : all.nodes) {
    if (node.contains("error")) {
      all_answered = false;
      if (!answered) {
        why = fmt::format("{}: {}", node.at("server").get<std::string>(),
                          node.at("error").get<std::string>());
      }
      continue;
    }
    answered = true;
    elsewhere = std::max(elsewhere, node_number(node.at("leader").get<std::uint64_t>(), node));
    const bool knows_one = node.at("role") != "leader" && node.at("leader") != 0;
    if (knows_one && (!follows || follows->status.at("term") < node.at("term"))) {
      follows = Leader{node.at("server").get<std::string>(), node};
    }
    if (node.at("role") != "leader") continue;
    const bool newer = !leader || leader->status.at("term") < node.at("term");
    if (newer) leader = Leader{node.at("server").get<std::string>(), node};
  }
  const bool known = follows && std::any_of(all.nodes.begin(), all.nodes.end(), [&](const auto& n) {
                       return all_answered && n.at("id") == follows->status.at("leader");
                     });
  if (leader || known || !all_answered) follows.reset();
  if (leader) {
    why.clear();
  } else if (elsewhere != 0) {
    why = fmt::format(
        "node {} leads, but it is not among the servers: add its client address to "
        "--servers",
        elsewhere);
  } else if (answered) {
    why = "none of the servers knows a leader";
  }
  if (follower != nullptr) *follower = std::move(follows);
  return leader;
}

}  // namespace leasehold::cli
