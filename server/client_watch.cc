#include <leasehold/base/assert.h>
#include <leasehold/server/client_flags.h>
#include <leasehold/server/client_leader.h>
#include <leasehold/server/client_watch.h>
#include <leasehold/server/ending_signals.h>
#include <leasehold/server/exit_status.h>
#include <leasehold/server/resp_client.h>
#include <leasehold/server/words.h>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <deque>
#include <iostream>
#include <map>
#include <optional>
#include <utility>

namespace leasehold::server {

const char* const kWatchUsage =
    "usage: leasehold watch --servers HOST:PORT,... [--key KEY]... [--prefix PREFIX]... [FLAGS]\n"
    "Says what happens to keys until a signal comes, a line for each: the revision, what happened\n"
    "(set, deleted, expired, revoked) and the key. Without a key or a prefix: to every key. It "
    "goes\n"
    "on at another node when one ends, without a gap and without saying anything twice.\n"
    "When that is not possible (it was away for longer than the nodes remember) it says resync, "
    "and\n"
    "then each key that is there (is): whoever keeps a copy begins it anew with these.\n"
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

using Json = nlohmann::ordered_json;
using Timeout = RespClient::Timeout;
using Clock = std::chrono::steady_clock;
using Kind = RespValue::Kind;

/// How often a signal is looked for.
constexpr Timeout kLook{50};
/// Behind a round of servers of which none took it.
constexpr std::chrono::milliseconds kPause{200};
constexpr Timeout kConnectTimeout{2000};
constexpr Timeout kReplyTimeout{5000};
/// After so much silence the node is asked for a read, which shows that it still belongs to a group
/// that has a leader.
constexpr std::chrono::seconds kSilence{2};

int fail(const std::string& text, int status) {
  std::cerr << "leasehold watch: " << text << std::endl;
  return status;
}

Error wrong(std::string text) {
  return {ErrorCode::invalid_argument, std::move(text)};
}

struct Wanted {
  std::vector<std::string> servers;
  std::vector<std::string> keys;
  std::vector<std::string> prefixes;
  std::uint64_t from = 0;  ///< 0: the next one
  bool existing = false;
  bool values = false;
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
  wanted.servers = split_servers(flags.text("--servers"));
  if (wanted.servers.empty()) return wrong("--servers is missing");
  wanted.keys = flags.texts("--key");
  wanted.prefixes = flags.texts("--prefix");
  if (wanted.keys.empty() && wanted.prefixes.empty()) wanted.prefixes = {""};
  wanted.existing = flags.has("--existing");
  wanted.values = flags.has("--values");
  wanted.json = flags.has("--json");
  if (!flags.has("--from")) return wanted;
  const auto from = parse_integer(flags.text("--from"));
  if (!from || *from < 1) return wrong("--from: expected a revision, a number from 1 on");
  if (wanted.existing) return wrong("--from and --existing: choose one");
  wanted.from = static_cast<std::uint64_t>(*from);
  return wanted;
}

/// As it is, if that is one word that anybody can read; else as JSON.
std::string shown(const std::string& text) {
  const bool plain = !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return static_cast<unsigned char>(c) > ' ' && c != 0x7f && c != '"';
  });
  return plain ? text : Json(text).dump(-1, ' ', false, Json::error_handler_t::replace);
}

/// One key, as an event or as what is there.
struct Line {
  std::uint64_t revision = 0;
  std::string what;
  std::string key;
  std::uint64_t create_revision = 0;
  std::uint64_t version = 0;
  std::uint64_t lease = 0;
  std::optional<std::string> value;
};

std::uint64_t number_of(const RespValue& value) {
  return static_cast<std::uint64_t>(value.integer);
}

class Watch {
 public:
  Watch(Wanted wanted, const EndingSignals& signals)
      : wanted_(std::move(wanted)),
        signals_(signals),
        next_(wanted_.from),
        reread_(wanted_.existing) {}

  /// Until a signal comes. Errors: what does not pass.
  Result<void> run() {
    std::size_t nowhere = 0;
    for (std::size_t tried = 1; !ended_; ++tried) {
      const auto served = serve_from(wanted_.servers[at_]);
      if (ended_) break;
      LEASEHOLD_ASSERT(!served.ok());
      const Error& error = served.error();
      if (error.code == ErrorCode::unsupported) return error;
      nowhere = error.code == ErrorCode::invalid_argument ? nowhere + 1 : 0;
      if (nowhere == wanted_.servers.size()) return error;
      complain(wanted_.servers[at_] + ": " + error.message);
      at_ = (at_ + 1) % wanted_.servers.size();
      if (std::exchange(well_, false)) tried = 0;
      if (tried % wanted_.servers.size() != 0 || tried == 0) continue;
      ended_ = signals_.next_ending(kPause) > 0;
    }
    return {};
  }

