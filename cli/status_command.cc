#include <leasehold/cli/access.h>
#include <leasehold/cli/commands.h>
#include <leasehold/cli/key_command.h>
#include <leasehold/cli/member_numbers.h>
#include <leasehold/cli/status_command.h>
#include <leasehold/server/front/duration.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdint>
#include <ctime>
#include <iostream>
#include <thread>
#include <utility>

#include <unistd.h>

namespace leasehold::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kColumns = 9;
struct Row {
  std::array<std::string, kColumns> texts;
  server::Paint paint = server::Paint::plain;
};

const char* const kClearScreen = "\x1b[H\x1b[2J";

std::string members_text(const Json& members) {
  std::string out;
  for (const Json& member : members) {
    out += (out.empty() ? "" : " ") + member.at("id").dump();
    if (!member.at("voter").get<bool>()) out += "(learner)";
    if (member.value("leaving", false)) out += "(leaving)";
    if (!member.at("connected").get<bool>()) out += "(down)";
  }
  return out;
}

Row row_of(const Json& status) {
  const std::string server = status.at("server").get<std::string>();
  if (status.contains("error")) {
    return {{server, "-", "unreachable", "-", "-", "-", "-", "-",
             status.at("error").get<std::string>()},
            server::Paint::red};
  }
  const double lease_ms = status.at("lease_left").get<double>();
  const std::string lease = lease_ms > 0 ? fmt::format("{:.0f} ms", lease_ms) : "-";
  const auto leader = status.at("leader").get<std::uint64_t>();
  std::string members = members_text(status.at("members"));
  server::Paint paint = leader == 0 ? server::Paint::yellow : server::Paint::plain;
  if (!status.at("formed").get<bool>()) {
    members = "not formed, waiting for";
    for (const Json& id : status.at("missing")) members += " " + id.dump();
    if (status.value("joining", false)) members = "waits to be added";
    paint = server::Paint::yellow;
  }
  if (status.at("role") == "leader")
    paint = lease_ms > 0 ? server::Paint::green : server::Paint::yellow;
  std::string role = status.at("role").get<std::string>();
  if (role == "follower" && status.value("witness", false)) role = "witness";
  return {{server, status.at("id").dump(), role, status.at("term").dump(),
           leader == 0 ? "-" : std::to_string(leader), status.at("commit").dump(),
           status.at("applied").dump(), lease, members},
          paint};
}

/// Lines below the table. A node of an earlier version, or one that did not answer, lacks the keys.
void add_remarks(const Json& node, bool color, std::vector<std::string>& lines) {
  const std::uint64_t number = node_number_of(node);
  if (const Json groups = node.value("groups", Json()); groups.is_object()) {
    std::string text =
        fmt::format("node {} leads {} of {} groups, {} with a lease", number,
                    groups.value("led", 0U), groups.value("count", 0U), groups.value("leased", 0U));
    const auto without = groups.value("without_leader", 0U);
    if (without > 0) text += fmt::format("; it knows no leader of {}", without);
    lines.push_back(
        server::painted(text, without > 0 ? server::Paint::yellow : server::Paint::plain, color));
  }
  if (node.value("disk_full", false)) {
    const std::string text = fmt::format(
        "node {}: its disk is full, it takes no commands until it has space again", number);
    lines.push_back(server::painted(text, server::Paint::red, color));
  }
  const Json state = node.value("state", Json::object());
  std::string wrong = state.value("warning", std::string());
  if (!state.value("served", true)) wrong = "not served: " + state.value("refused", std::string());
  if (!wrong.empty()) {
    const std::string text = fmt::format("node {}: its state: {}", number, wrong);
    lines.push_back(server::painted(text, server::Paint::red, color));
  }
  for (const Json& snapshot : node.value("snapshots", Json::array())) {
    if (!snapshot.at("sending").get<bool>()) continue;
    lines.push_back(fmt::format("node {} sends node {} a snapshot: {} %", number,
                                node_number(snapshot.value("peer", 0ULL), node),
                                snapshot.at("percent").dump()));
  }
}

void print_json(const ClusterStatus& status, bool one_line) {
  Json list = Json::array();
  for (const Json& node : status.nodes) list.push_back(node);
  std::cout << list.dump(one_line ? -1 : 2) << std::endl;
}

/// How long the watch has run: "12 s".
std::string age(std::chrono::steady_clock::time_point start) {
  const auto seconds =
      std::chrono::duration_cast<std::chrono::seconds>(std::chrono::steady_clock::now() - start);
  return fmt::format("{} s", seconds.count());
}

/// Waits for a signal to end, or until `span` is over. True: a signal came.
bool interrupted_within(const sigset_t& signals, std::chrono::milliseconds span) {
  timespec time{};
  time.tv_sec = static_cast<time_t>(span.count() / 1000);
  time.tv_nsec = static_cast<long>(span.count() % 1000) * 1'000'000;
  return sigtimedwait(&signals, nullptr, &time) > 0;
}

