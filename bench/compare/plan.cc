#include <leasehold/bench/compare/plan.h>
#include <leasehold/bench/load/options.h>

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace leasehold::bench {
namespace {

constexpr std::uint64_t kSweepsMax = 1000;
constexpr std::uint64_t kSweepsUsual = 10;
constexpr std::uint64_t kComparedKeys = 10'000;
constexpr std::uint64_t kComparedKeysMax = 10'000'000;
constexpr std::uint64_t kDataBytesMax = std::uint64_t{4} << 30U;
constexpr double kBlockMax = 600;
/// Of a block, beside what it measures: connections, questions, the end.
constexpr double kBlockBesideS = 0.15;
constexpr double kStartS = 8;
constexpr double kKeysASecond = 4000;
constexpr std::uint64_t kManyConnections = 64;

constexpr std::uint64_t kConnectionsGrow[] = {1, 4, 16, 64, 256};
constexpr std::uint64_t kWritersGrow[] = {1, 8, 64, 512};
constexpr std::uint64_t kValuesGrow[] = {64, 1024, 16 << 10, 128 << 10};

Error not_compared(std::string text) {
  return Error{ErrorCode::invalid_argument, std::move(text)};
}

/// By who is there; each case has Leasehold first.
class Planner {
 public:
  Planner(const CompareOptions& options, const std::set<System>& there)
      : options_(options), there_(there) {
    const auto lease = System::leasehold;
    add({"leasehold-lease", "Leasehold, lease reads", "linearizable, three nodes", lease, "lease",
         0},
        reads_);
    add({"etcd-linearizable", "etcd, linearizable reads", "linearizable, three nodes", System::etcd,
         kLinearizable, 1},
        reads_);
    add({"etcd-serializable", "etcd, serializable reads", "may be old, three nodes", System::etcd,
         kSerializable, 2},
        reads_);
    add({"redis", "Redis, GET", "one process that keeps nothing on disk", System::redis, "", 3},
        reads_);
    add({"leasehold", "Leasehold, SET", "durable on a majority of three nodes", lease, "", 0},
        writes_);
    add({"etcd", "etcd, Put", "durable on a majority of three nodes", System::etcd, "", 1},
        writes_);
    add({"redis-durable", "Redis, SET, fsync always", "durable on one machine alone",
         System::redis_durable, "", 3},
        writes_);
  }

  void add_usual() {
    add_case("read-1", "Reads, one after the other", false, true, 1, 1);
    add_case("write-1", "Writes, one after the other", true, true, 1, 1);
    add_case("read-64", "Reads at 64 connections", false, false, kManyConnections, 64);
    add_case("write-64", "Writes, 64 under way", true, false, kManyConnections, 64);
    add_case("write-512", "Writes, 512 under way", true, false, kManyConnections, 512);
  }

  void add_growth(const std::string& what) {
    if (what == "connections") {
      for (const std::uint64_t n : kConnectionsGrow) {
        grow("connections", fmt::format("Reads at {} connections", n), false, n, n, n);
      }
    } else if (what == "writers") {
      for (const std::uint64_t n : kWritersGrow) {
        grow("writers", fmt::format("Writes, {} under way", n), true, std::min(n, kManyConnections),
             n, n);
      }
    } else {
      for (const std::uint64_t bytes : kValuesGrow) {
        for (const bool writes : {false, true}) {
          const char* const verb = writes ? "Writes" : "Reads";
          grow(writes ? "values-write" : "values-read",
               fmt::format("{} of {} bytes, one after the other", verb, bytes), writes, 1, 1,
               bytes);
          plan_.cases.back().value_bytes = bytes;
          plan_.cases.back().latency = true;
        }
      }
    }
  }

  Plan take() { return std::move(plan_); }

 private:
  void add(Target target, std::vector<std::size_t>& into) {
    if (there_.count(target.system) == 0) return;
    into.push_back(plan_.targets.size());
    plan_.targets.push_back(std::move(target));
  }

  void add_case(std::string id, std::string name, bool writes, bool latency,
                std::uint64_t connections, std::uint64_t in_flight) {
    Case one;
    one.id = std::move(id);
    one.name = std::move(name);
    one.writes = writes;
    one.latency = latency;
    one.connections = connections;
    one.in_flight = in_flight;
    one.value_bytes = options_.value_bytes;
    one.targets = writes ? writes_ : reads_;
    plan_.cases.push_back(std::move(one));
  }

  void grow(const std::string& curve, std::string name, bool writes, std::uint64_t connections,
            std::uint64_t in_flight, std::uint64_t x) {
    add_case(fmt::format("{}-{}", curve, x), std::move(name), writes, false, connections,
             in_flight);
    plan_.cases.back().growth = curve;
    plan_.cases.back().x = x;
  }

  const CompareOptions& options_;
  const std::set<System>& there_;
  Plan plan_;
  std::vector<std::size_t> reads_;
  std::vector<std::size_t> writes_;
};

}  // namespace

Result<void> settle(CompareOptions& options) {
  if (options.sweeps == 0) options.sweeps = options.smoke ? 2 : kSweepsUsual;
  if (options.block_s == 0) options.block_s = options.smoke ? 0.2 : 1;
  if (options.warm_up_s < 0) options.warm_up_s = options.block_s / 4;
  if (options.keys == 0) options.keys = options.smoke ? 1000 : kComparedKeys;
  if (options.sweeps < 2 || options.sweeps > kSweepsMax) {
    return not_compared(
        fmt::format("--sweeps takes 2 to {}: an interval needs several", kSweepsMax));
  }
  if (options.block_s < 0.05 || options.block_s > kBlockMax || options.warm_up_s > kBlockMax) {
    return not_compared("--block takes 50ms to 10m, and --warm-up at most as much");
  }
  if (options.keys > kComparedKeysMax) {
    return not_compared(fmt::format("--keys takes 1 to {}", kComparedKeysMax));
  }
  if (options.value_bytes < kValueBytesMin || options.value_bytes > kValueBytesMax) {
    return not_compared(
        fmt::format("--value-size takes {} to {} bytes", kValueBytesMin, kValueBytesMax));
  }
  if (options.keys * options.value_bytes > kDataBytesMax) {
    return not_compared("--keys times --value-size is above 4 GiB, for each of seven servers");
  }
  for (const std::string& what : options.growth) {
    if (what != "connections" && what != "writers" && what != "values") {
      return not_compared(
          fmt::format("--growth takes connections, writers or values, not `{}`", what));
    }
  }
  return {};
}

std::size_t Plan::blocks_of_sweep() const {
  std::size_t blocks = 0;
  for (const Case& one : cases) blocks += one.targets.size();
  return blocks;
}

Plan plan_of(const CompareOptions& options, const std::set<System>& there) {
  Planner planner(options, there);
  planner.add_usual();
  for (const std::string& what : options.growth) planner.add_growth(what);
  return planner.take();
}

double seconds_of(const Plan& plan, const CompareOptions& options) {
  std::set<std::uint64_t> sizes;
  std::set<System> systems;
  for (const Case& one : plan.cases) sizes.insert(one.value_bytes);
  for (const Target& one : plan.targets) systems.insert(one.system);
  const auto blocks = static_cast<double>(plan.blocks_of_sweep() * options.sweeps);
  const double keys = static_cast<double>(options.keys * sizes.size() * systems.size());
  return kStartS + keys / kKeysASecond +
         blocks * (options.block_s + options.warm_up_s + kBlockBesideS);
}

std::string time_text(double seconds) {
  const auto whole = static_cast<std::uint64_t>(std::max(seconds, 0.0) + 0.5);
  if (whole < 60) return fmt::format("{} s", whole);
  if (whole < 3600) return fmt::format("{} min {} s", whole / 60, whole % 60);
  return fmt::format("{} h {} min", whole / 3600, whole % 3600 / 60);
}

}  // namespace leasehold::bench
