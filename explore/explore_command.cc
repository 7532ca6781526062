#include <leasehold/explore/codec.h>
#include <leasehold/explore/explore_command.h>
#include <leasehold/explore/search.h>
#include <leasehold/story/teller.h>

#include <fmt/format.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>
#include <utility>

namespace leasehold::explore {

const char* const kExploreUsage =
    "usage: leasehold explore [options]\n"
    "Takes a few real cores through every schedule within the bounds, breadth first, and looks at\n"
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
    "  --changes N         of the members: one is removed or taken in as a learner, or all\n"
    "                      learners vote (default 0)\n"
    "  --settings N        changes of the settings: D becomes 19 or 98 ms, or the bound on the\n"
    "                      drift 0 or 25 %; clocks run true before 0 is asked for, and may be\n"
    "                      wrong when 25 % is committed (default 0)\n"
    "  --sole              a change may also remove all but the leader\n"
    "  --suspends N        machines that sleep, and may wake (default 0)\n"
    "  --beats N           of processes, with --shared (default 0)\n"
    "  --notices N         that an earlier process of another node has ended (default 0)\n"
    "  --wipes N           nodes that start again in an empty directory (default 0)\n"
    "  --cuts N            logs that are cut behind what is committed; a node that lacks it\n"
    "                      gets a snapshot (default 0)\n"
    "  --terms N           the last term (default 3)\n"
    "  --flights N         messages on their way at one instant (default 8)\n"
    "  --meetings          all that is on its way in a group of nodes, and all that follows from\n"
    "                      it, may arrive as one step: stories are shorter, and searches deeper\n"
    "The group:\n"
    "  --nodes N           1 to 5 (default 3)\n"
    "  --members N         nodes 1 to N form the group, the others wait (default all)\n"
    "  --voters N          nodes 1 to N vote, other members are learners (default all)\n"
    "  --shared            nodes promise to each other's processes, and the promises of groups\n"
    "                      rest on that; all are bound at the beginning\n"
    "  --groups N          1 or 2, with --shared: of which each node has a replica (default 1)\n"
    "  --slow-disk         writes become durable by steps of their own, or are lost by a restart\n"
    "  --slow-apply        state machines show commands by steps of their own, and a leader keeps\n"
    "                      the news of commits that its own does not show\n"
    "  --drift-percent N   how far clocks may be off (default 25, which the nodes tolerate):\n"
    "                      above that there must be a violation\n"
    "  --no-drift          all clocks are true; without it each may be slow, true or fast\n"
    "  --uneven            all nodes but the first are set to a D of 19 ms\n"
    "  --agreed N          the group has settings, with a bound of N % (0 or 25) on the drift;\n"
    "                      its nodes were started with 0\n"
    "  --unbound           the last node answers, and promises nothing\n"
    "  --witness           the last node keeps the log and no state machine\n"
    "  --codec             each message passes through the codec of the wire\n"
    "What is looked for:\n"
    "  --readers           only what a reader could notice: two leases, a lease and a newer\n"
    "                      commit, a stale read, two committed prefixes\n"
    "  --rules             also each breach of a rule by one node in one step, harmless or not\n"
    "How long:\n"
    "  --depth N           steps at most (default 64)\n"
    "  --states N          states at most, of some 50 bytes each (default 20000000)\n"
    "  --quiet             no line for each depth\n"
    "At the beginning node 1 leads, and all have acknowledged its newest round; or else:\n"
    "  --first-election    no node has been elected yet\n"
    "  --one-away          the last node has not heard of the leader\n"
    "  --late-answer       a copy of the last node's newest answer is still on its way\n"
    "  --led-before        node 1 leads term 3 and led term 1, of which an answer is on its way\n"
    "  --after STEPS       then take these, with commas between; a story ends with its steps.\n"
    "                      Only here: `lose`, for one message or all, and `keep`, for one that\n"
    "                      travels on when the search begins\n";

namespace {

constexpr int kFound = 1, kUsage = 2, kUndecided = 3;

struct Arguments {
  Bounds bounds;
  /// How the search begins; the steps of --after follow.
  std::string (*beginning)(std::size_t nodes) = nullptr;
  std::string after;
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
                                                         {"--suspends", &b.suspends},
                                                         {"--wipes", &b.wipes},
                                                         {"--notices", &b.notices},
                                                         {"--beats", &b.beats},
                                                         {"--groups", &b.groups},
                                                         {"--cuts", &b.cuts},
                                                         {"--settings", &b.settings},
                                                         {"--agreed", &b.agreed_percent},
                                                         {"--nodes", &b.nodes},
                                                         {"--members", &b.members},
                                                         {"--drift-percent", &b.drift_percent},
                                                         {"--terms", &b.terms},
                                                         {"--voters", &b.voters},
                                                         {"--flights", &b.flights}};
  for (const auto& one : small) {
    if (name != one.first) continue;
    *one.second = static_cast<std::uint8_t>(value);
    if (name == "--nodes" || name == "--members" || name == "--voters") {
      return value >= 1 && value <= kNodesMax;
    }
    if (name == "--groups") return value >= 1 && value <= kGroupsMax;
    if (name == "--agreed") return value == 0 || value == 25;
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

std::string nothing(std::size_t) {
  return "";
}

using BeginningOf = std::string (*)(std::size_t nodes);

BeginningOf beginning_of(const std::string& word) {
  if (word == "--first-election") return nothing;
  if (word == "--one-away") return beginning::one_away;
  if (word == "--late-answer") return beginning::late_answer;
  if (word == "--led-before") return beginning::led_before;
  return nullptr;
}

bool* switch_of(const std::string& word, Arguments& arguments) {
  Bounds& b = arguments.bounds;
  const std::pair<const char*, bool*> switches[] = {
      {"--shared", &b.shared},         {"--slow-disk", &b.slow_disk},  {"--uneven", &b.uneven},
      {"--unbound", &b.unbound},       {"--witness", &b.witness},      {"--sole", &b.sole},
      {"--meetings", &b.meetings},     {"--readers", &b.readers_only}, {"--rules", &b.rules},
      {"--slow-apply", &b.slow_apply}, {"--quiet", &arguments.quiet}};
  for (const auto& one : switches) {
    if (word == one.first) return one.second;
  }
  return nullptr;
}

/// One word, and what follows it if it needs that.
std::string parse(const std::vector<std::string>& given, std::size_t& i, Arguments& arguments) {
  const std::string& word = given[i];
  if (bool* on = switch_of(word, arguments)) {
    *on = true;
    return "";
  }
  if (word == "--no-drift") {
    arguments.bounds.drift = false;
    return "";
  }
  if (word == "--codec") {
    arguments.bounds.codec = through_codec();
    return arguments.bounds.codec ? "" : "--codec: this program was built without the wire";
  }
  if (const BeginningOf beginning = beginning_of(word)) {
    if (arguments.beginning != nullptr) return word + ": a search begins in one way only";
    arguments.beginning = beginning;
    return "";
  }
  const bool takes_steps = word == "--after";
  if (!takes_steps &&
      std::string(kExploreUsage).find(fmt::format("  {} N ", word)) == std::string::npos) {
    return fmt::format("unknown option `{}`", word);
  }
  if (i + 1 == given.size()) return word + (takes_steps ? " needs steps" : " needs a number");
  const std::string& value = given[++i];
  if (takes_steps) {
    arguments.after += value + ", ";
    return "";
  }
  const bool digits = !value.empty() && value.size() < 11 &&
                      value.find_first_not_of("0123456789") == std::string::npos;
  if (!digits || !set_number(word, std::stoull(value), arguments)) {
    return fmt::format("{} does not take `{}`", word, value);
  }
  return "";
}

/// Null: these bounds fit together.
const char* wrong_shared(const Bounds& b) {
  if (!b.shared && b.beats > 0) return "--beats needs --shared";
  if (!b.shared && b.groups > 1) return "--groups needs --shared";
  if (b.shared && b.rules) return "--rules does not know the promises between processes";
  if (b.shared && b.unbound) return "--unbound knows only promises of groups, not --shared";
  if (b.groups > 1 && (b.settings > 0 || b.agreed_percent != kNothingAgreed)) {
    return "--settings and --agreed are of one group";
  }
  return nullptr;
}

std::string parse(const std::vector<std::string>& given, Arguments& arguments) {
  for (std::size_t i = 0; i < given.size(); ++i) {
    const std::string wrong = parse(given, i, arguments);
    if (!wrong.empty()) return wrong;
  }
  Bounds& b = arguments.bounds;
  if (b.members > b.nodes) return fmt::format("--members: there are only {} nodes", b.nodes);
  if (b.voters > (b.members == 0 ? b.nodes : b.members)) return "--voters: they are members too";
  if (b.witness && (b.voters == 1 || b.members == 1 || b.nodes == 1)) {
    return "--witness: another node has to lead";
  }
  if (b.readers_only && b.rules) return "--readers and --rules exclude each other";
  if (const char* wrong = wrong_shared(b)) return wrong;
  // If one node is away, the rest still needs a node next to the leader.
  const std::size_t members = b.members == 0 ? b.nodes : b.members;
  const bool away = arguments.beginning != nullptr && arguments.beginning != nothing;
  if (away && members < 3) return "a beginning with one away or late needs three members";
  if (arguments.beginning == nullptr && b.shared) {
    if (members < 2) return "--shared: a group of one has nobody to promise to";
    b.beginning = beginning::bound(members, b.groups);
  } else {
    b.beginning = (arguments.beginning == nullptr ? beginning::led : arguments.beginning)(members);
  }
  b.beginning += arguments.after;
  return "";
}

/// Why a search cannot begin there; empty: it can.
std::string wrong_beginning(const Bounds& bounds) {
  const World world(bounds);
  if (!world.wrong_beginning().empty()) return "the beginning: " + world.wrong_beginning();
  if (!world.violation().empty()) return "the beginning shows already: " + world.violation();
  if (world.left()) return "the beginning is past --terms or --flights; allow more";
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

/// Takes the steps again and prints what happens.
void tell(const Bounds& bounds, const std::vector<Step>& path, bool last_too) {
  story::Teller teller([](const std::string& line) { std::printf("%s\n", line.c_str()); });
  teller.set_detail(story::Detail::full);
  World world(bounds);
  std::string steps;
  for (std::size_t i = 0; i < path.size(); ++i) {
    std::printf("step %zu: %s\n", i + 1, world.describe(path[i]).c_str());
    std::fflush(stdout);
    steps += (i == 0 ? "" : ", ") + world.text(path[i]);
    if (i + 1 == path.size() && !last_too) break;
    world.take(path[i], [&teller](const story::Record& record) {
      if (record.kind != story::Kind::delivered) teller.tell(record);
    });
    teller.pass(world.now());
    teller.flush();
  }
  std::printf("steps: %s\n", steps.c_str());
}

/// For the handler alone: a failed assertion ends the process, and the handler prints the steps
/// that led to it. The search runs on one thread.
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
  const std::string no_beginning = wrong_beginning(arguments.bounds);
  if (!no_beginning.empty()) {
    std::fprintf(stderr, "leasehold explore: %s\n", no_beginning.c_str());
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
