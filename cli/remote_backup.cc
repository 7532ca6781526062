#include <leasehold/cli/access.h>
#include <leasehold/cli/exit_status.h>
#include <leasehold/cli/key_command.h>
#include <leasehold/cli/progress.h>
#include <leasehold/cli/remote_backup.h>
#include <leasehold/kv/slot_layout.h>
#include <leasehold/server/front/slots_text.h>
#include <leasehold/storage/descriptor.h>
#include <leasehold/storage/private_folder.h>

#include <fmt/format.h>

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <future>
#include <optional>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

namespace leasehold::cli {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;
using Json = nlohmann::ordered_json;
using Timeout = client::RespClient::Timeout;

constexpr auto kRetryPause = std::chrono::milliseconds(100);
constexpr Timeout kConnectTimeout{1000};
/// For the answer of a node that has taken the command: the work takes what it takes.
constexpr Timeout kAnswerTimeout = std::chrono::hours(24);
constexpr Timeout kPartTimeout = std::chrono::seconds(60);
constexpr Timeout kStatusTimeout{1000};

/// How far the node says it is, with the first group.
void show_progress(const std::string& server, Progress& progress) {
  const auto status = fetch_status(server, kStatusTimeout);
  if (!status) return progress.going_on();
  const Json backup = status.value().value("backup", Json());
  if (!backup.is_object()) return progress.going_on();
  progress.at(number_in(backup, "bytes"), number_in(backup, "size"));
}

Result<client::RespValue> call_and_watch(client::RespClient& client,
                                         const std::vector<std::string>& words,
                                         const std::string& server, std::size_t group,
                                         Progress& progress) {
  auto answer = std::async(std::launch::async,
                           [&client, &words] { return client.call(words, kAnswerTimeout); });
  while (answer.wait_for(std::chrono::seconds(1)) != std::future_status::ready) {
    if (group > 1) {
      progress.going_on();
    } else {
      show_progress(server, progress);
    }
  }
  return answer.get();
}

Error file_error(const std::string& what, const std::string& path) {
  return {ErrorCode::io,
          fmt::format("{} {}: {}", what, path, std::generic_category().message(errno))};
}

/// The part of it that begins at `at`.
Result<std::string> read_part(client::RespClient& client, const RemoteBackup& backup,
                              std::uint64_t at, std::uint64_t size) {
  auto reply =
      client.call({"LEASEHOLD", "READBACKUP", backup.name, std::to_string(at)}, kPartTimeout);
  if (!reply) return Error{reply.error().code, backup.server + ": " + reply.error().message};
  std::string& text = reply.value().text;
  if (reply.value().kind == client::RespValue::Kind::error) {
    return Error{ErrorCode::io, fmt::format("{}: {}", backup.server, text)};
  }
  if (reply.value().kind != client::RespValue::Kind::bulk || text.empty() ||
      text.size() > size - at) {
    return Error{ErrorCode::malformed,
                 fmt::format("{} sent {} bytes of the backup {} from byte {} of {} on",
                             backup.server, text.size(), backup.name, at, size)};
  }
  return std::move(text);
}

Result<void> copy_parts(const RemoteBackup& backup, int file, const std::string& path) {
  auto client =
      client::RespClient::connect(backup.server, kConnectTimeout, access().in_group(backup.group));
  if (!client) return Error{client.error().code, backup.server + ": " + client.error().message};
  const std::uint64_t size = number_in(backup.reply, "bytes");
  Progress progress(fmt::format("copying backup {} from {}", backup.name, backup.server));
  for (std::uint64_t at = 0; at < size;) {
    const auto part = read_part(client.value(), backup, at, size);
    if (!part) return part.error();
    if (!storage::write_all(file, part.value())) return file_error("cannot write", path);
    at += part.value().size();
    progress.at(at, size);
  }
  if (::fsync(file) != 0) return file_error("cannot make durable", path);
  return {};
}

}  // namespace

std::string timely_name() {
  const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  std::tm parts{};
  gmtime_r(&now, &parts);
  char text[64];
  std::strftime(text, sizeof(text), "backup-%Y%m%d-%H%M%S", &parts);
  return text;
}

std::uint64_t number_in(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_number_unsigned() ? found->get<std::uint64_t>() : 0;
}

