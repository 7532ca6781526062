// bench_client: sends GETs, SETs and renewals of leases, measures each, and prints one line of JSON
// for every block.
#include <leasehold/bench/open_loop.h>
#include <leasehold/bench/recorder.h>
#include <leasehold/bench/report.h>
#include <leasehold/bench/workload.h>
#include <leasehold/tls/context.h>

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <iostream>
#include <memory>
#include <optional>
#include <sstream>
#include <vector>

namespace leasehold::bench {
namespace {

/// One server, one kind of request, one connection.
struct Target {
  std::string name;
  Workload workload;
  Descriptor socket;
  std::unique_ptr<Recorder> recorder;  ///< null: nobody judges it
};

struct Options {
  std::vector<std::string> targets;
  std::vector<std::string> setups;
  std::vector<std::string> histories;
  std::string history;  ///< of load, verify and open
  std::uint64_t judged_keys = Recorder::kKeysUsual;
  Workload workload;
  std::uint64_t leases = 1000;
  std::uint64_t warmup = 50;
  std::uint64_t seed = 1;
  std::uint64_t depth = 64;
  std::string address;
  std::string authority;  ///< PEM file, for addresses with TLS
};

Error bad_flag(const std::string& what) {
  return Error{ErrorCode::invalid_argument, what};
}

/// Of all leases, `ids` in each.
Workload renewals_of(const Options& options, std::uint64_t ids) {
  Workload workload = options.workload;
  workload.operation = Operation::renew;
  workload.keys = options.leases;
  workload.ids = ids;
  return workload;
}

std::optional<Operation> operation_of(const std::string& name) {
  if (name == "get") return Operation::get;
  if (name == "set") return Operation::set;
  if (name == "renew") return Operation::renew;
  return std::nullopt;
}

/// Of `operation`, in the file `path`.
Result<std::unique_ptr<Recorder>> open_history(const std::string& path, Operation operation,
                                               const Options& options) {
  if (operation == Operation::renew) {
    return bad_flag("--history is of get and set: leases are no registers");
  }
  if (options.workload.value_bytes < Recorder::kFrontBytes) {
    return bad_flag(
        fmt::format("--history needs --value-bytes of {} at least: the first ones of a "
                    "value tell it from all others",
                    Recorder::kFrontBytes));
  }
  return Recorder::create(path, std::min(options.judged_keys, options.workload.keys));
}

/// The recorder of what is called `name`, or null.
Result<std::unique_ptr<Recorder>> history_of(const std::string& name, Operation operation,
                                             const Options& options) {
  for (const std::string& history : options.histories) {
    if (history.rfind(name + "=", 0) != 0) continue;
    return open_history(history.substr(name.size() + 1), operation, options);
  }
  return std::unique_ptr<Recorder>();
}

/// Sends one command and wants a line that is no error.
Result<void> command(const Descriptor& socket, const std::string& words) {
  auto sent = write_all(socket, command_of(words));
  if (!sent) return sent;
  std::string ahead;
  auto reply = read_reply(socket, 5, ahead);
  if (!reply) return reply.error();
  if (reply.value()[0] == '-') {
    return bad_flag(fmt::format("`{}` was answered {}", words, reply.value()));
  }
  return {};
}

/// HOST:PORT, or tls:HOST:PORT.
Result<Descriptor> connect_to(const std::string& address, const Options& options) {
  const bool protect = address.rfind("tls:", 0) == 0;
  auto socket = connect_tcp(protect ? address.substr(4) : address);
  if (!socket || !protect) return socket;
  auto context = tls::Context::be_client({"", "", options.authority, ""});
  if (!context) return context.error();
  auto begun = socket.value().begin_tls(context.value());
  if (!begun) return begun.error();
  return socket;
}

/// NAME=OPERATION@HOST:PORT.
Result<Target> open_target(const std::string& text, const Options& options) {
  const std::size_t equals = text.find('=');
  const std::size_t at = text.find('@', equals == std::string::npos ? 0 : equals);
  if (equals == std::string::npos || at == std::string::npos) {
    return bad_flag(fmt::format("--target `{}` is not NAME=OPERATION@HOST:PORT", text));
  }
  const std::string operation = text.substr(equals + 1, at - equals - 1);
  const auto known = operation_of(operation);
  if (!known) {
    return bad_flag(fmt::format("--target `{}`: `{}` is not get, set or renew", text, operation));
  }
  Target target;
  target.name = text.substr(0, equals);
  target.workload = *known == Operation::renew ? renewals_of(options, 1) : options.workload;
  target.workload.operation = *known;
  auto socket = connect_to(text.substr(at + 1), options);
  if (!socket) return socket.error();
  target.socket = std::move(socket).value();
  for (const std::string& setup : options.setups) {
    if (setup.rfind(target.name + "=", 0) != 0) continue;
    auto done = command(target.socket, setup.substr(target.name.size() + 1));
    if (!done) return done.error();
  }
  auto recorder = history_of(target.name, *known, options);
  if (!recorder) return recorder.error();
  target.recorder = std::move(recorder).value();
  return target;
}

Result<void> run_block(Target& target, std::uint64_t operations, const Options& options,
                       Random& random) {
  auto result = closed_loop(target.socket, target.workload, operations, options.warmup, random,
                            target.recorder.get());
  if (!result) {
    return Error{result.error().code, fmt::format("{}: {}", target.name, result.error().message)};
  }
  const LoopResult& loop = result.value();
  nlohmann::json line = {
      {"target", target.name},         {"operations", operations},
      {"warmup", options.warmup},      {"failures", loop.failures},
      {"elapsed_ns", loop.elapsed_ns}, {"latency", nlohmann::json::parse(loop.latency.to_json())}};
  if (loop.failures > 0) line["first_failure"] = loop.first_failure;
  std::cout << line.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace) << std::endl;
  return {};
}

Result<std::vector<Target>> open_targets(const Options& options) {
  std::vector<Target> targets;
  for (const std::string& text : options.targets) {
    auto target = open_target(text, options);
    if (!target) return target.error();
    targets.push_back(std::move(target).value());
  }
  for (const std::string& history : options.histories) {
    const auto named = [&history](const Target& target) {
      return history.rfind(target.name + "=", 0) == 0;
    };
    if (std::none_of(targets.begin(), targets.end(), named)) {
      return bad_flag(fmt::format("--history `{}` is not NAME=FILE of a --target", history));
    }
  }
  return targets;
}

/// Measures what standard input orders, line by line: NAME OPERATIONS.
Result<void> run_orders(std::vector<Target>& targets, const Options& options) {
  Random random(options.seed);
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream words(line);
    std::string name;
    std::uint64_t operations = 0;
    if (!(words >> name >> operations) || operations == 0) {
      return bad_flag(fmt::format("`{}` is not NAME OPERATIONS", line));
    }
    const auto named = std::find_if(targets.begin(), targets.end(),
                                    [&name](const Target& target) { return target.name == name; });
    if (named == targets.end()) return bad_flag(fmt::format("no --target is called `{}`", name));
    auto done = run_block(*named, operations, options, random);
    if (!done) return done;
  }
  return {};
}

