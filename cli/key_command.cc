#include <leasehold/cli/access.h>
#include <leasehold/cli/commands.h>
#include <leasehold/cli/exit_status.h>
#include <leasehold/cli/key_command.h>
#include <leasehold/server/front/lease_word.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <initializer_list>
#include <iostream>
#include <memory>
#include <thread>
#include <utility>

namespace leasehold::cli {

const char* const kClientExamples = R"(Examples:
  leasehold status --servers 127.0.0.1:7201,127.0.0.1:7202 --watch 500ms
  leasehold status --servers 127.0.0.1:7201,127.0.0.1:7202,127.0.0.1:7203
  leasehold put --servers 127.0.0.1:7201 greeting hello
  leasehold get --servers 127.0.0.1:7201,127.0.0.1:7202 greeting)";

namespace {

using Clock = std::chrono::steady_clock;
using Timeout = client::RespClient::Timeout;
using Json = nlohmann::ordered_json;

/// Pause after every server has been tried once.
constexpr auto kKeyPause = std::chrono::milliseconds(20);
/// The part of the whole time limit that one server may take.
constexpr Timeout kConnectTimeout{1000};
/// How long one server is waited for if the command may be sent to another one too.
constexpr Timeout kTry{1000};
/// After this time the user reads what the command waits for.
constexpr auto kPatience = std::chrono::seconds(1);

Error unknown(const std::string& why) {
  return {ErrorCode::unavailable, why + "; the command may be executed"};
}

struct KnownKey {
  const char* name;
  bool (Json::*fits)() const noexcept;
};

bool fits(const Json& object, std::initializer_list<KnownKey> keys) {
  return object.is_object() && std::all_of(keys.begin(), keys.end(), [&](const KnownKey& key) {
           const auto found = object.find(key.name);
           return found != object.end() && ((*found).*key.fits)();
         });
}

/// The commands rely on these. A server of another kind may answer anything.
bool is_status(const Json& status) {
  const bool whole = fits(status, {{"id", &Json::is_number_unsigned},
                                   {"role", &Json::is_string},
                                   {"leader", &Json::is_number_unsigned},
                                   {"term", &Json::is_number_unsigned},
                                   {"commit", &Json::is_number_unsigned},
                                   {"applied", &Json::is_number_unsigned},
                                   {"formed", &Json::is_boolean},
                                   {"lease_left", &Json::is_number},
                                   {"members", &Json::is_array}});
  if (!whole) return false;
  const Json& members = status.at("members");
  return std::all_of(members.begin(), members.end(), [](const Json& member) {
    return fits(member, {{"id", &Json::is_number_unsigned},
                         {"voter", &Json::is_boolean},
                         {"connected", &Json::is_boolean}});
  });
}

}  // namespace

Result<Json> fetch_status(const std::string& server, Timeout timeout) {
  auto client = client::RespClient::connect(server, timeout, access());
  if (!client) return client.error();
  const auto reply = client.value().call({"LEASEHOLD", "STATUS"}, timeout);
  if (!reply) return reply.error();
  if (reply.value().is_error("NOAUTH") || reply.value().is_error("NOPERM")) {
    return Error{ErrorCode::invalid_argument, reply.value().text + " Name a user with --user"};
  }
  if (reply.value().is_error("ERR") && reply.value().text.find("TLS") != std::string::npos) {
    return Error{ErrorCode::invalid_argument, reply.value().text + "; here: --tls-ca FILE"};
  }
  Json status = Json::parse(reply.value().text, nullptr, false);
  if (reply.value().kind != client::RespValue::Kind::bulk || !is_status(status)) {
    return Error{ErrorCode::malformed,
                 "this is no status of a Leasehold server of this version: " + reply.value().text};
  }
  return status;
}

