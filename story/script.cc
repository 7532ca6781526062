// The commands of a scenario, and those about the group, time, clients and messages.
#include <leasehold/story/script.h>
#include <leasehold/story/script_words.h>
#include <leasehold/story/span.h>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

namespace leasehold::story {
namespace {

/// Time that passes between two checks of how much was printed.
constexpr Duration kRunSlice = std::chrono::seconds(1);

}  // namespace

const std::vector<Script::Command>& Script::commands() {
  static const std::vector<Command> kCommands = {
      {"nodes",
       "N [shared] [lease=T heartbeat=T election=T rtt=T margin=T drift=P delay=T seed=N groups=N]",
       "start N nodes (1 to 9) at time 0; delay is a message's way; `shared`: their processes "
       "promise to each other by beats, and the promises of 1 to 3 groups rest on that; 2b is the "
       "replica of node 2 in the second group, and 2 that in the first one, or the node",
       &Script::nodes, false},
      {"preset", "NODE term=T [log=T,T,...]",
       "before anything happens: a node's term, and its log as the terms of its entries",
       &Script::preset, true},
      {"mark", "TEXT", "name this instant", &Script::mark, true},
      {"advance", "T", "clocks run; no timer falls and nothing arrives", &Script::advance, true},
      {"run", "T [full]", "clocks run, timers fall, messages arrive when they are due",
       &Script::let_run, true},
      {"campaign", "NODE", "move to the next whole 10ms at which its election timer has run out",
       &Script::campaign, true},
      {"tick", "NODE", "let its timers fall, if they are due", &Script::tick, true},
      {"beat", "NODE", "its process begins a beat (nodes with `shared`)", &Script::beat, true},
      {"delay", "T", "the way of messages that are sent from now on", &Script::delay, true},
      {"entries", "N", "how many entries one append carries at most", &Script::entries, true},
      {"drift", "NODE P [holder|promise|both] [beyond]",
       "its clocks (or one) run fast or slow: +10%, -8.3%, 0; further than the bound of the node "
       "and of the group only with `beyond`",
       &Script::drift, true},
      {"propose", "NODE WORD...", "a client's commands, one entry each", &Script::propose, true},
      {"read", "NODE lease|quorum", "a client's read", &Script::read, true},
      {"deliver", "all|#N|A->B|TYPE... [brief]",
       "let messages arrive, in the order in which they were sent; * is any node", &Script::deliver,
       true},
      {"drop", "all|#N|A->B|TYPE...", "lose messages", &Script::drop, true},
      {"again", "#N", "let a copy of an earlier message arrive", &Script::again, true},
      {"settle", "[full]", "deliver everything and what follows from it; no time passes",
       &Script::settle, true},
      {"cut", "A->B|A-B...", "links carry nothing", &Script::cut, true},
      {"isolate", "NODE", "cut all its links", &Script::isolate, true},
      {"heal", "", "every link carries again", &Script::heal, true},
      {"crash", "NODE", "the process dies; what its disk has not synced is gone", &Script::crash,
       true},
      {"notice", "NODE PEER [PROCESS]",
       "it learns that a process of PEER has ended: the newest that has, or an earlier one",
       &Script::notice, true},
      {"transfer", "NODE TO", "the leader transfers the leadership to another node",
       &Script::transfer, true},
      {"restart", "NODE [lease=T margin=T drift=P]",
       "start it on its disk, with other settings of its own if given", &Script::restart, true},
      {"settings", "NODE [lease=T heartbeat=T election=T rtt=T margin=T drift=P reads=on|off]",
       "the leader changes the settings of the group", &Script::change_settings, true},
      {"pause", "NODE", "the process stands still; messages wait", &Script::pause, true},
      {"resume", "NODE [read]", "it continues; before all that waits it handles a client's read",
       &Script::resume, true},
      {"disk", "NODE stall|sync", "writes wait; writes are done", &Script::disk, true},
      {"forge", "A->B TYPE [name=value...]",
       "a message that no node has sent: vote and pre_vote (term last_term last_index), append "
       "(term round lease commit), append_reply (term request_term round promised matched index)",
       &Script::forge, true},
      {"show", "state|log|lease|promise|timer [NODE] or messages", "look", &Script::show, true},
      {"expect", "NODE FACT... or read N by BASIS", "stop if it does not hold", &Script::expect,
       true},
  };
  return kCommands;
}

std::string Script::help() {
  std::string text;
  for (const Command& command : commands()) {
    text += fmt::format("  {} {}\n      {}\n", command.name, command.arguments, command.about);
  }
  return text;
}

Script::Script(std::string title, Sink sink)
    : title_(std::move(title)),
      sink_(std::move(sink)),
      teller_(
          [this](const std::string& line) {
            if (!silent_) print(line);
          },
          10) {}

void Script::hear(const Record& record) {
  if (sink_) sink_(record);
  teller_.tell(record);
}

void Script::print(const std::string& line) {
  printed_ += line.size();
  if (printed_ <= kScriptBytesMax) output_.push_back(line);
}

std::vector<std::string> Script::take_output() {
  return std::exchange(output_, {});
}

Result<void> Script::run(const std::string& command) {
  const Words words = split(command);
  if (words.empty()) return wrong("an empty command");
  std::vector<std::string> names;
  for (const Command& known : commands()) {
    names.emplace_back(known.name);
    if (words[0] != known.name) continue;
    if (known.needs_nodes && !cluster_) {
      return wrong("no nodes yet: the first command is `nodes N`");
    }
    teller_.set_detail(Detail::full);
    const Done done = (this->*known.run)(words);
    if (!done) {
      return wrong(
          fmt::format("{}\n  usage: {} {}", done.error().message, known.name, known.arguments));
    }
    teller_.pass(cluster_->now());
    teller_.flush();
    if (!cluster_->violation().empty()) return wrong("VIOLATION: " + cluster_->violation());
    if (printed_ > kScriptBytesMax) {
      return wrong(
          fmt::format("prints more than {} bytes with what was printed before: let less time pass",
                      kScriptBytesMax));
    }
    return {};
  }
  return wrong(fmt::format("unknown command `{}`; allowed: {}", words[0], join(names)));
}

// ---- The group and time ----

Result<void> Script::nodes(const Words& words) {
  if (cluster_) return wrong("the nodes are there already: `nodes` comes once");
  if (words.size() < 2) return wrong("how many nodes?");
  const auto count = number(words[1]);
  if (!count) return count.error();
  if (count.value() < 1 || count.value() > Cluster::kNodesMax) {
    return wrong(fmt::format("1 to {} nodes", Cluster::kNodesMax));
  }
  const bool shared = words.size() > 2 && words[2] == "shared";
  const auto given = settings(
      words, shared ? 3 : 2,
      {"lease", "heartbeat", "election", "rtt", "margin", "drift", "delay", "seed", "groups"});
  if (!given) return given.error();
  Cluster::Options options;
  options.nodes = static_cast<std::size_t>(count.value());
  options.shared = shared;
  const std::map<std::string, Duration*> times = {{"lease", &options.timing.lease},
                                                  {"heartbeat", &options.timing.heartbeat},
                                                  {"election", &options.timing.election_timeout},
                                                  {"rtt", &options.timing.max_round_trip},
                                                  {"margin", &options.timing.margin},
                                                  {"delay", &options.delay}};
  for (const auto& setting : given.value()) {
    const auto time_setting = times.find(setting.first);
    if (time_setting != times.end()) {
      const auto value = time(setting.second);
      if (!value) return value.error();
      *time_setting->second = value.value();
    } else if (setting.first == "drift") {
      const auto rate = parse_rate(setting.second);
      if (!rate) {
        return wrong(fmt::format("`{}` is not a drift; allowed: 10%, 120ppm", setting.second));
      }
      options.timing.max_clock_drift_ppm = *rate;
    } else {
      const auto value = number(setting.second);
      if (!value) return value.error();
      if (setting.first == "seed") options.seed = value.value();
      if (setting.first == "groups") options.groups = static_cast<std::size_t>(value.value());
    }
  }
  if (options.groups < 1 || options.groups > Cluster::kGroupsMax) {
    return wrong(fmt::format("1 to {} groups", Cluster::kGroupsMax));
  }
  if (options.groups > 1 && !shared) {
    return wrong(
        "groups of nodes that share no promises know nothing of each other; allowed: "
        "`nodes N shared groups=2`");
  }
  if (const auto valid = options.timing.validate(); !valid) return valid.error();
  silent_ = true;
  Record first;
  first.kind = Kind::run;
  first.text = title_;
  first.number = options.nodes;
  hear(first);
  cluster_ = std::make_unique<Cluster>(options, [this](const Record& r) { hear(r); });
  silent_ = false;
  return {};
}

Result<void> Script::preset(const Words& words) {
  if (words.size() < 3) return wrong("a node and its term, please");
  const auto id = running_replica(words[1]);
  if (!id) return id.error();
  const auto given = settings(words, 2, {"term", "log"});
  if (!given) return given.error();
  if (cluster_->now() > Duration{0} || !cluster_->flights().empty()) {
    return wrong("something has happened already: `preset` comes right after `nodes`");
  }
  std::vector<Term> log;
  Term term;
  for (const auto& setting : given.value()) {
    std::string rest = setting.second + ",";
    for (std::size_t comma = rest.find(','); comma != std::string::npos; comma = rest.find(',')) {
      const auto value = number(rest.substr(0, comma));
      if (!value) return value.error();
      rest.erase(0, comma + 1);
      if (setting.first == "term") {
        term = Term(value.value());
        continue;
      }
      if (value.value() == 0 || (!log.empty() && Term(value.value()) < log.back())) {
        return wrong("the terms of a log are above zero and never fall");
      }
      log.emplace_back(value.value());
    }
  }
  if (!log.empty() && term < log.back()) {
    return wrong("a node's term is at least that of its last entry");
  }
  if (const NodeId other = cluster_->contradicted(id.value(), log); other != raft::kNobody) {
    return wrong(
        fmt::format("{} has an entry of this log, but another one before it: Raft makes "
                    "no such logs",
                    node_name(other, id.value().group)));
  }
  silent_ = true;
  cluster_->preset(id.value(), term, log);
  teller_.flush();
  silent_ = false;
  return {};
}

Result<void> Script::mark(const Words& words) {
  if (words.size() < 2) return wrong("what is the name of this instant?");
  Record record;
  record.kind = Kind::mark;
  for (std::size_t i = 1; i < words.size(); ++i) record.text += (i == 1 ? "" : " ") + words[i];
  cluster_->tell(record);
  return {};
}

Result<void> Script::advance(const Words& words) {
  if (words.size() != 2) return wrong("how long?");
  const auto span = time(words[1]);
  if (!span) return span.error();
  cluster_->advance(span.value());
  return {};
}

Result<void> Script::let_run(const Words& given) {
  Words words = given;
  teller_.set_detail(detail(words, Detail::brief));
  if (words.size() != 2) return wrong("how long?");
  const auto span = time(words[1]);
  if (!span) return span.error();
  Duration left = span.value();
  do {
    const Duration slice = std::min(left, kRunSlice);
    cluster_->run(slice);
    left -= slice;
  } while (left > Duration(0) && printed_ <= kScriptBytesMax);
  return {};
}

Result<void> Script::campaign(const Words& words) {
  if (words.size() != 2) return wrong("which node?");
  const auto id = running_replica(words[1]);
  if (!id) return id.error();
  if (!cluster_->campaign(id.value())) {
    return wrong(fmt::format("node {} leads or may not campaign", words[1]));
  }
  return {};
}

Result<void> Script::tick(const Words& words) {
  if (words.size() != 2) return wrong("which node?");
  const auto id = running_replica(words[1]);
  if (!id) return id.error();
  cluster_->tick(id.value());
  return {};
}

Result<void> Script::beat(const Words& words) {
  if (words.size() != 2) return wrong("which node?");
  const auto id = running(words[1]);
  if (!id) return id.error();
  const std::optional<Duration> due = cluster_->beat_due(id.value());
  if (!due) return wrong("these nodes begin no beats: start them with `nodes N shared`");
  if (cluster_->beat(id.value())) return {};
  if (cluster_->size() == 1) return wrong("there is no other node that could hear a beat");
  return wrong(fmt::format("the next beat of node {} is due at {}, and it is {}", words[1],
                           format_time(*due), format_time(cluster_->now())));
}

Result<void> Script::delay(const Words& words) {
  if (words.size() != 2) return wrong("how long?");
  const auto span = time(words[1]);
  if (!span) return span.error();
  cluster_->set_delay(span.value());
  return {};
}

Result<void> Script::entries(const Words& words) {
  if (words.size() != 2) return wrong("how many?");
  const auto count = number(words[1]);
  if (!count) return count.error();
  if (count.value() == 0) return wrong("at least one");
  cluster_->set_entries_max(static_cast<std::size_t>(count.value()));
  return {};
}

Result<void> Script::drift(const Words& given) {
  Words words = given;
  const bool beyond = words.back() == "beyond";
  if (beyond) words.pop_back();
  if (words.size() != 3 && words.size() != 4) return wrong("which node, and how fast?");
  const auto id = node(words[1]);
  if (!id) return id.error();
  const auto rate = parse_rate(words[2]);
  if (!rate || *rate <= -1'000'000 || *rate > 1'000'000) {
    return wrong(fmt::format("`{}` is not a rate; allowed: +10%, -8.3%, +120ppm, 0", words[2]));
  }
  const std::string which = words.size() == 4 ? words[3] : "both";
  if (which != "both" && which != "holder" && which != "promise") {
    return wrong(fmt::format("`{}` is not a clock; allowed: holder, promise, both", which));
  }
  const std::int64_t most = cluster_->drift_ppm_max(id.value());
  if (!beyond && (*rate > most || *rate < -most)) {
    return wrong(
        fmt::format("clocks of node {} that are off by {}ppm break the bound of {}ppm on "
                    "which every lease rests; start it with a larger one (`restart {} "
                    "drift=P`), change the group's (`settings`), or say `beyond`",
                    words[1], *rate, most, words[1]));
  }
  const auto rates = cluster_->node(id.value()).clock.rates();
  cluster_->set_rates(id.value(), which != "promise" ? *rate : rates.first,
                      which != "holder" ? *rate : rates.second);
  return {};
}

// ---- Clients ----

Result<void> Script::propose(const Words& words) {
  if (words.size() < 3) return wrong("which node, and what?");
  const auto id = running_replica(words[1]);
  if (!id) return id.error();
  const auto at = cluster_->propose(id.value(), Words(words.begin() + 2, words.end()));
  if (!at) print(fmt::format("node {} refuses: it does not lead", words[1]));
  return {};
}

Result<void> Script::read(const Words& words) {
  if (words.size() != 3 || (words[2] != "lease" && words[2] != "quorum")) {
    return wrong("which node, and how: lease or quorum?");
  }
  const auto id = running_replica(words[1]);
  if (!id) return id.error();
  const auto mode = words[2] == "lease" ? raft::ReadMode::lease : raft::ReadMode::quorum;
  const std::uint64_t number = cluster_->read(id.value(), mode);
  if (!cluster_->reads().at(number).answered) {
    print(fmt::format("read {} waits", number));
  }
  return {};
}

// ---- Messages ----

Result<void> Script::deliver(const Words& given) {
  Words words = given;
  teller_.set_detail(detail(words, Detail::full));
  const auto found = matching(words);
  if (!found) return found.error();
  for (const std::uint64_t number : found.value()) cluster_->deliver(number);
  return {};
}

Result<void> Script::drop(const Words& words) {
  const auto found = matching(words);
  if (!found) return found.error();
  for (const std::uint64_t number : found.value()) cluster_->drop(number);
  return {};
}

Result<void> Script::again(const Words& words) {
  if (words.size() != 2 || words[1][0] != '#') return wrong("which message, as #N?");
  const auto which = number(words[1].substr(1));
  if (!which) return which.error();
  if (!cluster_->again(which.value())) {
    return wrong(fmt::format(
        "message {} was not sent, is still on its way, or its receiver is down", words[1]));
  }
  return {};
}

Result<void> Script::settle(const Words& given) {
  Words words = given;
  teller_.set_detail(detail(words, Detail::brief));
  if (words.size() != 1) return wrong("no such argument");
  cluster_->settle();
  return {};
}

Result<void> Script::cut(const Words& words) {
  if (words.size() < 2) return wrong("which link?");
  for (std::size_t i = 1; i < words.size(); ++i) {
    std::string word = words[i];
    const bool both = word.find("->") == std::string::npos;
    if (both && word.find('-') != std::string::npos) word.replace(word.find('-'), 1, "->");
    const auto ends = link(word);
    if (!ends) return wrong(ends.error().message + " or, for both directions, 1-2");
    const auto& [from, to] = ends.value();
    if (from.group != kFirstGroup) return wrong("a link is of all groups; allowed: 1->2, 1-2");
    cluster_->cut(from.node, to.node);
    if (both) cluster_->cut(to.node, from.node);
  }
  return {};
}

Result<void> Script::isolate(const Words& words) {
  if (words.size() != 2) return wrong("which node?");
  const auto id = node(words[1]);
  if (!id) return id.error();
  for (std::uint64_t i = 1; i <= cluster_->size(); ++i) {
    if (NodeId(i) == id.value()) continue;
    cluster_->cut(id.value(), NodeId(i));
    cluster_->cut(NodeId(i), id.value());
  }
  return {};
}

Result<void> Script::heal(const Words& words) {
  if (words.size() != 1) return wrong("no such argument");
  for (std::uint64_t a = 1; a <= cluster_->size(); ++a) {
    for (std::uint64_t b = 1; b <= cluster_->size(); ++b) cluster_->join(NodeId(a), NodeId(b));
  }
  return {};
}

}  // namespace leasehold::story
