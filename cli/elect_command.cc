#include <leasehold/cli/access.h>
#include <leasehold/cli/commands.h>
#include <leasehold/cli/ending_signals.h>
#include <leasehold/cli/exit_status.h>
#include <leasehold/cli/holder_flags.h>
#include <leasehold/client/holder_record.h>
#include <leasehold/client/remote_keys.h>
#include <leasehold/client/remote_leases.h>
#include <leasehold/node/system_clock.h>

#include <nlohmann/json.hpp>

#include <cstdint>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace leasehold::cli {
namespace {

constexpr const char* kElectText = R"(
Waits until nobody else leads NAME, prints `elected` with the fencing token, and leads until a
signal comes: then another client may lead at once. If the leadership could not be renewed in
time, it prints `over` and ends; the work of the leader has to stop within the margin. With
--grace it prints `grace` first, and the work has to stop at that line; then `again` if it
still leads, with the same token, or `over`. To run a command as leader: leasehold lock. With
--observe it is not a candidate, and prints who leads at each change.

With --record it writes a record under KEY before it prints `elected`: JSON with the fields of
a Kubernetes Lease and the token. `transitions` is how often the leadership has passed to
another holder. Use a KEY for one NAME only; a KEY with another value is refused. With
--observe --record it reads the record, and prints `transitions` once the leader has written it.

Exit status: 0 ended by a signal, 1 another leads, 2 a flag is wrong, 4 the nodes were not
reached, 6 the leadership was lost.

Example:
  leasehold elect scheduler --servers 10.0.0.1:7201,10.0.0.2:7201)";

using client::LeaseHolder;
using lease::Duration;
using Json = nlohmann::ordered_json;

/// How often a signal is looked for, and whether the office is still held.
constexpr Duration kLook = std::chrono::milliseconds(50);
/// Pause between two questions who leads.
constexpr Duration kAskAgain = std::chrono::milliseconds(200);

struct WantedElect {
  HolderFlags holder;
  LeaseHolder::Options options;
  std::vector<std::string> words;
  std::string record;  ///< the key; empty: none
  bool observe = false;
  bool json = false;
};

using Transitions = std::optional<std::uint64_t>;

/// One line for a person who watches: "elected  token 7  transitions 2".
void say(const WantedElect& wanted, const char* what, const std::string& holder,
         grant::FencingToken token, Transitions transitions = {}) {
  if (wanted.json) {
    Json line = {{"event", what}};
    if (!holder.empty()) line["holder"] = holder;
    if (token.value() != 0) line["token"] = token.value();
    if (transitions) line["transitions"] = *transitions;
    std::cout << line.dump(-1, ' ', false, Json::error_handler_t::replace) << std::endl;
    return;
  }
  std::cout << what;
  if (!holder.empty()) std::cout << "  " << holder;
  if (token.value() != 0) std::cout << "  token " << token.value();
  if (transitions) std::cout << "  transitions " << *transitions;
  std::cout << std::endl;
}

/// Leads until a signal comes or the lease is over.
int until_over(const WantedElect& wanted, const EndingSignals& signals, LeaseHolder& office) {
  const std::string& holder = wanted.options.holder;
  bool in_grace = false;
  for (;;) {
    const LeaseHolder::State state = office.state();
    if (grant::HeldLease::is_over(state)) break;
    if (in_grace != (state == LeaseHolder::State::in_grace)) {
      in_grace = !in_grace;
      say(wanted, in_grace ? "grace" : "again", holder, office.token());
    }
    if (signals.next_ending(kLook) == 0) continue;
    if (const auto released = office.release(); !released) {
      std::cerr << "leasehold elect: not given up, so others wait until it ends by time: "
                << released.error().message << std::endl;
    }
    return 0;
  }
  say(wanted, "over", holder, office.token());
  return kLockLost;
}

