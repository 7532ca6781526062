#include <leasehold/cli/access.h>
#include <leasehold/cli/commands.h>
#include <leasehold/cli/exit_status.h>
#include <leasehold/cli/leader.h>
#include <leasehold/cli/nearest_word.h>
#include <leasehold/server/front/duration.h>
#include <leasehold/server/front/settings_words.h>

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

constexpr const char* kSettingsText = R"(
The numbers on which all nodes of a group have to agree. They stand in the group's log; the flags
of serve with these names are what a node proposes when a group is formed, and --max-clock-drift
says besides what the clocks of its machine are worth.

Actions:
  show                      the group's numbers, as the leader knows them
  set NAME=VALUE ...        change these; ends when no lease of less careful numbers is left
  check NAME=VALUE ...      would the group take these? Changes nothing. Without --servers the
                            others have their defaults

Names: lease, heartbeat, max-clock-drift, max-round-trip, margin, election-timeout, lease-reads.

Example:
  leasehold settings set lease=3s heartbeat=300ms --servers 10.0.0.1:7201,10.0.0.2:7201)";

using Clock = std::chrono::steady_clock;
using Json = nlohmann::ordered_json;
using Timeout = client::RespClient::Timeout;
using Words = std::vector<std::string>;

constexpr auto kSettingsPause = std::chrono::milliseconds(100);
/// One question to one server.
constexpr Timeout kAskTimeout{2000};