 private:
  /// Until the connection is of no use any more, or a signal comes.
  Result<void> serve_from(const std::string& server) {
    if (signals_.next_ending(lease::Duration(0)) > 0) ended_ = true;
    if (ended_) return {};
    auto client = RespClient::connect(server, kConnectTimeout);
    if (!client) return client.error();
    client_.emplace(std::move(client).value());
    waiting_.clear();
    const auto greeted = ask({"HELLO", "3"});
    if (!greeted) return greeted.error();
    if (auto begun = begin(); !begun) return begun;
    well_ = true;
    said_.clear();
    return listen();
  }

  Result<void> begin() {
    std::vector<std::string> words = {"LEASEHOLD", "WATCH"};
    for (const std::string& key : wanted_.keys) words.insert(words.end(), {"KEY", key});
    for (const std::string& prefix : wanted_.prefixes) {
      words.insert(words.end(), {"PREFIX", prefix});
    }
    if (wanted_.values) words.emplace_back("VALUES");
    const std::vector<std::string> from_now = words;
    if (next_ != 0 && !reread_) {
      words.insert(words.end(), {"FROM", std::to_string(next_)});
    }
    auto reply = ask(words);
    if (!reply) return reply.error();
    // This group has never been so far: it was made of a backup, perhaps.
    if (reply.value().is_error("ERR") && reply.value().text.rfind("ERR revision", 0) == 0) {
      std::cerr << "leasehold watch: " << reply.value().text << std::endl;
      reread_ = true;
      reply = ask(from_now);
      if (!reply) return reply.error();
    }
    const RespValue& value = reply.value();
    if (value.not_executed()) return Error{ErrorCode::unavailable, value.text};
    if (value.kind == Kind::error) return Error{ErrorCode::unsupported, value.text};
    if (value.kind != Kind::array || value.items.size() != 2) return unexpected();
    next_ = number_of(value.items[1]);
    if (value.items[0].text == "resync") reread_ = true;
    return reread_ ? read_again() : Result<void>();
  }

  Result<void> listen() {
    auto heard = Clock::now();
    while (!ended_) {
      if (!waiting_.empty()) {
        const RespValue message = std::move(waiting_.front());
        waiting_.pop_front();
        if (auto told = take(message); !told) return told;
        continue;
      }
      ended_ = signals_.next_ending(lease::Duration(0)) > 0;
      if (ended_) break;
      auto message = client_->reply(kLook);
      if (message) {
        heard = Clock::now();
        waiting_.push_back(std::move(message).value());
        continue;
      }
      if (message.error().code != ErrorCode::timed_out) return message.error();
      if (Clock::now() - heard < kSilence) continue;
      const auto size = ask({"DBSIZE"});
      if (!size) return size.error();
      if (size.value().kind != Kind::integer) {
        return Error{ErrorCode::unavailable, size.value().text};
      }
      heard = Clock::now();
    }
    return {};
  }

  /// A reply; the messages before it wait.
  Result<RespValue> ask(const std::vector<std::string>& words) {
    if (auto sent = client_->send({words}, kReplyTimeout); !sent) return sent.error();
    for (;;) {
      auto reply = client_->reply(kReplyTimeout);
      if (!reply || reply.value().kind != Kind::push) return reply;
      waiting_.push_back(std::move(reply).value());
    }
  }

  static Error unexpected() { return {ErrorCode::malformed, "an answer of an unexpected kind"}; }

  Result<void> take(const RespValue& message) {
    if (message.kind != Kind::push || message.items.size() < 2) return unexpected();
    const std::uint64_t revision = number_of(message.items[1]);
    const std::string& word = message.items[0].text;
    if (word == "resync") {
      reread_ = true;
      next_ = revision;
      return read_again();
    }
    // What it has read already.
    if (revision >= next_ && word == "events" && message.items.size() == 3) {
      for (const RespValue& item : message.items[2].items) {
        if (item.items.size() < 5) return unexpected();
        Line line{revision,
                  item.items[1].text,
                  item.items[0].text,
                  number_of(item.items[2]),
                  number_of(item.items[3]),
                  number_of(item.items[4]),
                  std::nullopt};
        if (item.items.size() > 5 && item.items[5].kind == Kind::bulk) {
          line.value = item.items[5].text;
        }
        const auto ahead = ahead_.find(line.key);
        if (ahead == ahead_.end() || ahead->second < revision) say(line);
      }
      std::cout.flush();
    }
    next_ = std::max(next_, revision + 1);
    return {};
  }

