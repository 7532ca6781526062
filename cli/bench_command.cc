#include <leasehold/bench/compare/plan.h>
#include <leasehold/bench/compare/run_compare.h>
#include <leasehold/bench/load/options.h>
#include <leasehold/bench/load/run_load.h>
#include <leasehold/cli/access.h>
#include <leasehold/cli/bench_command.h>
#include <leasehold/cli/demo_replica.h>
#include <leasehold/cli/ending_signals.h>
#include <leasehold/cli/exit_status.h>
#include <leasehold/cli/leader.h>
#include <leasehold/client/resp_client.h>
#include <leasehold/server/commands/report.h>

#include <fmt/format.h>

#include <chrono>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace leasehold::cli {
namespace {

constexpr const char* kBenchText = R"(
Measures the servers that it is pointed at: of Leasehold or of anything else that speaks the
protocol of Redis, and with --etcd members of etcd 3. It writes the keys key:0000000000 and so on:
never point it at data that counts.

Without --rate the loop is closed: the next operation begins when one is answered, which is right
for the highest rate and hides what a queue would add. With --rate it is open: operations are due
on a schedule, and latency counts from the instant at which each was due.

Operations go to the leader of their key, which the servers tell (CLUSTER SLOTS, else ROLE), and
follow it when it changes; where they tell nothing, to all --servers in turn. Errors are counted
by kind.

The client checks itself. A run is thrown away, with exit status 1, if in an open loop at the
median or at p99 more than a quarter of the latency was the client's own lateness, or if in a
closed loop its thread was busy for 95 % of the time. It has one thread.

Workloads: get, set; ycsb-a to ycsb-f (half updates; 5 % updates; reads; 5 % inserts and the newest
keys read; scans of up to 100 keys, by MGET, at etcd by Range; half read-modify-writes). Those of
YCSB draw keys by Zipf's law with the exponent 0.99, scrambled, unless --distribution says
otherwise.

compare: `leasehold bench compare` needs no servers. It starts three nodes of this program, three
members of etcd and a Redis, on loopback and with their data in a folder of its own, measures reads
and writes at each in turn (A B B A), prints the ratios with their 95 % intervals, and removes all
of it. What is not installed is left out: Debian has it in etcd-server and redis-server. It takes
about five minutes, and with --smoke less than one. Run it on a machine that does nothing else.

--history FILE records the reads and writes of the first --judged-keys keys, all of them:
linearizability is a property of each key alone. Those keys are written before the load and read
behind it, and each value that they get begins with a number that no other run has: so the files of
several clients, and of later runs at the same servers with --no-load, may be joined. Scans are not
recorded. It is not for --etcd, nor for stale reads. `leasehold check FILE` judges it.

Exit status: 0 measured, 1 thrown away (of compare: some comparison is), 2 a flag is wrong, 4 no
server, a server did not start, or the keys could not be written. Ctrl-C ends a run with the result
so far; compare needs two sweeps for one.

Examples:
  leasehold bench --servers 10.0.0.1:7201,10.0.0.2:7201 --workload ycsb-a --connections 64
  leasehold bench --servers localhost:7201 --workload set --in-flight 512 --value-size 1k
  leasehold bench --servers localhost:7201 --workload ycsb-a --connections 64 --history h.jsonl
  leasehold bench --etcd localhost:2379 --read-mode serializable --connections 64
  leasehold bench compare --html compare.html --json compare.json
  leasehold bench --servers localhost:7201 --rate 5000 --read-mode lease --hdr reads.hlog)";

struct WantedBench {
  std::vector<std::string> words;  ///< none, or "compare"
  bench::LoadOptions options;
  bench::CompareOptions compare;
  lease::Duration block{};
  lease::Duration duration{};
  lease::Duration warm_up{std::chrono::nanoseconds(-1)};
  bool no_load = false;
};

using Take = Result<void> (*)(const std::string&, bench::LoadOptions&);

void add_choice(Flags& flags, const Flag& flag, bench::LoadOptions& options, Take take) {
  flags.add(flag, [take, &options](const std::string& text) { return take(text, options); });
}

template <class Number>
void add_amount(Flags& flags, const Flag& flag, Number& number) {
  flags.add(flag, [&number](const std::string& text) -> Result<void> {
    const auto amount = bench::parse_amount(text);
    if (!amount) return amount.error();
    number = amount.value();
    return {};
  });
}

double seconds_of(lease::Duration duration) {
  return std::chrono::duration<double>(duration).count();
}

