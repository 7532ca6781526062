#include <leasehold/cli/nearest_word.h>

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>

namespace leasehold::cli {
namespace {

constexpr std::size_t kEditsMax = 2;
/// No command has a longer name; a longer word is not a misspelt command.
constexpr std::size_t kWordBytesMax = 32;

}  // namespace

std::size_t edits_between(std::string_view a, std::string_view b) {
  // Row i: from the first i letters of `a` to each beginning of `b` (optimal string alignment).
  std::vector<std::vector<std::size_t>> rows(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t j = 0; j <= b.size(); ++j) rows[0][j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    rows[i][0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t changed = a[i - 1] == b[j - 1] ? 0 : 1;
      std::size_t& least = rows[i][j];
      least = std::min({rows[i - 1][j] + 1, rows[i][j - 1] + 1, rows[i - 1][j - 1] + changed});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) least = std::min(least, rows[i - 2][j - 2] + 1);
    }
  }
  return rows[a.size()][b.size()];
}

std::string did_you_mean(std::string_view given, const std::vector<std::string>& known) {
  if (given.size() > kWordBytesMax) return "";
  std::size_t least = kEditsMax + 1;
  const std::string* nearest = nullptr;
  for (const std::string& word : known) {
    const std::size_t edits = edits_between(given, word);
    if (edits >= least || 2 * edits >= word.size()) continue;
    least = edits;
    nearest = &word;
  }
  return nearest == nullptr ? "" : fmt::format("; did you mean {}?", *nearest);
}

}  // namespace leasehold::cli
