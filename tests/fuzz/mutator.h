// How the fuzzers of inputs with parts, such as commands, change these, and not bytes alone.
#pragma once

#include <leasehold/base/random.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace leasehold::fuzz {

/// How many of its parts are changed at once, at most.
inline constexpr std::uint64_t kChangesMax = 4;

/// `parts` is not empty.
template <typename Part>
Part& any_of(std::vector<Part>& parts, Random& random) {
  return parts[random.below(parts.size())];
}

/// Somewhere; late in the list more often than early, where it changes what all that follows means.
template <typename Part>
void insert_part(std::vector<Part>& parts, Part part, Random& random) {
  const std::size_t a = random.below(parts.size() + 1);
  const std::size_t b = random.below(parts.size() + 1);
  parts.insert(parts.begin() + static_cast<std::ptrdiff_t>(std::max(a, b)), std::move(part));
}

/// Takes one away, writes one twice, or lets two change places.
template <typename Part>
void rearrange(std::vector<Part>& parts, Random& random) {
  if (parts.empty()) return;
  Part& one = any_of(parts, random);
  switch (random.below(3)) {
    case 0: parts.erase(parts.begin() + (&one - parts.data())); return;
    case 1: insert_part(parts, Part(one), random); return;
    default: std::swap(one, any_of(parts, random));
  }
}

/// `input` with some of its parts changed: NAME_mutator.cc of the fuzzers that have one.
std::string changed(std::string_view input, Random& random);

}  // namespace leasehold::fuzz
