#include <leasehold/tests/story/random_command.h>

#include <algorithm>
#include <iterator>
#include <string_view>
#include <vector>

namespace leasehold::story {
namespace {

using Form = std::string_view;

std::vector<Form> lines_of(std::string_view text) {
  std::vector<Form> lines;
  while (!text.empty()) {
    lines.push_back(text.substr(0, text.find('\n')));
    text.remove_prefix(std::min(text.size(), lines.back().size() + 1));
  }
  return lines;
}

// In a form, $ and a letter stand for what is drawn: $n a node, $g its replica of a group, $l a
// link, $L one between two replicas of a group, $m a type of message,
// $d a number, $t a small one, $T up to four of these that never fall, $s a span, $S one of a few
// milliseconds, $r a rate within the bound of the clocks, $b yes or no. "[...]" is there or not.

const std::vector<Form> kGroups = lines_of(R"(nodes $t
nodes 3[ lease=$s][ heartbeat=$S][ election=$s][ rtt=$S][ margin=$S]
nodes 3[ drift=$d%][ delay=$S][ seed=$d]
nodes 5[ shared][ delay=$S][ seed=$d]
nodes 3 shared[ lease=$s][ heartbeat=$S][ drift=$d%]
nodes 3 shared groups=$t[ lease=$s][ heartbeat=$S])");

const std::vector<Form> kHonest = lines_of(R"(campaign $g
campaign $g
campaign $g
settle[ full]
settle
deliver all[ brief]
deliver $L[ $m][ brief]
deliver $m[ full]
deliver #$d
deliver *->$g
deliver $g->*
drop $L
drop $m
drop all
drop #$d
again #$d
run $S[ full]
run $s
run $s
run $s
advance $s
advance $S
crash $n
restart $n
restart $n lease=$s
notice $n $n
transfer $g $g
beat $n
beat $n
restart $n[ margin=$S] drift=$d%
settings $g lease=$s
settings $g drift=$d%[ margin=$S]
settings $g[ heartbeat=$S][ election=$s][ rtt=$S] reads=on
settings $g reads=off
pause $n
resume $n[ read]
disk $n stall
disk $n sync
propose $g x=$d
propose $g a b c[ d=$d]
read $g lease
read $g quorum
heal
cut $l
cut $l $n-$n
isolate $n
drift $n $r[ holder]
drift $n $r promise
tick $g
delay $S
entries $t
mark $d
show state
show log $g
show lease
show promise[ $g]
show timer
show messages)");

const std::vector<Form> kLies = lines_of(R"(preset $g term=$t[ log=$T]
preset $g term=$d log=$T
drift $n +$d%[ holder] beyond
drift $n -$d%[ promise] beyond
drift $n $d.$t%[ both beyond]
drift $n -$dppm
forge $L vote term=$t last_term=$t last_index=$t
forge $L pre_vote term=$t last_term=$t last_index=$t
forge $L append term=$t last_term=$t last_index=$t round=$d commit=$t[ lease=$s]
forge $L append term=$t round=$t
forge $L append_reply term=$t request_term=$t round=$d promised=$b matched=$b index=$t
forge $L append_reply term=$t request_term=$t round=$t promised=yes matched=yes
expect $g role leader
expect $g role follower
expect $g role candidate
expect $g term $t
expect $g commit $t
expect $g log $t $t
expect $g log empty
expect $g vote none
expect $g vote $g committed
expect $g vote $g uncommitted
expect $g lease none
expect $g lease valid
expect $g lease ended
expect $g promise none
expect $g promise $g live
expect $g promise $g ended
expect read $t by lease
expect read $t by quorum
expect read $t by leader
expect read $t waits
expect read $t refused)");

constexpr std::string_view kTypes[] = {
    "pre_vote",   "pre_vote_reply",   "vote",        "vote_reply", "append",    "append_reply",
    "read_index", "read_index_reply", "timeout_now", "beat",       "beat_reply"};
constexpr std::string_view kRates[] = {"+10%", "-10%", "-8.3%", "+120ppm", "0"};

template <typename List>
auto one_of(Random& random, const List& list) {
  return list[random.below(std::size(list))];
}

std::string number(Random& random, std::uint64_t below) {
  return std::to_string(random.below(below));
}

std::string node(Random& random, const Cast& cast) {
  return std::to_string(1 + random.below(cast.nodes));
}

/// "" for the first one.
std::string group(Random& random, const Cast& cast) {
  const std::uint64_t group = random.below(cast.groups);
  return group == 0 ? "" : std::string(1, static_cast<char>('a' + group));
}

std::string link(Random& random, const Cast& cast, const std::string& group) {
  const std::uint64_t from = random.below(cast.nodes);
  const std::uint64_t step = cast.nodes < 2 ? 0 : 1 + random.below(cast.nodes - 1);
  const std::uint64_t to = (from + step) % cast.nodes;
  return std::to_string(1 + from) + group + "->" + std::to_string(1 + to) + group;
}

std::string rising(Random& random) {
  std::uint64_t term = 1 + random.below(2);
  std::string text = std::to_string(term);
  for (std::uint64_t more = random.below(4); more > 0; --more) {
    term += random.below(2);
    text += "," + std::to_string(term);
  }
  return text;
}

std::string drawn(Random& random, const Cast& cast, char letter) {
  switch (letter) {
    case 'n': return node(random, cast);
    case 'g': return node(random, cast) + group(random, cast);
    case 'l': return link(random, cast, "");
    case 'L': return link(random, cast, group(random, cast));
    case 'm': return std::string(one_of(random, kTypes));
    case 'd': return number(random, 60);
    case 't': return number(random, 7);
    case 'T': return rising(random);
    case 's': return number(random, 90) + "0ms";
    case 'S': return number(random, 30) + "ms";
    case 'r': return std::string(one_of(random, kRates));
    case 'b': return random.chance(1, 2) ? "yes" : "no";
    default: LEASEHOLD_UNREACHABLE();
  }
}

std::string filled(Random& random, const Cast& cast, Form form) {
  std::string text;
  for (std::size_t at = 0; at < form.size(); ++at) {
    if (form[at] == '$') {
      text += drawn(random, cast, form[++at]);
    } else if (form[at] == '[') {
      if (random.chance(1, 2)) at = form.find(']', at);
    } else if (form[at] != ']') {
      text += form[at];
    }
  }
  return text;
}

}  // namespace

std::string random_group(Random& random) {
  const Form form = one_of(random, kGroups);
  return filled(random, {}, form);
}

std::string random_command(Random& random, const Cast& cast) {
  const bool lie = cast.lies && random.chance(1, 4);
  const Form form = lie ? one_of(random, kLies) : one_of(random, kHonest);
  return filled(random, cast, form);
}

}  // namespace leasehold::story
