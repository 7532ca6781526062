// What a word of a command may be: a node, a time, a link, a setting, or messages on their way.
#include <leasehold/story/script_words.h>

#include <leasehold/story/script.h>
#include <leasehold/story/span.h>

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace leasehold::story {
namespace {

const std::vector<std::string>& message_types() {
  static const std::vector<std::string> kTypes = {
      "pre_vote",   "pre_vote_reply",   "vote",        "vote_reply", "append",    "append_reply",
      "read_index", "read_index_reply", "timeout_now", "beat",       "beat_reply"};
  return kTypes;
}

/// A link in which * stands for any node.
struct LinkPattern {
  std::uint64_t from = 0;
  std::uint64_t to = 0;
  std::optional<GroupId> group;
  /// What goes between the processes has no group, and is on the links of the first one.
  bool matches(const Flight& flight) const {
    return (from == 0 || flight.from.value() == from) && (to == 0 || flight.to.value() == to) &&
           (!group || std::max(flight.group, kFirstGroup) == *group);
  }
};

}  // namespace

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> words;
  std::string word;
  for (const char c : text + " ") {
    if (c != ' ') {
      word += c;
    } else if (!word.empty()) {
      words.push_back(word);
      word.clear();
    }
  }
  return words;
}

std::string join(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

std::optional<std::uint64_t> parse_number(const std::string& word) {
  if (word.empty() || word.size() > 15) return std::nullopt;
  std::uint64_t n = 0;
  for (const char c : word) {
    if (c < '0' || c > '9') return std::nullopt;
    n = n * 10 + static_cast<std::uint64_t>(c - '0');
  }
  return n;
}

std::optional<std::int64_t> parse_rate(std::string word) {
  bool negative = false;
  if (!word.empty() && (word[0] == '+' || word[0] == '-')) {
    negative = word[0] == '-';
    word.erase(0, 1);
  }
  std::int64_t scale = 1;
  std::int64_t ppm = 0;
  if (word.size() > 1 && word.back() == '%') {
    word.pop_back();
    scale = 10'000;
    const std::size_t point = word.find('.');
    if (point != std::string::npos) {
      const auto tenths = parse_number(word.substr(point + 1));
      if (!tenths || *tenths > 9) return std::nullopt;
      ppm = static_cast<std::int64_t>(*tenths) * 1000;
      word.erase(point);
    }
  } else if (word.size() > 3 && word.compare(word.size() - 3, 3, "ppm") == 0) {
    word.erase(word.size() - 3);
  } else if (word != "0") {
    return std::nullopt;
  }
  const auto whole = parse_number(word);
  if (!whole || *whole > 1'000'000) return std::nullopt;
  ppm += static_cast<std::int64_t>(*whole) * scale;
  return negative ? -ppm : ppm;
}

Error Script::wrong(const std::string& what) {
  return Error{ErrorCode::invalid_argument, what};
}

Result<std::uint64_t> Script::number(const std::string& word) {
  const auto n = parse_number(word);
  if (!n) return wrong(fmt::format("`{}` is not a number", word));
  return *n;
}

Result<NodeId> Script::node(const std::string& word) const {
  const auto n = parse_number(word);
  if (!n || !cluster_->knows(NodeId(*n))) {
    return wrong(fmt::format("`{}` is not a node; allowed: 1 to {}", word, cluster_->size()));
  }
  return NodeId(*n);
}

Result<NodeId> Script::running(const std::string& word) const {
  auto id = node(word);
  if (!id) return id;
  const StoryNode& node = cluster_->node(id.value());
  if (!node.up) return wrong(fmt::format("node {} is down; `restart {}` starts it", word, word));
  if (node.paused) {
    return wrong(fmt::format("node {} is paused; `resume {}` continues it", word, word));
  }
  return id;
}

Result<Replica> Script::replica(const std::string& word) const {
  const std::size_t digits = word.find_first_not_of("0123456789");
  const std::string letter = digits == std::string::npos ? "" : word.substr(digits);
  Replica id;
  if (!letter.empty()) id.group = GroupId(static_cast<unsigned char>(letter[0]) - 'a' + 1ULL);
  const auto of = node(word.substr(0, digits));
  const bool of_a_group = letter.empty() || (letter.size() == 1 && id.group > kFirstGroup &&
                                             id.group.value() <= cluster_->groups());
  if (!of || !of_a_group) {
    if (cluster_->groups() == 1) return node(word).error();
    return wrong(fmt::format("`{}` is no node's replica; allowed: 1 to {}, and {} to {}", word,
                             cluster_->size(), short_name(NodeId(1), GroupId(2)),
                             short_name(NodeId(cluster_->size()), GroupId(cluster_->groups()))));
  }
  id.node = of.value();
  return id;
}

Result<Replica> Script::running_replica(const std::string& word) const {
  const auto id = replica(word);
  if (!id) return id;
  const auto runs = running(short_name(id.value().node));
  if (!runs) return runs.error();
  return id;
}

Result<std::vector<Replica>> Script::replica_or_all(const Words& words, std::size_t at) const {
  std::vector<Replica> all;
  for (std::size_t i = at; i < words.size(); ++i) {
    const auto id = replica(words[i]);
    if (!id) return id.error();
    all.push_back(id.value());
  }
  if (!all.empty()) return all;
  for (std::uint64_t group = 1; group <= cluster_->groups(); ++group) {
    for (std::uint64_t i = 1; i <= cluster_->size(); ++i) {
      all.push_back({NodeId(i), GroupId(group)});
    }
  }
  return all;
}

Result<Duration> Script::time(const std::string& word) {
  if (const auto span = parse_span(word)) return *span;
  return wrong(fmt::format("`{}` is not a time; allowed: 250us, 300ms, 2s, up to one hour", word));
}

Result<std::map<std::string, std::string>> Script::settings(
    const Words& words, std::size_t first, const std::vector<std::string>& allowed) {
  std::map<std::string, std::string> found;
  for (std::size_t i = first; i < words.size(); ++i) {
    const std::size_t equals = words[i].find('=');
    const std::string name = words[i].substr(0, equals);
    const bool known = std::find(allowed.begin(), allowed.end(), name) != allowed.end();
    if (equals == std::string::npos || equals + 1 == words[i].size() || !known) {
      return wrong(fmt::format("`{}` is not a setting; allowed, each as name=value: {}", words[i],
                               join(allowed)));
    }
    found[name] = words[i].substr(equals + 1);
  }
  return found;
}

Result<std::pair<Replica, Replica>> Script::link(const std::string& word) const {
  const std::size_t arrow = word.find("->");
  const Error error = wrong(fmt::format("`{}` is not a link; allowed: 1->2", word));
  if (arrow == std::string::npos) return error;
  const auto from = replica(word.substr(0, arrow));
  const auto to = replica(word.substr(arrow + 2));
  if (!from || !to || from.value().node == to.value().node) return error;
  if (from.value().group != to.value().group) return error;
  return std::pair(from.value(), to.value());
}

Result<std::vector<std::uint64_t>> Script::matching(const Words& words) const {
  bool all = false;
  std::vector<std::uint64_t> numbers;
  std::vector<LinkPattern> links;
  std::vector<std::string> types;
  for (std::size_t i = 1; i < words.size(); ++i) {
    const std::string& word = words[i];
    const std::size_t arrow = word.find("->");
    if (word == "all") {
      all = true;
    } else if (word[0] == '#' && parse_number(word.substr(1))) {
      numbers.push_back(*parse_number(word.substr(1)));
    } else if (arrow != std::string::npos) {
      LinkPattern pattern;
      for (const bool from : {true, false}) {
        const std::string end = from ? word.substr(0, arrow) : word.substr(arrow + 2);
        if (end == "*") continue;
        const auto id = replica(end);
        if (!id) return id.error();
        (from ? pattern.from : pattern.to) = id.value().node.value();
        if (pattern.group.value_or(id.value().group) != id.value().group) {
          return wrong(fmt::format("`{}` is between two groups; nothing goes there", word));
        }
        pattern.group = id.value().group;
      }
      links.push_back(pattern);
    } else if (std::find(message_types().begin(), message_types().end(), word) !=
               message_types().end()) {
      types.push_back(word);
    } else {
      return wrong(
          fmt::format("`{}` names no message; allowed: all, #N, A->B with * for any node, {}", word,
                      join(message_types())));
    }
  }
  if (words.size() < 2) return wrong("which messages? allowed: all, #N, A->B, a type");
  std::vector<std::uint64_t> found;
  for (const Flight& flight : cluster_->flights()) {
    const bool by_number =
        std::find(numbers.begin(), numbers.end(), flight.number) != numbers.end();
    const bool by_link =
        links.empty() || std::any_of(links.begin(), links.end(),
                                     [&flight](const LinkPattern& p) { return p.matches(flight); });
    const bool by_type =
        types.empty() || std::find(types.begin(), types.end(), flight.name()) != types.end();
    const bool by_words = (!links.empty() || !types.empty()) && by_link && by_type;
    if (all || by_number || by_words) found.push_back(flight.number);
  }
  if (!found.empty()) return found;
  std::string way;
  for (const Flight& flight : cluster_->flights()) {
    way += fmt::format(" #{} {} {}", flight.number, flight.way(), flight.name());
  }
  return wrong("no such message is on its way; on its way:" + (way.empty() ? " nothing" : way));
}

Detail Script::detail(Words& words, Detail otherwise) const {
  if (words.back() == "full" || words.back() == "brief") {
    otherwise = words.back() == "full" ? Detail::full : Detail::brief;
    words.pop_back();
  }
  return otherwise;
}

}  // namespace leasehold::story
