#include <leasehold/lab/lab.h>
#include <leasehold/lab/scenario_visit.h>
#include <leasehold/story/record.h>
#include <leasehold/story/script_words.h>
#include <leasehold/story/span.h>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <set>
#include <utility>

namespace leasehold::lab {
namespace {

using std::chrono::milliseconds;
using Words = std::vector<std::string>;

/// Of a pause and of a slow disk; of those that do not end, too.
constexpr std::int64_t kLengthMaxMs = 60'000;

Error no_word(std::string why) {
  return Error{ErrorCode::invalid_argument, std::move(why)};
}

/// Of commands that the lab cannot take at all.
const char* reason_against(const std::string& command) {
  static const std::map<std::string, const char*> kReasons = {
      {"preset", "every node of the lab begins with an empty log"},
      {"advance", "in the lab no time passes without timers and messages"},
      {"campaign", "in the lab a node campaigns when its own timer falls"},
      {"tick", "in the lab timers fall by themselves"},
      {"beat", "the nodes of the lab share no promises"},
      {"entries", "the lab does not limit what an append carries"},
      {"deliver", "in the lab messages arrive when they are due"},
      {"again", "in the lab a message arrives twice only if that is said while it is under way"},
      {"settle", "in the lab messages take their time"},
      {"forge", "in the lab every message was sent by a node"},
      {"notice", "in a scenario somebody says when a notice comes"},
      {"settings", "the numbers of a visit are those from its start"}};
  const auto found = kReasons.find(command);
  return found == kReasons.end() ? nullptr : found->second;
}

/// Whole milliseconds.
Result<std::int64_t> whole_ms(const std::string& word) {
  const auto span = story::parse_span(word);
  if (!span) return no_word(fmt::format("`{}` is not a time", word));
  if (*span % milliseconds(1) != Duration{0}) {
    return no_word("the lab counts whole milliseconds");
  }
  return *span / milliseconds(1);
}

class Translation {
 public:
  /// The first command is `nodes`.
  Result<void> nodes(const Words& words);
  /// "" or why there is no counterpart. Afterwards all may go on: the command was left out.
  std::string take(const Words& words);
  static bool is_look(const std::string& name) {
    return name == "show" || name == "expect" || name == "mark";
  }
  std::int64_t now() const { return now_; }
  Result<Visit> finish();

 private:
  std::string add(const std::string& words) {
    steps_.push_back(fmt::format("{}.{}", now_, words));
    return "";
  }
  std::string run(const Words& words);
  std::string delay(const Words& words);
  std::string drift(const Words& words);
  std::string read(const Words& words);
  std::string cut(const Words& words);
  std::string heal();
  std::string pause(const Words& words);
  std::string resume(const Words& words);
  std::string disk(const Words& words);
  std::string crash(const Words& words);
  std::string drop(const Words& words);