Result<void> run_blocks(const Options& options) {
  auto targets = open_targets(options);
  if (!targets) return targets.error();
  auto done = run_orders(targets.value(), options);
  for (const Target& target : targets.value()) {
    if (!target.recorder) continue;
    auto written = target.recorder->write_file();
    if (done && !written) done = written;
  }
  return done;
}

/// Whether `reply` is that to the request of `key`. A judged key may have any value of that size:
/// which one is right is for the checker.
bool is_right(const Workload& workload, std::uint64_t key, std::string_view reply, bool judged) {
  const std::string expected = reply_of(workload, key);
  if (judged && value_in(reply)) return reply.size() == expected.size();
  return reply == expected;
}

/// Every key once, in order, with up to `depth` requests in flight on one connection; each reply is
/// compared in full.
Result<void> send_all_keys(const Options& options, Operation operation, Recorder* recorder) {
  auto socket = connect_to(options.address, options);
  if (!socket) return socket.error();
  Workload workload = options.workload;
  workload.operation = operation;
  const std::size_t expected_bytes = reply_bytes(workload);
  std::string ahead;
  std::uint64_t failures = 0;
  std::uint64_t sent = 0;
  std::string first_failure;
  std::vector<Recorder::Place> places;  // of the judged keys, which come first
  const std::uint64_t began = monotonic_ns();
  for (std::uint64_t answered = 0; answered < workload.keys; ++answered) {
    // Half a window at a time, so that many requests share a system call.
    if (sent < workload.keys && sent - answered <= options.depth / 2) {
      std::string requests;
      for (; sent < workload.keys && sent - answered < options.depth; ++sent) {
        std::string request = request_of(workload, sent);
        const auto place = begin_record(recorder, workload, sent, request);
        if (place != Recorder::kNowhere) places.push_back(place);
        requests += request;
      }
      auto written = write_all(socket.value(), requests);
      if (!written) return written;
    }
    auto reply = read_reply(socket.value(), expected_bytes, ahead);
    if (!reply) return reply.error();
    const bool judged = answered < places.size();
    if (judged) {
      record_reply(*recorder, places[answered], operation, reply.value(), monotonic_ns());
    }
    if (!is_right(workload, answered, reply.value(), judged) && failures++ == 0) {
      first_failure = fmt::format("{}: {}", key_name(answered), reply.value().substr(0, 200));
    }
  }
  nlohmann::json line = {{"operations", workload.keys},
                         {"depth", options.depth},
                         {"failures", failures},
                         {"elapsed_ns", monotonic_ns() - began}};
  if (failures > 0) line["first_failure"] = first_failure;
  std::cout << line.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace) << std::endl;
  return {};
}

