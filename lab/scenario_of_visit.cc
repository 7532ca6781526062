#include <leasehold/lab/lab.h>
#include <leasehold/lab/scenario_visit.h>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <map>
#include <set>
#include <utility>

namespace leasehold::lab {
namespace {

using std::chrono::milliseconds;

std::string no_counterpart(const Step& step, const std::string& why) {
  return fmt::format("the step {} has no counterpart in a scenario: {}", step_text(step), why);
}

/// Who began to lead, one after another.
class Leaders {
 public:
  void take(const story::Record& record) {
    if (record.kind != story::Kind::role || record.what != "leader") return;
    all_.push_back(record.node.value());
  }
  const std::vector<std::uint64_t>& all() const { return all_; }
  std::string text() const {
    std::string text;
    for (const std::uint64_t node : all_)
      text += fmt::format("{}{}", text.empty() ? "" : ", ", node);
    return text.empty() ? "nobody" : "node " + text;
  }

 private:
  std::vector<std::uint64_t> all_;
};

/// By sender and number: what was sent.
using SentMessages = std::map<std::pair<raft::NodeId, std::uint64_t>, story::Record>;

/// The steps of a visit as the commands of a scenario.
class Writing {
 public:
  Writing(const Visit& visit, Duration until, const SentMessages& sent)
      : visit_(visit), until_(until), sent_(sent) {}

  /// "" or which step has no counterpart.
  std::string write();
  /// Behind `nodes`.
  const std::vector<std::string>& lines() const { return lines_; }

 private:
  void command(const std::string& text) { lines_.push_back("> " + text); }
  void prose(const std::string& text) { lines_.insert(lines_.end(), {"", text, ""}); }
  void run_to(Duration at);
  std::string take(const Step& step);
  std::string of_process(const Step& step);
  std::string of_clients(const Step& step);
  std::string of_message(const Step& step);
  void of_links(const Step& step);
  void heal();
  bool up(raft::NodeId node) const { return down_.count(node) == 0; }

