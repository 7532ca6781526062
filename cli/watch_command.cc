#include <leasehold/cli/client_flags.h>
#include <leasehold/cli/ending_signals.h>
#include <leasehold/cli/exit_status.h>
#include <leasehold/cli/leader.h>
#include <leasehold/cli/watch_command.h>
#include <leasehold/client/key_watch.h>
#include <leasehold/server/front/words.h>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <iostream>
#include <set>
#include <utility>

namespace leasehold::cli {

const char* const kWatchUsage =
    "usage: leasehold watch --servers HOST:PORT,... [--key KEY]... [--prefix PREFIX]... [FLAGS]\n"
    "Says what happens to keys until a signal comes, a line for each: the revision, what happened\n"
    "(set, deleted, expired, revoked) and the key. Without a key or a prefix: to every key. It\n"
    "goes on at another node when one ends, without a gap and without saying anything twice.\n"
    "When that is not possible (it was away for longer than the nodes remember) it says resync,\n"
    "and then each key that is there (is): whoever keeps a copy begins it anew with these.\n"
    "Exit status: 0 ended by a signal, 2 a flag is wrong, 4 the nodes refuse it.\n"
    "  --servers HOST:PORT,...   client addresses of the nodes\n"
    "  --key KEY                 watch this key; may be given several times\n"
    "  --prefix PREFIX           watch the keys that begin so; may be given several times\n"
    "  --from REVISION           begin with this one, not with the next one\n"
    "  --existing                say first which keys are there\n"
    "  --values                  say the values too\n"
    "  --json                    an object for each line\n"
    "  --help                    this\n"
    "Example: leasehold watch --servers 10.0.0.1:7201,10.0.0.2:7201 --prefix jobs/ --values\n";

namespace {

using client::KeyWatch;
using Json = nlohmann::ordered_json;

/// How often a signal is looked for.
constexpr lease::Duration kLook = std::chrono::milliseconds(50);

int fail(const std::string& text, int status) {
  std::cerr << "leasehold watch: " << text << std::endl;
  return status;
}

Error wrong(std::string text) {
  return {ErrorCode::invalid_argument, std::move(text)};
}

struct Wanted {
  KeyWatch::Options options;
  bool json = false;
};

Result<Wanted> parse(const std::vector<std::string>& given) {
  const auto parsed = ClientFlags::parse(given, {"--servers", "--key", "--prefix", "--from"},
                                         {"--existing", "--values", "--json"});
  if (!parsed) return parsed.error();
  const ClientFlags& flags = parsed.value();
  if (!flags.words().empty() || !flags.rest().empty()) {
    return wrong("expected flags only: a key stands behind --key");
  }
  Wanted wanted;
  wanted.json = flags.has("--json");
  KeyWatch::Options& options = wanted.options;
  options.servers = split_servers(flags.text("--servers"));
  if (options.servers.empty()) return wrong("--servers is missing");
  options.keys = flags.texts("--key");
  options.prefixes = flags.texts("--prefix");
  options.existing = flags.has("--existing");
  options.values = flags.has("--values");
  if (!flags.has("--from")) return wanted;
  const auto from = server::parse_integer(flags.text("--from"));
  if (!from || *from < 1) return wrong("--from: expected a revision, a number from 1 on");
  if (options.existing) return wrong("--from and --existing: choose one");
  options.from = static_cast<std::uint64_t>(*from);
  return wanted;
}

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
Result<void> run(Wanted wanted, const EndingSignals& signals) {
  // Each trouble is said once, until there was none for a while.
  std::set<std::string> said;
  wanted.options.trouble = [&said](const std::string& text) {
    if (said.insert(text).second) std::cerr << "leasehold watch: " << text << std::endl;
  };
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

}  // namespace

int run_watch_command(const std::vector<std::string>& arguments) {
  if (wants_help(arguments)) {
    std::cout << kWatchUsage;
    return 0;
  }
  auto wanted = parse(arguments);
  if (!wanted) return fail(wanted.error().message + "\n" + kWatchUsage, kUsage);
  const EndingSignals signals;
  const auto done = run(std::move(wanted).value(), signals);
  if (done) return 0;
  return fail(done.error().message,
              done.error().code == ErrorCode::invalid_argument ? kUsage : kNotExecuted);
}

}  // namespace leasehold::cli
