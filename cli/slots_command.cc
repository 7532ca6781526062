// `leasehold slots`: which group has which slots, and moves of them.
#include <leasehold/cli/access.h>
#include <leasehold/cli/commands.h>
#include <leasehold/cli/exit_status.h>
#include <leasehold/cli/key_command.h>
#include <leasehold/cli/nearest_word.h>
#include <leasehold/kv/key_slot.h>
#include <leasehold/server/front/duration.h>
#include <leasehold/server/front/slot_words.h>
#include <leasehold/server/front/words.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace leasehold::cli {
namespace {

constexpr const char* kSlotsText = R"(
The groups of a server (serve --groups) share the 16384 slots of Redis Cluster.

Actions:
  list, or none             show which group has which slots, and the moves that are under way
  move SLOT|FIRST-LAST ... --to GROUP
                            move slots to a group, while clients read and write their keys. It may
                            be repeated: what is there or on its way already goes on as it was
  cancel SLOT|FIRST-LAST ...
                            let slots stay whose keys are still being copied. A move is cancelled
                            as a whole, also if only one of its slots is named: list shows moves.
                            Once its slots are frozen, a move goes on to its end

Example:
  leasehold slots move 0-99 7001 --to 3 --wait --servers 10.0.0.1:7201,10.0.0.2:7201)";

using Clock = std::chrono::steady_clock;
using Json = nlohmann::ordered_json;
using Timeout = client::RespClient::Timeout;
using Words = std::vector<std::string>;
using Slots = std::vector<std::uint32_t>;