nlohmann::json listed(const std::vector<Wait>& waits) {
  nlohmann::json list = nlohmann::json::array();
  for (const Wait& one : waits) list.push_back({one.due, one.late, one.wait, one.write});
  return list;
}

Result<void> run_all_keys(const Options& options, Operation operation) {
  if (options.history.empty()) return send_all_keys(options, operation, nullptr);
  const auto recorder = open_history(options.history, operation, options);
  if (!recorder) return recorder.error();
  const auto done = send_all_keys(options, operation, recorder.value().get());
  const auto written = recorder.value()->write_file();
  return done ? written : done;
}

Result<void> measure_open(const OpenLoopOptions& options) {
  auto result = open_loop(options);
  if (!result) return result.error();
  const OpenLoopResult& loop = result.value();
  nlohmann::json line = {{"rate", options.rate},
                         {"burst", options.burst},
                         {"connections", options.connections},
                         {"writes_percent", options.writes_percent},
                         {"overflows", loop.overflows},
                         {"failures", loop.failures},
                         {"elapsed_ns", loop.elapsed_ns},
                         {"discarded", discard_reason(loop)},
                         {"late", nlohmann::json::parse(loop.late.to_json())},
                         {"writes", nlohmann::json::parse(loop.writes.to_json())}};
  const bool renews = options.workload.operation == Operation::renew;
  line[renews ? "renewals" : "reads"] = nlohmann::json::parse(loop.reads.to_json());
  if (renews) line["ids"] = options.workload.ids;
  if (options.write_rate > 0) line["write_rate"] = options.write_rate;
  if (options.list_waits) line["waits"] = listed(loop.waits);
  if (loop.failures > 0) line["first_failure"] = loop.first_failure;
  std::cout << line.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace) << std::endl;
  return {};
}

Result<void> run_open(const Options& options, OpenLoopOptions open) {
  if (options.history.empty()) return measure_open(open);
  const auto recorder = open_history(options.history, open.workload.operation, options);
  if (!recorder) return recorder.error();
  open.recorder = recorder.value().get();
  const auto done = measure_open(open);
  const auto written = recorder.value()->write_file();
  return done ? written : done;
}

/// Of every open loop.
void add_schedule(CLI::App& command, OpenLoopOptions& options) {
  command
      .add_option("--address", options.address,
                  "HOST:PORT, or several, by commas: the connections go round them")
      ->required();
  command.add_option("--rate", options.rate, "requests a second")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  command.add_option("--burst", options.burst, "requests due at one instant, on one connection")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  command.add_option("--warmup-ms", options.warmup_ms, "before anything counts")
      ->capture_default_str();
  command.add_option("--duration-ms", options.duration_ms, "of what counts")->capture_default_str();
  command.add_option("--connections", options.connections, "connections")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  command
      .add_option("--in-flight-max", options.in_flight_max,
                  "requests under way; one that is due past it is not sent and is an overflow")
      ->capture_default_str();
  command.add_option("--setup", options.setup, "a command for each connection");
  command
      .add_option("--spin-us", options.spin_us,
                  "so long before a request is due the client polls and does not sleep; at high "
                  "rates it is less, so that the client may sleep for half of the time")
      ->capture_default_str();
}

void add_history(CLI::App& command, Options& options) {
  command.add_option(
      "--history", options.history,
      "a file: what was asked of the first keys and answered, for `leasehold check`");
}