Result<RemoteBackup> write_backup(const BackupRequest& request) {
  const std::string name = request.name.empty() ? timely_name() : request.name;
  std::vector<std::string> words = {"LEASEHOLD", "BACKUP", name};
  if (request.stale) words.emplace_back("STALE");
  if (request.settled) words.emplace_back("SETTLED");
  const auto deadline = Clock::now() + request.timeout;
  std::string last;
  for (;;) {
    for (const std::string& server : request.servers) {
      auto client = client::RespClient::connect(server, std::min(request.timeout, kConnectTimeout),
                                                access().in_group(request.group));
      if (!client) {
        if (client.error().code == ErrorCode::invalid_argument) return client.error();
        last = fmt::format("{}: {}", server, client.error().message);
        continue;
      }
      const std::string of_group =
          request.group == 0 ? "" : fmt::format(" of group {}", request.group);
      Progress progress(fmt::format("backup {}{} at {}", name, of_group, server));
      const auto reply = call_and_watch(client.value(), words, server, request.group, progress);
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
        if (made.is_object()) return RemoteBackup{server, name, request.group, std::move(made)};
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

Result<std::size_t> count_groups(const BackupRequest& request) {
  const auto deadline = Clock::now() + request.timeout;
  std::string last;
  for (;;) {
    for (const std::string& server : request.servers) {
      auto client =
          client::RespClient::connect(server, std::min(request.timeout, kConnectTimeout), access());
      if (!client && client.error().code == ErrorCode::invalid_argument) return client.error();
      auto reply = client ? client.value().call({"LEASEHOLD", "GROUP"}, kStatusTimeout)
                          : Result<client::RespValue>(client.error());
      if (!reply) {
        last = fmt::format("{}: {}", server, reply.error().message);
        continue;
      }
      const std::vector<client::RespValue>& fields = reply.value().items;
      for (std::size_t i = 0; i + 1 < fields.size(); i += 2) {
        if (fields[i].text == "groups") return static_cast<std::size_t>(fields[i + 1].number());
      }
      // An earlier version has one group, and does not know the command.
      if (reply.value().is_error("ERR")) return std::size_t{1};
      last = fmt::format("{}: {}", server, reply.value().text);
      if (!reply.value().not_executed()) return Error{ErrorCode::io, last};
    }
    if (Clock::now() + kRetryPause >= deadline) {
      return Error{ErrorCode::timed_out, "no node says how many groups it has: " + last};
    }
    std::this_thread::sleep_for(kRetryPause);
  }
}

Result<std::optional<std::string>> why_apart(const std::vector<RemoteBackup>& backups) {
  std::vector<kv::SlotsOfState> states;
  for (const RemoteBackup& backup : backups) {
    const auto text = backup.reply.find("slots");
    auto slots = text == backup.reply.end() ? kv::SlotMap()
                 : text->is_string()        ? server::parse_slots(text->get<std::string>())
                                            : std::nullopt;
    if (!slots) {
      return Error{ErrorCode::malformed,
                   backup.server + " says of the backup what no node says: its slots"};
    }
    states.push_back({std::move(*slots), number_in(backup.reply, "revision")});
  }
  return kv::layout_problem(states);
}

int status_of(const Error& write_backup_failed) {
  switch (write_backup_failed.code) {
    case ErrorCode::invalid_argument: return kUsage;
    case ErrorCode::unavailable: return kOutcomeUnknown;
    default: return kNotExecuted;
  }
}

Result<void> check_target(const std::string& to) {
  std::error_code error;
  if (fs::exists(fs::symlink_status(to, error))) {
    return Error{ErrorCode::in_use, to + " exists: nothing is overwritten"};
  }
  const fs::path folder = fs::path(to).parent_path();
  if (!folder.empty() && !fs::is_directory(folder, error)) {
    return Error{ErrorCode::io, fmt::format("there is no folder {}", folder.string())};
  }
  return {};
}

Result<void> copy_backup(const RemoteBackup& backup, const std::string& to) {
  if (auto free = check_target(to); !free) return free;
  const std::string fresh = to + ".part";
  std::error_code ignored;
  Result<void> done;
  {
    const storage::Descriptor file{::open(fresh.c_str(),
                                          O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW,
                                          storage::kPrivateFileMode)};
    if (file.get() < 0) return file_error("cannot make", fresh);
    done = copy_parts(backup, file.get(), fresh);
  }
  if (done && std::rename(fresh.c_str(), to.c_str()) != 0) done = file_error("cannot name", to);
  if (!done) {
    fs::remove(fresh, ignored);
    return done;
  }
  const fs::path folder = fs::path(to).parent_path();
  return storage::sync_folder(folder.empty() ? "." : folder.string());
}

}  // namespace leasehold::cli
