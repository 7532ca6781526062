#include <leasehold/check/check_command.h>
#include <leasehold/cli/bench_command.h>
#include <leasehold/cli/tools.h>
#include <leasehold/explore/explore_command.h>
#include <leasehold/lab/lab_command.h>
#include <leasehold/sim/sim_command.h>
#include <leasehold/story/scenario_command.h>
#include <leasehold/story/telling.h>
#include <leasehold/story/timeline_command.h>

#include <string>

namespace leasehold::cli {

void add_tools(Parser& parser) {
  parser.add(Command{"bench", "Measure servers under a load of reads and writes", add_bench});
  const Tool tools[] = {
      {"sim", "Run simulated clusters with faults, by seed, and check them",
       std::string(sim::kSimUsage) + story::kTellingUsage, sim::run_sim_command},
      {"check", "Judge a recorded history: is it linearizable?", check::kCheckUsage,
       check::run_check_command},
      {"explore", "Try every schedule of a few cores, within bounds", explore::kExploreUsage,
       explore::run_explore_command},
      {"scenario", "Run scenarios on real cores, and compare the output",
       std::string(story::kScenarioUsage) + story::kTellingUsage, story::run_scenario_command},
      {"timeline", "Draw a scenario or a trace as an SVG", story::kTimelineUsage,
       story::run_timeline_command},
      {"lab", "Find the lease lab, a page for browsers, or show a trace in it", lab::kLabUsage,
       lab::run_lab_command},
  };
  for (const Tool& tool : tools) parser.add(tool);
}

}  // namespace leasehold::cli
