#include <leasehold/sim/plan/draw_plan.h>
#include <leasehold/sim/plan/plan_text.h>
#include <leasehold/sim/report/summary.h>
#include <leasehold/sim/seed_processes.h>
#include <leasehold/sim/shrink_command.h>
#include <leasehold/sim/sim_arguments.h>
#include <leasehold/sim/sim_command.h>
#include <leasehold/sim/simulator.h>
#include <leasehold/story/telling.h>

#include <cstdio>
#include <utility>

namespace leasehold::sim {
namespace {

class Command {
 public:
  explicit Command(SimArguments arguments) : arguments_(std::move(arguments)) {}

  int run() {
    if (arguments_.print_plan) {
      std::printf("%s", text_of(draw_plan(arguments_.first, arguments_.sim)).c_str());
      return 0;
    }
    if (arguments_.shrink) return shrink_one();
    if (arguments_.telling.wanted()) return tell_one();
    const SeedRange seeds{arguments_.first, arguments_.last, arguments_.jobs};
    SeedProcesses(seeds, arguments_.sim,
                  {[this](const SeedReport& report) { on_report(report); }, [this] { ++died_; },
                   [this] { return stopped(); }})
        .run();
    summarize();
    return findings_ == 0 ? 0 : 1;
  }

 private:
  /// Prints what the seed's finding needs, and its story if that is wanted.
  int shrink_one() {
    const auto shrunk = shrink_seed(arguments_.first, arguments_.sim, arguments_.quiet);
    if (!shrunk) {
      std::printf("seed %llu finds nothing: there is nothing to shrink\n",
                  number(arguments_.first));
      return 0;
    }
    arguments_.sim.reduction = shrunk->reduction;
    std::printf("SHRUNK seed %llu oracle %s at %s, %llu faults triggered, after %llu runs\n",
                number(arguments_.first), shrunk->finding.oracle.c_str(),
                format_instant(shrunk->finding.at).c_str(), number(faults_left(*shrunk)),
                number(shrunk->attempts));
    print_again(arguments_.first);
    if (arguments_.telling.wanted()) tell_one();
    return 1;
  }

  /// One seed in this process, told while it runs. If an assertion fails the story ends there.
  int tell_one() {
    story::Telling telling(arguments_.telling);
    Result<void> told = telling.open();
    if (told) {
      SimOptions options = arguments_.sim;
      options.record = [&telling](const story::Record& record) { telling.take(record); };
      const SeedReport report = run_seed(arguments_.first, options);
      told = telling.finish();
      on_report(report);
    }
    if (!told) {
      std::fprintf(stderr, "leasehold sim: %s\n", told.error().message.c_str());
      return 2;
    }
    summarize();
    return findings_ == 0 ? 0 : 1;
  }

  bool stopped() const { return findings_ > 0 && !arguments_.keep_going; }

  void on_report(const SeedReport& report) {
    if (stopped()) return;
    ++seeds_;
    summary_.add(report);
    if (arguments_.trace_hash) {
      std::printf("seed %llu trace %016llx\n", number(report.seed), number(report.trace_hash));
      // Each seed counts by its number, so that the order in which the jobs finish does not.
      std::uint64_t mixed = (report.trace_hash ^ report.seed) * 0x9e3779b97f4a7c15U;
      mixed ^= mixed >> 32;
      hash_ += mixed * 0xd6e8feb86659fd93U;
    }
    if (report.violation) {
      ++findings_;
      tell(report);
    } else if (const std::string missing = missing_coverage(report, arguments_.sim);
               !missing.empty()) {
      ++findings_;
      std::printf("FOUND seed %llu oracle coverage: the seed lacks %s\n", number(report.seed),
                  missing.c_str());
    }
    if (!arguments_.quiet && seeds_ % 100 == 0) {
      std::fprintf(stderr, "%llu of %llu seeds, %llu findings\n", number(seeds_),
                   number(arguments_.last - arguments_.first + 1), number(findings_));
    }
  }

  static unsigned long long number(std::uint64_t n) { return n; }

  void tell(const SeedReport& report) {
    const Violation& found = *report.violation;
    std::printf("FOUND seed %llu oracle %s at %s\n  %s\n", number(report.seed),
                found.oracle.c_str(), format_instant(found.at).c_str(), found.story.c_str());
    std::printf("  faults:");
    for (std::size_t i = 0; i < kFaultClasses; ++i) {
      const auto fault = static_cast<FaultClass>(i);
      if (report.faults.has(fault)) std::printf(" %s", fault_class_name(fault));
    }
    std::printf("\n  what happened before (true time):\n");
    for (const std::string& line : found.trace_tail) std::printf("    %s\n", line.c_str());
    print_again(report.seed);
  }

  void print_again(std::uint64_t seed) const {
    std::printf("  again: leasehold sim %s\n", options_again(seed, arguments_).c_str());
  }

  void summarize() {
    summary_.print(findings_, died_, arguments_.sim);
    if (arguments_.trace_hash) std::printf("combined trace hash %016llx\n", number(hash_));
  }

  SimArguments arguments_;
  std::uint64_t seeds_ = 0;
  std::uint64_t findings_ = 0;
  std::uint64_t died_ = 0;  ///< seeds that an assertion ended, where assertions do not count
  std::uint64_t hash_ = 0;
  Summary summary_;
};

}  // namespace

int run_sim_command(const std::vector<std::string>& given) {
  return run_sim_command(given, nullptr);
}

int run_sim_command(const std::vector<std::string>& given, MakeReplica earlier) {
  SimArguments arguments;
  arguments.sim.earlier = std::move(earlier);
  for (const std::string& name : given) {
    if (name != "--help" && name != "-h") continue;
    std::printf("%s%s", kSimUsage, story::kTellingUsage);
    return 0;
  }
  const std::string wrong = parse_sim_arguments(given, arguments);
  if (!wrong.empty()) {
    std::fprintf(stderr, "leasehold sim: %s\n%s%s", wrong.c_str(), kSimUsage, story::kTellingUsage);
    return 2;
  }
  if (const std::string unread = take_plan_file(arguments); !unread.empty()) {
    std::fprintf(stderr, "leasehold sim: %s\n", unread.c_str());
    return 2;
  }
  return Command(std::move(arguments)).run();
}

}  // namespace leasehold::sim
