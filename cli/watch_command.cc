#include <leasehold/cli/access.h>
#include <leasehold/cli/commands.h>
#include <leasehold/cli/ending_signals.h>
#include <leasehold/cli/exit_status.h>
#include <leasehold/client/key_watch.h>
#include <leasehold/server/front/words.h>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <iostream>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace leasehold::cli {
namespace {

constexpr const char* kWatchText = R"(
Prints each change of keys until a signal comes, one line each: the revision, what happened
(set, deleted, expired, revoked) and the key. Without --key and --prefix it watches every key.
If a node ends, it goes on at another one, without a gap and without repeating a change.
If that is not possible (it was away for longer than the nodes remember), it prints resync,
and then each key that exists (is): a copy of the keys has to begin again with these.

Exit status: 0 ended by a signal, 2 a flag is wrong, 4 the nodes refuse the watch.

Example:
  leasehold watch --servers 10.0.0.1:7201,10.0.0.2:7201 --prefix jobs/ --values)";

using client::KeyWatch;
using Json = nlohmann::ordered_json;

/// How often a signal is looked for.
constexpr lease::Duration kLook = std::chrono::milliseconds(50);

struct WantedWatch {
  KeyWatch::Options options;
  std::vector<std::string> words;
  bool json = false;
};

/// As it is, if that is one word that anybody can read; else as JSON.
std::string shown(const std::string& text) {
  const bool plain = !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return static_cast<unsigned char>(c) > ' ' && c != 0x7f && c != '"';
  });
  return plain ? text : Json(text).dump(-1, ' ', false, Json::error_handler_t::replace);
}

void say_line(const KeyWatch::Event& event) {
  std::cout << event.revision << "  " << client::event_name(event.kind);
  if (event.kind != KeyWatch::Event::Kind::resync) std::cout << "  " << shown(event.key);
  if (event.value) std::cout << "  " << shown(*event.value);
  std::cout << "\n";
}

void say_object(const KeyWatch::Event& event) {
  Json object = {{"revision", event.revision}, {"event", client::event_name(event.kind)}};
  if (event.kind != KeyWatch::Event::Kind::resync) object["key"] = event.key;
  if (event.version != 0) {
    object["create_revision"] = event.create_revision;
    object["version"] = event.version;
  }
  if (event.lease.value() != 0) object["lease"] = event.lease.value();
  if (event.value) object["value"] = *event.value;
  std::cout << object.dump(-1, ' ', false, Json::error_handler_t::replace) << "\n";
}

/// Until a signal comes. Errors: what does not pass.
Result<void> run(WantedWatch wanted, const EndingSignals& signals) {
  // Each trouble is said once, until there was none for a while.
  std::set<std::string> said;
  wanted.options.trouble = [&said](const std::string& text) {
    if (said.insert(text).second) std::cerr << "leasehold watch: " << text << std::endl;
  };
  wanted.options.access = access();
  KeyWatch watch(std::move(wanted.options));
  while (signals.next_ending(lease::Duration(0)) == 0) {
    const auto events = watch.next(kLook);
    if (!events) return events.error();
    if (events.value().empty()) continue;
    said.clear();
    for (const KeyWatch::Event& event : events.value()) {
      wanted.json ? say_object(event) : say_line(event);
    }
    std::cout.flush();
  }
  return {};
}

int watch(WantedWatch& wanted) {
  if (!wanted.words.empty()) {
    return misused("watch", "expected flags only: write a key after --key");
  }
  if (wanted.options.existing && wanted.options.from) {
    return misused("watch", "--from and --existing: choose one");
  }
  const EndingSignals signals;
  const auto done = run(std::move(wanted), signals);
  if (done) return 0;
  return fail("watch", done.error().message,
              done.error().code == ErrorCode::invalid_argument ? kUsage : kNotExecuted);
}

/// Adds a flag of which each value is one more text.
void add_texts(Flags& flags, Flag flag, std::vector<std::string>& texts) {
  flag.repeated = true;
  flags.add(flag, [&texts](const std::string& text) -> Result<void> {
    texts.push_back(text);
    return {};
  });
}

}  // namespace

Run add_watch(Flags& flags) {
  const auto wanted = std::make_shared<WantedWatch>();
  KeyWatch::Options& options = wanted->options;
  flags.add_words(wanted->words,
                  "--servers HOST:PORT,... [--key KEY]... [--prefix PREFIX]... [OPTIONS]");
  flags.add_servers(options.servers);
  add_texts(flags, {"--key", "KEY", "Watch this key; may be given several times"}, options.keys);
  add_texts(flags,
            {"--prefix", "PREFIX", "Watch the keys with this prefix; may be given several times"},
            options.prefixes);
  flags.add({"--from", "REVISION", "Begin with this revision, not with the next one"},
            [&options](const std::string& text) -> Result<void> {
              const auto from = server::parse_integer(text);
              if (!from || *from < 1) {
                return Error{ErrorCode::invalid_argument, "expected a revision: a number from 1"};
              }
              options.from = static_cast<std::uint64_t>(*from);
              return {};
            });
  flags.add({"--existing", "", "Print the existing keys first"}, options.existing);
  flags.add({"--values", "", "Print the values too"}, options.values);
  flags.add({"--json", "", "Print each line as a JSON object"}, wanted->json);
  flags.set_footer(kWatchText);
  return [wanted] { return watch(*wanted); };
}

}  // namespace leasehold::cli
