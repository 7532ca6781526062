#include <leasehold/cli/commands.h>
#include <leasehold/cli/ending_signals.h>
#include <leasehold/cli/exit_status.h>
#include <leasehold/cli/holder_flags.h>
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

constexpr const char* kText = R"(
Waits until nobody else leads NAME, says `elected` with the fencing token, and leads until a
signal comes: then somebody else may at once. When the leadership could not be renewed in
time it says `over` and ends; what is done under it has to stop within the margin. With
--grace it says `grace` first, on which the same has to stop, and then `again` if it leads
on, with the token as before, or `over`. To run a command under it: leasehold lock. With
--observe it does not stand, and says who leads whenever that changes.

Exit status: 0 ended by a signal, 1 another leads, 2 a flag is wrong, 4 the nodes were not
reached, 6 the leadership was lost.

Example:
  leasehold elect scheduler --servers 10.0.0.1:7201,10.0.0.2:7201)";

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

struct Wanted {
  HolderFlags holder;
  LeaseHolder::Options options;
  std::vector<std::string> words;
  bool observe = false;
  bool json = false;
};

/// One line for a person who watches: "elected  token 7".
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
  client::RemoteLeases leases(wanted.holder.servers);
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
  client::RemoteLeases leases(wanted.holder.servers);
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

int run(Wanted& wanted) {
  if (wanted.words.size() != 1) {
    return misused("elect", "expected one name; to run a command there is leasehold lock");
  }
  const node::SystemClock clock;
  const grant::LeaseTerms terms = wanted.options.terms;
  auto options = wanted.holder.options(clock);
  if (!options) return misused("elect", options.error().message);
  wanted.options = std::move(options).value();
  wanted.options.terms = terms;
  wanted.options.name = wanted.words.front();
  const EndingSignals signals;
  return wanted.observe ? observe(wanted, signals) : lead(wanted, signals, clock);
}

}  // namespace

Run add_elect(Flags& flags) {
  const auto wanted = std::make_shared<Wanted>();
  flags.add_words(wanted->words, "NAME --servers HOST:PORT,... [OPTIONS]");
  wanted->holder.add(flags);
  wanted->holder.add_wait(flags);
  add_term(
      flags,
      {"--grace", "DURATION",
       "After its time to live nobody else gets it for this long; a renewal gives it back", "0s"},
      grant::kLeaseGraceMax, wanted->options.terms.grace);
  add_term(flags,
           {"--lock-delay", "DURATION",
            "When it was not renewed, nobody leads for this long: time for what the old leader has "
            "still under way",
            "0s"},
           grant::kLeaseDelayMax, wanted->options.terms.delay);
  flags.add({"--observe", "", "Say who leads, until a signal comes"}, wanted->observe);
  flags.add({"--json", "", "An object for each line"}, wanted->json);
  flags.set_footer(kText);
  return [wanted] { return run(*wanted); };
}

}  // namespace leasehold::cli