constexpr auto kSlotsPause = std::chrono::milliseconds(200);
/// One question to one server.
constexpr Timeout kSlotsTimeout{2000};
/// Pause between two reports of how far the moves are.
constexpr auto kTellPause = std::chrono::seconds(1);
/// A node that is behind may say that nothing moves: another look, after this time.
constexpr auto kSettlePause = std::chrono::seconds(3);
constexpr Timeout kTakeTimeout{10'000};
constexpr Timeout kWaitTimeout = std::chrono::hours(1);

struct SlotsOptions {
  std::string action;
  Words words;  ///< the slots
  Slots slots;  ///< the same, read
  std::vector<std::string> servers;
  std::string to;
  std::optional<Timeout> timeout;
  bool wait = false;
  bool json = false;

  Timeout limit() const { return timeout.value_or(wait ? kWaitTimeout : kTakeTimeout); }
};

/// Of consecutive slots, as a node says it.
struct SlotRun {
  std::uint32_t first = 0;
  std::uint32_t last = 0;
  std::string phase;        ///< of a move
  std::uint64_t group = 0;  ///< of an owner
  std::uint64_t from = 0;
  std::uint64_t to = 0;
  std::uint64_t move = 0;
};
using SlotRuns = std::vector<SlotRun>;

/// What one node says.
struct Layout {
  SlotRuns owners;
  SlotRuns moves;
};

/// Errors: malformed.
Result<SlotRuns> parse_runs(const client::RespValue& reply) {
  using Kind = client::RespValue::Kind;
  SlotRuns runs;
  if (reply.kind != Kind::array) return client::unexpected(reply);
  for (const client::RespValue& item : reply.items) {
    SlotRun run;
    bool has_first = false;
    bool has_last = false;
    if (item.kind != Kind::array || item.items.size() % 2 != 0) return client::unexpected(item);
    for (std::size_t i = 0; i < item.items.size(); i += 2) {
      const std::string& key = item.items[i].text;
      const client::RespValue& value = item.items[i + 1];
      const bool is_slot = value.kind == Kind::integer && value.number() < kv::kSlots;
      if (key == "phase") run.phase = value.text;
      if (key == "group") run.group = value.number();
      if (key == "from") run.from = value.number();
      if (key == "to") run.to = value.number();
      if (key == "move") run.move = value.number();
      if (key != "first" && key != "last") continue;
      if (!is_slot) return client::unexpected(value);
      (key == "first" ? run.first : run.last) = static_cast<std::uint32_t>(value.number());
      (key == "first" ? has_first : has_last) = true;
    }
    if (!has_first || !has_last || run.first > run.last) return client::unexpected(item);
    runs.push_back(std::move(run));
  }
  return runs;
}

/// Errors: invalid_argument (the server will not say it), others: another one may.
Result<SlotRuns> ask_for_runs(client::RespClient& client, const Words& words) {
  const auto reply = client.call(words, kSlotsTimeout);
  if (!reply) return reply.error();
  if (reply.value().kind == client::RespValue::Kind::error) {
    const bool other = reply.value().not_executed();
    return Error{other ? ErrorCode::unavailable : ErrorCode::invalid_argument, reply.value().text};
  }
  return parse_runs(reply.value());
}

Result<Layout> ask_one(const std::string& server) {
  auto client = client::RespClient::connect(server, kSlotsTimeout, access());
  if (!client) return client.error();
  // What has ended by then has its slots where it ended.
  auto moves = ask_for_runs(client.value(), {"LEASEHOLD", "SLOTS"});
  if (!moves) return moves.error();
  auto owners = ask_for_runs(client.value(), {"LEASEHOLD", "SLOTS", "LIST"});
  if (!owners) return owners.error();
  return Layout{std::move(owners).value(), std::move(moves).value()};
}

/// Asks each server once, until one says it. Errors: as ask_for_runs().
Result<Layout> ask_some(const std::vector<std::string>& servers) {
  Error last{ErrorCode::unavailable, "no server was tried"};
  for (const std::string& server : servers) {
    auto layout = ask_one(server);
    if (layout) return layout;
    last = Error{layout.error().code, fmt::format("{}: {}", server, layout.error().message)};
    if (last.code == ErrorCode::invalid_argument) break;
  }
  return last;
}

std::string range_text(const SlotRun& run) {
  return run.first == run.last ? std::to_string(run.first)
                               : fmt::format("{}-{}", run.first, run.last);
}

void print_json(const Layout& layout) {
  Json out = {{"slots", Json::array()}, {"moves", Json::array()}};
  for (const SlotRun& run : layout.owners) {
    out["slots"].push_back({{"first", run.first}, {"last", run.last}, {"group", run.group}});
  }
  for (const SlotRun& run : layout.moves) {
    out["moves"].push_back({{"first", run.first},
                            {"last", run.last},
                            {"phase", run.phase},
                            {"from", run.from},
                            {"to", run.to},
                            {"move", run.move}});
  }
  std::cout << out.dump(2, ' ', false, Json::error_handler_t::replace) << "\n";
}

void print_table(const Layout& layout) {
  fmt::print("{:<13} {}\n", "slots", "group");
  for (const SlotRun& run : layout.owners) fmt::print("{:<13} {}\n", range_text(run), run.group);
  if (layout.moves.empty()) return;
  fmt::print("\n{:<13} {:<9} {:<6} {:<6} {}\n", "on their way", "phase", "from", "to", "move");
  for (const SlotRun& run : layout.moves) {
    fmt::print("{:<13} {:<9} {:<6} {:<6} {}\n", range_text(run), run.phase, run.from, run.to,
               run.move);
  }
}

int list(const SlotsOptions& options) {
  const auto deadline = Clock::now() + options.limit();
  for (;; std::this_thread::sleep_for(kSlotsPause)) {
    const auto layout = ask_some(options.servers);
    if (layout) {
      options.json ? print_json(layout.value()) : print_table(layout.value());
      return 0;
    }
    const bool over = Clock::now() + kSlotsPause >= deadline;
    if (over || layout.error().code == ErrorCode::invalid_argument) {
      return fail("slots", layout.error().message, kNotExecuted);
    }
  }
}

/// How far the slots of a command are.
struct Counts {
  std::size_t there = 0;
  std::size_t copying = 0;
  std::size_t frozen = 0;
  std::size_t left = 0;

  std::size_t under_way() const { return copying + frozen + left; }
};

Counts count(const Layout& layout, const SlotsOptions& options) {
  std::array<std::size_t, kv::kSlots + 1> before{};  // how many of the slots are below this one
  for (const std::uint32_t slot : options.slots) before[slot + 1] = 1;
  for (std::size_t i = 1; i < before.size(); ++i) before[i] += before[i - 1];
  const auto of_run = [&before](const SlotRun& run) {
    return before[run.last + 1] - before[run.first];
  };
  Counts counts;
  for (const SlotRun& run : layout.owners) {
    if (std::to_string(run.group) == options.to) counts.there += of_run(run);
  }
  for (const SlotRun& run : layout.moves) {
    if (run.phase == "copying") counts.copying += of_run(run);
    if (run.phase == "frozen") counts.frozen += of_run(run);
    if (run.phase == "left") counts.left += of_run(run);
  }
  return counts;
}

std::string progress_text(const Counts& counts, const SlotsOptions& options) {
  return fmt::format(
      "{} of {} slots are in group {}; being copied: {}, frozen: {}, dropped behind: {}",
      counts.there, options.slots.size(), options.to, counts.copying, counts.frozen, counts.left);
}

/// Until none of the slots is under way.
int wait_for_end(const SlotsOptions& options, Clock::time_point deadline) {
  auto tell_at = Clock::now() + kTellPause;
  std::optional<Clock::time_point> still;  // since then nothing has moved
  for (;; std::this_thread::sleep_for(kSlotsPause)) {
    std::string progress;
    const auto layout = ask_some(options.servers);
    const auto now = Clock::now();
    if (layout) {
      const Counts counts = count(layout.value(), options);
      progress = progress_text(counts, options);
      if (counts.under_way() > 0) {
        still.reset();
      } else if (counts.there == options.slots.size()) {
        std::cout << "all of them are in group " << options.to << std::endl;
        return 0;
      } else if (!still) {
        still = now;
      } else if (now - *still > kSettlePause) {
        return fail("slots", progress + "; the others are not on their way any more", kNotExecuted);
      }
    } else {
      progress = layout.error().message;
      still.reset();
    }
    if (now > deadline) {
      return fail("slots", progress + "; the moves go on: leasehold slots shows them",
                  kOutcomeUnknown);
    }
    if (now < tell_at) continue;
    tell_at = now + kTellPause;
    std::cerr << progress << std::endl;
  }
}

/// Sends it to a node that takes it. None: `status` is how the command ends, and it has said why.
std::optional<std::int64_t> send(const SlotsOptions& options, const Words& words, int& status) {
  const auto reply =
      run_anywhere(options.servers, words, std::min(options.limit(), kTakeTimeout), Repeat::never);
  if (!reply) {
    status = kNotExecuted;
    if (reply.error().code == ErrorCode::invalid_argument) status = kUsage;
    if (reply.error().code == ErrorCode::unavailable) status = kOutcomeUnknown;
    fail("slots", reply.error().message, status);
    return std::nullopt;
  }
  const client::RespValue& value = reply.value();
  if (value.kind == client::RespValue::Kind::integer) return value.integer;
  const bool refused = value.kind == client::RespValue::Kind::error;
  const bool unknown = !refused || value.is_error("UNKNOWNOUTCOME");
  status = unknown ? kOutcomeUnknown : kNotExecuted;
  fail("slots", refused ? value.text : client::unexpected(value).message, status);
  return std::nullopt;
}

int move(const SlotsOptions& options) {
  const auto deadline = Clock::now() + options.limit();
  Words words = {"LEASEHOLD", "SLOTS", "MOVE"};
  words.insert(words.end(), options.words.begin(), options.words.end());
  words.insert(words.end(), {"TO", options.to});
  int status = 0;
  const auto moving = send(options, words, status);
  if (!moving) return status;
  if (*moving == 0) {
    std::cout << "all of them are in group " << options.to << std::endl;
    return 0;
  }
  std::cout << *moving << (*moving == 1 ? " slot is" : " slots are") << " on the way to group "
            << options.to << std::endl;
  return options.wait ? wait_for_end(options, deadline) : 0;
}

int cancel(const SlotsOptions& options) {
  Words words = {"LEASEHOLD", "SLOTS", "CANCEL"};
  words.insert(words.end(), options.words.begin(), options.words.end());
  int status = 0;
  const auto staying = send(options, words, status);
  if (!staying) return status;
  if (*staying == 0) {
    std::cout << "none of them was being copied" << std::endl;
  } else {
    std::cout << *staying << (*staying == 1 ? " slot stays" : " slots stay") << std::endl;
  }
  return 0;
}

/// Takes the action and the slots. Returns what is wrong, or nothing.
std::string take_words(const Words& given, SlotsOptions& options) {
  static const Words kActions = {"list", "move", "cancel"};
  options.action = given.empty() ? "list" : given.front();
  if (std::find(kActions.begin(), kActions.end(), options.action) == kActions.end()) {
    return fmt::format("unknown action '{}'{}", options.action,
                       did_you_mean(options.action, kActions));
  }
  const bool moves = options.action == "move";
  if (!given.empty()) options.words.assign(given.begin() + 1, given.end());
  const bool lists = options.action == "list";
  if (lists != options.words.empty()) {
    return lists ? "list takes no slots" : options.action + ": name slots, as in 7001 or 0-99";
  }
  auto slots = server::parse_slots(
      std::vector<std::string_view>(options.words.begin(), options.words.end()));
  if (!slots) return slots.error().message;
  options.slots = std::move(slots).value();
  if (moves && options.to.empty()) return "move: --to GROUP is missing";
  if (!moves && !options.to.empty()) return "--to goes with move";
  if (!moves && options.wait) return "--wait goes with move";
  return {};
}

int run(const Words& given, SlotsOptions& options) {
  if (const std::string wrong = take_words(given, options); !wrong.empty()) {
    return misused("slots", wrong);
  }
  if (options.action == "move") return move(options);
  return options.action == "cancel" ? cancel(options) : list(options);
}

}  // namespace