  std::map<std::string, std::string> numbers_;
  std::uint64_t nodes_ = 0;
  std::int64_t now_ = 0;
  std::vector<std::string> steps_;
  /// A pause and a slow disk become one step, whose length is known when it ends.
  std::map<std::string, std::size_t> paused_;
  std::map<std::string, std::size_t> slow_;
  std::set<std::pair<std::string, std::string>> cut_;
};

Result<void> Translation::nodes(const Words& words) {
  if (words.empty() || words[0] != "nodes") return no_word("the first command is `nodes N`");
  numbers_ = {{"reads", "0"}, {"writes", "0"}, {"delay", "5"}};
  for (std::size_t i = 1; i < words.size(); ++i) {
    if (i == 1) {
      numbers_["nodes"] = words[1];
      nodes_ = story::parse_number(words[1]).value_or(0);
      continue;
    }
    if (words[i] == "shared") return no_word("the nodes of the lab share no promises");
    const std::size_t mark = words[i].find('=');
    const std::string name = words[i].substr(0, mark);
    const std::string value = mark == std::string::npos ? "" : words[i].substr(mark + 1);
    if (name == "seed") {
      numbers_[name] = value;
    } else if (name == "drift") {
      const auto rate = story::parse_rate(value);
      if (!rate) return no_word(fmt::format("`{}` is not a drift", value));
      numbers_[name] = std::to_string(*rate);
    } else if (name == "groups") {
      if (value != "1") return no_word("the nodes of the lab have one group");
    } else {
      const auto ms = whole_ms(value);
      if (!ms) return ms.error();
      numbers_[name] = std::to_string(ms.value());
    }
  }
  const Result<Visit> visit = finish();
  return visit ? Result<void>() : visit.error();
}

Result<Visit> Translation::finish() {
  std::string link = "steps=";
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    link += (i == 0 ? "" : "~") + steps_[i];
  }
  for (const auto& [name, value] : numbers_) link += fmt::format("&{}={}", name, value);
  return parse_visit(link);
}

std::string Translation::run(const Words& words) {
  const auto span =
      words.size() > 1 ? whole_ms(words[1]) : Result<std::int64_t>(no_word("how long?"));
  if (!span) return span.error().message;
  if (now_ + span.value() > Visit::kLongest / milliseconds(1)) return "a visit lasts 10 minutes";
  now_ += span.value();
  return "";
}

std::string Translation::delay(const Words& words) {
  const auto span =
      words.size() == 2 ? whole_ms(words[1]) : Result<std::int64_t>(no_word("how long?"));
  if (!span) return span.error().message;
  if (now_ > 0) return "in the lab the way of a message is one number, from the start";
  const std::string before = std::exchange(numbers_["delay"], std::to_string(span.value()));
  const Result<Visit> visit = finish();
  if (visit) return "";
  numbers_["delay"] = before;
  return visit.error().message;
}

std::string Translation::drift(const Words& given) {
  Words words = given;
  if (words.back() == "beyond") words.pop_back();
  if (words.size() == 4 && words[3] != "both") return "both clocks of a node of the lab run alike";
  const auto rate = words.size() < 3 ? std::nullopt : story::parse_rate(words[2]);
  if (!rate) return "which node, and how fast?";
  return add(fmt::format("drift.{}.{}", words[1], *rate));
}

std::string Translation::read(const Words& words) {
  return words.size() == 3 ? add(fmt::format("read.{}.{}", words[1], words[2])) : "which node?";
}

std::string Translation::cut(const Words& words) {
  for (std::size_t i = 1; i < words.size(); ++i) {
    const std::size_t arrow = words[i].find("->");
    const std::size_t line = words[i].find('-');
    if (line == std::string::npos) return fmt::format("`{}` is not a link", words[i]);
    const bool one_way = arrow != std::string::npos;
    const std::string from = words[i].substr(0, line);
    const std::string to = words[i].substr(line + (one_way ? 2 : 1));
    add(fmt::format("{}.{}.{}", one_way ? "one_way" : "cut", from, to));
    cut_.insert(std::minmax(from, to));
  }
  return "";
}

std::string Translation::heal() {
  for (const auto& [one, other] : std::exchange(cut_, {})) {
    add(fmt::format("join.{}.{}", one, other));
  }
  return "";
}

std::string Translation::pause(const Words& words) {
  if (words.size() != 2) return "which node?";
  if (!paused_.emplace(words[1], steps_.size()).second) return "it stands still already";
  return add(fmt::format("pause.{}.{}", words[1], kLengthMaxMs));
}

/// `step` has lasted until now. "" or what is wrong with that.
std::string set_length(std::string& step, std::int64_t now) {
  const std::int64_t length = now - std::stoll(step.substr(0, step.find('.')));
  if (length > kLengthMaxMs) return "in the lab it lasts a minute at most";
  step = fmt::format("{}.{}", step.substr(0, step.rfind('.')), std::max<std::int64_t>(1, length));
  return "";
}

std::string Translation::resume(const Words& words) {
  if (words.size() == 3) return "in the lab no read comes before what waits";
  const auto found = words.size() == 2 ? paused_.find(words[1]) : paused_.end();
  if (found == paused_.end()) return "it is not paused";
  const std::size_t place = found->second;
  paused_.erase(found);
  return set_length(steps_[place], now_);
}

std::string Translation::disk(const Words& words) {
  if (words.size() != 3) return "which node, and stall or sync?";
  const auto found = slow_.find(words[1]);
  if (words[2] == "stall" && found == slow_.end()) {
    slow_[words[1]] = steps_.size();
    return add(fmt::format("slow.{}.{}", words[1], kLengthMaxMs));
  }
  if (words[2] != "sync" || found == slow_.end()) return "its disk is in that state already";
  const std::size_t place = found->second;
  slow_.erase(found);
  return set_length(steps_[place], now_);
}

/// What is not synced is lost.
std::string Translation::crash(const Words& words) {
  if (words.size() != 2) return "which node?";
  paused_.erase(words[1]);
  return add(fmt::format("{}.{}", slow_.erase(words[1]) > 0 ? "power" : "kill", words[1]));
}

/// Which message that is, its own run says.
std::string Translation::drop(const Words& words) {
  const std::size_t arrow = words.size() == 3 ? words[1].find("->") : std::string::npos;
  if (arrow == std::string::npos) {
    return "in the lab one message is lost, by its link and its type: `drop 1->2 append`";
  }
  const Result<Visit> visit = finish();
  if (!visit) return visit.error().message;
  Lab lab(visit.value());
  lab.run(milliseconds(now_));
  for (const sim::SimNetwork::Flight& flight : lab.flights()) {
    const std::string link = fmt::format("{}->{}", flight.from.value(), flight.to.value());
    if (link != words[1] || story::message_name(*flight.message) != words[2]) continue;
    return add(fmt::format("drop.{}.{}", flight.from.value(), flight.number));
  }
  return "in the lab no such message is under way then";
}

std::string Translation::take(const Words& words) {
  const std::string& name = words[0];
  if (const char* reason = reason_against(name)) return reason;
  const std::size_t before = steps_.size();
  std::string wrong;
  if (name == "run") return run(words);
  if (name == "delay") return delay(words);
  if (name == "resume") return resume(words);
  if (name == "nodes") return "the nodes are there already";
  if (name == "drift") {
    wrong = drift(words);
  } else if (name == "read") {
    wrong = read(words);
  } else if (name == "cut") {
    wrong = cut(words);
  } else if (name == "heal") {
    wrong = heal();
  } else if (name == "pause") {
    wrong = pause(words);
  } else if (name == "disk") {
    wrong = disk(words);
  } else if (name == "crash") {
    wrong = crash(words);
  } else if (name == "drop") {
    wrong = drop(words);
  } else if (name == "propose") {
    for (std::size_t i = 2; i < words.size(); ++i) add("write." + words[1]);
  } else if (name == "isolate" && words.size() == 2) {
    add("alone." + words[1]);
    for (std::uint64_t i = 1; i <= nodes_; ++i) {
      if (std::to_string(i) != words[1]) cut_.insert(std::minmax(words[1], std::to_string(i)));
    }
  } else if (name == "restart") {
    wrong = words.size() == 2 ? add("restart." + words[1])
                              : "in the lab a node starts with the numbers of the group";
  } else if (name == "transfer" && words.size() == 3) {
    wrong = add(fmt::format("transfer.{}.{}", words[1], words[2]));
  } else {
    return fmt::format("the lab knows no `{}`", name);
  }
  // The one decoder of steps has the last word.
  for (std::size_t i = before; i < steps_.size() && wrong.empty(); ++i) {
    const Result<Step> step = parse_step(steps_[i], nodes_);
    if (!step) wrong = step.error().message;
  }
  if (wrong.empty()) return "";
  steps_.resize(before);
  for (auto* lasting : {&paused_, &slow_}) {
    std::erase_if(*lasting, [before](const auto& one) { return one.second >= before; });
  }
  return wrong;
}

}  // namespace

Result<AskedVisit> visit_of_scenario(const story::ScenarioFile& file) {
  const auto where = [](const story::ScenarioCommand& command, const std::string& what) {
    return fmt::format("line {} `{}`: {}", command.line, command.text.substr(0, 60), what);
  };
  AskedVisit asked;
  Translation translation;
  for (const story::ScenarioCommand& command : file.commands) {
    const Words words = story::split(command.text);
    if (words.empty()) continue;
    if (&command == &file.commands.front()) {
      if (const Result<void> begun = translation.nodes(words); !begun) {
        return Error{begun.error().code, where(command, begun.error().message)};
      }
    } else if (translation.is_look(words[0])) {
      asked.left_out.push_back(where(command, "a visit says nothing of it"));
    } else if (const std::string wrong = translation.take(words); !wrong.empty()) {
      asked.without.push_back(where(command, wrong));
    }
  }
  Result<Visit> visit = translation.finish();
  if (!visit) return Error{visit.error().code, file.name + ": " + visit.error().message};
  asked.visit = std::move(visit).value();
  asked.until = milliseconds(translation.now());
  return asked;
}

}  // namespace leasehold::lab
