#include <leasehold/cli/access.h>
#include <leasehold/cli/commands.h>
#include <leasehold/cli/exit_status.h>
#include <leasehold/cli/progress.h>
#include <leasehold/cli/remote_backup.h>
#include <leasehold/storage/private_folder.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <future>
#include <iostream>
#include <memory>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace leasehold::cli {
namespace {

using Json = nlohmann::ordered_json;
using Timeout = client::RespClient::Timeout;

constexpr const char* kBackupExamples = R"(Examples:
  leasehold backup --servers 10.0.0.1:7201,10.0.0.2:7201 monday
  leasehold backup --servers 10.0.0.1:7201,10.0.0.2:7201 --to monday
writes a snapshot to backups/monday in the data directory of the node that makes it, while reads and
writes go on, and prints the path. It contains everything that was acknowledged before. Copy the
file to another machine, or let --to do it; leasehold restore makes a new group of it.
Of nodes with many groups one group is backed up after the other, each as it is then; --to makes a
folder with a file for each. While a slot moves from one group to another it waits for --timeout.)";

constexpr const char* kSnapshotExamples = R"(Examples:
  leasehold snapshot --servers 10.0.0.1:7201,10.0.0.2:7201,10.0.0.3:7201
Each node makes its store durable as it is now, and cuts its log down to --log-tail. A node does so
by itself when the log is larger by --log-cut.)";

struct BackupOptions {
  BackupRequest request;
  std::string to;  ///< a file on this machine; empty: none
  bool json = false;
};

struct SnapshotOptions {
  std::vector<std::string> servers;
  Timeout timeout{5000};  ///< to connect
  bool json = false;
};

/// For the answer of a node that has taken the command: the work takes what it takes.
constexpr Timeout kAnswerTimeout = std::chrono::hours(24);

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
  const std::uint64_t before = number_in(node, "first_before");
  const std::uint64_t first = number_in(node, "first");
  const std::string left = bytes_text(number_in(node, "log_bytes"));
  std::string out =
      fmt::format("{}  the store is durable up to index {}", server, number_in(node, "index"));
  if (first == before)
    return fmt::format("{}; nothing to cut: the log has {} (see --log-tail)", out, left);
  const std::uint64_t gone = number_in(node, "log_bytes_before") - number_in(node, "log_bytes");
  return fmt::format("{}; cut entries {} to {} of the log, {}; {} left", out, before, first - 1,
                     bytes_text(gone), left);
}

/// What `leasehold backup` prints of one group; `to`: where a copy is, if there is one.
void say(const RemoteBackup& backup, const std::string& to, bool json) {
  Json made = backup.reply;
  // A long list, for why_apart().
  made.erase("slots");
  made["server"] = backup.server;
  if (backup.group > 0) made["group"] = backup.group;
  if (!to.empty()) made["copy"] = to;
  if (json) {
    std::cout << made.dump(-1, ' ', false, Json::error_handler_t::replace) << std::endl;
    return;
  }
  const auto path = made.find("path");
  std::cout << (backup.group > 0 ? fmt::format("group {}: ", backup.group) : "")
            << "backup complete: "
            << (path != made.end() && path->is_string() ? path->get<std::string>() : "?")
            << " on node " << number_in(made, "node") << " (" << backup.server << ")\n"
            << number_in(made, "keys") << " keys at index " << number_in(made, "index") << ", "
            << bytes_text(number_in(made, "bytes"))
            << (to.empty() ? ". Copy the file to another machine."
                           : fmt::format(". A copy is in {}.", to))
            << std::endl;
}

/// Of one group, and copied to `to`, if that is not empty. Returns the exit status.
int back_up(const BackupRequest& request, const std::string& to, bool json,
            std::vector<RemoteBackup>& done) {
  auto written = write_backup(request);
  if (!written) return fail("backup", written.error().message, status_of(written.error()));
  if (!to.empty()) {
    if (const auto copied = copy_backup(written.value(), to); !copied) {
      return fail("backup",
                  fmt::format("the backup {} is complete on {}, and was not copied: {}",
                              written.value().name, written.value().server, copied.error().message),
                  kNo);
    }
  }
  say(written.value(), to, json);
  done.push_back(std::move(written).value());
  return 0;
}