  const Visit& visit_;
  const Duration until_;
  const SentMessages& sent_;
  Duration now_{0};
  std::vector<std::string> lines_;
  std::set<raft::NodeId> down_;
  /// When the process goes on, and when the disk does.
  std::map<raft::NodeId, Duration> paused_;
  std::map<raft::NodeId, Duration> slow_;
  std::set<std::pair<raft::NodeId, raft::NodeId>> cut_;
};

/// In between, processes and disks go on.
void Writing::run_to(Duration at) {
  while (true) {
    const auto first = [](const auto& one, const auto& other) { return one.second < other.second; };
    const auto awake = std::min_element(paused_.begin(), paused_.end(), first);
    const auto synced = std::min_element(slow_.begin(), slow_.end(), first);
    const bool disk =
        synced != slow_.end() && (awake == paused_.end() || synced->second < awake->second);
    const Duration next = disk ? synced->second : awake == paused_.end() ? at : awake->second;
    const Duration end = std::min(next, at);
    if (end > now_) command(fmt::format("run {}ms", (end - now_) / milliseconds(1)));
    now_ = std::max(now_, end);
    if (next > at || (!disk && awake == paused_.end())) return;
    if (disk) {
      command(fmt::format("disk {} sync", synced->first.value()));
      slow_.erase(synced);
    } else {
      command(fmt::format("resume {}", awake->first.value()));
      paused_.erase(awake);
    }
  }
}

std::string Writing::write() {
  for (const Step& step : visit_.steps) {
    if (step.at > until_) break;
    run_to(step.at);
    if (const std::string wrong = take(step); !wrong.empty()) return no_counterpart(step, wrong);
  }
  run_to(until_);
  return "";
}

std::string Writing::take(const Step& step) {
  const std::uint64_t node = step.node.value();
  switch (step.verb) {
    case Verb::cut:
    case Verb::one_way:
    case Verb::join:
    case Verb::alone:
    case Verb::reunite: of_links(step); return "";
    case Verb::drift: {
      const bool beyond = std::abs(step.amount) > visit_.timing.max_clock_drift_ppm;
      command(fmt::format("drift {} {}ppm{}", node, step.amount, beyond ? " beyond" : ""));
      return "";
    }
    case Verb::jump: return "its clocks run fast or slow, and never leap";
    case Verb::suspend: return "its machines do not sleep";
    case Verb::add:
    case Verb::promote:
    case Verb::remove: return "its members stay the same";
    case Verb::write:
    case Verb::read: return of_clients(step);
    case Verb::drop:
    case Verb::delay:
    case Verb::twice: return of_message(step);
    case Verb::restart:
      if (down_.erase(step.node) > 0) {
        command(fmt::format("restart {}", node));
      } else {
        prose(fmt::format("({}: it runs already.)", step_text(step)));
      }
      return "";
    default: return of_process(step);
  }
}

std::string Writing::of_process(const Step& step) {
  const std::uint64_t node = step.node.value();
  const Duration end = step.at + milliseconds(step.amount);
  if (!up(step.node)) {
    prose(fmt::format("({}: no process runs there.)", step_text(step)));
    return "";
  }
  const bool slow = slow_.count(step.node) > 0;
  switch (step.verb) {
    case Verb::kill:
    case Verb::power:
      if (slow) return "what a crash loses of a slow disk differs";
      paused_.erase(step.node);
      down_.insert(step.node);
      command(fmt::format("crash {}", node));
      return "";
    case Verb::pause:
      if (slow) return "its disk is slow, and nothing goes on at a node that stands still";
      if (paused_.count(step.node) == 0) command(fmt::format("pause {}", node));
      paused_[step.node] = std::max(paused_[step.node], end);
      return "";
    case Verb::resume:
      if (paused_.erase(step.node) > 0) command(fmt::format("resume {}", node));
      return "";
    case Verb::slow:
      if (paused_.count(step.node) > 0) return "it stands still";
      if (!slow) command(fmt::format("disk {} stall", node));
      slow_[step.node] = std::max(slow_[step.node], end);
      return "";
    case Verb::transfer:
      if (paused_.count(step.node) > 0) return "it stands still";
      command(fmt::format("transfer {} {}", node, step.peer.value()));
      return "";
    default: LEASEHOLD_UNREACHABLE();
  }
}

std::string Writing::of_clients(const Step& step) {
  const std::uint64_t node = step.node.value();
  if (!up(step.node)) {
    prose(fmt::format("({}: no process runs there.)", step_text(step)));
    return "";
  }
  if (paused_.count(step.node) > 0) return "no client waits there at a node that stands still";
  if (step.verb == Verb::write) {
    command(fmt::format("propose {} x", node));
    return "";
  }
  if (step.mode == raft::ReadMode::log) return "its reads are by lease or by quorum";
  command(fmt::format("read {} {}", node, step.mode == raft::ReadMode::lease ? "lease" : "quorum"));
  return "";
}

/// There messages have other numbers: it is named by its link and its type.
std::string Writing::of_message(const Step& step) {
  if (step.verb == Verb::delay) return "there all messages take the same time";
  if (step.verb == Verb::twice) return "it names a copy by a number that only its own run knows";
  const auto found = sent_.find({step.node, step.message});
  if (found == sent_.end()) return "its node has sent no such message";
  const story::Record& sent = found->second;
  command(fmt::format("drop {}->{} {}", sent.node.value(), sent.peer.value(), sent.what));
  return "";
}

void Writing::of_links(const Step& step) {
  const std::uint64_t node = step.node.value();
  const std::uint64_t peer = step.peer.value();
  if (step.verb == Verb::one_way) {
    cut_.insert({step.node, step.peer});
    command(fmt::format("cut {}->{}", node, peer));
  } else if (step.verb == Verb::cut) {
    cut_.insert({{step.node, step.peer}, {step.peer, step.node}});
    command(fmt::format("cut {}-{}", node, peer));
  } else if (step.verb == Verb::alone) {
    for (std::uint64_t i = 1; i <= visit_.nodes; ++i) {
      if (i != node) cut_.insert({{step.node, raft::NodeId(i)}, {raft::NodeId(i), step.node}});
    }
    command(fmt::format("isolate {}", node));
  } else {
    const bool all = step.verb == Verb::reunite;
    const std::size_t joined = std::erase_if(cut_, [&step, all](const auto& link) {
      const bool out = link.first == step.node && (all || link.second == step.peer);
      return out || (link.second == step.node && (all || link.first == step.peer));
    });
    if (joined > 0) heal();
  }
}

/// Its word joins all links.
void Writing::heal() {
  command("heal");
  std::string links;
  for (const auto& [from, to] : cut_) links += fmt::format(" {}->{}", from.value(), to.value());
  if (!links.empty()) command("cut" + links);
}

std::string nodes_command(const Visit& visit, std::uint64_t seed) {
  const lease::Timing& timing = visit.timing;
  const auto ms = [](Duration span) { return span / milliseconds(1); };
  return fmt::format(
      "> nodes {} lease={}ms heartbeat={}ms election={}ms rtt={}ms margin={}ms drift={}ppm "
      "delay={}ms seed={}",
      visit.nodes, ms(timing.lease), ms(timing.heartbeat), ms(timing.election_timeout),
      ms(timing.max_round_trip), ms(timing.margin), timing.max_clock_drift_ppm, ms(visit.delay),
      seed);
}

std::string text_of(const Visit& visit, Duration until, const Writing& writing, std::uint64_t seed,
                    const std::string& about) {
  std::string text = fmt::format(
      "# A visit of the lease lab, {} ms long\n\nSource: the lease lab, {}\n\n"
      "Its steady load of reads and writes is left out. {}\n\n{}\n",
      until / milliseconds(1), visit_text(visit), about, nodes_command(visit, seed));
  for (const std::string& line : writing.lines()) text += line + "\n";
  return text;
}

}  // namespace

Result<std::string> scenario_of_visit(const Visit& visit, Duration until) {
  const auto wrong = [](std::string what) {
    return Error{ErrorCode::invalid_argument, std::move(what)};
  };
  if (visit.known_deaths != 0) {
    return wrong("in a scenario somebody says when a notice comes: choose that ends are not known");
  }
  if (visit.unchecked != 0) {
    return wrong("a scenario takes no numbers that break an inequality: let the core check them");
  }
  if (visit.groups > 1) {
    return wrong("a visit of two groups has no scenario file: share its link");
  }
  if (visit.spare > 0) {
    return wrong("in a scenario every node is a member: choose no spare nodes");
  }
  if (until > kScenarioLongest) return wrong("a visit of more than 60 s makes no scenario");
  Lab lab(visit);
  lab.run(until);
  if (!lab.refusal().empty()) return wrong(lab.refusal());
  Leaders led;
  SentMessages sent;
  for (const story::Record& record : lab.take_records()) {
    led.take(record);
    if (record.kind == story::Kind::sent) sent[{record.node, record.number}] = record;
  }
  Writing writing(visit, until, sent);
  if (const std::string refused = writing.write(); !refused.empty()) return wrong(refused);
  const std::string same =
      fmt::format("Here, as there, these lead one after another: {}.", led.text());
  for (std::uint64_t seed = 1; seed <= kScenarioSeeds; ++seed) {
    const auto file = story::parse_scenario("visit", text_of(visit, until, writing, seed, same));
    if (!file) return file.error();
    Leaders here;
    const story::ScenarioOutcome outcome = story::run_scenario(
        file.value(), [&here](const story::Record& record) { here.take(record); });
    if (!outcome.failed && here.all() == led.all()) return outcome.rewritten;
  }
  // The same commands, and another course.
  const std::string other = fmt::format(
      "There these led one after another: {}. No seed was found with which they do so here.",
      led.text());
  const auto file = story::parse_scenario("visit", text_of(visit, until, writing, 1, other));
  if (!file) return file.error();
  const story::ScenarioOutcome outcome = story::run_scenario(file.value(), nullptr);
  if (outcome.failed) {
    return wrong("as a scenario it ends with " + outcome.problems.back());
  }
  return outcome.rewritten;
}

}  // namespace leasehold::lab
