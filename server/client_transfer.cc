#include <leasehold/server/client_leader.h>
#include <leasehold/server/client_transfer.h>
#include <leasehold/server/duration.h>
#include <leasehold/server/exit_status.h>
#include <leasehold/server/words.h>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <iostream>
#include <limits>
#include <optional>
#include <thread>
#include <utility>

namespace leasehold::server {

const char* const kTransferUsage =
    "usage: leasehold transfer --servers HOST:PORT,... [options]\n"
    "Hands the leadership over, in a few round trips and without waiting for the lease: commands "
    "wait\n"
    "meanwhile, and none is lost. It finds the leader among the servers and tells who leads then.\n"
    "  --servers HOST:PORT,...  client addresses of the nodes\n"
    "  --to ID             who shall lead; without it the voter that has most of the log\n"
    "  --timeout DURATION  how long to look for a leader that takes it (default 5s)\n"
    "  --json              one object instead of a sentence\n"
    "  --help              this\n"
    "A node that is ended by SIGTERM does the same by itself.\n";

namespace {

using Clock = std::chrono::steady_clock;
using Json = nlohmann::ordered_json;
using Timeout = RespClient::Timeout;

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

/// The text of an error; empty if there is none.
std::string take(const std::string& flag, const std::string& value, Wanted& wanted) {
  if (flag == "--servers") {
    wanted.servers = split_servers(value);
    return "";
  }
  if (flag == "--to") {
    const auto id = parse_integer(value);
    if (!id || *id < 1 || *id > std::numeric_limits<std::uint32_t>::max()) {
      return "--to: '" + value + "' is no number of a node";
    }
    wanted.to = value;
    return "";
  }
  const auto duration = parse_duration(value);
  if (!duration) return "--timeout: " + duration.error().message;
  wanted.timeout = std::chrono::ceil<Timeout>(duration.value());
  return "";
}

/// A flag's value stands behind it, or behind a '='.
std::string parse(const std::vector<std::string>& given, Wanted& wanted) {
  for (std::size_t i = 0; i < given.size(); ++i) {
    const std::size_t equals = given[i].find('=');
    const std::string flag = given[i].substr(0, equals);
    if (flag == "--json" && equals == std::string::npos) {
      wanted.json = true;
      continue;
    }
    if (flag != "--servers" && flag != "--to" && flag != "--timeout") {
      return "unknown option '" + given[i] + "'";
    }
    if (equals == std::string::npos && i + 1 == given.size()) return flag + " needs a value";
    const std::string value =
        equals == std::string::npos ? given[++i] : given[i].substr(equals + 1);
    if (std::string wrong = take(flag, value, wanted); !wrong.empty()) return wrong;
  }
  return wanted.servers.empty() ? "--servers is missing" : "";
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
      auto client = RespClient::connect(leader->server, std::min(wanted.timeout, kStatusTimeout));
      if (client) {
        const auto reply = client.value().call(words, kAnswerTimeout);
        if (!reply) {
          return fail(leader->server + ": " + reply.error().message +
                          "; the hand-over may yet happen: look with leasehold status",
                      kOutcomeUnknown);
        }
        const std::string text = leader->server + ": " + reply.value().text;
        if (reply.value().is_error("UNKNOWNOUTCOME")) return fail(text, kOutcomeUnknown);
        if (reply.value().kind == RespValue::Kind::bulk) {
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
  for (const std::string& word : arguments) {
    if (word != "--help" && word != "-h") continue;
    std::cout << kTransferUsage;
    return 0;
  }
  Wanted wanted;
  const std::string wrong = parse(arguments, wanted);
  if (!wrong.empty()) return fail(wrong + "\n" + kTransferUsage, kUsage);
  return transfer(wanted);
}

}  // namespace leasehold::server
