// The nodes that answered: who they are, and the numbers that they follow.
#include <leasehold/doctor/judge.h>
#include <leasehold/doctor/make_finding.h>
#include <leasehold/net/handshake.h>
#include <leasehold/raft/settings.h>
#include <leasehold/server/front/duration.h>
#include <leasehold/server/front/settings_words.h>

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

namespace leasehold::doctor {
namespace {

std::vector<server::SettingWord> words_of(const lease::Timing& timing) {
  raft::GroupSettings settings;
  settings.timing = timing;
  return server::settings_words(settings);
}

/// "lease 2s here, 1s there", of all numbers that differ but the drift bound, which every node has
/// of its own.
std::string differences(const lease::Timing& here, const lease::Timing& there) {
  const auto mine = words_of(here);
  const auto theirs = words_of(there);
  std::string text;
  for (std::size_t i = 0; i < mine.size(); ++i) {
    if (mine[i].value == theirs[i].value || mine[i].name == "max-clock-drift") continue;
    text += fmt::format("{}{} {} and {}", text.empty() ? "" : ", ", mine[i].name, mine[i].value,
                        theirs[i].value);
  }
  return text;
}

bool is_loopback(const std::string& server) {
  return server.compare(0, 4, "127.") == 0 || server.compare(0, 5, "[::1]") == 0 ||
         server.compare(0, 10, "localhost:") == 0;
}

Finding judge_server(const Facts& facts, const ServerFacts& server) {
  const char* const kName = "servers";
  if (!server.problem.empty()) {
    return fault(kName, fmt::format("{} does not answer: {}", server.server, server.problem),
                 "start that node, or correct --servers; --user and --tls-ca if it asks for them");
  }
  const std::string who = fmt::format("node {} at {}", server.node.value(), server.server);
  if (!server.node_problem.empty()) {
    return fault(kName, fmt::format("{}: {}", who, server.node_problem),
                 "look at its log and at leasehold status");
  }
  if (server.version != facts.own_version) {
    return warning(
        "versions",
        fmt::format("{} runs {}, and this program is {}", who, server.version, facts.own_version),
        "upgrade one after the other (docs/operations.md, Upgrade), and do not stay "
        "between two versions");
  }
  return fine(kName, fmt::format("{} runs {}; round trips p50 {}, p99 {}", who, server.version,
                                 short_text(round_trip(server.samples, 50)),
                                 short_text(round_trip(server.samples, 99))));
}

/// Nodes of one number, and this node's number at another directory.
void judge_numbers(const server::ServeSettings& settings, const Facts& facts, Findings& all) {
  std::map<raft::NodeId, const ServerFacts*> known;
  const std::string own = facts.folder.uuid ? net::uuid_text(*facts.folder.uuid) : "";
  for (const ServerFacts& server : facts.servers) {
    if (!server.problem.empty()) continue;
    const auto [other, fresh] = known.emplace(server.node, &server);
    if (!fresh && other->second->uuid != server.uuid) {
      all.push_back(fault("servers",
                          fmt::format("{} and {} are both node {}, with different directories",
                                      other->second->server, server.server, server.node.value()),
                          "stop one of them: remove it, and add it again under another --id"));
    }
    if (server.node == settings.node.id && server.uuid != own) {
      all.push_back(fault("servers",
                          fmt::format("node {} runs already at {}, with another directory than {}",
                                      server.node.value(), server.server, settings.data_dir),
                          "choose another --id, or remove that member before this one is added"));
    }
  }
}

void judge_machines(const Facts& facts, Findings& all) {
  std::map<std::string, std::vector<const ServerFacts*>> machines;
  for (const ServerFacts& server : facts.servers) {
    if (!server.machine.empty()) machines[server.machine].push_back(&server);
  }
  for (const auto& [machine, servers] : machines) {
    const bool apart = std::all_of(servers.begin(), servers.end(), [](const ServerFacts* one) {
      return !is_loopback(one->server);
    });
    if (servers.size() < 2) continue;
    const std::string found = fmt::format("{} nodes run on one machine ({} and others)",
                                          servers.size(), servers.front()->server);
    all.push_back(apart ? warning("machines", found + ": its end is the end of all of them",
                                  "run each member on a machine of its own")
                        : fine("machines", found + ", by loopback: to try things out"));
  }
}

void judge_settings(const server::ServeSettings& settings, const Facts& facts, Findings& all) {
  const char* const kName = "group-settings";
  const ServerFacts* first = nullptr;
  for (const ServerFacts& server : facts.servers) {
    if (!server.timing) continue;
    if (first == nullptr) first = &server;
    const std::string text = differences(*first->timing, *server.timing);
    if (text.empty()) continue;
    all.push_back(warning(
        kName,
        fmt::format("{} and {} follow different numbers: {}", first->server, server.server, text),
        first->agreed ? "wait until both are up to date, and look again"
                      : "leasehold settings set, once: then the group has its own"));
  }
  if (first == nullptr) return;
  const std::string text = differences(settings.node.timing, *first->timing);
  if (text.empty()) {
    all.push_back(fine(kName, "these settings are the numbers that the group follows"));
    return;
  }
  all.push_back(warning(
      kName, fmt::format("these settings and the group differ: {}; the group's count", text),
      "write the group's numbers into the configuration, or leasehold settings set NAME=VALUE"));
}

}  // namespace

Findings judge_servers(const server::ServeSettings& settings, const Facts& facts) {
  Findings all;
  for (const ServerFacts& server : facts.servers) all.push_back(judge_server(facts, server));
  judge_numbers(settings, facts, all);
  judge_machines(facts, all);
  judge_settings(settings, facts, all);
  return all;
}

}  // namespace leasehold::doctor