  /// Everything that is there, and the revision behind which it goes on: that of the first part. A
  /// key of a later part may be ahead of it, and its events are left out until they have caught up.
  Result<void> read_again() {
    std::vector<Line> lines;
    std::optional<std::uint64_t> first;
    std::map<std::string, std::uint64_t> ahead;
    const auto read = [&](const std::string& prefix, bool whole) -> Result<void> {
      std::optional<std::string> after;
      do {
        std::vector<std::string> words = {"LEASEHOLD", "RANGE", prefix, "COUNT",
                                          whole ? "1" : "1000"};
        if (wanted_.values) words.emplace_back("VALUES");
        if (after) words.insert(words.end(), {"AFTER", *after});
        const auto reply = ask(words);
        if (!reply) return reply.error();
        const RespValue& part = reply.value();
        if (part.kind == Kind::error) return Error{ErrorCode::unavailable, part.text};
        if (part.kind != Kind::array || part.items.size() != 3) return unexpected();
        if (!first) first = number_of(part.items[0]);
        for (const RespValue& row : part.items[2].items) {
          if (row.items.size() < 5) return unexpected();
          Line line{number_of(row.items[1]),
                    "is",
                    row.items[0].text,
                    number_of(row.items[2]),
                    number_of(row.items[3]),
                    number_of(row.items[4]),
                    std::nullopt};
          if (row.items.size() > 5) line.value = row.items[5].text;
          // What begins with a key comes behind it.
          if (whole && line.key != prefix) continue;
          if (line.revision > *first) ahead[line.key] = line.revision;
          lines.push_back(std::move(line));
        }
        after.reset();
        if (!whole && part.items[1].kind == Kind::bulk) after = part.items[1].text;
      } while (after);
      return {};
    };
    for (const std::string& key : wanted_.keys) {
      if (auto done = read(key, true); !done) return done;
    }
    for (const std::string& prefix : wanted_.prefixes) {
      if (auto done = read(prefix, false); !done) return done;
    }
    // It was there already when the watch began: whoever watches goes on behind it.
    say_resync(*first);
    for (const Line& line : lines) say(line);
    std::cout.flush();
    ahead_ = std::move(ahead);
    next_ = std::max(next_, *first + 1);
    reread_ = false;
    return {};
  }

  void say_resync(std::uint64_t revision) const {
    if (wanted_.json) {
      std::cout << Json{{"revision", revision}, {"event", "resync"}}.dump() << "\n";
    } else {
      std::cout << revision << "  resync\n";
    }
  }

  void say(const Line& line) const {
    if (!wanted_.json) {
      std::cout << line.revision << "  " << line.what << "  " << shown(line.key);
      if (line.value) std::cout << "  " << shown(*line.value);
      std::cout << "\n";
      return;
    }
    Json object = {{"revision", line.revision}, {"event", line.what}, {"key", line.key}};
    if (line.version != 0) {
      object["create_revision"] = line.create_revision;
      object["version"] = line.version;
    }
    if (line.lease != 0) object["lease"] = line.lease;
    if (line.value) object["value"] = *line.value;
    std::cout << object.dump(-1, ' ', false, Json::error_handler_t::replace) << "\n";
  }

  /// Once, until it is another trouble or there was none for a while.
  void complain(const std::string& text) {
    if (!said_.insert({text, true}).second) return;
    std::cerr << "leasehold watch: " << text << std::endl;
  }

  const Wanted wanted_;
  const EndingSignals& signals_;
  std::optional<RespClient> client_;
  std::size_t at_ = 0;
  std::deque<RespValue> waiting_;               ///< messages, in their order
  std::uint64_t next_ = 0;                      ///< the first revision that was not said; 0: any
  bool reread_ = false;                         ///< what is there has to be said first
  std::map<std::string, std::uint64_t> ahead_;  ///< keys that were read later than next_
  std::map<std::string, bool> said_;
  bool well_ = false;
  bool ended_ = false;
};

}  // namespace

int run_watch_command(const std::vector<std::string>& arguments) {
  if (wants_help(arguments)) {
    std::cout << kWatchUsage;
    return 0;
  }
  auto wanted = parse(arguments);
  if (!wanted) return fail(wanted.error().message + "\n" + kWatchUsage, kUsage);
  const EndingSignals signals;
  const auto run = Watch(std::move(wanted).value(), signals).run();
  if (run) return 0;
  return fail(run.error().message,
              run.error().code == ErrorCode::invalid_argument ? kUsage : kNotExecuted);
}

}  // namespace leasehold::server
