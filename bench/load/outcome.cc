#include <leasehold/bench/load/outcome.h>

#include <leasehold/bench/open_loop.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>

namespace leasehold::bench {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kFormat = 1;

double per_second(std::uint64_t count, std::uint64_t elapsed_ns) {
  return elapsed_ns == 0 ? 0.0 : static_cast<double>(count) * 1e9 / static_cast<double>(elapsed_ns);
}

double busy_share(const PhaseResult& result) {
  if (result.elapsed_ns == 0) return 0.0;
  return static_cast<double>(result.cpu_ns) / static_cast<double>(result.elapsed_ns);
}

const char* distribution_name(Distribution distribution) {
  if (distribution == Distribution::uniform) return "uniform";
  return distribution == Distribution::zipf ? "zipf" : "latest";
}

const char* route_name(Route route) {
  if (route == Route::leader) return "leader";
  return route == Route::follower ? "follower" : "any";
}

std::string row_of(const char* name, const Histogram& latency, std::uint64_t elapsed_ns) {
  const auto us = [&latency](double q) { return static_cast<double>(latency.quantile(q)) / 1000; };
  return fmt::format("{:<18} {:>10} {:>11.0f} {:>10.1f} {:>10.1f} {:>10.1f} {:>10.1f} {:>10.1f}\n",
                     name, latency.count(), per_second(latency.count(), elapsed_ns), us(0.5),
                     us(0.9), us(0.99), us(0.999), static_cast<double>(latency.max()) / 1000);
}

Json options_json(const LoadOptions& options) {
  return {{"servers", options.servers},
          {"protocol", options.etcd ? "etcd" : "redis"},
          {"workload", options.workload},
          {"distribution", distribution_name(options.chosen_distribution())},
          {"read_mode", options.read_mode},
          {"route", route_name(options.route)},
          {"keys", options.keys},
          {"value_bytes", options.value_bytes},
          {"connections", options.connections},
          {"in_flight", options.in_flight},
          {"rate", options.rate},
          {"duration_s", options.duration_s},
          {"warm_up_s", options.warm_up_s},
          {"seed", options.seed},
          {"judged_keys", options.judged_keys}};
}

}  // namespace

SecondSummary summary_of(const Measured& second, double length_s) {
  const Histogram all = second.all();
  return {length_s, all.count(), second.error_count(), all.quantile(0.5), all.quantile(0.99)};
}

std::string worthless_because(const PhaseResult& result, const LoadOptions& options) {
  if (result.total.operations() == 0) return "nothing was answered well";
  if (!options.open()) {
    if (busy_share(result) < kBusyMax) return "";
    return fmt::format(
        "the client's own thread was busy for {:.0f} % of the time, so the servers may be faster: "
        "run several clients at once",
        100 * busy_share(result));
  }
  for (const Histogram& latency : result.total.latencies) {
    if (latency.count() == 0) continue;
    if (auto reason = discard_reason(latency, result.total.late); !reason.empty()) return reason;
  }
  return "";
}

std::string title_of(const LoadOptions& options) {
  const std::string loop =
      options.open()
          ? fmt::format(
                "open loop, {} due a second, latency from the instant at which each was due; {} "
                "connections, at most {} in flight",
                options.rate, options.connections, options.in_flight)
          : fmt::format("closed loop, {} in flight on {} connections", options.in_flight,
                        options.connections);
  const std::string reads = options.read_mode.empty() ? "" : ", reads " + options.read_mode;
  return fmt::format("{}\n{}{}, {} keys ({}), values of {} bytes, to {}", loop, options.workload,
                     reads, options.keys, distribution_name(options.chosen_distribution()),
                     options.value_bytes,
                     options.route == Route::any        ? "all servers"
                     : options.route == Route::follower ? "followers"
                                                        : "the leader");
}

std::string progress_of(const SecondSummary& second, std::uint64_t number, std::size_t in_flight) {
  const double rate =
      second.length_s > 0 ? static_cast<double>(second.operations) / second.length_s : 0.0;
  return fmt::format(
      "{:>5} s {:>10.0f}/s  p50 {:>9.1f} us  p99 {:>9.1f} us  {:>4} in flight  {} errors",
      number + 1, rate, static_cast<double>(second.p50_ns) / 1000,
      static_cast<double>(second.p99_ns) / 1000, in_flight, second.errors);
}

std::string table_of_load(const PhaseResult& result, const LoadOptions& options) {
  std::string table = fmt::format("{:<18} {:>10} {:>11} {:>10} {:>10} {:>10} {:>10} {:>10}\n", "us",
                                  "count", "a second", "p50", "p90", "p99", "p99.9", "max");
  std::size_t kinds = 0;
  for (std::size_t kind = 0; kind < kKinds; ++kind) {
    const Histogram& latency = result.total.latencies[kind];
    if (latency.count() == 0) continue;
    ++kinds;
    table += row_of(kind_name(static_cast<OperationKind>(kind)), latency, result.elapsed_ns);
  }
  if (kinds != 1) table += row_of("all", result.total.all(), result.elapsed_ns);
  if (options.open()) table += row_of("(client late)", result.total.late, result.elapsed_ns);
  table += "errors: ";
  if (result.total.errors.empty()) table += "none";
  bool first = true;
  for (const auto& [kind, count] : result.total.errors) {
    table += fmt::format("{}{} {}", first ? "" : ", ", count, kind);
    first = false;
  }
  if (result.redirections > 0)
    table += fmt::format("; {} redirections followed", result.redirections);
  table += fmt::format("\n{:.1f} s; the client's thread was busy for {:.0f} % of it{}\n",
                       static_cast<double>(result.elapsed_ns) / 1e9, 100 * busy_share(result),
                       result.ended_early ? "; ended early" : "");
  if (const std::string reason = worthless_because(result, options); !reason.empty()) {
    table += "THROWN AWAY: " + reason + "\n";
  }
  return table;
}

std::string json_of_load(const PhaseResult& result, const std::vector<SecondSummary>& seconds,
                         const LoadOptions& options, const std::string& started) {
  Json latencies = Json::object();
  for (std::size_t kind = 0; kind < kKinds; ++kind) {
    const Histogram& latency = result.total.latencies[kind];
    if (latency.count() == 0) continue;
    latencies[kind_name(static_cast<OperationKind>(kind))] = Json::parse(latency.to_json());
  }
  Json each = Json::array();
  for (const SecondSummary& second : seconds) {
    each.push_back({{"length_s", second.length_s},
                    {"operations", second.operations},
                    {"errors", second.errors},
                    {"p50_ns", second.p50_ns},
                    {"p99_ns", second.p99_ns}});
  }
  const std::uint64_t operations = result.total.operations();
  const Json json = {{"format", kFormat},
                     {"started", started},
                     {"loop", options.open() ? "open" : "closed"},
                     {"options", options_json(options)},
                     {"elapsed_ns", result.elapsed_ns},
                     {"ended_early", result.ended_early},
                     {"discarded", worthless_because(result, options)},
                     {"operations", operations},
                     {"operations_per_second", per_second(operations, result.elapsed_ns)},
                     {"client_busy", busy_share(result)},
                     {"redirections", result.redirections},
                     {"errors", result.total.errors},
                     {"latency", std::move(latencies)},
                     {"late", Json::parse(result.total.late.to_json())},
                     {"seconds", std::move(each)}};
  return json.dump(-1, ' ', true, Json::error_handler_t::replace);
}

}  // namespace leasehold::bench
