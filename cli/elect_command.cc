#include <leasehold/cli/client_flags.h>
#include <leasehold/cli/elect_command.h>
#include <leasehold/cli/ending_signals.h>
#include <leasehold/cli/exit_status.h>
#include <leasehold/cli/holder_flags.h>
#include <leasehold/client/remote_leases.h>
#include <leasehold/node/system_clock.h>

#include <nlohmann/json.hpp>

#include <iostream>
#include <string_view>
#include <utility>

namespace leasehold::cli {

const char* const kElectUsage =
    "usage: leasehold elect NAME --servers HOST:PORT,... [FLAGS]\n"
    "Waits until nobody else leads NAME, says `elected` with the fencing token, and leads until a\n"
    "signal comes: then somebody else may at once. When the leadership could not be renewed in\n"
    "time it says `over` and ends; what is done under it has to stop within the margin. With\n"
    "--grace it says `grace` first, on which the same has to stop, and then `again` if it leads\n"
    "on, with the token as before, or `over`. To run a command under it: leasehold lock. With\n"
    "--observe it does not stand, and says who leads whenever that changes.\n"
    "Exit status: 0 ended by a signal, 1 another leads, 2 a flag is wrong, 4 the nodes were not\n"
    "reached, 6 the leadership was lost.\n"
    "  --wait DURATION                how long it may be another's (default: for ever)\n"
    "  --grace DURATION               behind its time to live it is nobody else's for so long,\n"
    "                                 and a renewal gives it back (default 0s)\n"
    "  --lock-delay DURATION          when it was not renewed, nobody leads for so long: time for\n"
    "                                 what the old leader left under way (default 0s)\n"
    "  --observe                      say who leads, until a signal comes\n"
    "  --json                         an object for each line\n"
    "Example: leasehold elect scheduler --servers 10.0.0.1:7201,10.0.0.2:7201\n";

namespace {

using client::LeaseHolder;
using lease::Duration;
using Json = nlohmann::ordered_json;

/// How often a signal is looked for, and whether the office is still held.
constexpr Duration kLook = std::chrono::milliseconds(50);
/// Between two questions who leads.
constexpr Duration kAskAgain = std::chrono::milliseconds(200);

int fail(const std::string& text, int status) {
  std::cerr << "leasehold elect: " << text << std::endl;
  return status;
}

struct Wanted : HolderFlags {
  bool observe = false;
  bool json = false;
};

Error wrong(std::string text) {
  return {ErrorCode::invalid_argument, std::move(text)};
}

Result<Wanted> parse(const std::vector<std::string>& given, const lease::Clock& clock) {
  std::vector<std::string_view> valued = holder_flag_names();
  valued.insert(valued.end(), {"--grace", "--lock-delay"});
  const auto flags = ClientFlags::parse(given, valued, {"--observe", "--json"});
  if (!flags) return flags.error();
  if (flags.value().words().size() != 1 || !flags.value().rest().empty()) {
    return wrong("expected one name; to run a command there is leasehold lock");
  }
  auto holder = holder_flags(flags.value(), clock);
  if (!holder) return holder.error();
  const auto grace = term_of(flags.value(), "--grace", grant::kLeaseGraceMax);
  if (!grace) return grace.error();
  const auto delay = term_of(flags.value(), "--lock-delay", grant::kLeaseDelayMax);
  if (!delay) return delay.error();
  Wanted wanted{std::move(holder).value()};
  wanted.options.terms = {grace.value(), delay.value()};
  wanted.options.name = flags.value().words().front();
  wanted.observe = flags.value().has("--observe");
  wanted.json = flags.value().has("--json");
  return wanted;
}

/// One line for whoever reads along: "elected  token 7".
void say(const Wanted& wanted, const char* what, const std::string& holder,
         grant::FencingToken token) {
  if (wanted.json) {
    Json line = {{"event", what}};
    if (!holder.empty()) line["holder"] = holder;
    if (token.value() != 0) line["token"] = token.value();
    std::cout << line.dump(-1, ' ', false, Json::error_handler_t::replace) << std::endl;
    return;
  }
  std::cout << what;
  if (!holder.empty()) std::cout << "  " << holder;
  if (token.value() != 0) std::cout << "  token " << token.value();
  std::cout << std::endl;
}

int lead(const Wanted& wanted, const EndingSignals& signals, const lease::Clock& clock) {
  client::RemoteLeases leases(wanted.servers);
  LeaseHolder::Options options = wanted.options;
  bool ended = false;
  options.give_up = [&] {
    ended = signals.next_ending(Duration(0)) > 0;
    return ended;
  };
  const auto held = LeaseHolder::acquire(leases, clock, options);
  if (!held && ended) return 0;
  if (!held) return fail(held.error().message, status_of_refusal(held.error()));
  LeaseHolder& office = *held.value();
  say(wanted, "elected", options.holder, office.token());
  bool in_grace = false;
  for (;;) {
    const LeaseHolder::State state = office.state();
    if (grant::HeldLease::is_over(state)) break;
    if (in_grace != (state == LeaseHolder::State::in_grace)) {
      in_grace = !in_grace;
      say(wanted, in_grace ? "grace" : "again", options.holder, office.token());
    }
    if (signals.next_ending(kLook) == 0) continue;
    if (const auto released = office.release(); !released) {
      std::cerr << "leasehold elect: not given up, so others wait until it ends by time: "
                << released.error().message << std::endl;
    }
    return 0;
  }
  say(wanted, "over", options.holder, office.token());
  return kLockLost;
}

int observe(const Wanted& wanted, const EndingSignals& signals) {
  client::RemoteLeases leases(wanted.servers);
  grant::FencingToken seen{0};
  bool told = false;
  std::string trouble;
  do {
    const auto found = leases.find(wanted.options.name, wanted.options.timing.max_round_trip);
    if (!found && found.error().code != ErrorCode::not_found) {
      if (found.error().code == ErrorCode::invalid_argument) {
        return fail(found.error().message, kUsage);
      }
      if (trouble.empty()) std::cerr << "leasehold elect: " << found.error().message << std::endl;
      trouble = found.error().message;
      continue;
    }
    trouble.clear();
    const grant::FencingToken token = found ? found.value().token : grant::FencingToken(0);
    if (told && token == seen) continue;
    told = true;
    seen = token;
    say(wanted, found ? "leads" : "nobody", found ? found.value().holder : "", token);
  } while (signals.next_ending(kAskAgain) == 0);
  return 0;
}

}  // namespace

int run_elect_command(const std::vector<std::string>& arguments) {
  if (wants_help(arguments)) {
    std::cout << kElectUsage << kHolderUsage;
    return 0;
  }
  const node::SystemClock clock;
  const auto wanted = parse(arguments, clock);
  if (!wanted) return fail(wanted.error().message + "\n" + kElectUsage + kHolderUsage, kUsage);
  const EndingSignals signals;
  return wanted.value().observe ? observe(wanted.value(), signals)
                                : lead(wanted.value(), signals, clock);
}

}  // namespace leasehold::cli