int lead(const WantedElect& wanted, const EndingSignals& signals, const lease::Clock& clock) {
  set_group_of(wanted.options.name);
  client::RemoteLeases leases(wanted.holder.servers, access());
  LeaseHolder::Options options = wanted.options;
  bool ended = false;
  options.give_up = [&] {
    ended = ended || signals.next_ending(Duration(0)) > 0;
    return ended;
  };
  const auto held = LeaseHolder::acquire(leases, clock, options);
  if (!held && ended) return 0;
  if (!held) return fail("elect", held.error().message, status_of_refusal(held.error()));
  LeaseHolder& office = *held.value();
  // First the record, then the word: so no leader acts that is not counted, and the record never
  // names an older leader than the one that acts. In the other order the leader would act one write
  // earlier, and one that died in between would be missing in the count.
  Transitions transitions;
  if (!wanted.record.empty()) {
    client::RemoteKeys keys(wanted.holder.servers, access());
    const auto record = client::record_holder(keys, clock, options, office, wanted.record);
    if (!record && ended) return 0;
    if (!record) return fail("elect", record.error().message, status_of_refusal(record.error()));
    transitions = record.value().transitions;
  }
  if (!grant::HeldLease::is_over(office.state())) {
    say(wanted, "elected", options.holder, office.token(), transitions);
  }
  return until_over(wanted, signals, office);
}

/// Who leads, as the group and the record say.
struct Leader {
  std::string holder;
  grant::FencingToken token{0};  ///< 0: nobody leads
  /// None: not asked for, or the leader has not written its record.
  Transitions transitions;

  friend bool operator==(const Leader& a, const Leader& b) {
    return a.token == b.token && a.transitions == b.transitions;
  }
};

Result<Leader> ask(const WantedElect& wanted, client::RemoteLeases& leases,
                   client::RemoteKeys& keys) {
  const Duration timeout = wanted.options.timing.max_round_trip;
  const auto found = leases.find(wanted.options.name, timeout);
  if (!found && found.error().code == ErrorCode::not_found) return Leader();
  if (!found) return found.error();
  Leader leader{found.value().holder, found.value().token, {}};
  if (wanted.record.empty()) return leader;
  const auto record = client::read_holder_record(keys, wanted.record, timeout);
  if (!record) return record.error();
  if (record.value() && record.value()->token == leader.token) {
    leader.transitions = record.value()->transitions;
  }
  return leader;
}

int observe(const WantedElect& wanted, const EndingSignals& signals) {
  set_group_of(wanted.options.name);
  client::RemoteLeases leases(wanted.holder.servers, access());
  client::RemoteKeys keys(wanted.holder.servers, access());
  std::optional<Leader> told;
  std::string trouble;
  do {
    const auto leader = ask(wanted, leases, keys);
    if (!leader) {
      const Error& error = leader.error();
      if (error.code == ErrorCode::invalid_argument) return fail("elect", error.message, kUsage);
      if (trouble.empty()) std::cerr << "leasehold elect: " << error.message << std::endl;
      trouble = error.message;
      continue;
    }
    trouble.clear();
    const Leader& now = leader.value();
    if (told == now) continue;
    told = now;
    say(wanted, now.token.value() != 0 ? "leads" : "nobody", now.holder, now.token,
        now.transitions);
  } while (signals.next_ending(kAskAgain) == 0);
  return 0;
}

int run(WantedElect& wanted) {
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
  const auto wanted = std::make_shared<WantedElect>();
  flags.add_words(wanted->words, "NAME --servers HOST:PORT,... [OPTIONS]");
  wanted->holder.add(flags);
  wanted->holder.add_wait(flags);
  add_term(flags,
           {"--grace", "DURATION",
            "Grace period after the time to live: nobody else leads, and a renewal still keeps the "
            "leadership",
            "0s"},
           grant::kLeaseGraceMax, wanted->options.terms.grace);
  add_term(
      flags,
      {"--lock-delay", "DURATION",
       "After the leadership expires nobody leads for this time: what the old leader has under "
       "way can end",
       "0s"},
      grant::kLeaseDelayMax, wanted->options.terms.delay);
  flags.add({"--record", "KEY", "Keep a record of the leader there, which counts the transitions"},
            wanted->record);
  flags.add({"--observe", "", "Print who leads, until a signal comes"}, wanted->observe);
  flags.add({"--json", "", "Print each line as a JSON object"}, wanted->json);
  flags.set_footer(kElectText);
  return [wanted] { return run(*wanted); };
}

}  // namespace leasehold::cli
