// leasehold_story: the commands `scenario` and `timeline` as a program of its own, which needs
// nothing but the portable set.
#include <leasehold/story/scenario_command.h>
#include <leasehold/story/timeline_command.h>

#include <cstdio>
#include <string>
#include <vector>

int main(int count, char** arguments) {
  const std::vector<std::string> rest(arguments + (count > 1 ? 2 : 1), arguments + count);
  const std::string command = count > 1 ? arguments[1] : "";
  if (command == "scenario") return leasehold::story::run_scenario_command(rest);
  if (command == "timeline") return leasehold::story::run_timeline_command(rest);
  std::fprintf(stderr, "usage: leasehold_story scenario|timeline FILE...\n");
  return 2;
}
