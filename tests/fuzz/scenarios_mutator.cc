// How libFuzzer changes scenario files: by commands as well as by bytes. What chance makes of a
// command's letters is mostly refused, and a scenario ends with the first refusal.
#include <leasehold/tests/fuzz/mutator.h>
#include <leasehold/tests/story/random_command.h>

#include <algorithm>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace leasehold::fuzz {
namespace {

constexpr std::string_view kHead = "# a\nSource: a\n";
constexpr std::string_view kNodes = "> nodes ";

using Lines = std::vector<std::string>;

bool is_group(const std::string& line) {
  return line.compare(0, kNodes.size(), kNodes) == 0;
}

/// How many nodes the group has, if one digit says it.
std::uint64_t nodes_of(const Lines& lines) {
  for (const std::string& line : lines) {
    const char digit = is_group(line) && line.size() > kNodes.size() ? line[kNodes.size()] : '\0';
    if (digit >= '1' && digit <= '9') return static_cast<std::uint64_t>(digit - '0');
  }
  return story::Cast().nodes;
}

/// How many groups these nodes have, if they have several.
std::uint64_t groups_of(const Lines& lines) {
  constexpr std::string_view kGroups = " groups=";
  for (const std::string& line : lines) {
    const std::size_t at = is_group(line) ? line.find(kGroups) : std::string::npos;
    if (at == std::string::npos || at + kGroups.size() >= line.size()) continue;
    const char digit = line[at + kGroups.size()];
    if (digit >= '1' && digit <= '3') return static_cast<std::uint64_t>(digit - '0');
  }
  return story::Cast().groups;
}

/// One digit of a line becomes another one.
void change_number(Lines& lines, Random& random) {
  if (lines.empty()) return;
  std::string& line = any_of(lines, random);
  const std::size_t from = line.empty() ? 0 : random.below(line.size());
  const std::size_t at = line.find_first_of("0123456789", from);
  if (at != std::string::npos) line[at] = static_cast<char>('0' + random.below(10));
}

/// Another group, or one if there is none.
void change_group(Lines& lines, Random& random) {
  const auto group = std::find_if(lines.begin(), lines.end(), is_group);
  std::string other = "> " + story::random_group(random);
  if (group == lines.end()) {
    lines.insert(lines.begin(), std::string(kHead) + other);
  } else if (random.chance(1, 4)) {
    *group = std::move(other);
  }
}

void change(Lines& lines, Random& random) {
  switch (random.below(8)) {
    case 0:
    case 1:
    case 2: return rearrange(lines, random);
    case 3: return change_number(lines, random);
    case 4: return change_group(lines, random);
    default: {
      const story::Cast cast{nodes_of(lines), true, groups_of(lines)};
      std::string command = story::random_command(random, cast);
      return insert_part(lines, "> " + command, random);
    }
  }
}

}  // namespace

std::string changed(std::string_view text, Random& random) {
  Lines lines;
  std::istringstream in{std::string(text)};
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  for (std::uint64_t more = 1 + random.below(kChangesMax); more > 0; --more) change(lines, random);
  std::string all;
  for (const std::string& line : lines) all.append(line).append("\n");
  return all;
}

}  // namespace leasehold::fuzz