Run add_slots(Flags& flags) {
  const auto words = std::make_shared<Words>();
  const auto options = std::make_shared<SlotsOptions>();
  flags.add_words(*words, "[ACTION ...] --servers HOST:PORT,... [OPTIONS]");
  flags.add_servers(options->servers);
  flags.add({"--to", "GROUP", "move: the number of the group that is to have the slots"},
            [options](const std::string& text) -> Result<void> {
              const auto number = server::parse_integer(text);
              if (!number || *number < 1 || *number > kv::kSlots) {
                return server::invalid(server::quoted(text) + " is not the number of a group");
              }
              options->to = std::to_string(*number);
              return {};
            });
  flags.add({"--wait", "", "move: wait until all of them are there, and tell how far they are"},
            options->wait);
  flags.add({"--timeout", "DURATION", "How long to look for a node that answers, and to --wait",
             "10s, with --wait 1h"},
            [options](const std::string& text) -> Result<void> {
              const auto parsed = server::parse_duration(text);
              if (!parsed) return parsed.error();
              options->timeout = std::chrono::ceil<Timeout>(parsed.value());
              return {};
            });
  flags.add({"--json", "", "list: print a JSON object instead of tables"}, options->json);
  flags.set_footer(kSlotsText);
  return [words, options] { return run(*words, *options); };
}

}  // namespace leasehold::cli