Result<client::RespValue> run_anywhere(const std::vector<std::string>& servers,
                                       const std::vector<std::string>& words, Timeout timeout,
                                       Repeat repeat) {
  const auto start = Clock::now();
  const auto deadline = start + timeout;
  bool told = false;
  bool may_be_executed = false;
  const auto left = [deadline] {
    return std::max(std::chrono::duration_cast<Timeout>(deadline - Clock::now()), Timeout(1));
  };
  std::string last = "no server was tried";
  for (;;) {
    for (const std::string& server : servers) {
      auto client =
          client::RespClient::connect(server, std::min(left(), kConnectTimeout), access());
      if (!client) {
        if (client.error().code == ErrorCode::invalid_argument) return client.error();
        last = fmt::format("{}: {}", server, client.error().message);
        continue;
      }
      const bool numbered = repeat == Repeat::numbered;
      auto reply = client.value().call(words, numbered ? std::min(left(), kTry) : left());
      last = fmt::format("{}: {}", server, reply ? reply.value().text : reply.error().message);
      if (reply && reply.value().not_executed()) continue;
      if (reply && may_be_executed && reply.value().is_error("NOSESSION")) {
        return unknown("the session ended too early; the last answer: " + last);
      }
      // This server refuses; another one may have executed it, and will say so.
      if (reply && may_be_executed && reply.value().kind == client::RespValue::Kind::error)
        continue;
      if (reply && !(numbered && reply.value().is_error("UNKNOWNOUTCOME"))) return reply;
      if (repeat == Repeat::never) return unknown(last);
      may_be_executed = numbered;
    }
    if (Clock::now() + kKeyPause >= deadline) {
      if (may_be_executed) return unknown("no answer in time; the last one: " + last);
      return Error{ErrorCode::timed_out, "no node took the command; the last answer: " + last};
    }
    if (!told && Clock::now() > start + kPatience) {
      told = true;
      std::cerr << "leasehold: still trying; the last answer: " << last << std::endl;
    }
    std::this_thread::sleep_for(kKeyPause);
  }
}

