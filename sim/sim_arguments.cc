#include <leasehold/sim/plan/plan_text.h>
#include <leasehold/sim/plan/reduction.h>
#include <leasehold/sim/sim_arguments.h>
#include <leasehold/sim/sim_command.h>
#include <leasehold/story/files.h>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

namespace leasehold::sim {

const char* const kSimUsage =
    "usage: leasehold sim [--seed N | --seeds A..B] [options]\n"
    "  --seed N            run one seed; the same as --seeds N..N\n"
    "  --seeds A..B        run the seeds A to B, both included (default 1..100)\n"
    "  --jobs N            processes to share the seeds among (default 1, at most 64)\n"
    "  --trace-hash        print the hash of each seed's trace, and of all together\n"
    "  --drift-ppm N       every clock runs at exactly +N or -N parts per million while the nodes\n"
    "                      are set to 100000: above that an oracle must find something\n"
    "  --partition SHAPE   one partition a seed, and no other fault: one-way, bridge, ring, chain\n"
    "                      or majority; the group must then get a stable leader in time\n"
    "  --hours N           each seed is N hours of a cluster's life: a fault every ten seconds, a\n"
    "                      leader change a minute, two operations of clients a second\n"
    "  --leases            clients mostly work with leases: thousands of grants, renewals,\n"
    "                      expiries and revocations a seed\n"
    "  --plan FILE         run the plan in FILE in place of one that a seed draws: kept by\n"
    "                      --print-plan, it is the same run when the drawing of plans has changed\n"
    "  --print-plan        print the plan of the seed and run nothing\n"
    "  --tail N            lines of what happened to print with a finding (default 40)\n"
    "  --lease-oracles     only the oracles of the lease and the linearizability checker judge\n"
    "  --shrink            leave out of the seed what its finding does not need, and print the\n"
    "                      options of what is left; takes a minute or two; with --story, also\n"
    "                      tell that run\n"
    "  --without WORDS     without these fault classes (as in the summary), sessions, leases,\n"
    "                      key_locks or watchers, with commas between\n"
    "  --clients N         at most this many clients\n"
    "  --only NUMBERS      of the faults that are triggered only these: 3,7-9, or none\n"
    "  --variant N         another order of the same kinds of faults\n"
    "  --keep-going        do not stop at the first finding; report every seed's\n"
    "  --quiet             no progress line\n";

namespace {

constexpr std::uint64_t kJobsMax = 64;
constexpr std::uint64_t kHoursMax = std::uint64_t{24} * 366;
constexpr std::uint64_t kTailMax = 10'000'000;

std::optional<std::uint64_t> parse_number(const std::string& text) {
  if (text.empty() || text.size() > 18) return std::nullopt;
  std::uint64_t number = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') return std::nullopt;
    number = number * 10 + static_cast<std::uint64_t>(c - '0');
  }
  return number;
}

bool takes_value(const std::string& name) {
  const auto names = {"--seed",    "--seeds",     "--jobs",    "--drift-ppm",
                      "--tail",    "--partition", "--hours",   "--without",
                      "--clients", "--only",      "--variant", "--plan"};
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// "A..B" or "A".
bool parse_range(const std::string& text, SimArguments& arguments) {
  const std::size_t dots = text.find("..");
  const auto first = parse_number(text.substr(0, dots));
  const auto last = dots == std::string::npos ? first : parse_number(text.substr(dots + 2));
  if (!first || !last || *first > *last) return false;
  arguments.first = *first;
  arguments.last = *last;
  return true;
}

/// Options with a value. False: the value is wrong.
bool set_value(const std::string& name, const std::string& value, SimArguments& arguments) {
  if (name == "--plan") {
    arguments.plan_file = value;
    return !value.empty();
  }
  if (name == "--seed" || name == "--seeds") return parse_range(value, arguments);
  if (name == "--partition") {
    arguments.sim.shape = partition_shape_of(value);
    return arguments.sim.shape.has_value();
  }
  if (name == "--without" || name == "--clients" || name == "--only" || name == "--variant") {
    return take_reduction(name, value, arguments.sim.reduction);
  }
  const auto number = parse_number(value);
  if (!number) return false;
  if (name == "--jobs") {
    arguments.jobs = *number;
    return *number >= 1 && *number <= kJobsMax;
  }
  if (name == "--tail") {
    arguments.sim.trace_tail = static_cast<std::size_t>(*number);
    return *number <= kTailMax;
  }
  if (name == "--hours") {
    arguments.sim.long_life = true;
    arguments.sim.chaos = std::chrono::hours(*number);
    return *number >= 1 && *number <= kHoursMax;
  }
  arguments.sim.drift_ppm = static_cast<std::int64_t>(*number);
  return *number < 1'000'000;
}

}  // namespace

std::string parse_sim_arguments(const std::vector<std::string>& given, SimArguments& arguments) {
  bool seeds_given = false;
  for (std::size_t i = 0; i < given.size(); ++i) {
    const std::string& name = given[i];
    if (const auto wrong = story::take_telling_option(given, i, arguments.telling)) {
      if (!wrong->empty()) return *wrong;
    } else if (name == "--trace-hash") {
      arguments.trace_hash = true;
    } else if (name == "--lease-oracles") {
      arguments.sim.lease_oracles_only = true;
    } else if (name == "--leases") {
      arguments.sim.lease_work = true;
    } else if (name == "--shrink") {
      arguments.shrink = true;
    } else if (name == "--keep-going") {
      arguments.keep_going = true;
    } else if (name == "--quiet") {
      arguments.quiet = true;
    } else if (name == "--print-plan") {
      arguments.print_plan = true;
    } else if (takes_value(name)) {
      if (i + 1 == given.size()) return name + " needs a value";
      const std::string& value = given[++i];
      seeds_given = seeds_given || name == "--seed" || name == "--seeds";
      if (!set_value(name, value, arguments)) {
        return fmt::format("{} does not take `{}`", name, value);
      }
    } else {
      return fmt::format("unknown option `{}`", name);
    }
  }
  const bool many = arguments.first != arguments.last && arguments.plan_file.empty();
  if (arguments.telling.wanted() && many) {
    return "--story and --trace are about one seed: give --seed N";
  }
  if (arguments.shrink && many) {
    return "--shrink is about one seed: give --seed N";
  }
  if (arguments.print_plan && many) {
    return "--print-plan is about one seed: give --seed N";
  }
  if (!arguments.plan_file.empty() && (seeds_given || arguments.sim.drift_ppm)) {
    return "--plan has a seed and a drift of its own: give it without --seed and --drift-ppm";
  }
  if (arguments.sim.shape && arguments.sim.long_life) {
    return "--partition and --hours are two kinds of simulation: give one of them";
  }
  if (arguments.sim.lease_work && (arguments.sim.shape || arguments.sim.long_life)) {
    return "--leases is a kind of simulation of its own: give it without --partition and --hours";
  }
  if (arguments.sim.lease_work && arguments.sim.reduction.no_leases) {
    return "--leases and --without leases contradict each other: give one of them";
  }
  return "";
}

std::string take_plan_file(SimArguments& arguments) {
  if (arguments.plan_file.empty()) return "";
  const Result<std::string> text = story::read_file(arguments.plan_file);
  if (!text) return text.error().message;
  Result<Plan> plan = plan_of(text.value());
  if (!plan) return fmt::format("{}: {}", arguments.plan_file, plan.error().message);
  arguments.first = arguments.last = plan.value().seed;
  arguments.sim.plan = std::move(plan).value();
  return "";
}

std::string options_again(std::uint64_t seed, const SimArguments& arguments) {
  const SimOptions& options = arguments.sim;
  const bool drawn = arguments.plan_file.empty();
  std::string text = drawn ? fmt::format("--seed {}", seed) : "--plan " + arguments.plan_file;
  if (options.shape) text += std::string(" --partition ") + partition_shape_name(*options.shape);
  if (options.long_life) {
    text += fmt::format(" --hours {}", options.chaos / std::chrono::hours(1));
  }
  if (options.drift_ppm) text += fmt::format(" --drift-ppm {}", *options.drift_ppm);
  if (options.lease_work) text += " --leases";
  if (options.lease_oracles_only) text += " --lease-oracles";
  return text + options_of(options.reduction);
}

}  // namespace leasehold::sim
