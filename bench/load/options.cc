#include <leasehold/bench/load/options.h>

#include <leasehold/bench/recorder.h>

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace leasehold::bench {
namespace {

constexpr std::uint64_t kConnectionsUsual = 64;
constexpr std::uint64_t kKeysUsual = 100'000;
constexpr std::uint64_t kKeysOfSmoke = 1000;
/// Of the values that are written first, unless the user names a number of keys.
constexpr std::uint64_t kLoadBytesUsual = 256U << 20U;
constexpr std::uint64_t kKeysMax = 1'000'000'000;
constexpr std::uint64_t kRateMax = 10'000'000;
constexpr double kSecondsMax = 7 * 24 * 3600;
constexpr std::uint64_t kServersMax = 64;

Error refused(std::string text) {
  return Error{ErrorCode::invalid_argument, std::move(text)};
}

Result<void> check_range(const char* name, std::uint64_t value, std::uint64_t low,
                         std::uint64_t high) {
  if (value >= low && value <= high) return {};
  return refused(fmt::format("{} takes {} to {}, not {}", name, low, high, value));
}

Result<void> check_numbers(const LoadOptions& options) {
  if (options.servers.empty()) {
    return refused("name the servers: --servers HOST:PORT,..., or --etcd HOST:PORT,...");
  }
  if (options.servers.size() > kServersMax) {
    return refused(fmt::format("--servers takes {} servers at most", kServersMax));
  }
  struct Range {
    const char* name;
    std::uint64_t value, low, high;
  };
  const Range ranges[] = {
      {"--keys", options.keys, 1, kKeysMax},
      {"--value-size", options.value_bytes, kValueBytesMin, kValueBytesMax},
      {"--in-flight", options.in_flight, 0, kInFlightMax},
      {"--connections", options.connections, 0, kInFlightMax},
      {"--pipeline", options.pipeline, 0, kInFlightMax},
      {"--rate", options.rate, 0, kRateMax},
  };
  for (const Range& range : ranges) {
    if (auto in = check_range(range.name, range.value, range.low, range.high); !in) return in;
  }
  if (options.duration_s <= 0 || options.duration_s > kSecondsMax ||
      options.warm_up_s > kSecondsMax) {
    return refused(
        "--duration and --warm-up take durations of at most a week; the first is above 0");
  }
  return {};
}

/// What etcd has, and what it has not.
Result<void> check_system(const LoadOptions& options) {
  const std::string& mode = options.read_mode;
  const bool of_etcd = mode == kLinearizable || mode == kSerializable;
  if (!options.etcd && of_etcd) {
    return refused(fmt::format("--read-mode {} is one of etcd: name its members by --etcd", mode));
  }
  if (!options.etcd) return {};
  if (!mode.empty() && !of_etcd) {
    return refused(fmt::format(
        "--read-mode {} is one of Leasehold: etcd has linearizable and serializable", mode));
  }
  if (options.access.tls() || !options.login.user.empty() || !options.login.password.empty()) {
    return refused(
        "--etcd has neither TLS nor a login: leave out --tls-ca, --user and what the environment "
        "sets of them");
  }
  return {};
}

/// Whether what is recorded can be judged. Call it when the number of keys is settled.
Result<void> settle_history(LoadOptions& options) {
  if (!options.recorded()) {
    return options.judged_keys == 0
               ? Result<void>{}
               : refused("--judged-keys says what --history records: give both");
  }
  if (options.etcd) {
    return refused("--history is for --servers, of Redis's protocol: what etcd reads is not kept");
  }
  if (options.read_mode.rfind("stale", 0) == 0) {
    return refused(
        "--history is judged as linearizable, and reads of --read-mode stale=BOUND are not meant "
        "to be: choose lease, quorum, log or follower");
  }
  if (options.judged_keys == 0) {
    options.judged_keys = std::min(options.keys, Recorder::kKeysUsual);
  }
  return check_range("--judged-keys", options.judged_keys, 1, options.keys);
}

void set_usual(LoadOptions& options) {
  if (options.keys == 0) {
    const std::uint64_t usual = options.smoke ? kKeysOfSmoke : kKeysUsual;
    const std::uint64_t bytes = std::max<std::uint64_t>(options.value_bytes, 1);
    options.keys = std::clamp<std::uint64_t>(kLoadBytesUsual / bytes, 1, usual);
  }
  options.route = options.wanted_route.value_or(options.route);
  if (options.duration_s == 0) options.duration_s = options.smoke ? 2 : 10;
  if (options.warm_up_s < 0) options.warm_up_s = options.smoke ? 0.5 : 2;
  if (options.mix.of(OperationKind::update) == 100) options.load = false;
}

/// The three numbers that say how much is under way: two give the third.
Result<void> settle_in_flight(LoadOptions& options) {
  std::uint64_t& connections = options.connections;
  std::uint64_t& in_flight = options.in_flight;
  const auto pipeline = std::max<std::uint64_t>(options.pipeline, 1);
  if (options.open()) {
    if (in_flight == 0) in_flight = kInFlightMax;
    if (connections == 0) connections = kConnectionsUsual;
    if (options.pipeline != 0) {
      return refused("--pipeline is for the closed loop: with --rate, --in-flight is the bound");
    }
    return {};
  }
  if (in_flight == 0) {
    if (connections == 0) connections = 1;
    in_flight = connections * pipeline;
    if (in_flight > kInFlightMax) {
      return refused(
          fmt::format("--connections times --pipeline is {}, above {}", in_flight, kInFlightMax));
    }
    return {};
  }
  if (connections == 0) {
    connections = options.pipeline != 0 ? (in_flight + pipeline - 1) / pipeline
                                        : std::min(in_flight, kConnectionsUsual);
  } else if (options.pipeline != 0 && connections * pipeline != in_flight) {
    return refused("--in-flight is --connections times --pipeline: leave one of the three out");
  }
  connections = std::min(connections, in_flight);
  return {};
}

}  // namespace

Result<std::uint64_t> parse_amount(const std::string& text) {
  std::uint64_t number = 0;
  const char* end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, number);
  const std::string_view unit(read.ptr, static_cast<std::size_t>(end - read.ptr));
  const bool thousands = unit == "k" || unit == "K";
  const unsigned shift = thousands ? 10U : unit == "M" ? 20U : 0U;
  if (read.ec != std::errc() || (!unit.empty() && shift == 0) || number > (1ULL << 40U)) {
    return refused(fmt::format("`{}` is no number; write 512, 16k or 1M", text));
  }
  return number << shift;
}