CLI::App* add_open(CLI::App& app, OpenLoopOptions& options) {
  CLI::App* open = app.add_subcommand(
      "open",
      "Open loop: requests are due on a schedule, and latency counts from the instant at which "
      "each was due. `late` tells how far behind the client itself was. `discarded` says why the "
      "run is worthless, or is empty: at the median and at p99 at most a quarter of a latency may "
      "be the client's own lateness.");
  add_schedule(*open, options);
  open->add_option("--writes", options.writes_percent, "percentage of SETs")
      ->capture_default_str()
      ->check(CLI::Range(0, 100));
  open->add_option("--write-rate", options.write_rate,
                   "SETs a second besides, on a schedule and on as many connections of their own")
      ->capture_default_str();
  open->add_option("--write-address", options.write_address, "of those, if it is another one");
  open->add_flag("--list-waits", options.list_waits,
                 "`waits`: [due, late, wait, is a SET] of each request in nanoseconds; due is on "
                 "CLOCK_MONOTONIC");
  open->add_option("--seed", options.seed, "seed of the keys")->capture_default_str();
  return open;
}

CLI::App* add_renew(CLI::App& app, OpenLoopOptions& options) {
  CLI::App* renew = app.add_subcommand(
      "renew",
      "Open loop as `open`, of renewals: they go through all leases in turn, again and again.");
  add_schedule(*renew, options);
  renew->add_option("--ids", options.workload.ids, "leases in one renewal")
      ->capture_default_str()
      ->check(CLI::Range(1, 4096));
  return renew;
}

CLI::App* add_blocks(CLI::App& app, Options& options) {
  CLI::App* blocks = app.add_subcommand(
      "blocks",
      "Closed loop, one connection for each target. Reads lines `NAME OPERATIONS` from standard "
      "input; each measures a block and prints a line of JSON.");
  blocks
      ->add_option(
          "--target", options.targets,
          "NAME=OPERATION@HOST:PORT; the operation is get, set or renew; tls:HOST:PORT: by TLS")
      ->required();
  blocks->add_option("--setup", options.setups,
                     "NAME=COMMAND: sent once on the target's connection");
  blocks->add_option("--history", options.histories,
                     "NAME=FILE: what was asked of the first keys of that target and answered, for "
                     "`leasehold check`; written at the end");
  blocks->add_option("--warmup", options.warmup, "requests before each block that do not count")
      ->capture_default_str();
  blocks->add_option("--seed", options.seed, "seed of the keys")->capture_default_str();
  return blocks;
}

void add_workload(CLI::App& app, Options& options) {
  app.add_option("--keys", options.workload.keys, "how many keys")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  app.add_option("--value-bytes", options.workload.value_bytes, "bytes of a value")
      ->capture_default_str();
  app.add_option("--tls-ca", options.authority, "PEM file of the authority, for TLS");
  app.add_option("--judged-keys", options.judged_keys, "how many keys a history is of")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  app.add_option("--leases", options.leases,
                 "how many leases: they were granted under the ids from 1000000000 on")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  app.add_option("--ttl-ms", options.workload.ttl_ms, "with which all of them were granted")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
}

int run(int argc, char** argv) {
  CLI::App app(
      "Sends GETs, SETs and renewals of leases in the Redis protocol, measures them and prints "
      "JSON.");
  Options options;
  add_workload(app, options);
  app.require_subcommand(1);
  const CLI::App* blocks = add_blocks(app, options);
  CLI::App* load = app.add_subcommand("load", "SETs every key once, pipelined.");
  CLI::App* verify =
      app.add_subcommand("verify", "GETs every key once, pipelined, and compares the values.");
  for (CLI::App* each : {load, verify}) {
    each->add_option("--address", options.address, "HOST:PORT")->required();
    add_history(*each, options);
    each->add_option("--depth", options.depth, "requests in flight")
        ->capture_default_str()
        ->check(CLI::PositiveNumber);
  }
  OpenLoopOptions open_options;
  OpenLoopOptions renew_options;
  CLI::App* open = add_open(app, open_options);
  add_history(*open, options);
  const CLI::App* renew = add_renew(app, renew_options);
  CLI11_PARSE(app, argc, argv);

  open_options.workload = options.workload;
  renew_options.workload = renewals_of(options, renew_options.workload.ids);
  const auto done = blocks->parsed()  ? run_blocks(options)
                    : open->parsed()  ? run_open(options, open_options)
                    : renew->parsed() ? run_open(options, renew_options)
                    : load->parsed()  ? run_all_keys(options, Operation::set)
                                      : run_all_keys(options, Operation::get);
  if (!done) std::cerr << "bench_client: " << done.error().message << "\n";
  return done ? 0 : 1;
}

}  // namespace
}  // namespace leasehold::bench

int main(int argc, char** argv) {
  return leasehold::bench::run(argc, argv);
}
