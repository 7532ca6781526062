#include <leasehold/cli/access.h>
#include <leasehold/cli/commands.h>
#include <leasehold/cli/exit_status.h>
#include <leasehold/cli/leader.h>
#include <leasehold/cli/member_numbers.h>
#include <leasehold/server/front/words.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace leasehold::cli {
namespace {

constexpr const char* kTransferText = R"(
Transfers the leadership in a few round trips, without waiting for the lease to end: commands
wait during that time, and none is lost. It finds the leader among the servers, and prints who
leads afterwards. A leader that gets SIGTERM transfers the leadership by itself.)";

using Clock = std::chrono::steady_clock;
using Json = nlohmann::ordered_json;
using Timeout = client::RespClient::Timeout;

/// Between two looks for a leader.
constexpr auto kTransferPause = std::chrono::milliseconds(20);
/// The time that one server may take to answer with its status.
constexpr Timeout kStatusTimeout{1000};
/// For the answer of a leader that has begun: above its --command-timeout, as a rule.
constexpr Timeout kAnswerTimeout{60000};

struct WantedTransfer {
  std::vector<std::string> servers;
  std::string to;  ///< empty: any
  Timeout timeout{5000};
  bool json = false;
};

/// `status_before`: that of the node that led.
int tell(const WantedTransfer& wanted, const Json& status_before, const Json& answer) {
  const std::uint64_t before = node_number_of(status_before);
  const std::uint64_t leader = node_number(answer.value("leader", 0ULL), status_before);
  const double ms = static_cast<double>(answer.value("took_us", std::uint64_t{0})) / 1000;
  if (wanted.json) {
    std::cout << Json({{"leader", leader}, {"before", before}, {"took_ms", ms}}).dump()
              << std::endl;
    return 0;
  }
  if (leader == before) {
    std::printf("node %llu leads already\n", static_cast<unsigned long long>(leader));
    return 0;
  }
  std::printf("node %llu leads; node %llu transferred the leadership in %.1f ms\n",
              static_cast<unsigned long long>(leader), static_cast<unsigned long long>(before), ms);
  if (!wanted.to.empty() && wanted.to != std::to_string(leader)) {
    std::cerr << "leasehold transfer: not node " << wanted.to
              << ": another was elected meanwhile\n";
    return kNotExecuted;
  }
  return 0;
}

int transfer(const WantedTransfer& wanted) {
  const auto deadline = Clock::now() + wanted.timeout;
  std::string trouble;
  for (;;) {
    const auto leader =
        find_leader(wanted.servers, std::min(wanted.timeout, kStatusTimeout), trouble);
    if (leader) {
      auto client = client::RespClient::connect(leader->server,
                                                std::min(wanted.timeout, kStatusTimeout), access());
      if (client) {
        std::vector<std::string> words = {"LEASEHOLD", "TRANSFER"};
        if (!wanted.to.empty()) words.push_back(in_group(wanted.to, leader->status, {}));
        const auto reply = client.value().call(words, kAnswerTimeout);
        if (!reply) {
          return fail(
              "transfer",
              fmt::format("{}: {}; the transfer may still happen: look with leasehold status",
                          leader->server, reply.error().message),
              kOutcomeUnknown);
        }
        const std::string text = fmt::format("{}: {}", leader->server, reply.value().text);
        if (reply.value().is_error("UNKNOWNOUTCOME"))
          return fail("transfer", text, kOutcomeUnknown);
        if (reply.value().kind == client::RespValue::Kind::bulk) {
          const Json answer = Json::parse(reply.value().text, nullptr, false);
          if (!answer.is_object()) return fail("transfer", text, kOutcomeUnknown);
          return tell(wanted, leader->status, answer);
        }
        // Only if another node leads by now: a transfer that failed is not tried over and over,
        // since commands wait while it lasts.
        if (!reply.value().is_error("NOLEADER")) return fail("transfer", text, kNotExecuted);
        trouble = text;
      } else {
        trouble = fmt::format("{}: {}", leader->server, client.error().message);
      }
    }
    if (Clock::now() + kTransferPause >= deadline) return fail("transfer", trouble, kNotExecuted);
    std::this_thread::sleep_for(kTransferPause);
  }
}

}  // namespace

Run add_transfer(Flags& flags) {
  const auto wanted = std::make_shared<WantedTransfer>();
  flags.add_servers(wanted->servers);
  flags.add(
      {"--to", "ID", "The node that is to lead; without it the voter that has most of the log"},
      [wanted](const std::string& text) -> Result<void> {
        if (const auto id = parse_node_number(text); !id.ok()) return id.error();
        wanted->to = text;
        return {};
      });
  flags.add(
      {"--timeout", "DURATION", "How long to look for a leader that accepts the command", "5s"},
      wanted->timeout);
  flags.add({"--json", "", "Print a JSON object instead of a sentence"}, wanted->json);
  flags.set_footer(kTransferText);
  return [wanted] { return transfer(*wanted); };
}

}  // namespace leasehold::cli
