#include <leasehold/server/front/glob.h>

#include <algorithm>

namespace leasehold::server {
namespace {

constexpr auto kNone = std::string_view::npos;

/// Matches one byte against the part of the pattern at `at` and moves `at` past that part.
bool one_matches(std::string_view pattern, std::size_t& at, unsigned char c) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(pattern[i]); };
  if (pattern[at] == '?') {
    ++at;
    return true;
  }
  if (pattern[at] == '\\' && at + 1 < pattern.size()) {
    at += 2;
    return byte(at - 1) == c;
  }
  if (pattern[at] != '[') return byte(at++) == c;
  ++at;
  const bool negated = at < pattern.size() && pattern[at] == '^';
  if (negated) ++at;
  bool found = false;
  while (at < pattern.size() && pattern[at] != ']') {
    if (pattern[at] == '\\' && at + 1 < pattern.size()) {
      found = found || byte(at + 1) == c;
      at += 2;
    } else if (at + 2 < pattern.size() && pattern[at + 1] == '-') {
      const unsigned char low = std::min(byte(at), byte(at + 2));
      const unsigned char high = std::max(byte(at), byte(at + 2));
      found = found || (low <= c && c <= high);
      at += 3;
    } else {
      found = found || byte(at) == c;
      ++at;
    }
  }
  if (at < pattern.size()) ++at;  // a set that is never closed ends with the pattern
  return found != negated;
}

}  // namespace

bool glob_matches(std::string_view pattern, std::string_view text, std::size_t& budget) {
  std::size_t p = 0, t = 0, star = kNone, retry = 0;
  const auto step = [&budget](std::size_t cost) { budget -= std::min(budget, cost); };
  while (t < text.size() && budget > 0) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = ++p;
      retry = t;
      step(1);
      continue;
    }
    std::size_t next = p;
    if (p < pattern.size() && one_matches(pattern, next, static_cast<unsigned char>(text[t]))) {
      step(next - p);
      p = next;
      ++t;
      continue;
    }
    step(1 + next - p);
    if (star == kNone) return false;
    // The last star takes one byte more; the ones before it need not be tried again.
    p = star;
    t = ++retry;
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

}  // namespace leasehold::server