int bench_servers(WantedBench& wanted) {
  bench::LoadOptions& options = wanted.options;
  options.access = access();
  options.login = client::RespClient::login();
  options.load = !wanted.no_load;
  options.duration_s = seconds_of(wanted.duration);
  options.warm_up_s = seconds_of(wanted.warm_up);
  if (auto settled = bench::settle(options); !settled) {
    return misused("bench", settled.error().message);
  }
  // Before there are other threads.
  const EndingSignals signals;
  const auto ended = [&signals] { return signals.next_ending(lease::Duration(0)) != 0; };
  const auto stands = bench::run_load(options, ended, std::cout, std::cerr);
  if (stands) return stands.value() ? 0 : kNo;
  return fail("bench", stands.error().message,
              stands.error().code == ErrorCode::invalid_argument ? kUsage : kNotExecuted);
}

void add_etcd(Flags& flags, bench::LoadOptions& options) {
  Flag flag{"--etcd", "HOST:PORT,...",
            "Client addresses of members of etcd 3, without TLS and without a login"};
  flag.repeated = true;
  flag.excludes = "--servers";
  flags.add(flag, [&options](const std::string& value) -> Result<void> {
    const std::vector<std::string> named = split_servers(value);
    if (named.empty()) return Error{ErrorCode::invalid_argument, "name a member as HOST:PORT"};
    options.servers.insert(options.servers.end(), named.begin(), named.end());
    options.etcd = true;
    return {};
  });
}

/// What was given and is not for `compare`, or only for it. Empty: nothing.
std::string misplaced_flag(const WantedBench& wanted, bool compares) {
  const bench::LoadOptions& load = wanted.options;
  const bench::CompareOptions& compare = wanted.compare;
  const std::pair<const char*, bool> of_load[] = {{"--servers", !load.servers.empty()},
                                                  {"--workload", !load.workload.empty()},
                                                  {"--distribution", load.distribution.has_value()},
                                                  {"--read-mode", !load.read_mode.empty()},
                                                  {"--route", load.wanted_route.has_value()},
                                                  {"--connections", load.connections > 0},
                                                  {"--pipeline", load.pipeline > 0},
                                                  {"--in-flight", load.in_flight > 0},
                                                  {"--rate", load.rate > 0},
                                                  {"--duration", wanted.duration.count() > 0},
                                                  {"--no-load", wanted.no_load},
                                                  {"--hdr", !load.hdr.empty()},
                                                  {"--history", load.recorded()},
                                                  {"--judged-keys", load.judged_keys > 0}};
  const std::pair<const char*, bool> of_compare[] = {{"--sweeps", compare.sweeps > 0},
                                                     {"--block", wanted.block.count() > 0},
                                                     {"--growth", !compare.growth.empty()},
                                                     {"--dir", !compare.folder.empty()},
                                                     {"--html", !compare.html.empty()}};
  if (compares) {
    for (const auto& [name, given] : of_load) {
      if (given) return fmt::format("{} is not for compare, which starts its own servers", name);
    }
  } else {
    for (const auto& [name, given] : of_compare) {
      if (given) return fmt::format("{} is for `leasehold bench compare`", name);
    }
  }
  return "";
}

int compare_systems(WantedBench& wanted, const std::string& called) {
  bench::CompareOptions& options = wanted.compare;
  const auto program = own_program(called);
  if (!program) return fail("bench", program.error().message, kNotExecuted);
  options.program = program.value();
  options.version = server::kVersion;
  options.keys = wanted.options.keys;
  options.value_bytes = wanted.options.value_bytes;
  options.seed = wanted.options.seed;
  options.smoke = wanted.options.smoke;
  options.quiet = wanted.options.quiet;
  options.json = wanted.options.json;
  options.block_s = seconds_of(wanted.block);
  options.warm_up_s = seconds_of(wanted.warm_up);
  if (auto settled = bench::settle(options); !settled) {
    return misused("bench", settled.error().message);
  }
  const EndingSignals signals;
  const auto ended = [&signals, over = false]() mutable {
    over = over || signals.next_ending(lease::Duration(0)) != 0;
    return over;
  };
  const auto stands = bench::run_comparison(options, ended, std::cout, std::cerr);
  if (stands) return stands.value() ? 0 : kNo;
  return fail("bench", stands.error().message, kNotExecuted);
}