namespace {

struct KeyCommand {
  std::vector<std::string> servers;
  Timeout timeout{5000};
  std::vector<std::string> words;
  /// A write is sent under a session of its own until its outcome is known.
  bool exactly_once = false;
  /// It names something by an id, which is of the group that was chosen, or else of the first one.
  bool names_an_id = false;
};

/// Opening a session twice does no harm: the session whose id was lost ends when its idle time is
/// over.
Result<client::RespValue> run_once(const KeyCommand& command) {
  // The session has to be where the key is.
  if (!command.names_an_id) set_group_of(command.words[1]);
  const auto deadline = Clock::now() + command.timeout;
  const auto left = [deadline] {
    return std::max(std::chrono::duration_cast<Timeout>(deadline - Clock::now()), Timeout(1));
  };
  auto opened = run_anywhere(command.servers, {"LEASEHOLD", "SESSION", "OPEN"}, command.timeout,
                             Repeat::numbered);
  if (!opened && opened.error().code == ErrorCode::unavailable) {
    return Error{ErrorCode::timed_out, "no session was opened: " + opened.error().message};
  }
  if (!opened || opened.value().kind != client::RespValue::Kind::integer) return opened;
  const std::string session = std::to_string(opened.value().integer);
  std::vector<std::string> words = {"LEASEHOLD", "ONCE", session, "1"};
  words.insert(words.end(), command.words.begin(), command.words.end());
  auto reply = run_anywhere(command.servers, words, left(), Repeat::numbered);
  // If it fails, the session ends by being idle.
  static_cast<void>(run_anywhere(command.servers, {"LEASEHOLD", "SESSION", "CLOSE", session},
                                 std::min(left(), kTry), Repeat::never));
  return reply;
}

/// Exit status: 0 done; 1 no such key (for put --if-absent: it exists); 2 a wrong address; 3
/// outcome unknown; 4 not executed: refused, or no node took it.
int run_key_command(const KeyCommand& command) {
  const bool read = command.words.front() == "GET";
  const auto reply = command.exactly_once
                         ? run_once(command)
                         : run_anywhere(command.servers, command.words, command.timeout,
                                        read ? Repeat::read : Repeat::never);
  if (!reply) {
    std::cerr << "leasehold: " << reply.error().message << "\n";
    switch (reply.error().code) {
      case ErrorCode::invalid_argument: return kUsage;
      case ErrorCode::unavailable: return kOutcomeUnknown;
      default: return kNotExecuted;
    }
  }
  const client::RespValue& value = reply.value();
  switch (value.kind) {
    case client::RespValue::Kind::error:
      std::cerr << "leasehold: " << value.text << "\n";
      return value.is_error("UNKNOWNOUTCOME") ? kOutcomeUnknown : kNotExecuted;
    case client::RespValue::Kind::null:
      std::cerr << (read ? "leasehold: no such key\n" : "leasehold: the key exists\n");
      return kNo;
    case client::RespValue::Kind::integer:
      std::cout << value.integer << "\n";
      return command.words.front() == "DEL" && value.integer == 0 ? kNo : 0;
    case client::RespValue::Kind::simple:
    case client::RespValue::Kind::bulk: std::cout << value.text << "\n"; return 0;
    case client::RespValue::Kind::array:
    case client::RespValue::Kind::push: break;
  }
  std::cerr << "leasehold: a reply of an unexpected kind\n";
  return kOutcomeUnknown;
}

/// What get, put and del have in common.
void add_common(Flags& flags, KeyCommand& command, std::string& key) {
  flags.add_servers(command.servers);
  flags.add({"--timeout", "DURATION", "How long to try", "5s"}, command.timeout);
  Flag word{"key", "KEY", "The key"};
  word.required = true;
  flags.add(word, key);
  flags.set_footer(kClientExamples);
}

void add_exactly_once(Flags& flags, KeyCommand& command) {
  flags.add({"--exactly-once", "", "Try again, in a session, until it is known what came of it"},
            command.exactly_once);
}

struct Put : KeyCommand {
  std::string key;
  std::string value;
  bool if_absent = false;
  bool sequential = false;
  std::string lease;  ///< its id or its name; empty: none
};

int run_put(Put wanted) {
  wanted.words = {wanted.sequential ? "SETSEQ" : "SET", wanted.key, wanted.value};
  if (wanted.if_absent) wanted.words.emplace_back("NX");
  if (!wanted.lease.empty()) wanted.words.insert(wanted.words.end(), {"LEASE", wanted.lease});
  return run_key_command(wanted);
}

}  // namespace

Run add_get(Flags& flags) {
  const auto command = std::make_shared<KeyCommand>();
  command->words = {"GET", ""};
  add_common(flags, *command, command->words.back());
  return [command] { return run_key_command(*command); };
}

Run add_del(Flags& flags) {
  const auto command = std::make_shared<KeyCommand>();
  command->words = {"DEL", ""};
  add_common(flags, *command, command->words.back());
  add_exactly_once(flags, *command);
  return [command] { return run_key_command(*command); };
}

Run add_put(Flags& flags) {
  const auto wanted = std::make_shared<Put>();
  add_common(flags, *wanted, wanted->key);
  Flag value{"value", "VALUE", "The value"};
  value.required = true;
  flags.add(value, wanted->value);
  flags.add({"--if-absent", "", "Write only if the key does not exist"}, wanted->if_absent);
  Flag sequential{"--sequential", "", "Write a new key, KEY and a rising number, and print it"};
  sequential.excludes = "--if-absent";
  flags.add(sequential, wanted->sequential);
  flags.add({"--lease", "LEASE", "Delete the key when the lease of this id or name ends"},
            [wanted](const std::string& text) -> Result<void> {
              kv::LeaseRef lease;
              if (const std::string problem = server::parse_lease(text, lease); !problem.empty()) {
                return Error{ErrorCode::invalid_argument, problem};
              }
              wanted->lease = text;
              wanted->names_an_id = lease.name.empty();
              return {};
            });
  add_exactly_once(flags, *wanted);
  return [wanted] { return run_put(*wanted); };
}

}  // namespace leasehold::cli
