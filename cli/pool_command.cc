// `leasehold pool`: where the replicas of many groups are, should be, and how they get there.
#include <leasehold/cli/access.h>
#include <leasehold/cli/commands.h>
#include <leasehold/cli/exit_status.h>
#include <leasehold/cli/nearest_word.h>
#include <leasehold/cli/pool_run.h>
#include <leasehold/cli/pool_view.h>
#include <leasehold/server/front/group_place.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace leasehold::cli {
namespace {

constexpr const char* kPoolText = R"(
A pool: nodes with many groups (serve --groups) of which each group but the first has replicas at
some nodes only. The first one, which has the users, has one at every node.

Actions:
  status, or none     show the nodes and the groups, and tell each node where the groups are
  plan                show the next steps to the pool as it should be; change nothing
  balance             make them, and those behind them, until the pool is as it should be: every
                      group has its number of replicas, in as many zones as there are, and each
                      node has its share of them and of the leaders
  drain ID            the same, with that node emptied: it leads nothing and keeps a replica of
                      the first group only. Until balance is called again it gets nothing
A replica is added before another one is removed, and a leader transfers before its replica goes.
Interrupt it whenever you like, and call it again: it goes on from what it finds. Name all nodes in
--servers: what does not answer keeps what it has, unless it is said to be --gone.

Example:
  leasehold pool drain 3 --servers 10.0.0.1:7201,10.0.0.2:7201,10.0.0.3:7201,10.0.0.4:7201)";

using PoolJson = nlohmann::ordered_json;

void print_pool(const PoolView& view) {
  std::printf("%-6s %-24s %-9s %-6s %s\n", "node", "server", "replicas", "leads", "learners");
  for (const auto& [number, node] : view.nodes) {
    std::size_t voters = 0;
    std::size_t learners = 0;
    std::size_t led = 0;
    for (const auto& [id, group] : view.groups) {
      const PoolMember* const member = group.at(number);
      if (member == nullptr) continue;
      (member->voter ? voters : learners) += 1;
      led += member->replica == group.leader ? 1 : 0;
    }
    std::printf("%-6llu %-24s %-9zu %-6zu %zu\n", static_cast<unsigned long long>(number.value()),
                node.server.c_str(), voters + learners, led, learners);
  }
  std::printf("\n%-6s %-7s %-10s %s\n", "group", "leader", "keys", "nodes");
  for (const auto& [id, group] : view.groups) {
    std::string nodes;
    std::string leader = "-";
    for (const PoolMember& member : group.members) {
      nodes += fmt::format("{}{}{}", nodes.empty() ? "" : " ", member.node.value(),
                           member.voter ? "" : "(learner)");
      if (member.replica == group.leader) leader = std::to_string(member.node.value());
    }
    if (!group.settled) nodes += "; a change is under way";
    std::printf("%-6llu %-7s %-10llu %s\n", static_cast<unsigned long long>(id.value()),
                leader.c_str(), static_cast<unsigned long long>(group.keys), nodes.c_str());
  }
}

PoolJson json_of(const PoolView& view) {
  PoolJson nodes = PoolJson::array();
  for (const auto& [number, node] : view.nodes) {
    nodes.push_back({{"node", number.value()}, {"server", node.server}});
  }
  PoolJson groups = PoolJson::array();
  for (const auto& [id, group] : view.groups) {
    PoolJson members = PoolJson::array();
    for (const PoolMember& member : group.members) {
      members.push_back({{"node", member.node.value()},
                         {"replica", member.replica.value()},
                         {"voter", member.voter},
                         {"behind", member.behind}});
    }
    const PoolMember* const leads = group.member(group.leader);
    groups.push_back({{"group", id.value()},
                      {"leader", leads == nullptr ? 0 : leads->node.value()},
                      {"settled", group.settled},
                      {"keys", group.keys},
                      {"members", std::move(members)}});
  }
  return {{"nodes", std::move(nodes)}, {"groups", std::move(groups)}, {"silent", view.silent}};
}

int show_status(const PoolOptions& options) {
  const auto view = look_at_pool(options.servers, options.look);
  if (!view) return fail("pool", view.error().message, kNotExecuted);
  tell_places(view.value(), options.look);
  if (options.json) {
    std::cout << json_of(view.value()).dump(2, ' ', false, PoolJson::error_handler_t::replace)
              << "\n";
  } else {
    print_pool(view.value());
    for (const std::string& one : view.value().silent) std::cerr << "no answer: " << one << "\n";
  }
  return view.value().silent.empty() ? 0 : kNo;
}