Result<void> take_read_mode(const std::string& text, LoadOptions& options) {
  const std::size_t equals = text.find('=');
  const std::string mode = text.substr(0, equals);
  if (mode == "stale" && equals != std::string::npos && equals + 1 < text.size()) {
    options.read_mode = "stale " + text.substr(equals + 1);
    options.route = Route::any;
    return {};
  }
  if (text == kLinearizable || text == kSerializable) {
    options.read_mode = text;
    options.route = text == kSerializable ? Route::any : Route::leader;
    return {};
  }
  const bool known = mode == "lease" || mode == "quorum" || mode == "log" || mode == "follower";
  if (!known || equals != std::string::npos) {
    return refused(
        fmt::format("`{}` is no read mode: write lease, quorum, log, follower, or stale=BOUND "
                    "(stale=500ms); of etcd linearizable or serializable",
                    text));
  }
  options.read_mode = mode == "follower" ? "lease" : mode;
  options.route = mode == "follower" ? Route::follower : Route::leader;
  return {};
}

Result<void> take_workload(const std::string& text, LoadOptions& options) {
  const auto mix = mix_named(text);
  if (!mix) return refused(fmt::format("`{}` is no workload: write {}", text, mix_names()));
  options.workload = text;
  options.mix = *mix;
  return {};
}

Result<void> take_distribution(const std::string& text, LoadOptions& options) {
  if (text == "uniform") options.distribution = Distribution::uniform;
  if (text == "zipf") options.distribution = Distribution::zipf;
  if (text == "latest") options.distribution = Distribution::latest;
  if (text == "uniform" || text == "zipf" || text == "latest") return {};
  return refused(fmt::format("`{}` is no distribution: write uniform, zipf or latest", text));
}

Result<void> take_route(const std::string& text, LoadOptions& options) {
  if (text == "leader") options.wanted_route = Route::leader;
  if (text == "follower") options.wanted_route = Route::follower;
  if (text == "any") options.wanted_route = Route::any;
  if (text == "leader" || text == "follower" || text == "any") return {};
  return refused(fmt::format("`{}` is no route: write leader, follower or any", text));
}

Result<void> settle(LoadOptions& options) {
  if (options.workload.empty()) {
    if (auto taken = take_workload(options.smoke ? "ycsb-a" : "get", options); !taken) return taken;
  }
  if (auto system = check_system(options); !system) return system;
  set_usual(options);
  if (auto numbers = check_numbers(options); !numbers) return numbers;
  if (auto history = settle_history(options); !history) return history;
  if (auto settled = settle_in_flight(options); !settled) return settled;
  const std::uint64_t bytes = options.in_flight * options.value_bytes;
  if (bytes > kBytesInFlightMax && !options.open()) {
    return refused(fmt::format(
        "{} values of {} bytes would be under way, {} MiB of memory: choose "
        "less of --in-flight or --value-size (at most {} MiB together)",
        options.in_flight, options.value_bytes, bytes >> 20U, kBytesInFlightMax >> 20U));
  }
  if (options.open()) {
    const auto most = std::max<std::uint64_t>(kBytesInFlightMax / options.value_bytes, 1);
    options.in_flight = std::min(options.in_flight, most);
  }
  return {};
}

}  // namespace leasehold::bench
