#include <leasehold/cli/access.h>
#include <leasehold/cli/commands.h>
#include <leasehold/cli/exit_status.h>
#include <leasehold/cli/key_command.h>
#include <leasehold/cli/progress.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <ctime>
#include <future>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace leasehold::cli {
namespace {

using Clock = std::chrono::steady_clock;
using Json = nlohmann::ordered_json;
using Timeout = client::RespClient::Timeout;

constexpr const char* kBackupExamples = R"(Examples:
  leasehold backup --servers 10.0.0.1:7201,10.0.0.2:7201 monday
writes a snapshot to backups/monday in the data directory of the node that makes it, while reads and
writes go on, and prints the path. It contains everything that was acknowledged before. Copy the
file to another machine; leasehold restore makes a new group of it.)";

constexpr const char* kSnapshotExamples = R"(Examples:
  leasehold snapshot --servers 10.0.0.1:7201,10.0.0.2:7201,10.0.0.3:7201
Each node makes its store durable as it is now, and cuts its log down to --log-tail. A node does so
by itself when the log is larger by --log-cut.)";

struct BackupOptions {
  std::vector<std::string> servers;
  /// How long to look for a node that takes the backup; the backup itself may take any time.
  Timeout timeout{5000};
  std::string name;    ///< empty: made from the time
  bool stale = false;  ///< what the node has, whether or not it is all that was acknowledged
  bool json = false;
};

struct SnapshotOptions {
  std::vector<std::string> servers;
  Timeout timeout{5000};  ///< to connect
  bool json = false;
};

constexpr auto kRetryPause = std::chrono::milliseconds(100);
constexpr Timeout kConnectTimeout{1000};
/// For the answer of a node that has taken the command: the work takes what it takes.
constexpr Timeout kAnswerTimeout = std::chrono::hours(24);
constexpr Timeout kStatusTimeout{1000};

/// "backup-20260131-235959", in UTC.
std::string timely_name() {
  const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  std::tm parts{};
  gmtime_r(&now, &parts);
  char text[64];
  std::strftime(text, sizeof(text), "backup-%Y%m%d-%H%M%S", &parts);
  return text;
}

/// How far the node says it is.
void show_progress(const std::string& server, Progress& progress) {
  const auto status = fetch_status(server, kStatusTimeout);
  if (!status) return progress.going_on();
  const Json backup = status.value().value("backup", Json());
  if (!backup.is_object()) return progress.going_on();
  progress.at(backup.value("bytes", std::uint64_t{0}), backup.value("size", std::uint64_t{0}));
}

Result<client::RespValue> call_and_watch(client::RespClient& client,
                                         const std::vector<std::string>& words,
                                         const std::string& server, Progress& progress) {
  auto answer = std::async(std::launch::async,
                           [&client, &words] { return client.call(words, kAnswerTimeout); });
  while (answer.wait_for(std::chrono::seconds(1)) != std::future_status::ready) {
    show_progress(server, progress);
  }
  return answer.get();
}

struct Taken {
  std::string server;
  Json reply;
};

/// Errors: invalid_argument (an address), unavailable (outcome unknown), others: not executed.
Result<Taken> backup_anywhere(const BackupOptions& options, const std::string& name) {
  std::vector<std::string> words = {"LEASEHOLD", "BACKUP", name};
  if (options.stale) words.emplace_back("STALE");
  const auto deadline = Clock::now() + options.timeout;
  std::string last;
  for (;;) {
    for (const std::string& server : options.servers) {
      auto client =
          client::RespClient::connect(server, std::min(options.timeout, kConnectTimeout), access());
      if (!client) {
        if (client.error().code == ErrorCode::invalid_argument) return client.error();
        last = fmt::format("{}: {}", server, client.error().message);
        continue;
      }
      Progress progress(fmt::format("backup {} at {}", name, server));
      const auto reply = call_and_watch(client.value(), words, server, progress);
      if (!reply) {
        return Error{
            ErrorCode::unavailable,
            fmt::format(
                "{}: {}; a backup that has begun there may still be completed: look for {} in "
                "its folder backups",
                server, reply.error().message, name)};
      }
      if (reply.value().kind == client::RespValue::Kind::bulk) {
        Json made = Json::parse(reply.value().text, nullptr, false);
        if (made.is_object()) return Taken{server, std::move(made)};
      }
      last = fmt::format("{}: {}", server, reply.value().text);
      if (!reply.value().not_executed()) return Error{ErrorCode::io, last};
    }
    if (Clock::now() + kRetryPause >= deadline) {
      return Error{ErrorCode::timed_out, "no node made the backup; the last answer: " + last};
    }
    std::this_thread::sleep_for(kRetryPause);
  }
}

/// A number of a reply; 0 if it lacks it.
std::uint64_t number(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_number_unsigned() ? found->get<std::uint64_t>() : 0;
}

