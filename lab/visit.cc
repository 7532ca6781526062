#include <leasehold/lab/visit.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <optional>
#include <set>

namespace leasehold::lab {
namespace {

using std::chrono::milliseconds;

constexpr std::array<const char*, 23> kVerbs = {
    "kill",     "power", "restart", "pause",  "resume", "suspend", "cut",   "one_way",
    "join",     "alone", "reunite", "slow",   "drift",  "jump",    "write", "read",
    "transfer", "add",   "promote", "remove", "drop",   "delay",   "twice"};
constexpr std::array<const char*, 3> kModes = {"lease", "quorum", "log"};
/// Of a pause, a sleep, a slow disk, a leap or a message's way.
constexpr std::int64_t kAmountMaxMs = 60'000;
constexpr std::int64_t kDriftMaxPpm = 900'000;
constexpr std::int64_t kTimingMaxMs = 20'000;
constexpr std::int64_t kPeriodMaxMs = 60'000;
constexpr std::int64_t kMessageMax = 999'999'999;

enum class Takes : std::uint8_t {
  nothing,
  peer,
  length,
  rate,
  mode,
  perhaps_asked,
  message,
  message_and_length,
};

Takes taken_by(Verb verb) {
  switch (verb) {
    case Verb::cut:
    case Verb::one_way:
    case Verb::join:
    case Verb::transfer: return Takes::peer;
    case Verb::pause:
    case Verb::suspend:
    case Verb::slow:
    case Verb::jump: return Takes::length;
    case Verb::drift: return Takes::rate;
    case Verb::read: return Takes::mode;
    case Verb::add:
    case Verb::promote:
    case Verb::remove: return Takes::perhaps_asked;
    case Verb::drop: return Takes::message;
    case Verb::delay:
    case Verb::twice: return Takes::message_and_length;
    case Verb::kill:
    case Verb::power:
    case Verb::restart:
    case Verb::resume:
    case Verb::alone:
    case Verb::reunite:
    case Verb::write: return Takes::nothing;
  }
  LEASEHOLD_UNREACHABLE();
}

/// Whether it is done to one replica, and not to a node.
bool of_a_group(Verb verb) {
  return verb == Verb::write || verb == Verb::read || verb == Verb::transfer;
}

Error wrong(std::string text) {
  return Error{ErrorCode::invalid_argument, std::move(text)};
}

std::vector<std::string_view> cut_at(std::string_view text, char mark) {
  std::vector<std::string_view> words;
  while (true) {
    const std::size_t end = text.find(mark);
    words.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return words;
    text.remove_prefix(end + 1);
  }
}

/// Up to 15 digits, so that nothing overflows.
std::optional<std::int64_t> number_of(std::string_view word) {
  const bool negative = !word.empty() && word.front() == '-';
  if (negative) word.remove_prefix(1);
  if (word.empty() || word.size() > 15) return std::nullopt;
  std::int64_t number = 0;
  for (const char c : word) {
    if (c < '0' || c > '9') return std::nullopt;
    number = number * 10 + (c - '0');
  }
  return negative ? -number : number;
}

Result<std::int64_t> between(std::string_view name, std::string_view word, std::int64_t low,
                             std::int64_t high) {
  const std::optional<std::int64_t> number = number_of(word);
  if (number && *number >= low && *number <= high) return *number;
  return wrong(fmt::format("{} is \"{}\"; it must be a number from {} to {}", name,
                           word.substr(0, 20), low, high));
}

template <std::size_t N>
std::optional<std::size_t> place_of(const std::array<const char*, N>& names,
                                    std::string_view word) {
  const auto found = std::find(names.begin(), names.end(), word);
  if (found == names.end()) return std::nullopt;
  return static_cast<std::size_t>(found - names.begin());
}

Result<void> read_object(std::string_view word, std::uint64_t nodes, Step& step) {
  const char* name = verb_name(step.verb);
  switch (taken_by(step.verb)) {
    case Takes::nothing: return {};
    case Takes::peer:
    case Takes::perhaps_asked: {
      const auto peer = between("the other node of a step", word, 1, std::int64_t(nodes));
      if (!peer) return peer.error();
      step.peer = raft::NodeId(static_cast<std::uint64_t>(peer.value()));
      if (taken_by(step.verb) == Takes::peer && step.peer == step.node) {
        return wrong(fmt::format("{} needs two different nodes", name));
      }
      return {};
    }
    case Takes::message: {
      const auto number = between("the number of a message", word, 1, kMessageMax);
      if (!number) return number.error();
      step.message = static_cast<std::uint64_t>(number.value());
      return {};
    }
    case Takes::message_and_length:
    case Takes::length:
    case Takes::rate: {
      const bool rate = taken_by(step.verb) == Takes::rate;
      const auto amount =
          between(name, word, rate ? -kDriftMaxPpm : 1, rate ? kDriftMaxPpm : kAmountMaxMs);
      if (!amount) return amount.error();
      step.amount = amount.value();
      return {};
    }
    case Takes::mode: {
      const std::optional<std::size_t> mode = place_of(kModes, word);
      if (!mode) return wrong("a read is by lease, quorum or log");
      step.mode = static_cast<raft::ReadMode>(*mode);
      return {};
    }
  }
  LEASEHOLD_UNREACHABLE();
}

std::int64_t ms(Duration duration) {
  return duration / milliseconds(1);
}

/// One number of a visit: its name, its range, and where it goes.
struct Named {
  const char* name;
  std::int64_t low;
  std::int64_t high;
  Duration* duration = nullptr;
  std::int64_t* number = nullptr;
};

std::vector<Named> names_of(Visit& visit) {
  lease::Timing& timing = visit.timing;
  return {{"lease", 1, kTimingMaxMs, &timing.lease},
          {"heartbeat", 1, kTimingMaxMs, &timing.heartbeat},
          {"drift", 0, 500'000, nullptr, &timing.max_clock_drift_ppm},
          // Below zero it is for unchecked visits, and Timing::validate() says so.
          {"margin", -kTimingMaxMs, kTimingMaxMs, &timing.margin},
          {"rtt", 1, kTimingMaxMs, &timing.max_round_trip},
          {"election", 1, kTimingMaxMs, &timing.election_timeout},
          {"delay", 1, 1'000, &visit.delay},
          {"reads", 0, kPeriodMaxMs, &visit.reads},
          {"writes", 0, kPeriodMaxMs, &visit.writes},
          {"known", 0, 1, nullptr, &visit.known_deaths}};
}

Result<void> read_steps(std::string_view text, Visit& visit) {
  if (text.empty()) return {};
  const std::vector<std::string_view> words = cut_at(text, '~');
  if (words.size() > Visit::kStepsMax) {
    return wrong(fmt::format("a visit has at most {} steps", Visit::kStepsMax));
  }
  for (const std::string_view word : words) {
    Result<Step> step = parse_step(word, visit.all(), visit.groups);
    if (!step) return step.error();
    if (!visit.steps.empty() && step.value().at < visit.steps.back().at) {
      return wrong("the steps of a visit stand in the order of their times");
    }
    visit.steps.push_back(step.value());
  }
  return {};
}

Result<void> read_number(std::string_view name, std::string_view value, Visit& visit) {
  if (name == "seed") {
    const auto seed = between(name, value, 0, 999'999'999);
    if (!seed) return seed.error();
    visit.seed = static_cast<std::uint64_t>(seed.value());
    return {};
  }
  if (name == "nodes") {
    if (value != "3" && value != "5" && value != "7") return wrong("nodes is 3, 5 or 7");
    visit.nodes = static_cast<std::uint64_t>(value.front() - '0');
    return {};
  }
  if (name == "spare") {
    const auto spare = between(name, value, 0, 2);
    if (!spare) return spare.error();
    visit.spare = static_cast<std::uint64_t>(spare.value());
    return {};
  }
  if (name == "unchecked") {
    const auto unchecked = between(name, value, 0, 1);
    if (!unchecked) return unchecked.error();
    visit.unchecked = static_cast<std::uint64_t>(unchecked.value());
    return {};
  }
  if (name == "groups") {
    const auto groups = between(name, value, 1, 2);
    if (!groups) return groups.error();
    visit.groups = static_cast<std::uint64_t>(groups.value());
    return {};
  }
  for (const Named& named : names_of(visit)) {
    if (name != named.name) continue;
    const auto number = between(name, value, named.low, named.high);
    if (!number) return number.error();
    if (named.number != nullptr) {
      *named.number = number.value();
    } else {
      *named.duration = milliseconds(number.value());
    }
    return {};
  }
  return wrong(fmt::format("nothing is called \"{}\" here", name.substr(0, 20)));
}

/// Whether this is the lab whose core checks its numbers.
bool core_checks() {
  lease::Timing nothing_to_use;
  nothing_to_use.margin = nothing_to_use.lease;
  return !nothing_to_use.validate().ok();
}

Result<void> check_timing(const Visit& visit) {
  if (core_checks() == (visit.unchecked != 0)) {
    return visit.unchecked != 0
               ? wrong(
                     "this core checks its numbers; a visit with unchecked=1 is for "
                     "leasehold_lab_unchecked, or for the page")
               : wrong(
                     "this core does not check its numbers: it takes only visits with unchecked=1");
  }
  return visit.timing.validate();
}

}  // namespace

const char* verb_name(Verb verb) {
  return kVerbs[static_cast<std::size_t>(verb)];
}

bool is_about_message(Verb verb) {
  return verb == Verb::drop || verb == Verb::delay || verb == Verb::twice;
}

std::string step_text(const Step& step) {
  std::string text = fmt::format("{}.{}.{}{}", ms(step.at), verb_name(step.verb), step.node.value(),
                                 step.group == raft::GroupId(1) ? "" : "b");
  switch (taken_by(step.verb)) {
    case Takes::nothing: return text;
    case Takes::peer: return text + fmt::format(".{}", step.peer.value());
    case Takes::length:
    case Takes::rate: return text + fmt::format(".{}", step.amount);
    case Takes::perhaps_asked:
      return step.peer == raft::kNobody ? text : text + fmt::format(".{}", step.peer.value());
    case Takes::mode: return text + "." + kModes[static_cast<std::size_t>(step.mode)];
    case Takes::message: return text + fmt::format(".{}", step.message);
    case Takes::message_and_length: return text + fmt::format(".{}.{}", step.message, step.amount);
  }
  LEASEHOLD_UNREACHABLE();
}

Result<Step> parse_step(std::string_view text, std::uint64_t nodes, std::uint64_t groups) {
  const std::vector<std::string_view> words = cut_at(text, '.');
  if (words.size() < 3) {
    return wrong(fmt::format("\"{}\" is no step; one is like 1500.kill.1", text.substr(0, 40)));
  }
  Step step;
  const auto at = between("the time of a step", words[0], 0, ms(Visit::kLongest));
  if (!at) return at.error();
  step.at = milliseconds(at.value());
  const std::optional<std::size_t> verb = place_of(kVerbs, words[1]);
  if (!verb) return wrong(fmt::format("no step is called \"{}\"", words[1].substr(0, 20)));
  step.verb = static_cast<Verb>(*verb);
  if (groups > 1 && taken_by(step.verb) == Takes::perhaps_asked) {
    return wrong("members change in a visit of one group");
  }
  if (groups > 1 && is_about_message(step.verb)) {
    return wrong("messages are handled in a visit of one group");
  }
  std::string_view where = words[2];
  if (groups > 1 && of_a_group(step.verb) && where.ends_with('b')) {
    where.remove_suffix(1);
    step.group = raft::GroupId(2);
  }
  const auto node = between("the node of a step", where, 1, std::int64_t(nodes));
  if (!node) return node.error();
  step.node = raft::NodeId(static_cast<std::uint64_t>(node.value()));
  const Takes takes = taken_by(step.verb);
  if (takes == Takes::perhaps_asked && words.size() == 3) return step;
  const std::size_t length = takes == Takes::nothing              ? 3
                             : takes == Takes::message_and_length ? 5
                                                                  : 4;
  if (words.size() != length) {
    return wrong(fmt::format("{} takes {}{} words, with its time", words[1],
                             takes == Takes::perhaps_asked ? "3 or " : "", length));
  }
  if (takes == Takes::message_and_length) {
    const auto number = between("the number of a message", words[3], 1, kMessageMax);
    if (!number) return number.error();
    step.message = static_cast<std::uint64_t>(number.value());
  }
  if (const Result<void> read = read_object(words.back(), nodes, step); !read) return read.error();
  return step;
}

std::string visit_text(const Visit& visit) {
  std::string text = fmt::format("seed={}&nodes={}", visit.seed, visit.nodes);
  if (visit.spare > 0) text += fmt::format("&spare={}", visit.spare);
  if (visit.unchecked > 0) text += fmt::format("&unchecked={}", visit.unchecked);
  if (visit.groups > 1) text += fmt::format("&groups={}", visit.groups);
  Visit copy = visit;
  for (const Named& named : names_of(copy)) {
    text += fmt::format("&{}={}", named.name,
                        named.number != nullptr ? *named.number : ms(*named.duration));
  }
  text += "&steps=";
  for (std::size_t i = 0; i < visit.steps.size(); ++i) {
    text += (i == 0 ? "" : "~") + step_text(visit.steps[i]);
  }
  return text;
}

Result<Visit> parse_visit(std::string_view text) {
  Visit visit;
  std::string_view steps;
  std::set<std::string_view> seen;
  for (const std::string_view word : cut_at(text, '&')) {
    if (word.empty()) continue;
    const std::size_t mark = word.find('=');
    const std::string_view name = word.substr(0, mark);
    const std::string_view value =
        mark == std::string_view::npos ? std::string_view() : word.substr(mark + 1);
    if (!seen.insert(name).second) {
      return wrong(fmt::format("\"{}\" stands twice", name.substr(0, 20)));
    }
    if (name == "steps") {
      steps = value;
    } else if (const Result<void> read = read_number(name, value, visit); !read) {
      return read.error();
    }
  }
  for (const Duration period : {visit.reads, visit.writes, visit.timing.heartbeat}) {
    if (period > Duration{0} && period < Visit::kPeriodMin) {
      return wrong(
          fmt::format("rounds, reads and writes are at least {} ms apart", ms(Visit::kPeriodMin)));
    }
  }
  if (const Result<void> valid = check_timing(visit); !valid) return valid.error();
  if (visit.groups > 1 && visit.spare > 0) {
    return wrong("two groups have no spare nodes: choose one group, or no spare node");
  }
  if (const Result<void> read = read_steps(steps, visit); !read) return read.error();
  return visit;
}

}  // namespace leasehold::lab
