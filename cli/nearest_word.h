// "did you mean status?"
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace leasehold::cli {

/// How many letters have to be changed, added, left out, or exchanged with their neighbour.
std::size_t edits_between(std::string_view a, std::string_view b);

/// "; did you mean status?", for the word of `known` that `given` is a slip of: two edits at most,
/// and fewer than half of its letters. Empty: there is none.
std::string did_you_mean(std::string_view given, const std::vector<std::string>& known);

}  // namespace leasehold::cli