/// Asks one node; an object with its answer or with "error".
Json ask_for_snapshot(const std::string& server, Timeout timeout) {
  Json out = Json::object({{"server", server}});
  auto client = client::RespClient::connect(server, timeout, access());
  auto reply = client ? client.value().call({"LEASEHOLD", "SNAPSHOT"}, kAnswerTimeout)
                      : Result<client::RespValue>(client.error());
  if (!reply) {
    out["error"] = reply.error().message;
    return out;
  }
  const Json answer = Json::parse(reply.value().text, nullptr, false);
  if (reply.value().kind == client::RespValue::Kind::bulk && answer.is_object()) {
    out.update(answer);
  } else {
    out["error"] = reply.value().text;
  }
  return out;
}

std::string line_of(const Json& node) {
  const std::string server = node.at("server").get<std::string>();
  if (node.contains("error"))
    return fmt::format("{}  {}", server, node.at("error").get<std::string>());
  const std::uint64_t before = number(node, "first_before");
  const std::uint64_t first = number(node, "first");
  const std::string left = bytes_text(number(node, "log_bytes"));
  std::string out =
      fmt::format("{}  the store is durable up to index {}", server, number(node, "index"));
  if (first == before)
    return fmt::format("{}; nothing to cut: the log has {} (see --log-tail)", out, left);
  const std::uint64_t gone = number(node, "log_bytes_before") - number(node, "log_bytes");
  return fmt::format("{}; cut entries {} to {} of the log, {}; {} left", out, before, first - 1,
                     bytes_text(gone), left);
}

/// Asks one node after another to write a backup, until one takes it, and waits until it is
/// written.
int run_backup(const BackupOptions& options) {
  const std::string name = options.name.empty() ? timely_name() : options.name;
  const auto taken = backup_anywhere(options, name);
  if (!taken) {
    std::cerr << "leasehold backup: " << taken.error().message << "\n";
    switch (taken.error().code) {
      case ErrorCode::invalid_argument: return kUsage;
      case ErrorCode::unavailable: return kOutcomeUnknown;
      default: return kNotExecuted;
    }
  }
  Json made = taken.value().reply;
  made["server"] = taken.value().server;
  if (options.json) {
    std::cout << made.dump(-1, ' ', false, Json::error_handler_t::replace) << std::endl;
    return 0;
  }
  std::cout << "backup complete: " << made.value("path", std::string("?")) << " on node "
            << number(made, "node") << " (" << taken.value().server << ")\n"
            << number(made, "keys") << " keys at index " << number(made, "index") << ", "
            << bytes_text(number(made, "bytes")) << ". Copy the file to another machine."
            << std::endl;
  return 0;
}

/// Asks every node at once to make its store durable and cut its log, and prints what they did.
int run_snapshot(const SnapshotOptions& options) {
  std::vector<std::future<Json>> answers;
  for (const std::string& server : options.servers) {
    answers.push_back(std::async(std::launch::async, ask_for_snapshot, server, options.timeout));
  }
  Progress progress("leasehold snapshot: waiting for a store to become durable");
  Json all = Json::array();
  bool done = true;
  for (auto& answer : answers) {
    while (answer.wait_for(std::chrono::seconds(1)) != std::future_status::ready) {
      progress.going_on();
    }
    Json node = answer.get();
    done = done && !node.contains("error");
    if (!options.json) std::cout << line_of(node) << std::endl;
    all.push_back(std::move(node));
  }
  if (options.json) {
    std::cout << all.dump(2, ' ', false, Json::error_handler_t::replace) << std::endl;
  }
  return done ? 0 : kNotExecuted;
}

}  // namespace

Run add_backup(Flags& flags) {
  const auto options = std::make_shared<BackupOptions>();
  flags.add_servers(options->servers);
  flags.add({"--timeout", "DURATION", "How long to try", "5s"}, options->timeout);
  flags.add({"name", "NAME", "Name of the file; default: the time"}, options->name);
  flags.add({"--stale", "",
             "Back up the state of this node, which may lack the latest writes; needs no leader"},
            options->stale);
  flags.add({"--json", "", "Print a JSON object instead of a sentence"}, options->json);
  flags.set_footer(kBackupExamples);
  return [options] { return run_backup(*options); };
}

Run add_snapshot(Flags& flags) {
  const auto options = std::make_shared<SnapshotOptions>();
  flags.add_servers(options->servers);
  flags.add({"--timeout", "DURATION", "How long to try", "5s"}, options->timeout);
  flags.add({"--json", "", "Print a JSON list instead of sentences"}, options->json);
  flags.set_footer(kSnapshotExamples);
  return [options] { return run_snapshot(*options); };
}

}  // namespace leasehold::cli
