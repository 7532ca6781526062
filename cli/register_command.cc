#include <leasehold/cli/client_flags.h>
#include <leasehold/cli/ending_signals.h>
#include <leasehold/cli/exit_status.h>
#include <leasehold/cli/holder_flags.h>
#include <leasehold/cli/register_command.h>
#include <leasehold/client/remote_keys.h>
#include <leasehold/client/remote_leases.h>
#include <leasehold/node/system_clock.h>

#include <nlohmann/json.hpp>

#include <iostream>
#include <memory>
#include <string_view>
#include <utility>

namespace leasehold::cli {

const char* const kRegisterUsage =
    "usage: leasehold register KEY VALUE --servers HOST:PORT,... [FLAGS]\n"
    "Keeps KEY with VALUE for as long as this runs, so that others see that something is alive,\n"
    "and where: leasehold watch tells them when it comes and goes. When this ends by a signal the\n"
    "key is revoked at once; when it dies, or the nodes hear nothing of it for the time to live,\n"
    "the key expires. What went although this runs comes back by itself. It says `registered`,\n"
    "and `registering` with the reason when it is not.\n"
    "Exit status: 0 ended by a signal, 2 a flag is wrong.\n"
    "  --json                         an object for each line\n"
    "Example: leasehold register services/web/7 10.0.0.7:80 --servers "
    "10.0.0.1:7201,10.0.0.2:7201\n";

namespace {

using client::Registration;
using lease::Duration;
using Json = nlohmann::ordered_json;

/// How often a signal is looked for.
constexpr Duration kLook = std::chrono::milliseconds(50);

int fail(const std::string& text, int status) {
  std::cerr << "leasehold register: " << text << std::endl;
  return status;
}

struct Wanted {
  std::vector<std::string> servers;
  Registration::Options options;
  bool json = false;
};

Error wrong(std::string text) {
  return {ErrorCode::invalid_argument, std::move(text)};
}

Result<Wanted> parse(const std::vector<std::string>& given, const lease::Clock& clock) {
  const auto flags = ClientFlags::parse(given, holder_flag_names(), {"--json"});
  if (!flags) return flags.error();
  if (flags.value().has("--wait")) return wrong("--wait: it registers for as long as it runs");
  std::vector<std::string> words = flags.value().words();
  words.insert(words.end(), flags.value().rest().begin(), flags.value().rest().end());
  if (words.size() != 2) return wrong("expected a key and a value");
  auto holder = holder_flags(flags.value(), clock);
  if (!holder) return holder.error();
  Wanted wanted;
  wanted.servers = holder.value().servers;
  wanted.options.lease = holder.value().options;
  wanted.options.key = words[0];
  wanted.options.value = words[1];
  wanted.json = flags.value().has("--json");
  return wanted;
}

void say(bool json, Registration::State state, const std::string& why) {
  const char* const event = state == Registration::State::registered ? "registered" : "registering";
  if (json) {
    Json line = {{"event", event}};
    if (!why.empty()) line["why"] = why;
    std::cout << line.dump(-1, ' ', false, Json::error_handler_t::replace) << std::endl;
  } else {
    std::cout << event << (why.empty() ? "" : "  ") << why << std::endl;
  }
}

}  // namespace

int run_register_command(const std::vector<std::string>& arguments) {
  if (wants_help(arguments)) {
    std::cout << kRegisterUsage << kHolderUsage;
    return 0;
  }
  const node::SystemClock clock;
  auto wanted = parse(arguments, clock);
  if (!wanted) return fail(wanted.error().message + "\n" + kRegisterUsage + kHolderUsage, kUsage);
  const EndingSignals signals;
  client::RemoteLeases leases(wanted.value().servers);
  client::RemoteKeys keys(wanted.value().servers);
  Registration::Options& options = wanted.value().options;
  options.changed = [json = wanted.value().json](Registration::State state,
                                                 const std::string& why) { say(json, state, why); };
  const auto registration = Registration::begin(leases, keys, clock, std::move(options));
  if (!registration) return fail(registration.error().message, kUsage);
  while (signals.next_ending(kLook) == 0) {
  }
  return 0;
}

}  // namespace leasehold::cli