struct Options {
  std::string action;
  std::vector<server::SettingWord> words;
  std::vector<std::string> servers;
  Timeout timeout{10'000};
  bool json = false;
};

/// What one attempt came to.
struct Attempt {
  std::optional<client::RespValue> reply{};
  std::string text;   ///< for people: who said what
  bool sent = false;  ///< it may be executed, whatever came back
};

Attempt ask_leader(const Options& options, const Words& command) {
  Attempt attempt;
  const auto leader =
      find_leader(options.servers, std::min(options.timeout, kAskTimeout), attempt.text);
  if (!leader) return attempt;
  auto client = client::RespClient::connect(leader->server, kAskTimeout, access());
  if (!client) {
    attempt.text = fmt::format("{}: {}", leader->server, client.error().message);
    return attempt;
  }
  attempt.sent = true;
  const auto reply = client.value().call(command, options.timeout + kAskTimeout);
  attempt.text =
      fmt::format("{}: {}", leader->server, reply ? reply.value().text : reply.error().message);
  if (reply) attempt.reply = reply.value();
  return attempt;
}

/// Asks until a leader answers with something else than "try again". `unknown` is set once an
/// attempt may have been executed without an answer.
Attempt ask(const Options& options, const Words& command, bool& unknown) {
  const auto deadline = Clock::now() + options.timeout;
  for (;; std::this_thread::sleep_for(kSettingsPause)) {
    Attempt attempt = ask_leader(options, command);
    const auto& reply = attempt.reply;
    const bool lost = attempt.sent && (!reply || reply->is_error("UNKNOWNOUTCOME"));
    unknown = unknown || lost;
    const bool again = !reply || lost || reply->is_error("NOLEADER") || reply->is_error("TRYAGAIN");
    if (!again || Clock::now() > deadline) return attempt;
  }
}

std::optional<Json> read_settings(const Options& options, std::string& why) {
  bool unknown = false;
  const Attempt attempt = ask(options, {"LEASEHOLD", "SETTINGS"}, unknown);
  why = attempt.text;
  if (!attempt.reply || attempt.reply->kind != client::RespValue::Kind::bulk) return std::nullopt;
  Json answer = Json::parse(attempt.reply->text, nullptr, false);
  if (!answer.is_object()) {
    why = "this is no answer to LEASEHOLD SETTINGS: " + attempt.text;
    return std::nullopt;
  }
  return answer;
}

/// The settings of an answer of LEASEHOLD SETTINGS.
Result<raft::GroupSettings> settings_of(const Json& answer) {
  return server::settings_said([&answer](const std::string& name) -> std::optional<std::string> {
    const auto said = answer.find(name);
    if (said == answer.end() || !said->is_string()) return std::nullopt;
    return said->get<std::string>();
  });
}

int show(const Options& options) {
  std::string why;
  const auto answer = read_settings(options, why);
  if (!answer) return fail("settings", why, kNotExecuted);
  if (options.json) {
    std::cout << answer->dump(2, ' ', false, Json::error_handler_t::replace) << "\n";
    return 0;
  }
  const auto settings = settings_of(*answer);
  if (!settings) return fail("settings", settings.error().message, kNotExecuted);
  for (const server::SettingWord& word : server::settings_words(settings.value())) {
    std::printf("%-18s %s\n", word.name.c_str(), word.value.c_str());
  }
  std::printf("\nA leader may use %s\n", server::usable_text(settings.value().timing).c_str());
  if (const auto agreed = answer->find("agreed"); agreed != answer->end() && *agreed == false) {
    std::printf(
        "The group has not agreed on settings: each node follows its own flags. These are the "
        "leader's;\n`leasehold settings set` makes them the group's, with what you name.\n");
  }
  return 0;
}

int set(const Options& options) {
  Words command = {"LEASEHOLD", "SETTINGS", "SET"};
  for (const server::SettingWord& word : options.words) {
    command.push_back(word.name);
    command.push_back(word.value);
  }
  bool unknown = false;
  const Attempt attempt = ask(options, command, unknown);
  if (attempt.reply && attempt.reply->kind == client::RespValue::Kind::simple) {
    std::cout << "changed: it is in effect\n";
    return 0;
  }
  if (!unknown) return fail("settings", attempt.text, kNotExecuted);
  return fail("settings", attempt.text + "; it may still be done: leasehold settings show tells",
              kOutcomeUnknown);
}

int check(const Options& options) {
  raft::GroupSettings settings;
  if (!options.servers.empty()) {
    std::string why;
    const auto answer = read_settings(options, why);
    if (!answer) return fail("settings", why, kNotExecuted);
    const auto now = settings_of(*answer);
    if (!now) return fail("settings", now.error().message, kNotExecuted);
    settings = now.value();
  }
  const raft::GroupSettings wanted =
      server::parse_settings(options.words).value().applied_to(settings);
  if (const auto valid = wanted.timing.validate(); !valid) {
    return fail("settings", valid.error().message, kNotExecuted);
  }
  if (!options.servers.empty() &&
      wanted.timing.lease > settings.timing.lease * raft::kLeaseStepMax) {
    return fail("settings", text_of(raft::SettingsRefused{raft::SettingsObstacle::step_too_long}),
                kNotExecuted);
  }
  std::cout << "allowed: " << server::usable_text(wanted.timing) << "\n";
  return 0;
}

/// Takes the action and each NAME=VALUE. False: `wrong` says why not.
bool take_words(const Words& given, Options& options, std::string& wrong) {
  static const Words kActions = {"show", "set", "check"};
  if (given.empty()) {
    wrong = "the action is missing";
    return false;
  }
  options.action = given.front();
  if (std::find(kActions.begin(), kActions.end(), options.action) == kActions.end()) {
    wrong = fmt::format("unknown action '{}'{}", options.action,
                        did_you_mean(options.action, kActions));
    return false;
  }
  for (auto word = given.begin() + 1; word != given.end(); ++word) {
    const std::size_t equals = word->find('=');
    if (equals == std::string::npos) {
      wrong = fmt::format("'{}': write NAME=VALUE, as in lease=2s", *word);
      return false;
    }
    options.words.push_back({word->substr(0, equals), word->substr(equals + 1)});
  }
  if (options.action == "show" && !options.words.empty()) {
    wrong = "show takes no settings";
  } else if (options.action == "set" && options.words.empty()) {
    wrong = "set: name a setting, as in lease=2s";
  } else if (options.action != "check" && options.servers.empty()) {
    wrong = "--servers is missing";
  } else if (const auto edit = server::parse_settings(options.words); !edit) {
    wrong = edit.error().message;
  }
  return wrong.empty();
}

int run(const Words& given, Options& options) {
  std::string wrong;
  if (!take_words(given, options, wrong)) return misused("settings", wrong);
  if (options.action == "show") return show(options);
  return options.action == "set" ? set(options) : check(options);
}

}  // namespace

Run add_settings(Flags& flags) {
  const auto words = std::make_shared<Words>();
  const auto options = std::make_shared<Options>();
  flags.add_words(*words, "ACTION ... --servers HOST:PORT,... [OPTIONS]");
  flags.add_servers(options->servers, false);
  flags.add(
      {"--timeout", "DURATION", "How long to look for a leader that accepts the command", "10s"},
      options->timeout);
  flags.add({"--json", "", "show: print a JSON object instead of a table"}, options->json);
  flags.set_footer(kSettingsText);
  return [words, options] { return run(*words, *options); };
}

}  // namespace leasehold::cli