int show_plan(const PoolOptions& options) {
  const auto view = look_at_pool(options.servers, options.look);
  if (!view) return fail("pool", view.error().message, kNotExecuted);
  const auto plan = plan_of(view.value(), options, {});
  if (!plan) return fail("pool", plan.error().message, kNotExecuted);
  const NextSteps& next = plan.value();
  if (options.json) {
    PoolJson steps = PoolJson::array();
    for (const PoolStep& step : next.steps) steps.push_back(step.text);
    std::cout << PoolJson({{"steps", steps}, {"reasons", next.reasons}})
                     .dump(2, ' ', false, PoolJson::error_handler_t::replace)
              << "\n";
    return 0;
  }
  for (const PoolStep& step : next.steps) std::cout << step.text << "\n";
  for (const std::string& reason : next.reasons) std::cerr << reason << "\n";
  if (!next.steps.empty()) return 0;
  std::cout << (next.waits ? "nothing now: a change of members is under way\n"
                           : "nothing: the pool is as it should be\n");
  return 0;
}

/// Takes the action and the node. Returns what is wrong, or nothing.
std::string take_words(const std::vector<std::string>& given, PoolOptions& options) {
  static const std::vector<std::string> kActions = {"status", "plan", "balance", "drain"};
  options.action = given.empty() ? "status" : given.front();
  if (std::find(kActions.begin(), kActions.end(), options.action) == kActions.end()) {
    return fmt::format("unknown action '{}'{}", options.action,
                       did_you_mean(options.action, kActions));
  }
  const bool drains = options.action == "drain";
  if (drains != (given.size() == 2) || given.size() > 2) {
    return drains ? "drain: name one node by its number" : options.action + " takes no words";
  }
  if (drains) {
    const auto number = parse_node_number(given.back());
    if (!number) return number.error().message;
    options.drained = raft::NodeId(number.value());
    options.wishes.draining.insert(options.drained);
  }
  const bool shows = options.action == "status" || options.action == "plan";
  if (options.json && !shows) return "--json goes with status and plan";
  return {};
}

int run_pool(const std::vector<std::string>& given, PoolOptions& options) {
  if (const std::string wrong = take_words(given, options); !wrong.empty()) {
    return misused("pool", wrong);
  }
  if (access().group() != 0) return misused("pool", "--group: a pool has all groups");
  if (options.action == "status") return show_status(options);
  return options.action == "plan" ? show_plan(options) : balance_pool(options);
}

Flags::Take nodes_into(std::set<raft::NodeId>& nodes) {
  return [&nodes](const std::string& text) -> Result<void> {
    const auto parsed = server::parse_nodes(text);
    if (!parsed) {
      return Error{ErrorCode::invalid_argument, "write numbers of nodes, as in 3 or 3,4"};
    }
    nodes.insert(parsed->begin(), parsed->end());
    return {};
  };
}

Result<void> take_zones(const std::string& text, std::map<raft::NodeId, std::string>& zones) {
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::string word = text.substr(begin, end - begin);
    const std::size_t equals = word.find('=');
    const auto node = server::parse_nodes(word.substr(0, equals));
    if (equals == std::string::npos || equals + 1 == word.size() || !node) {
      return Error{ErrorCode::invalid_argument, "write zones as ID=ZONE, as in 1=a,2=a,3=b"};
    }
    zones[node->front()] = word.substr(equals + 1);
    begin = end + 1;
  }
  return {};
}

}  // namespace

Run add_pool(Flags& flags) {
  const auto words = std::make_shared<std::vector<std::string>>();
  const auto options = std::make_shared<PoolOptions>();
  flags.add_words(*words, "[ACTION ...] --servers HOST:PORT,... [OPTIONS]");
  flags.add_servers(options->servers);
  flags.add(
      {"--replicas", "N", "Replicas that each group is to have", "serve --replicas"},
      [options](const std::string& text) -> Result<void> {
        const auto number = server::parse_nodes(text);
        const bool fits =
            number && number->size() == 1 && number->front().value() <= placement::kReplicasMax;
        if (!fits) {
          return Error{ErrorCode::invalid_argument,
                       fmt::format("expected a number from 1 to {}", placement::kReplicasMax)};
        }
        options->wishes.replicas = number->front().value();
        return {};
      });
  flags.add({"--zones", "ID=ZONE,...", "Nodes of one zone may fail together", "each its own"},
            [options](const std::string& text) { return take_zones(text, options->wishes.zones); });
  flags.add({"--draining", "ID,...", "plan, balance: nodes that are to be emptied, too"},
            nodes_into(options->wishes.draining));
  flags.add({"--gone", "ID,...", "Nodes that will never come back: their replicas are replaced"},
            nodes_into(options->wishes.gone));
  flags.add({"--moves", "N", "Copies into or out of one node at a time", "2"},
            [options](const std::string& text) -> Result<void> {
              const auto number = server::parse_nodes(text);
              if (!number || number->size() != 1) {
                return Error{ErrorCode::invalid_argument, "expected a number from 1 on"};
              }
              options->moves = number->front().value();
              return {};
            });
  flags.add({"--timeout", "DURATION",
             "balance, drain: give up when no step makes progress for this time", "2m"},
            options->patience);
  flags.add({"--json", "", "status, plan: print a JSON object instead of tables"}, options->json);
  flags.set_footer(kPoolText);
  return [words, options] { return run_pool(*words, *options); };
}

}  // namespace leasehold::cli