int run_bench(WantedBench& wanted, const std::string& called) {
  const bool compares = wanted.words == std::vector<std::string>{"compare"};
  if (!compares && !wanted.words.empty()) {
    return misused("bench", fmt::format("unexpected word '{}'", wanted.words.front()));
  }
  const std::string misplaced = misplaced_flag(wanted, compares);
  if (!misplaced.empty()) return misused("bench", misplaced);
  return compares ? compare_systems(wanted, called) : bench_servers(wanted);
}

void add_compare_flags(Flags& flags, WantedBench& wanted) {
  bench::CompareOptions& options = wanted.compare;
  add_amount(flags, {"--sweeps", "N", "compare: how often each block is measured", "10"},
             options.sweeps);
  flags.add({"--block", "DURATION", "compare: of one block", "1s"}, wanted.block);
  flags.add({"--growth", "WHAT",
             "compare: measure curves too, over connections, writers or values; several by commas"},
            [&options](const std::string& value) -> Result<void> {
              options.growth = split_servers(value);
              return {};
            });
  flags.add({"--dir", "FOLDER", "compare: where the data of the servers goes meanwhile: a disk",
             "$TMPDIR, or /tmp"},
            options.folder);
  flags.add({"--html", "FILE", "compare: write one page with the table and plots there"},
            options.html);
}

void add_load_flags(Flags& flags, bench::LoadOptions& options) {
  add_choice(flags, {"--workload", "NAME", "What is done: get, set, ycsb-a to ycsb-f", "get"},
             options, bench::take_workload);
  add_choice(flags,
             {"--distribution", "NAME", "Of the keys: uniform, zipf or latest", "the workload's"},
             options, bench::take_distribution);
  add_choice(
      flags,
      {"--read-mode", "MODE",
       "How reads are justified: lease, quorum, log, follower (a lease read at a follower), or "
       "stale=BOUND at any node; at etcd linearizable, or serializable at any member",
       "the servers'"},
      options, bench::take_read_mode);
  add_choice(flags,
             {"--route", "WHERE", "Which servers the operations go to: leader, follower or any",
              "the read mode's"},
             options, bench::take_route);
  add_amount(flags, {"--keys", "N", "How many keys", "100000, fewer of large values"},
             options.keys);
  add_amount(flags, {"--value-size", "BYTES", "Of a value, 16 to 1M", "256"}, options.value_bytes);
}

}  // namespace

Run add_bench(Flags& flags) {
  const auto wanted = std::make_shared<WantedBench>();
  bench::LoadOptions& options = wanted->options;
  flags.add_words(wanted->words, "[compare] [OPTIONS]");
  flags.add_servers(options.servers, false);
  add_etcd(flags, options);
  add_load_flags(flags, options);
  add_amount(flags, {"--connections", "N", "How many connections, 1 to 4096", "1"},
             options.connections);
  add_amount(flags, {"--pipeline", "N", "Requests under way on each connection", "1"},
             options.pipeline);
  add_amount(flags,
             {"--in-flight", "N",
              "Requests under way on all connections, 1 to 4096; with --rate at most so many: one "
              "that is due past it is an error",
              "--connections times --pipeline"},
             options.in_flight);
  add_amount(flags, {"--rate", "N", "Operations due a second: an open loop"}, options.rate);
  flags.add({"--duration", "DURATION", "Of what counts", "10s"}, wanted->duration);
  flags.add({"--warm-up", "DURATION", "Before anything counts; of compare, in each block",
             "2s, or a quarter of a block"},
            wanted->warm_up);
  flags.add({"--no-load", "", "Do not write every key first"}, wanted->no_load);
  flags.add({"--smoke", "", "A run of some seconds: ycsb-a, 1000 keys"}, options.smoke);
  add_amount(flags, {"--seed", "N", "Of keys and operations", "1"}, options.seed);
  flags.add({"--json", "FILE", "Write everything there, with the raw histograms"}, options.json);
  flags.add({"--hdr", "FILE", "Write a log of HdrHistogram there, a second a line"}, options.hdr);
  flags.add(
      {"--history", "FILE",
       "Write there what was asked of the first keys and answered: `leasehold check FILE` says "
       "whether it is linearizable"},
      options.history);
  add_amount(flags,
             {"--judged-keys", "N", "Of --history: how many keys", "16, fewer of fewer --keys"},
             options.judged_keys);
  flags.add({"--quiet", "", "No progress lines"}, options.quiet);
  add_compare_flags(flags, *wanted);
  flags.set_footer(kBenchText);
  return [wanted, called = flags.program()] { return run_bench(*wanted, called); };
}

}  // namespace leasehold::cli
