#include <leasehold/cli/access.h>
#include <leasehold/cli/commands.h>
#include <leasehold/cli/ending_signals.h>
#include <leasehold/cli/exit_status.h>
#include <leasehold/cli/holder_flags.h>
#include <leasehold/client/registration.h>
#include <leasehold/client/remote_keys.h>
#include <leasehold/client/remote_leases.h>
#include <leasehold/node/system_clock.h>

#include <nlohmann/json.hpp>

#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace leasehold::cli {
namespace {

constexpr const char* kRegisterText = R"(
Keeps KEY with VALUE while this command runs, so that others see that a service is alive, and
where: leasehold watch shows when the key comes and goes. If a signal ends the command, the
key is revoked at once; if the command dies, or the nodes hear nothing from it for the time to
live, the key expires. If the key is lost while the command runs, it is written again. The
command prints `registered`, and `registering` with the reason when the key is not there.

Exit status: 0 ended by a signal, 2 a flag is wrong.

Example:
  leasehold register services/web/7 10.0.0.7:80 --servers 10.0.0.1:7201,10.0.0.2:7201)";

using client::Registration;
using lease::Duration;
using Json = nlohmann::ordered_json;

/// How often a signal is looked for.
constexpr Duration kLook = std::chrono::milliseconds(50);

struct WantedRegister {
  HolderFlags holder;
  std::vector<std::string> words;
  bool json = false;
};

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

int run(const WantedRegister& wanted) {
  if (wanted.words.size() != 2) return misused("register", "expected a key and a value");
  const node::SystemClock clock;
  auto held = wanted.holder.options(clock);
  if (!held) return misused("register", held.error().message);
  Registration::Options options;
  options.lease = std::move(held).value();
  options.key = wanted.words[0];
  options.value = wanted.words[1];
  options.changed = [json = wanted.json](Registration::State state, const std::string& why) {
    say(json, state, why);
  };
  const EndingSignals signals;
  set_group_of(wanted.words[0]);
  client::RemoteLeases leases(wanted.holder.servers, access());
  client::RemoteKeys keys(wanted.holder.servers, access());
  const auto registration = Registration::begin(leases, keys, clock, std::move(options));
  if (!registration) {
    std::cerr << "leasehold register: " << registration.error().message << std::endl;
    return kUsage;
  }
  while (signals.next_ending(kLook) == 0) {
  }
  return 0;
}

}  // namespace

Run add_register(Flags& flags) {
  const auto wanted = std::make_shared<WantedRegister>();
  flags.add_words(wanted->words, "KEY VALUE --servers HOST:PORT,... [OPTIONS]");
  wanted->holder.add(flags);
  flags.add({"--json", "", "Print each line as a JSON object"}, wanted->json);
  flags.set_footer(kRegisterText);
  return [wanted] { return run(*wanted); };
}

}  // namespace leasehold::cli