int watch(const StatusOptions& options, bool color) {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  const bool screen = isatty(STDOUT_FILENO) == 1;
  const auto start = std::chrono::steady_clock::now();
  for (;;) {
    const ClusterStatus status = fetch_all(options.servers, options.timeout);
    if (options.json) {
      print_json(status, true);
    } else {
      std::string text = screen ? kClearScreen : "";
      for (const std::string& line : status_table(status, color)) text += line + "\n";
      const char* const verdict = status.healthy ? "healthy" : "not healthy";
      text += fmt::format(
          "{}, after {}{}",
          server::painted(verdict, status.healthy ? server::Paint::green : server::Paint::red,
                          color),
          age(start), screen ? "; Ctrl-C ends\n" : "\n\n");
      std::cout << text << std::flush;
    }
    if (!std::cout) return 1;  // the reader of the output has gone
    if (interrupted_within(signals, *options.watch)) return status.healthy ? 0 : 1;
  }
}

}  // namespace

ClusterStatus fetch_all(const std::vector<std::string>& servers,
                        client::RespClient::Timeout timeout) {
  std::vector<std::optional<Result<Json>>> answers(servers.size());
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < servers.size(); ++i) {
    threads.emplace_back([&answer = answers[i], &server = servers[i], timeout] {
      answer.emplace(fetch_status(server, timeout));
    });
  }
  for (std::thread& thread : threads) thread.join();
  ClusterStatus status;
  bool leased = false;
  // Of nodes with many groups, unless one of them is meant.
  std::uint64_t groups = 0;
  std::uint64_t groups_leased = 0;
  bool all_answered = true;
  for (std::size_t i = 0; i < servers.size(); ++i) {
    const Result<Json>& answer = *answers[i];
    Json object = Json::object({{"server", servers[i]}});
    if (answer) {
      leased = leased || (answer.value().at("role") == "leader" &&
                          answer.value().at("lease_left").get<double>() > 0);
      object.update(answer.value());
      if (const Json all = object.value("groups", Json());
          all.is_object() && access().group() == 0) {
        groups = std::max(groups, all.value("count", std::uint64_t{0}));
        groups_leased += all.value("leased", std::uint64_t{0});
      }
    } else {
      all_answered = false;
      for (const char* key :
           {"id", "role", "term", "leader", "commit", "applied", "lease_left", "members"}) {
        object[key] = nullptr;
      }
      object["error"] = answer.error().message;
    }
    status.nodes.push_back(std::move(object));
  }
  status.healthy = all_answered && leased && groups_leased >= groups;
  return status;
}

std::vector<std::string> status_table(const ClusterStatus& status, bool color) {
  std::vector<Row> rows = {
      {{"server", "id", "role", "term", "leader", "commit", "applied", "lease left", "members"},
       server::Paint::bold}};
  for (const Json& node : status.nodes) rows.push_back(row_of(node));
  std::array<std::size_t, kColumns> widths{};
  for (const Row& row : rows) {
    for (std::size_t i = 0; i < kColumns; ++i) {
      widths[i] = std::max(widths[i], row.texts[i].size());
    }
  }
  std::vector<std::string> lines;
  for (const Row& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < kColumns; ++i) {
      line += row.texts[i];
      if (i + 1 < kColumns) line.append(widths[i] - row.texts[i].size() + 2, ' ');
    }
    line.erase(line.find_last_not_of(' ') + 1);
    lines.push_back(server::painted(line, row.paint, color));
  }
  for (const Json& node : status.nodes) add_remarks(node, color, lines);
  return lines;
}

int run_status(const StatusOptions& options) {
  const bool color = server::use_color(options.color, STDOUT_FILENO);
  if (options.watch) return watch(options, color);
  const ClusterStatus status = fetch_all(options.servers, options.timeout);
  if (options.json) {
    print_json(status, false);
  } else {
    for (const std::string& line : status_table(status, color)) std::cout << line << "\n";
  }
  return status.healthy ? 0 : 1;
}

Run add_status(Flags& flags) {
  const auto options = std::make_shared<StatusOptions>();
  flags.add_servers(options->servers);
  flags.add({"--timeout", "DURATION", "How long to try", "5s"}, options->timeout);
  flags.add({"--json", "", "Print a JSON list instead of a table"}, options->json);
  Flag watch{"--watch", "[DURATION]", "Repeat, with this pause (1s), until Ctrl-C"};
  watch.bare = "1s";
  flags.add(watch, [options](const std::string& text) -> Result<void> {
    const auto pause = server::parse_duration(text);
    if (!pause) return pause.error();
    options->watch = std::chrono::ceil<std::chrono::milliseconds>(pause.value());
    return {};
  });
  Flag color{"--color", "WHEN",
             "Colours: auto, always or never; auto: on a terminal, unless NO_COLOR is set", "auto"};
  color.choices = {"auto", "always", "never"};
  flags.add(color, [options](const std::string& text) -> Result<void> {
    options->color = text == "always"  ? server::Color::always
                     : text == "never" ? server::Color::never
                                       : server::Color::automatic;
    return {};
  });
  flags.set_footer(kClientExamples);
  return [options] { return run_status(*options); };
}

}  // namespace leasehold::cli