/// Whether the backups of all groups are together one of the whole, although each is of another
/// instant. Returns the exit status.
///
/// What counts is what the archives say of their slots, not what the groups say before and after:
/// a slot may leave and come back in between, and a stale backup is of any time before.
int check_together(const std::vector<RemoteBackup>& backups, const std::string& folder) {
  const auto apart = why_apart(backups);
  if (!apart) return fail("backup", apart.error().message, kNotExecuted);
  if (!apart.value()) return 0;
  return fail("backup",
              fmt::format("the backups {} of the groups are not one of the whole: {}. Slots were "
                          "moved meanwhile: back up again when no move is under way, and remove "
                          "these{}",
                          backups.front().name, *apart.value(),
                          folder.empty() ? "" : fmt::format(" and the copies in {}", folder)),
              kNotExecuted);
}

/// One group after the other, to the files 1, 2, ... of a folder; that has its name when it is
/// whole.
int back_up_all(const BackupOptions& options, std::size_t groups) {
  const std::string folder = options.to.empty() ? "" : options.to + ".part";
  if (!folder.empty()) {
    std::error_code ignored;
    std::filesystem::remove_all(folder, ignored);
    if (const auto made = storage::make_private_folder(folder); !made) {
      return fail("backup", made.error().message, kNotExecuted);
    }
  }
  BackupRequest request = options.request;
  if (request.name.empty()) request.name = timely_name();
  // A move that cannot end, since its group has no leader, is no reason to save nothing.
  request.settled = !request.stale;
  std::vector<RemoteBackup> done;
  for (request.group = 1; request.group <= groups; ++request.group) {
    const std::string to = folder.empty() ? "" : fmt::format("{}/{}", folder, request.group);
    if (const int status = back_up(request, to, options.json, done); status != 0) return status;
  }
  if (const int status = check_together(done, folder); status != 0) return status;
  if (folder.empty()) return 0;
  std::error_code failed;
  std::filesystem::rename(folder, options.to, failed);
  const auto parent = std::filesystem::path(options.to).parent_path();
  if (!failed && storage::sync_folder(parent.empty() ? "." : parent.string())) {
    if (!options.json) {
      std::cout << "The copies of all " << groups << " groups are in " << options.to << "."
                << std::endl;
    }
    return 0;
  }
  return fail("backup",
              fmt::format("the copies are in {}, and it cannot be named {}: {}", folder, options.to,
                          failed.message()),
              kNo);
}

int run_backup(const BackupOptions& options) {
  std::vector<RemoteBackup> done;
  if (!options.to.empty()) {
    if (const auto free = check_target(options.to); !free) {
      return fail("backup", free.error().message, kNotExecuted);
    }
  }
  if (access().group() != 0) {
    BackupRequest request = options.request;
    request.group = access().group();
    return back_up(request, options.to, options.json, done);
  }
  const auto groups = count_groups(options.request);
  if (!groups) return fail("backup", groups.error().message, status_of(groups.error()));
  if (groups.value() > 1) return back_up_all(options, groups.value());
  return back_up(options.request, options.to, options.json, done);
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
  flags.add_servers(options->request.servers);
  flags.add({"--timeout", "DURATION", "How long to try", "5s"}, options->request.timeout);
  flags.add({"name", "NAME", "Name of the file; default: the time"}, options->request.name);
  flags.add(
      {"--to", "FILE", "Copy it to this file on this machine, too; of many groups: to a folder"},
      options->to);
  flags.add({"--stale", "",
             "Back up the state of this node, which may lack the latest writes; needs no leader"},
            options->request.stale);
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
