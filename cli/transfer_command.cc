#include <leasehold/cli/client_flags.h>
#include <leasehold/cli/exit_status.h>
#include <leasehold/cli/leader.h>
#include <leasehold/cli/transfer_command.h>
#include <leasehold/server/front/words.h>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <iostream>
#include <limits>
#include <optional>
#include <thread>
#include <utility>

namespace leasehold::cli {

const char* const kTransferUsage =
    "usage: leasehold transfer --servers HOST:PORT,... [options]\n"
    "Hands the leadership over, in a few round trips and without waiting for the lease: commands\n"
    "wait meanwhile, and none is lost. It finds the leader among the servers and tells who leads\n"
    "then.\n"
    "  --servers HOST:PORT,...  client addresses of the nodes\n"
    "  --to ID             who shall lead; without it the voter that has most of the log\n"
    "  --timeout DURATION  how long to look for a leader that takes it (default 5s)\n"
    "  --json              one object instead of a sentence\n"
    "  --help              this\n"
    "A node that is ended by SIGTERM does the same by itself.\n";

namespace {

using Clock = std::chrono::steady_clock;
using Json = nlohmann::ordered_json;
using Timeout = client::RespClient::Timeout;

/// Between two looks for a leader.
constexpr auto kRetryPause = std::chrono::milliseconds(20);
/// One server may take so long to say who it is.
constexpr Timeout kStatusTimeout{1000};
/// For the answer of a leader that has begun: above its --command-timeout, as a rule.
constexpr Timeout kAnswerTimeout{60000};

struct Wanted {
  std::vector<std::string> servers;
  std::string to;  ///< empty: any
  Timeout timeout{5000};
  bool json = false;
};

Error wrong(std::string text) {
  return {ErrorCode::invalid_argument, std::move(text)};
}

Result<Wanted> parse(const std::vector<std::string>& given) {
  const auto flags = ClientFlags::parse(given, {"--servers", "--to", "--timeout"}, {"--json"});
  if (!flags) return flags.error();
  Wanted wanted;
  wanted.servers = split_servers(flags.value().text("--servers"));
  wanted.to = flags.value().text("--to");
  wanted.json = flags.value().has("--json");
  const std::vector<std::string>& words = flags.value().words();
  if (!words.empty()) return wrong("unknown option '" + words.front() + "'");
  if (wanted.servers.empty()) return wrong("--servers is missing");
  if (flags.value().has("--to")) {
    const auto id = server::parse_integer(wanted.to);
    if (!id || *id < 1 || *id > std::numeric_limits<std::uint32_t>::max()) {
      return wrong("--to: '" + wanted.to + "' is no number of a node");
    }
  }
  const auto timeout = flags.value().duration("--timeout", wanted.timeout);
  if (!timeout) return timeout.error();
  wanted.timeout = std::chrono::ceil<Timeout>(timeout.value());
  return wanted;
}

int fail(const std::string& text, int status) {
  std::cerr << "leasehold transfer: " << text << "\n";
  return status;
}

int tell(const Wanted& wanted, std::uint64_t before, const Json& answer) {
  const auto leader = answer.value("leader", std::uint64_t{0});
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
  std::printf("node %llu leads; node %llu handed over in %.1f ms\n",
              static_cast<unsigned long long>(leader), static_cast<unsigned long long>(before), ms);
  if (!wanted.to.empty() && wanted.to != std::to_string(leader)) {
    std::cerr << "leasehold transfer: not node " << wanted.to
              << ": another was elected meanwhile\n";
    return kNotExecuted;
  }
  return 0;
}

int transfer(const Wanted& wanted) {
  std::vector<std::string> words = {"LEASEHOLD", "TRANSFER"};
  if (!wanted.to.empty()) words.push_back(wanted.to);
  const auto deadline = Clock::now() + wanted.timeout;
  std::string trouble;
  for (;;) {
    const auto leader =
        find_leader(wanted.servers, std::min(wanted.timeout, kStatusTimeout), trouble);
    if (leader) {
      auto client =
          client::RespClient::connect(leader->server, std::min(wanted.timeout, kStatusTimeout));
      if (client) {
        const auto reply = client.value().call(words, kAnswerTimeout);
        if (!reply) {
          return fail(leader->server + ": " + reply.error().message +
                          "; the hand-over may yet happen: look with leasehold status",
                      kOutcomeUnknown);
        }
        const std::string text = leader->server + ": " + reply.value().text;
        if (reply.value().is_error("UNKNOWNOUTCOME")) return fail(text, kOutcomeUnknown);
        if (reply.value().kind == client::RespValue::Kind::bulk) {
          const Json answer = Json::parse(reply.value().text, nullptr, false);
          if (!answer.is_object()) return fail(text, kOutcomeUnknown);
          return tell(wanted, leader->status.at("id").get<std::uint64_t>(), answer);
        }
        // Only if another node leads by now: a hand-over that failed is not tried over and over,
        // since commands wait while it lasts.
        if (!reply.value().is_error("NOLEADER")) return fail(text, kNotExecuted);
        trouble = text;
      } else {
        trouble = leader->server + ": " + client.error().message;
      }
    }
    if (Clock::now() + kRetryPause >= deadline) return fail(trouble, kNotExecuted);
    std::this_thread::sleep_for(kRetryPause);
  }
}

}  // namespace

int run_transfer_command(const std::vector<std::string>& arguments) {
  if (wants_help(arguments)) {
    std::cout << kTransferUsage;
    return 0;
  }
  const auto wanted = parse(arguments);
  if (!wanted) return fail(wanted.error().message + "\n" + kTransferUsage, kUsage);
  return transfer(wanted.value());
}

}  // namespace leasehold::cli
