#include <leasehold/explore/explore_command.h>
#include <leasehold/explore/search.h>
#include <leasehold/story/teller.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <optional>

namespace leasehold::explore {

const char* const kExploreUsage =
    "usage: leasehold explore [options]\n"
    "Takes three real cores through every schedule within the bounds, breadth first, and looks at\n"
    "each state: two valid leases, a lease while a higher term has committed, a lease that\n"
    "outlives the promises under it, two leaders of a term, two committed prefixes, a stale read,\n"
    "a failed assertion. A violation is told as a story, and none is shorter. Exit status: 0\n"
    "there is none, 1 there is one, 3 there is none as far as --states allowed.\n"
    "Bounds; messages are lost, delayed and reordered at will, timers may fall late:\n"
    "  --time N            units of 20 ms that may pass (default 4); a lease of 49 ms lasts two\n"
    "  --restarts N        crashes, each followed by a start (default 0)\n"
    "  --duplicates N      messages that arrive twice (default 0)\n"
    "  --proposals N       commands of clients (default 0)\n"
    "  --reads N           reads that a quorum confirms (default 0)\n"
    "  --transfers N       of the leadership (default 0)\n"
    "  --changes N         of the members: one is removed, or all learners vote (default 0)\n"
    "  --sole              a change may also remove all but the leader\n"
    "  --voters N          nodes 1 to N vote, the others are learners (default 3)\n"
    "  --terms N           the last term (default 3)\n"
    "  --flights N         messages on their way at one instant (default 8)\n"
    "  --slow-disk         writes become durable by steps of their own, or are lost by a restart\n"
    "  --drift-percent N   how far clocks may be off (default 25, in which the nodes trust):\n"
    "                      above that there has to be a violation\n"
    "  --no-drift          all clocks are true; without it each may be slow, true or fast\n"
    "  --uneven            nodes 2 and 3 are set to a D of 19 ms\n"
    "  --readers           only what a reader could notice: two leases, a lease and a newer\n"
    "                      commit, a stale read, two committed prefixes\n"
    "  --depth N           steps at most (default 64)\n"
    "  --states N          states at most, of some 50 bytes each (default 20000000)\n"
    "  --quiet             no line for each depth\n"
    "At the beginning node 1 leads, and all have acknowledged its newest round; or else:\n"
    "  --first-election    nobody has been elected yet\n"
    "  --one-away          node 3 has not heard of the leader\n"
    "  --late-answer       a copy of node 3's newest answer is still on its way\n"
    "  --led-before        node 1 leads term 3 and led term 1, of which an answer is on its way\n";

namespace {

constexpr int kFound = 1, kUsage = 2, kUndecided = 3;

struct Arguments {
  Bounds bounds;
  SearchLimits limits;
  bool quiet = false;
};

bool set_number(const std::string& name, std::uint64_t value, Arguments& arguments) {
  Bounds& b = arguments.bounds;
  const std::pair<const char*, std::uint8_t*> small[] = {{"--time", &b.time},
                                                         {"--restarts", &b.restarts},
                                                         {"--duplicates", &b.duplicates},
                                                         {"--proposals", &b.proposals},
                                                         {"--reads", &b.reads},
                                                         {"--transfers", &b.transfers},
                                                         {"--changes", &b.changes},
                                                         {"--drift-percent", &b.drift_percent},
                                                         {"--terms", &b.terms},
                                                         {"--voters", &b.voters},
                                                         {"--flights", &b.flights}};
  for (const auto& one : small) {
    if (name != one.first) continue;
    *one.second = static_cast<std::uint8_t>(value);
    if (name == "--voters") return value >= 1 && value <= World::kNodes;
    return value < 100;
  }
  if (name == "--depth") {
    arguments.limits.depth_max = static_cast<std::size_t>(value);
    return value >= 1;
  }
  if (name != "--states") return false;
  arguments.limits.states_max = static_cast<std::size_t>(value);
  return value >= 1 && value <= 4'000'000'000U;
}

std::optional<Beginning> beginning_of(const std::string& word) {
  if (word == "--first-election") return Beginning::first_election;
  if (word == "--one-away") return Beginning::one_away;
  if (word == "--late-answer") return Beginning::late_answer;
  if (word == "--led-before") return Beginning::led_before;
  return std::nullopt;
}

std::string parse(const std::vector<std::string>& given, Arguments& arguments) {
  Bounds& b = arguments.bounds;
  for (std::size_t i = 0; i < given.size(); ++i) {
    const std::string& word = given[i];
    if (word == "--slow-disk") {
      b.slow_disk = true;
    } else if (word == "--no-drift") {
      b.drift = false;
    } else if (const auto beginning = beginning_of(word)) {
      if (b.beginning != Beginning::led) return word + ": a search begins in one way only";
      b.beginning = *beginning;
    } else if (word == "--uneven") {
      b.uneven = true;
    } else if (word == "--sole") {
      b.sole = true;
    } else if (word == "--readers") {
      b.readers_only = true;
    } else if (word == "--quiet") {
      arguments.quiet = true;
    } else if (std::string(kExploreUsage).find("  " + word + " N ") == std::string::npos) {
      return "unknown option `" + word + "`";
    } else if (i + 1 == given.size()) {
      return word + " needs a number";
    } else {
      const std::string& number = given[++i];
      const bool digits = !number.empty() && number.size() < 11 &&
                          number.find_first_not_of("0123456789") == std::string::npos;
      if (!digits || !set_number(word, std::stoull(number), arguments)) {
        return word + " does not take `" + number + "`";
      }
    }
  }
  if (b.beginning == Beginning::led_before && (b.voters < 3 || b.terms < 3 || b.uneven)) {
    return "--led-before needs three voters, three terms and no --uneven";
  }
  return "";
}

double seconds() {
  return static_cast<double>(std::clock()) / static_cast<double>(CLOCKS_PER_SEC);
}

void print(const SearchNews& news) {
  std::printf("depth %2zu: %9zu states, %10zu steps, %.1f s\n", news.depth, news.states, news.steps,
              seconds());
  std::fflush(stdout);
}

/// Takes the steps again and tells what happens.
void tell(const Bounds& bounds, const std::vector<Step>& path, bool last_too) {
  story::Teller teller([](const std::string& line) { std::printf("%s\n", line.c_str()); });
  teller.set_detail(story::Detail::full);
  World world(bounds);
  for (std::size_t i = 0; i < path.size(); ++i) {
    std::printf("step %zu: %s\n", i + 1, world.describe(path[i]).c_str());
    std::fflush(stdout);
    if (i + 1 == path.size() && !last_too) break;
    world.take(path[i], [&teller](const story::Record& record) {
      if (record.kind != story::Kind::delivered) teller.tell(record);
    });
    teller.pass(world.now());
    teller.flush();
  }
}

/// For the handler alone: a failed assertion ends the process, and the steps that led to it are
/// told. The search runs on one thread.
const Bounds* g_bounds = nullptr;
const std::vector<Step>* g_path = nullptr;

extern "C" void tell_assertion(int) {
  std::signal(SIGABRT, SIG_DFL);
  std::printf("\nan assertion fails at the last of %zu steps:\n", g_path->size());
  tell(*g_bounds, *g_path, false);
  std::fflush(stdout);
  std::_Exit(kFound);
}

}  // namespace

int run_explore_command(const std::vector<std::string>& given) {
  for (const std::string& word : given) {
    if (word != "--help" && word != "-h") continue;
    std::printf("%s", kExploreUsage);
    return 0;
  }
  Arguments arguments;
  const std::string wrong = parse(given, arguments);
  if (!wrong.empty()) {
    std::fprintf(stderr, "leasehold explore: %s\n%s", wrong.c_str(), kExploreUsage);
    return kUsage;
  }
  std::vector<Step> path;
  g_bounds = &arguments.bounds;
  g_path = &path;
  std::signal(SIGABRT, tell_assertion);
  const SearchReport report = search(
      arguments.bounds, arguments.limits,
      [&arguments](const SearchNews& news) {
        if (!arguments.quiet) print(news);
      },
      [&path](const std::vector<Step>& taken) { path = taken; });
  std::signal(SIGABRT, SIG_DFL);
  if (!report.violation.empty()) {
    std::printf("\n%s, after %zu steps (%zu states, %.1f s):\n", report.violation.c_str(),
                report.path.size(), report.news.states, seconds());
    tell(arguments.bounds, report.path, true);
    return kFound;
  }
  const bool all = report.everything || report.news.depth >= arguments.limits.depth_max;
  std::printf("no violation: %s %zu steps, %zu states, %zu steps taken, %.1f s\n",
              report.everything ? "all states within the bounds, up to" : "all states up to",
              report.news.depth, report.news.states, report.news.steps, seconds());
  return all ? 0 : kUndecided;
}

}  // namespace leasehold::explore
